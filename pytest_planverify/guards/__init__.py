"""Guards that hold for every todo: hygiene, allowlist, sandbox and budget."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.evidence import Evidence
    from planner.model.outcome import Check


class Guard(StrEnum):
    """The guards; also the ids of the checks that they add to a todo that they report."""

    HYGIENE = "hygiene"
    ALLOWLIST = "allowlist"
    SANDBOX = "sandbox"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation that a guard found of a todo."""

    todo_id: str
    guard: Guard
    reason: str
    """One sentence for the screen."""
    evidence: Evidence

    def check(self) -> tuple[Check, Evidence]:
        """The failed check that stands for it among the todo's own, and what is behind it."""
        from planner.model.outcome import Check  # not before: sessions have this package, and no planner
        from planner.model.verdicts import CheckKind, Verdict

        check = Check(id=self.guard, kind=CheckKind.GUARD, verdict=Verdict.FAILED, reason=self.reason)
        return check, self.evidence.model_copy(update={"check_id": self.guard.value})
