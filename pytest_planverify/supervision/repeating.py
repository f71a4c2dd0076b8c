"""Runs one check again for the confirmation: alone, in company, with some tests only, with another seed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from planner.model.verdicts import Verdict
from pytest_planverify.judgement import Judgement
from pytest_planverify.supervision.judging import judge_alone, judge_shared
from pytest_planverify.supervision.records import SessionRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.supervision.asked import Asked
    from pytest_planverify.supervision.schedule import Fold, Job
    from pytest_planverify.supervision.sessions import Sessions

MOST_SEEDED = 8
"""So many runs with another hash seed are made in one run: each starts an interpreter."""


class SeedRuns:
    """How many runs with another hash seed there may still be."""

    def __init__(self) -> None:
        self._left = 0 if _seed_is_fixed() else MOST_SEEDED

    def take(self) -> bool:
        """Use one up; false if none is left."""
        self._left -= 1
        return self._left >= 0


class Repeating:
    """Repeats of a command whose sessions are forked."""

    def __init__(
        self,
        job: Job,
        asked: Asked,
        sessions: Sessions,
        progress: Progress,
        seeds: SeedRuns,
        *,
        attempts: int,
        fold: Fold | None = None,
        record: SessionRecord | None = None,
        witnessed: Callable[[SessionRecord], object] = lambda _: None,
    ) -> None:
        """``fold`` and ``record`` are of the session that the command shared, if it shared one.

        ``witnessed`` is given the records of each session whose answer may count.
        """
        self._job = job
        self._asked = asked
        self._sessions = sessions
        self._progress = progress
        self._seeds = seeds
        self._attempts = attempts
        self._fold = fold
        self._record = record
        self._witnessed = witnessed
        self._count = 0

    def alone(self, only: Sequence[str] | None = None) -> Judgement:
        """The command in a process of its own."""
        self._count += 1
        self._progress.confirming(self._job.spec.cmd, min(self._count, self._attempts), self._attempts)
        record = SessionRecord()
        self._sessions.run_alone(self._job, record, first=False, only=only)
        if only is None:
            self._witnessed(record)
        return judge_alone(self._asked, record)

    def company(self, only: Sequence[str] | None = None) -> Judgement:
        """The session that it shared."""
        if self._fold is None:
            return self.alone(only)
        if only is None and self._record is not None:
            only = self._record.beside(self._job.key)
        record = self._sessions.run_fold(self._fold, SessionRecord(), again=True, only=only)
        return judge_shared(self._asked, record)

    def seeded(self, seed: int) -> Judgement | None:
        """The command in a new interpreter with that hash seed."""
        if not self._seeds.take():
            return None
        record = SessionRecord()
        self._sessions.run_alone(self._job, record, first=False, seed=seed)
        return judge_alone(self._asked, record)

    def before(self, nodeid: str) -> Sequence[str]:
        """The tests that ran before that one in the shared session."""
        if self._record is None:
            return ()
        beside = self._record.beside(self._job.key)
        planned = self._record.planned if beside is None else beside
        return planned[: planned.index(nodeid)] if nodeid in planned else ()

    def may_depend_on_seed(self, red: Judgement) -> bool:
        """Whether the code around the failure does anything whose order a hash seed decides."""
        from pytest_planverify.hash_order import may_depend_on_seed

        return may_depend_on_seed(red.evidence, self._job.plan.root)


class RepeatingElsewhere:
    """Repeats of a command of another interpreter, which can only be run as it is."""

    def __init__(self, run: Callable[[], Judgement]) -> None:
        self._run = run

    def alone(self, only: Sequence[str] | None = None) -> Judgement:
        """The command once more; a part of it cannot be run."""
        return self._run() if only is None else Judgement(verdict=Verdict.NOT_RUN)

    def company(self, only: Sequence[str] | None = None) -> Judgement:
        """The same: it shares no session."""
        return self.alone(only)

    def seeded(self, seed: int) -> Judgement | None:
        """Not known how."""
        return None

    def before(self, nodeid: str) -> Sequence[str]:
        """Nothing ran before it."""
        return ()

    def may_depend_on_seed(self, red: Judgement) -> bool:
        """Each run of another interpreter has a hash seed of its own already."""
        return False


def _seed_is_fixed() -> bool:
    return os.environ.get("PYTHONHASHSEED", "random") != "random"
