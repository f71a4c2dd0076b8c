"""From records of shared sessions to verdicts: what is red or in doubt is seen alone before it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.verdicts import Isolation, Verdict
from pytest_planverify.confirmation import confirm_shared
from pytest_planverify.supervision.commands import is_worth_repeating
from pytest_planverify.supervision.judging import judge_shared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_planverify.confirmation_time import ConfirmationBudget
    from pytest_planverify.judgement import Judgement
    from pytest_planverify.options import Settings
    from pytest_planverify.supervision.commands import Commands
    from pytest_planverify.supervision.records import SessionRecord
    from pytest_planverify.supervision.schedule import Fold, Job
    from pytest_planverify.supervision.verdicts import Verdicts

TESTS_FAILED = 1
"""pytest's exit status where tests failed or files could not be collected; a red explains no other."""


@dataclass(slots=True)
class Unsettled:
    """A command, and what its shared session says of it."""

    job: Job
    judgement: Judgement
    fold: Fold
    record: SessionRecord


Judged = dict[str, list[Unsettled]]
"""The commands of the shared sessions of one stage, by todo."""


class SharedSessions:
    """The shared sessions of one plan."""

    def __init__(
        self,
        verdicts: Verdicts,
        commands: Commands,
        settings: Settings,
        budget: ConfirmationBudget,
    ) -> None:
        self._verdicts = verdicts
        self._commands = commands
        self._settings = settings
        self._budget = budget

    def judge(self, ran: Sequence[tuple[Fold, SessionRecord]]) -> Judged:
        """What the stage's shared sessions say of each of their commands."""
        judged: Judged = {}
        for fold, record in ran:
            self._verdicts.result.sessions.append(record)
            judgements = [
                judge_shared(self._commands.asked(job), record, narrowed_run=self._settings.narrows)
                for job in fold.jobs
            ]
            unexplained = None
            if record.journal_lost:
                _take_back_reds(judgements)
            if self._is_unexplained(record, judgements):
                unexplained = f"the shared session returned {record.exit_status}, which no test explains"
                _put_in_doubt(judgements, unexplained)
            if self._settings.shared_args:  # seen by shared sessions only; the last has all coverage data
                because = "a coverage that is too low, perhaps"
                self._verdicts.explain(f"{unexplained}: {because}" if unexplained else None)
            for job, judgement in zip(fold.jobs, judgements, strict=True):
                judged.setdefault(job.todo.id, []).append(Unsettled(job, judgement, fold, record))
        return judged

    def settle_reds(self, judged: Mapping[str, Sequence[Unsettled]]) -> None:
        """Confirm what is red, before what is green is believed.

        A failure that does not show alone was some other test's, so the greens of its session are put in
        doubt; a failure that does, blocks what depends on its todo.
        """
        everything = [each for entries in judged.values() for each in entries]
        for todo_id in self._verdicts.order:
            for unsettled in judged.get(todo_id, ()):
                if not unsettled.judgement.is_red:
                    continue
                verdict = self._settle(unsettled)
                if verdict is not None and verdict.is_red:
                    self._verdicts.fail(todo_id)
                elif verdict is not None:
                    beside = [each.judgement for each in everything if each.record is unsettled.record]
                    _put_in_doubt(
                        beside, f"a failure of {unsettled.job.spec.cmd!r} beside it did not show alone"
                    )

    def settle_greens(self, judged: Sequence[Unsettled]) -> None:
        """Decide on what is not red of one todo's commands."""
        for unsettled in judged:
            if not unsettled.judgement.is_red:
                self._settle(unsettled)

    def keep_interrupted(self, ran: Sequence[tuple[Fold, SessionRecord]]) -> None:
        """What an interrupted stage had found: a red is kept, what is not complete is not run."""
        for fold, record in ran:
            record.cut_short = record.exit_status is None
            for job in fold.jobs:
                if record.collected:
                    self._keep_known(job, judge_shared(self._commands.asked(job), record))

    def keep_unsettled(self, judged: Mapping[str, Sequence[Unsettled]]) -> None:
        """What sessions that came to their end had found, and nothing was left to find out or no time."""
        for unsettled in (each for entries in judged.values() for each in entries):
            job = unsettled.job
            if job.criterion.id not in self._verdicts.result.checks[job.todo.id]:
                self._keep_known(job, unsettled.judgement)

    def _keep_known(self, job: Job, judgement: Judgement) -> None:
        if judgement.doubt is None and (judgement.is_red or judgement.verdict is Verdict.PASSED):
            self._commands.keep(job, judgement, isolation=Isolation.SESSION, final=False)

    def _is_unexplained(self, record: SessionRecord, judgements: Sequence[Judgement]) -> bool:
        if record.exit_status in (0, 5, None) or self._settings.collect_only:
            return False
        if record.exit_status != TESTS_FAILED:
            return True
        explained = any(judgement.is_red or judgement.forgiven for judgement in judgements)
        return not explained and not record.collection_failures

    def _settle(self, unsettled: Unsettled) -> Verdict | None:
        """Decide on a command of a shared session; ``None`` if it is left blocked."""
        job, first, record = unsettled.job, unsettled.judgement, unsettled.record
        if first.verdict is Verdict.INCONCLUSIVE and self._settings.maxfail and record.stopped:
            first.verdict, first.reason = Verdict.NOT_RUN, f"the run stopped: {record.stopped}"
        in_question = first.is_red or first.verdict is Verdict.INCONCLUSIVE or first.doubt is not None
        settled = first.verdict is Verdict.NOT_RUN or not in_question or not is_worth_repeating(first)
        if settled or self._settings.collect_only:
            return self._commands.keep(job, first, isolation=Isolation.SESSION)
        if self._verdicts.is_blocked(job.todo):
            return None
        reason = first.doubt or "the shared session's red was confirmed alone"
        refused = self._budget.refused
        confirmed = confirm_shared(
            first,
            self._commands.repeating(job, unsettled.fold, record),
            attempts=self._settings.confirmations,
            budget=self._budget,
        )
        judgement = confirmed.judgement
        if first.verdict is Verdict.PASSED and judgement.verdict is Verdict.FAILED:
            judgement.reason = f"green beside the other tests of the run, red alone; {reason}"
        isolation = Isolation.FORKED if confirmed.alone else Isolation.SESSION
        final = self._budget.refused == refused
        return self._commands.keep(job, judgement, isolation=isolation, reason=reason, final=final)


def _take_back_reds(judgements: Sequence[Judgement]) -> None:
    """Where records were lost nothing is known for sure: each red is for a run alone to find out."""
    for judgement in judgements:
        if judgement.is_red:
            judgement.verdict = Verdict.INCONCLUSIVE
            judgement.reason = "the records of the shared session were removed while it ran"


def _put_in_doubt(judgements: Sequence[Judgement], reason: str) -> None:
    for judgement in judgements:
        judgement.doubt = judgement.doubt or reason
