"""Guards that apply to every todo: hygiene, allowlist, sandbox and budget."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.evidence import Evidence
    from planner.model.outcome import Check


class Guard(StrEnum):
    """The guards; their values are also the ids of the checks that they add to a todo."""

    HYGIENE = "hygiene"
    ALLOWLIST = "allowlist"
    SANDBOX = "sandbox"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation that a guard found for a todo."""

    todo_id: str
    guard: Guard
    reason: str
    """One sentence for the screen."""
    evidence: Evidence

    def check(self) -> tuple[Check, Evidence]:
        """Return the failed check that represents the violation in the todo, with its evidence."""
        from planner.model.outcome import Check  # imported late: workers load this package, not the models
        from planner.model.verdicts import CheckKind, Verdict

        check = Check(id=self.guard, kind=CheckKind.GUARD, verdict=Verdict.FAILED, reason=self.reason)
        return check, self.evidence.model_copy(update={"check_id": self.guard.value})
