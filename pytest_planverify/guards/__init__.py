"""Guards that apply to every todo of a plan: hygiene, allowlist, sandbox and budget.

A guard fails a todo whatever its criteria say: hygiene if its tests or configuration were tampered with,
allowlist if files were changed without permission, sandbox if tests attempted forbidden access, budget if
the run exceeded its limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from planner.model.evidence import Evidence
    from planner.model.outcome import Check


class Violation(NamedTuple):
    """A guard's finding that fails one todo."""

    todo_id: str
    evidence: Evidence
    """Its kind is the name of the guard, its headline the sentence for the screen."""

    def check(self) -> tuple[Check, Evidence]:
        """Return the failed check that the violation adds to the todo, with its evidence."""
        # Imported late: workers load this package, but need no models.
        from planner.model.outcome import Check
        from planner.model.verdicts import CheckKind, Verdict

        guard, reason = self.evidence.kind.value, self.evidence.headline
        check = Check(id=guard, kind=CheckKind.GUARD, verdict=Verdict.FAILED, reason=reason)
        return check, self.evidence.model_copy(update={"check_id": guard})
