"""From the plans that are asked for to runs that are ready: folders, journals, baseline, guards, budget."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from planner.model.plan import Budget
from planner.model.plan_ref import PlanRef, SubPlanRef
from planner.model.verdicts import Verdict
from pytest_planverify.guards.budget import BudgetWatch
from pytest_planverify.guards.guarding import Guards
from pytest_planverify.session.changes import Changes
from pytest_planverify.session.chosen import todos_in_scope
from pytest_planverify.session.last_verdicts import COMMANDS, Key, LastVerdicts, Present, last_verdicts
from pytest_planverify.session.run import PlanRun
from pytest_planverify.session.run_folder import RunFolder
from pytest_planverify.session.run_records import RunJournal, open_journal
from pytest_planverify.session.tree_state import TreeWatch, read_tree
from pytest_planverify.session.workers import planned_paths
from pytest_planverify.work_tree import OWN_REPORTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from _pytest._io import TerminalWriter

    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.options import Settings
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.session.chosen import ChosenPlan
    from pytest_planverify.session.confirm import ConfirmationBudget
    from pytest_planverify.session.demands import Demands
    from pytest_planverify.session.fork_server import ForkServer
    from pytest_planverify.session.reporters import Reporting


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run over one or several plans."""

    run_id: str
    config: pytest.Config
    settings: Settings
    server: ForkServer | None
    """``None`` where every command is started cold."""
    script_paths: tuple[str, ...]
    """Entries of ``sys.path`` that are there because of how the run was started."""
    tw: TerminalWriter
    progress: Progress
    budget: ConfirmationBudget
    reporting: Reporting
    started_epoch: float
    """When the run began, in seconds since 1970."""
    started: float
    """On the clock that only goes forward."""
    started_at: str

    @property
    def own_pids(self) -> frozenset[int]:
        """The processes of ours that are not the project's."""
        return frozenset() if self.server is None else frozenset({self.server.pid, *self.server.lane_pids})


def now() -> str:
    """The time, as RFC 3339 has it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One plan of the run."""

    flat: FlatPlan
    shown: str
    """The plan's path as the user is shown it."""
    todos: list[Todo]
    """Those that are verified, or keep their last verdicts, in the plan's order."""
    asked: frozenset[str]
    """Those of them that are verified, and that alone decide the exit status."""
    folder: RunFolder
    run: PlanRun
    changes: Mapping[Path, Changes]
    """By the root of the plan and of each sub-plan."""
    guards: Guards
    baseline: KeptBaseline | None = None
    """What the run is compared with."""

    @property
    def plan(self) -> LoadedPlan:
        """The plan with the todos of its sub-plans."""
        return self.flat.loaded

    @property
    def reference(self) -> PlanRef:
        """The plan as the outcome file names it."""
        return reference_of(self.flat, self.shown)


def reference_of(flat: FlatPlan, shown: str) -> PlanRef:
    """The plan and its sub-plans as the outcome file names them; ``shown`` is the plan's path there."""
    folder, beside = flat.loaded.path.parent, os.path.dirname(shown)
    return PlanRef(
        todo_list_id=flat.loaded.plan.todo_list_id,
        path=shown,
        digest=flat.loaded.digest,
        sub_plans=tuple(
            SubPlanRef(
                todo_id=parent,
                path=os.path.normpath(os.path.join(beside, os.path.relpath(file.path, folder))),
                digest=file.digest,
            )
            for parent, file in flat.files.items()
        ),
    )


