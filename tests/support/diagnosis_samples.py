"""Evidence of failed tests, for the tests of the diagnosis."""

from __future__ import annotations

from typing import Any

from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.verdicts import EvidenceKind, Phase, Side

TEST_FILE = "tests/test_cart.py"


def frame(path: str, function: str, line: int = 1, **more: Any) -> Frame:
    """Return a frame of a test or of the product, by its path."""
    side = Side.TEST if path.startswith("tests/") else Side.PRODUCT
    facts: dict[str, Any] = {"side": side, "module": path.removesuffix(".py").replace("/", ".")}
    return Frame(path=path, function=function, line=line, **facts | more)


def error(kind: str, message: str = "", *frames: Frame, bases: str = "", **more: Any) -> ExceptionFact:
    """Return an exception; a ``kind`` without a dot is a builtin, as are its ``bases``."""
    return ExceptionFact(
        type=kind.rpartition(".")[2],
        qualified=kind if "." in kind else f"builtins.{kind}",
        bases=tuple(f"builtins.{base}" for base in bases.split()),
        message=message,
        frames=frames,
        **more,
    )


def failed(*errors: ExceptionFact, nodeid: str = f"{TEST_FILE}::test_total", **more: Any) -> Evidence:
    """Return evidence of a test that failed with these exceptions; ``more`` overrides its fields."""
    fields: dict[str, Any] = {
        "kind": EvidenceKind.TEST,
        "phase": Phase.CALL,
        "nodeid": nodeid,
        "exceptions": errors,
        "first_party": ("shop",),
        "headline": f"{errors[0].type}: {errors[0].message}" if errors else "failed",
    }
    return Evidence(**fields | more)
