"""What one run of a criterion's tests said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.model.evidence import AuditEvent, Evidence
    from planner.model.outcome import TestResult
    from planner.model.verdicts import Verdict


@dataclass(slots=True, kw_only=True)
class Judgement:
    """What one run of a criterion's tests said."""

    verdict: Verdict
    tests: tuple[TestResult, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    reason: str | None = None
    duration_ms: int = 0
    exit_code: int | None = None
    doubt: str | None = None
    """Why a green must be seen alone before it counts."""
    events: tuple[AuditEvent, ...] = ()
    """What its tests reached for outside their process."""
    forgiven: bool = False
    """What was red was so before the work began, and is not counted: the session's status says nothing."""
    properties: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])

    @property
    def is_red(self) -> bool:
        """Whether it counts as failed."""
        return self.verdict.is_red
