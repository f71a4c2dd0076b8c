"""Asks the guards about one plan: before the first session what the tree looks like, afterwards what the
run has shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planner.edges.plan_tree import FlatPlan
    from planner.model.plan import Todo
    from pytest_planverify.guards import Violation
    from pytest_planverify.supervision.check_runs import PlanResult


class Guards:
    """The guards of one plan of the run."""

    def __init__(self, flat: FlatPlan, todos: Sequence[Todo]) -> None:
        self._flat = flat
        self._todos = todos

    @property
    def hygiene(self) -> str:
        """How the outcome file speaks of hygiene."""
        return "unchecked: no baseline"

    def look(self) -> None:
        """See what has to be seen before anything of the project runs."""

    def judge(self, result: PlanResult) -> None:
        """Add what the guards hold against todos to the checks of the run."""
        for violation in self._violations():
            if violation.todo_id in result.checks:
                result.checks[violation.todo_id][violation.guard] = violation.check_run()

    def _violations(self) -> Iterator[Violation]:
        found: Iterable[Violation] = ()
        yield from found
