"""A failure, and what people say of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.past import Correction
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Phase, Side
from pytest_planverify.diagnosis import diagnose

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def unusable(
    function: str = "test_total", message: str = "'int' object is not iterable", **more: Any
) -> Evidence:
    """The test cannot use the value that it was given."""
    frames = (Frame(path="tests/test_cart.py", line=7, function=function, side=Side.TEST),)
    error = ExceptionFact(type="TypeError", qualified="builtins.TypeError", message=message, frames=frames)
    fields: dict[str, Any] = {
        "kind": EvidenceKind.TEST,
        "phase": Phase.CALL,
        "nodeid": f"tests/test_cart.py::{function}",
        "exceptions": (error,),
    }
    return Evidence(**fields | more)


def said(
    evidence: Evidence,
    category: Category | None = Category.SPEC_MISMATCH,
    *,
    by: str | None = "ann",
    days_ago: float = 0.5,
    owner: Owner | None = None,
    **more: Any,
) -> Correction:
    """A correction of that failure as the rules read it."""
    diagnosis = diagnose(evidence)
    fields: dict[str, Any] = {
        "at": NOW - timedelta(days=days_ago),
        "fingerprint": "here",
        "signature": diagnosis.signature,
        "category": diagnosis.category,
        "role": (category or diagnosis.category).facts.default_role,
        "right_category": category,
        "right_owner": owner,
        "by": by,
    }
    return Correction(**fields | more)
