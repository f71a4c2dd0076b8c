"""The criteria that the parent looks at itself: commands, files, metrics, questions and contracts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from planner.model.plan import ArtifactSpec, ManualSpec, MetricSpec
from planner.model.verdicts import Isolation, Verdict, Witness
from pytest_planverify.checks.artifact import check_artifact
from pytest_planverify.checks.command import run_command
from pytest_planverify.checks.fixture import FixtureReading, read_fixture
from pytest_planverify.checks.foreign_pytest import run_foreign
from pytest_planverify.checks.manual import check_manual, read_answers
from pytest_planverify.checks.metric import check_metric
from pytest_planverify.session.check_runs import of_result, of_skip, recorded_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from planner.model.plan import Todo
    from planner.model.verdicts import Witness
    from planner.planfile.loader import LoadedPlan
    from planner.policy.criteria import Criterion
    from pytest_planverify.checks.result import CheckRun, JudgedCommand, Judgement
    from pytest_planverify.session.schedule import Job


class Evaluator:
    """Looks at the criteria below one root that are no forked sessions."""

    def __init__(self, plan: LoadedPlan, root: Path, watch: Callable[[], None] = lambda: None) -> None:
        """``root`` is the plan's own or a sub-plan's; answers are given beside the plan's outcomes.

        ``watch`` is called while a command runs; what it raises ends the command.
        """
        self._watch = watch
        self._plan = plan
        self._root = root
        self._answers = read_answers(plan.root)

    def command(self, job: Job) -> CheckRun:
        """Run a command that is not pytest."""
        command = job.criterion.command
        assert command is not None
        result = run_command(
            command, self._root, job.spec.timeout_seconds, check_id=job.criterion.id, watch=self._watch
        )
        return of_result(job.todo, job.criterion, result, isolation=Isolation.SPAWNED)

    def foreign(self, job: Job, judged: JudgedCommand, folder: Path) -> tuple[Judgement, Witness]:
        """Run a pytest command of another interpreter; its reports are written into the folder."""
        command = job.criterion.command
        assert command is not None
        assert command.pytest is not None
        env = {**os.environ, **dict(command.env)}
        args, root = command.pytest.args, self._root
        return run_foreign(judged, job.launcher, args, root=root, env=env, folder=folder, watch=self._watch)

    def fixture(self, path: str, check_id: str) -> FixtureReading:
        """Read the data file that a criterion names."""
        return read_fixture(path, self._root, check_id=check_id)

    def criterion(self, todo: Todo, criterion: Criterion, before: Sequence[CheckRun]) -> CheckRun:
        """Look at a criterion that is no command, after the todo's commands in ``before``."""
        spec = criterion.spec
        if isinstance(spec, ArtifactSpec):
            return of_result(todo, criterion, check_artifact(spec, self._root, check_id=criterion.id))
        if isinstance(spec, MetricSpec):
            return self._metric(todo, criterion, spec, before)
        if isinstance(spec, ManualSpec):
            plan_id = self._plan.plan.todo_list_id
            result = check_manual(spec, plan_id, todo.id, criterion.id, self._answers)
            return of_result(todo, criterion, result)
        from pytest_planverify.checks.contract import check_contract

        return of_result(todo, criterion, check_contract(str(spec), self._root, check_id=criterion.id))

    def _metric(
        self, todo: Todo, criterion: Criterion, spec: MetricSpec, before: Sequence[CheckRun]
    ) -> CheckRun:
        values: list[Any] = recorded_values(before).get(spec.name, [])
        waiting = next((run for run in before if run.check.counts_as is not Verdict.PASSED), None)
        if not values and waiting is not None:
            reason = f"nothing recorded it, for {waiting.check.id} did not pass"
            return of_skip(criterion, reason, Verdict.INCONCLUSIVE)
        return of_result(todo, criterion, check_metric(spec, values, check_id=criterion.id))
