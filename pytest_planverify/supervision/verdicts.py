"""What is known of the criteria of one plan by now, and which of its todos that leaves blocked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.verdicts import Verdict
from planner.rules.dependencies import blockers
from pytest_planverify.supervision.check_runs import CheckRun, PlanResult, masked, unreached
from pytest_planverify.supervision.resuming import failed_todos, is_settled
from pytest_planverify.supervision.schedule import run_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.edges.plan_tree import FlatPlan
    from planner.model.plan import Todo
    from pytest_planverify.guards import Violation
    from pytest_planverify.options import Settings
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.supervision.run_records import RunJournal


class Verdicts:
    """The verdicts of one plan, each written down and told as soon as it is known."""

    def __init__(
        self,
        flat: FlatPlan,
        todos: Sequence[Todo],
        settings: Settings,
        progress: Progress,
        journal: RunJournal | None,
    ) -> None:
        self._plan = flat.loaded
        self._settings = settings
        self._progress = progress
        self._journal = journal
        self._parent_of = {each: parent for parent, below in flat.children.items() for each in below}
        self._failed: set[str] = set()
        self.by_id = {todo.id: todo for todo in todos}
        """The todos that are verified."""
        self.order = [todo.id for todo in run_order(todos, flat.children)]
        self.reds = 0
        """How many criteria of the run are red by now; set by the caller where a plan went before."""
        self.result = PlanResult(flat, list(todos), {todo.id: {} for todo in todos})

    @property
    def left(self) -> int:
        """How many failures end the run; 0 is any number."""
        return max(self._settings.maxfail - self.reds, 1) if self._settings.maxfail else 0

    @property
    def is_over(self) -> bool:
        """Whether there were as many failures as the user bears."""
        return bool(self._settings.maxfail) and self.reds >= self._settings.maxfail

    def add(self, todo: Todo, run: CheckRun, *, final: bool = True) -> None:
        """A criterion has its verdict.

        ``final`` is one that need not be looked at again, as long as nothing changes.
        """
        verdict = run.check.counts_as
        self.result.checks[todo.id][run.check.id] = run
        self.reds += verdict.is_red
        if self._journal is not None and verdict not in (Verdict.BLOCKED, Verdict.NOT_RUN):
            self._journal.check_judged(todo.id, run, final=final and is_settled(run.check))
        self._progress.check_finished(todo.id, verdict)

    def add_taken(self, taken: Mapping[tuple[str, str], CheckRun]) -> None:
        """Verdicts of an earlier run, by todo and check, count in this one."""
        for (todo_id, _), run in taken.items():
            self.add(self.by_id[todo_id], run)
        for todo_id in failed_todos(self.result.checks, self.order, self.by_id, self._parent_of):
            self.fail(todo_id)

    def explain(self, unexplained: str | None) -> None:
        """Why the run is not accepted though no criterion is red; ``None`` takes that back."""
        self.result.unexplained = unexplained
        if self._journal is not None and unexplained:
            self._journal.unexplained(unexplained)

    def fail(self, todo_id: str) -> None:
        """With a todo fails every parent above it, so that what depends on the parent is blocked."""
        name: str | None = todo_id
        while name in self.by_id:
            self._failed.add(name)
            name = self._parent_of.get(name)

    def is_blocked(self, todo: Todo) -> bool:
        """Whether the todo is not to be run, because of one that failed."""
        return not self._settings.keep_going and bool(self._blockers(todo))

    def is_held_up(self, todo: Todo) -> bool:
        """Whether a todo that failed is in the way, whether or not it is run; noted in the result."""
        blocked = self._blockers(todo)
        if blocked:
            self.result.blocked[todo.id] = blocked
        return bool(blocked)

    def finish(self, todo: Todo) -> None:
        """Every criterion of the todo that was to be looked at has been."""
        runs = self.result.checks[todo.id].values()
        if not self._blockers(todo) and any(run.check.counts_as.is_red for run in runs):
            self.fail(todo.id)

    def hold(self, violations: Iterable[Violation]) -> None:
        """Add what the guards hold against todos; what depends on those is blocked."""
        held = [each for each in violations if each.todo_id in self.result.checks]
        for violation in held:
            check, evidence = violation.check()
            self.result.checks[violation.todo_id][check.id] = CheckRun(check=check, evidence=(evidence,))
            self.fail(violation.todo_id)
        if held:
            self.fill_in()

    def fill_in(self, why: str = "not reached") -> None:
        """Every criterion without a verdict is blocked or was not run; none is left out of the outcome."""
        for todo in self.result.todos:
            runs = self.result.checks[todo.id]
            blocked = self._blockers(todo)
            if blocked:
                self.result.blocked[todo.id] = blocked
            for criterion in self._plan.criteria[todo.id]:
                if criterion.id not in runs:
                    self.add(todo, unreached(criterion, blocked, why))
                elif blocked and not self._settings.keep_going:
                    runs[criterion.id] = masked(runs[criterion.id], blocked)

    def _blockers(self, todo: Todo) -> tuple[str, ...]:
        return blockers(todo.id, self._failed, self.by_id)
