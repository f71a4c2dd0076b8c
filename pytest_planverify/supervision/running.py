"""Runs one plan: its stages in order, each with its shared sessions first, and then command by command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_planverify.guards.budget import BudgetExceeded
from pytest_planverify.supervision.records import SessionRecord
from pytest_planverify.supervision.resuming import without
from pytest_planverify.supervision.schedule import Fold, schedule
from pytest_planverify.supervision.stopping import at_work, being_verified
from pytest_planverify.supervision.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.edges.plan_tree import FlatPlan
    from planner.model.evidence import BudgetFact
    from planner.model.plan import Todo
    from pytest_planverify.confirmation_time import ConfirmationBudget
    from pytest_planverify.guards import Violation
    from pytest_planverify.options import Settings
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.supervision.check_runs import CheckRun, PlanResult
    from pytest_planverify.supervision.commands import Commands
    from pytest_planverify.supervision.demands import Demands
    from pytest_planverify.supervision.run_folder import RunFolder
    from pytest_planverify.supervision.run_records import RunJournal
    from pytest_planverify.supervision.schedule import Job, Stage
    from pytest_planverify.supervision.sessions import Sessions
    from pytest_planverify.supervision.settling import Judged, SharedSessions


class PlanRun:
    """One plan of the run, from its first session to its last check."""

    def __init__(
        self,
        flat: FlatPlan,
        todos: Sequence[Todo],
        settings: Settings,
        sessions: Sessions,
        folder: RunFolder,
        progress: Progress,
        budget: ConfirmationBudget,
        journal: RunJournal | None = None,
        taken: Mapping[tuple[str, str], CheckRun] | None = None,
        demands: Demands | None = None,
    ) -> None:
        """``taken`` are verdicts of an earlier run, by todo and check; what they judge is not run again."""
        self._flat = flat
        self._settings = settings
        self._sessions = sessions
        self._folder = folder
        self._progress = progress
        self._budget = budget
        self._demands = demands
        self._taken = taken or {}
        self._verdicts = Verdicts(flat, todos, settings, progress, journal)
        self._deciding: tuple[Commands, SharedSessions] | None = None
        self._current: tuple[str, ...] = ()
        self.spent: tuple[BudgetFact, tuple[str, ...]] | None = None
        """The limit of the budget that was passed, and the todos that were being verified then."""
        by_id = self._verdicts.by_id
        self.stages = without(schedule(flat, by_id, isolate=settings.isolate), self._taken)
        demanded = any(word.startswith("--cov-fail-under") for word in settings.shared_args)
        if demanded and not any(stage.folds for stage in self.stages):
            self.result.unexplained = "--cov-fail-under is measured in shared sessions, and none is run"

    @property
    def result(self) -> PlanResult:
        """All that is known by now."""
        return self._verdicts.result

    @property
    def reds(self) -> int:
        """How many criteria of the run are red by now; set by the caller where a plan went before."""
        return self._verdicts.reds

    @reds.setter
    def reds(self, count: int) -> None:
        self._verdicts.reds = count

    def run(self, added: Iterable[str] = ()) -> None:
        """Run all stages. After ``KeyboardInterrupt`` the result holds what was known by then.

        ``added`` are the files that the work has added; they count as the run's own do.
        """
        watch = self._sessions.watch
        why = "not reached"
        try:
            self._verdicts.add_taken(self._taken)
            watch.start(added)
            for stage in self.stages:
                self._run_stage(stage)
            watch.finish()
        except BudgetExceeded as over:
            order, criteria = self._verdicts.order, self._flat.loaded.criteria
            self.spent = over.fact, being_verified(order, self._current, self.result.checks, criteria)
            why += f": the budget's {over.fact.name} was passed"
        finally:
            self._verdicts.fill_in(why)

    def hold(self, violations: Iterable[Violation]) -> None:
        """Add what the guards hold against todos; what depends on those is blocked."""
        self._verdicts.hold(violations)

    def _run_stage(self, stage: Stage) -> None:
        ran: list[tuple[Fold, SessionRecord]] = []
        judged: Judged = {}
        try:
            for fold in map(self._without_blocked, stage.folds):
                if not fold.jobs or self._verdicts.is_over:
                    continue
                record = SessionRecord()
                ran.append((fold, record))
                self._current = tuple(dict.fromkeys(job.todo.id for job in fold.jobs))
                self._progress.session_started(_title(fold.jobs), 0)
                self._sessions.run_fold(fold, record, maxfail=self._verdicts.left)
            _, shared = self._decide()
            judged = shared.judge(ran)
            self._settle_stage(stage, judged)
        except (KeyboardInterrupt, BudgetExceeded):
            self._current = at_work(ran) or self._current
            _, shared = self._decide()
            if judged:
                shared.keep_unsettled(judged)
            else:
                shared.keep_interrupted(ran)
            raise

    def _settle_stage(self, stage: Stage, judged: Judged) -> None:
        commands, shared = self._decide()
        shared.settle_reds(judged)
        finishing = {todo.id for todo in stage.todos}
        for todo_id in self._verdicts.order:
            shared.settle_greens(judged.get(todo_id, ()))
            for job in stage.singles:
                if (
                    job.todo.id == todo_id
                    and not self._verdicts.is_blocked(job.todo)
                    and not self._verdicts.is_over
                ):
                    self._current = (todo_id,)
                    commands.run(job)
            if todo_id in finishing:
                todo = self._verdicts.by_id[todo_id]
                if not self._verdicts.is_held_up(todo) or self._settings.keep_going:
                    commands.evaluate(todo)
                self._verdicts.finish(todo)

    def _without_blocked(self, fold: Fold) -> Fold:
        return Fold(fold.key, [job for job in fold.jobs if not self._verdicts.is_blocked(job.todo)])

    def _decide(self) -> tuple[Commands, SharedSessions]:
        """What decides on commands; imported once the first session is through, so as not to delay it."""
        if self._deciding is None:
            from pytest_planverify.supervision.commands import Commands
            from pytest_planverify.supervision.settling import SharedSessions

            commands = Commands(
                self._flat,
                self._verdicts,
                self._settings,
                self._sessions,
                self._folder,
                self._progress,
                self._budget,
                self._demands,
            )
            shared = SharedSessions(self._verdicts, commands, self._settings, self._budget)
            self._deciding = commands, shared
        return self._deciding


def _title(jobs: Sequence[Job]) -> str:
    todos = list(dict.fromkeys(job.todo.id for job in jobs))
    return todos[0] if len(todos) == 1 else f"{todos[0]} to {todos[-1]}"
