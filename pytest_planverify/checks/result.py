"""What a check says: its verdict, why it is not simply passed, and the facts behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.evidence import Evidence
    from planner.model.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one criterion that is no pytest test."""

    verdict: Verdict
    reason: str | None = None
    """One sentence on why the verdict is not ``passed``."""
    evidence: tuple[Evidence, ...] = ()
    duration_ms: int = 0
    exit_code: int | None = None
    title: str | None = None
    """What a person calls a check that is no command."""
