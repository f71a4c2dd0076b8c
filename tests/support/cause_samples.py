"""Failures of a run as they are recorded, for the tests of root causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.model.evidence import (
    ArtifactFact,
    CommandFact,
    Evidence,
    ExceptionFact,
    Finding,
    Frame,
)
from planner.model.verdicts import EvidenceKind, Phase, Side
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.diagnosis.causes import SeenFailure

if TYPE_CHECKING:
    from planner.model.outcome import Cause

PLAN = "shop"


def frame(path: str, function: str, *, line: int = 1, source: str = "x = 1", **more: Any) -> Frame:
    side = Side.TEST if path.startswith("tests/") else Side.PRODUCT
    module = path.removesuffix(".py").replace("/", ".")
    return Frame(path=path, line=line, function=function, side=side, source=source, module=module, **more)


def error(kind: str, message: str = "", *frames: Frame, **more: Any) -> ExceptionFact:
    module = "" if "." in kind else "builtins."
    return ExceptionFact(
        type=kind.rpartition(".")[2], qualified=f"{module}{kind}", message=message, frames=frames, **more
    )


def failing(nodeid: str, *errors: ExceptionFact, phase: Phase = Phase.CALL, **more: Any) -> Evidence:
    """A phase of a test that raised."""
    return Evidence(
        kind=EvidenceKind.TEST,
        check_id="tests[0]",
        phase=phase,
        nodeid=nodeid,
        tests=(nodeid,),
        exceptions=errors,
        headline=f"{errors[0].type}: {errors[0].message}" if errors else "failed",
        first_party=("shop",),
        **more,
    )


def asserted(nodeid: str, message: str, *subjects: Frame, source: str = "assert x") -> Evidence:
    """A test whose own assertion failed."""
    path, _, function = nodeid.partition("::")
    failed = error("AssertionError", message, frame(path, function, source=source))
    return failing(nodeid, failed, subjects=subjects)


def uncollected(path: str, failed: ExceptionFact) -> Evidence:
    """A file of tests that could not be imported."""
    return Evidence(
        kind=EvidenceKind.COLLECTION,
        check_id="tests[0]",
        phase=Phase.COLLECT,
        nodeid=path,
        exceptions=(failed,),
        headline=f"{failed.type}: {failed.message}",
        first_party=("shop",),
    )


def complained(tool: str, *findings: Finding, purpose: str = "lint") -> Evidence:
    """A command that found something."""
    fact = CommandFact(argv=(tool, "shop"), tool=tool, purpose=purpose, findings=findings)
    said = findings[0].message if findings else tool
    return Evidence(kind=EvidenceKind.COMMAND, check_id="tests[0]", command=fact, headline=said)


def absent(path: str) -> Evidence:
    fact = ArtifactFact(path=path, problem="missing")
    headline = f"{path} is missing"
    return Evidence(
        kind=EvidenceKind.ARTIFACT, check_id="expected_artifacts[0]", artifact=fact, headline=headline
    )


def seen(
    todo: str, evidence: Evidence, *, root: str = "/shop", plan: str = PLAN, **more: Any
) -> SeenFailure:
    """The failure with the diagnosis that the rules give; ``more`` replaces parts of it."""
    diagnosis = diagnose(evidence)
    return SeenFailure((plan, todo), evidence, diagnosis.model_copy(update=more), root)


def plan_of(**depends: str) -> dict[tuple[str | None, str], list[tuple[str | None, str]]]:
    """Todos in their order, each with the names of those that it depends on."""
    return {(PLAN, todo): [(PLAN, each) for each in names.split()] for todo, names in depends.items()}


def top_tests_by_rank(causes: tuple[Cause, ...]) -> list[tuple[str, ...]]:
    return [cause.top_tests for cause in causes]
