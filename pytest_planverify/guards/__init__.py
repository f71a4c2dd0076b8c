"""Guards that apply to every todo of a plan: hygiene, allowlist, sandbox and budget.

A guard fails a todo whatever its criteria say: hygiene if its tests or configuration were tampered with,
allowlist if files were changed without permission, sandbox if tests attempted forbidden access, budget if
the run exceeded its limits.
"""

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
    """A guard's finding that fails one todo."""

    todo_id: str
    guard: Guard
    reason: str
    """One sentence for the screen."""
    evidence: Evidence

    def check(self) -> tuple[Check, Evidence]:
        """Return the failed check that the violation adds to the todo, with its evidence."""
        # Imported late: workers load this package, but need no models.
        from planner.model.outcome import Check
        from planner.model.verdicts import CheckKind, Verdict

        check = Check(id=self.guard, kind=CheckKind.GUARD, verdict=Verdict.FAILED, reason=self.reason)
        return check, self.evidence.model_copy(update={"check_id": self.guard.value})