class Preparing:
    """Makes the plans of one run ready, one after the other."""

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        self._settings = facts.settings
        self._roots: Counter[Path] = Counter()

    def prepare(self, chosen: ChosenPlan) -> Prepared:
        """All that a plan needs to be run. Raises ``pytest.UsageError`` and ``PlannerError``."""
        flat, settings = chosen.flat, self._settings
        baseline = self._baseline(chosen)
        folder = self._folder(flat.loaded.root)
        asked = todos_in_scope(chosen, settings.scope)
        todos = list(flat.loaded.plan.items) if self._keeps_others(chosen) else asked
        own = (*(part.path for part in flat.parts), flat.loaded.root / OWN_REPORTS)
        changes = _changes(flat, own, baseline)
        reference, journal = reference_of(flat, chosen.shown), None
        last, taken, remarks = None, frozenset[Key](), list[str]()
        if not settings.collect_only:
            roots = [part.root for part in flat.parts]
            tree = None
            if settings.resume or settings.may_stop_or_narrow or len(asked) < len(todos):
                tree = read_tree(roots, own)
                now = Present(
                    flat=flat,
                    settings=settings,
                    reference=reference,
                    tree=tree,
                    apart=own,
                    baseline=baseline,
                )
                last, taken, remarks = _last(now, [todo.id for todo in asked])
            watch = TreeWatch(roots, own, tree)
            journal = RunJournal(folder.journal, flat.loaded.plan.todo_list_id, watch)
        open_journal(
            folder.journal,
            self._facts.run_id,
            reference,
            settings,
            todos,
            boundary=chosen.boundary,
            baseline=baseline,
            remarks=remarks,
        )
        run = PlanRun(
            flat,
            todos,
            settings,
            folder=folder,
            progress=self._facts.progress,
            budget=self._facts.budget,
            watch=self._watch(flat),
            journal=journal,
            asked={todo.id for todo in asked},
            last=last,
            taken=taken,
            demands=self._demands(flat, asked, baseline),
        )
        run.result.notes += remarks
        return Prepared(
            flat=flat,
            shown=chosen.shown,
            todos=todos,
            asked=frozenset(todo.id for todo in asked),
            folder=folder,
            run=run,
            changes=changes,
            guards=self._guards(chosen, asked, changes, baseline, run),
            baseline=baseline,
        )

    def _keeps_others(self, chosen: ChosenPlan) -> bool:
        """Return whether the todos that are not asked for are shown with their last verdicts."""
        settings = self._settings
        return (
            chosen.whole
            and chosen.todo_ids is not None
            and not (settings.collect_only or settings.recording)
        )

    def _folder(self, root: Path) -> RunFolder:
        """The run's folder; further plans of the same root have folders, and so journals, of their own."""
        self._roots[root] += 1
        count, run_id = self._roots[root], self._facts.run_id
        folder = RunFolder(root, run_id if count == 1 else f"{run_id}.{count}")
        try:
            folder.create()
        except OSError as error:
            raise pytest.UsageError(
                f"{folder.home}: the run's records cannot be written: {error.strerror}; make the plan's "
                "root writable"
            ) from None
        return folder

    def _guards(
        self,
        chosen: ChosenPlan,
        todos: Sequence[Todo],
        changes: dict[Path, Changes],
        baseline: KeptBaseline | None,
        run: PlanRun,
    ) -> Guards:
        asked = baseline is not None and self._settings.baseline is not None
        commit = baseline.document.revision if baseline is not None and asked else None
        guards = Guards(chosen.flat, todos, changes, chosen.todo_ids, baseline, commit)
        unwatched = (job for job in run.schedule.jobs if not job.is_pytest)
        guards.leave_unwatched([f"{job.todo.id} {job.criterion.id}" for job in unwatched])
        return guards

    def _baseline(self, chosen: ChosenPlan) -> KeptBaseline | None:
        """What the run is compared with: a revision that was asked for, else what was recorded."""
        if self._settings.recording or self._settings.collect_only:
            return None
        if self._settings.baseline is not None:
            from pytest_planverify.baseline.revisions import baseline_at

            return baseline_at(self._settings.baseline, chosen.flat, self._settings.invocation_dir)
        from pytest_planverify.baseline import load_baseline

        return load_baseline(chosen.plan.root, chosen.plan.plan.todo_list_id)

    def _demands(
        self, flat: FlatPlan, todos: Sequence[Todo], baseline: KeptBaseline | None
    ) -> Demands | None:
        settings = self._settings
        asked = any(todo.must_turn_green or todo.must_stay_green for todo in todos)
        if not asked or settings.recording or settings.collect_only or settings.narrows:
            return None
        from pytest_planverify.session.demands import Demands

        return Demands(flat, baseline)

    def _watch(self, flat: FlatPlan) -> BudgetWatch:
        """The budget of a plan; a run that is only compared with has none."""
        plan = flat.loaded
        own = (self._settings.outcomes,)
        return BudgetWatch(
            Budget() if self._settings.recording else plan.plan.metadata.budget,
            plan.root,
            spared=lambda: self._facts.own_pids,
            expected=[
                *(path for paths in planned_paths(flat).values() for path in paths),
                *(os.path.relpath(path, plan.root) for path in own if path is not None),
            ],
        )


def _last(now: Present, asked: Sequence[str]) -> tuple[LastVerdicts, frozenset[Key], list[str]]:
    """Return the last verdicts, the commands that are not run again as they hold, and what to say of it."""
    settings = now.settings
    if not settings.resume or settings.last_failed:
        last = last_verdicts(now)
        green = (key for key, run in last.held.items() if run.check.verdict is Verdict.PASSED)
        return last, frozenset(key for key in green if settings.last_failed and key[0] in asked), []
    last = last_verdicts(now, unfinished=True)
    taken = frozenset(key for key in last.held if key[0] in asked)
    if not taken:
        return last, taken, [f"nothing was resumed, everything was run: {_why_nothing(last)}"]
    assert last.newest is not None
    count = sum(each.kind in COMMANDS for todo_id in asked for each in now.flat.loaded.criteria[todo_id])
    how = "was killed" if last.newest.finished is None else "was interrupted"
    return (
        last,
        taken,
        [
            f"resumed: {len(taken)} of {count} commands keep the verdicts of run {last.newest.run_id}, "
            f"which {how}"
        ],
    )


def _why_nothing(last: LastVerdicts) -> str:
    if last.newest is None:
        return "there is no earlier run of the plan"
    if last.newest.came_to_its_end:
        return f"the last run, {last.newest.run_id}, came to its end"
    return next(iter(last.stale.values()), f"run {last.newest.run_id} had reached no verdict")


def _changes(flat: FlatPlan, own: Sequence[Path], baseline: KeptBaseline | None) -> dict[Path, Changes]:
    """What has changed, by root. Without git a baseline tells what was there before."""
    changes = {root: Changes(root, own) for root in {part.root for part in flat.parts}}
    top = flat.loaded.root
    if baseline is not None and not changes[top].under_git:
        from pytest_planverify.work_tree import WorkTree

        changes[top].compare(baseline.snapshot().digests(), WorkTree(top).digests())
    return changes
