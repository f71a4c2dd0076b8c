"""From the plans that are asked for to runs that are ready: folders, journals, baseline, guards, budget."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from planner.model.plan import Budget
from pytest_planverify.guards.budget import BudgetWatch
from pytest_planverify.guards.guarding import Guards
from pytest_planverify.supervision.changes import Changes
from pytest_planverify.supervision.chosen import last_failed, todos_in_scope
from pytest_planverify.supervision.prepared import Prepared, reference_of
from pytest_planverify.supervision.resuming import resume
from pytest_planverify.supervision.run_folder import RunFolder
from pytest_planverify.supervision.run_records import RunJournal, open_journal
from pytest_planverify.supervision.running import PlanRun
from pytest_planverify.supervision.sessions import Sessions, planned_paths
from pytest_planverify.supervision.tree_state import TreeWatch
from pytest_planverify.work_tree import OWN_REPORTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.edges.plan_tree import FlatPlan
    from planner.model.plan import Todo
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.supervision.chosen import ChosenPlan
    from pytest_planverify.supervision.demands import Demands
    from pytest_planverify.supervision.run_facts import RunFacts


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
        todos = todos_in_scope(chosen, settings.scope)
        own = (*(part.path for part in flat.parts), flat.loaded.root / OWN_REPORTS)
        changes = _changes(flat, own, baseline)
        sessions = self._sessions(flat, folder)
        reference, journal, resumed = reference_of(flat, chosen.shown), None, None
        if not settings.collect_only:
            if settings.resume:
                resumed = resume(flat, todos, settings, reference, own, baseline)
            roots = [part.root for part in flat.parts]
            journal = RunJournal(folder.journal, flat.loaded.plan.todo_list_id, TreeWatch(roots, own))
        remarks = [] if resumed is None else [resumed.note]
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
            sessions,
            folder,
            self._facts.progress,
            self._facts.budget,
            journal,
            None if resumed is None else resumed.taken,
            self._demands(flat, todos, baseline),
        )
        run.result.notes += remarks
        return Prepared(
            flat=flat,
            shown=chosen.shown,
            todos=todos,
            folder=folder,
            sessions=sessions,
            run=run,
            changes=changes,
            guards=self._guards(chosen, todos, changes, baseline, run),
            baseline=baseline,
        )

    def last_failed(self, flat: FlatPlan) -> dict[Path, tuple[str, ...]]:
        """The tests that failed in the last run of the plan, by the root of their plan."""
        outcomes = RunFolder(flat.loaded.root, self._facts.run_id).outcomes
        return last_failed(self._settings.outcomes or outcomes, flat)

    def _sessions(self, flat: FlatPlan, folder: RunFolder) -> Sessions:
        return Sessions(
            self._settings,
            self._facts.server,
            folder,
            self._facts.progress,
            self._facts.script_paths,
            self.last_failed(flat) if self._settings.last_failed else None,
            planned_paths(flat),
            flat.loaded,
            self._watch(flat),
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
        singles = (job for stage in run.stages for job in stage.singles if not job.is_pytest)
        guards.leave_unwatched([f"{job.todo.id} {job.criterion.id}" for job in singles])
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
        from pytest_planverify.supervision.demands import Demands

        return Demands(flat, baseline)

    def _watch(self, flat: FlatPlan) -> BudgetWatch:
        """The budget of a plan; a run that is only compared with has none."""
        plan = flat.loaded
        own = (self._settings.outcomes, self._settings.junit)
        return BudgetWatch(
            Budget() if self._settings.recording else plan.plan.metadata.budget,
            plan.root,
            spared=lambda: self._facts.server.own_pids,
            expected=[
                *(path for paths in planned_paths(flat).values() for path in paths),
                *(os.path.relpath(path, plan.root) for path in own if path is not None),
            ],
        )


def _changes(flat: FlatPlan, own: Sequence[Path], baseline: KeptBaseline | None) -> dict[Path, Changes]:
    """What has changed, by root. Without git a baseline tells what was there before."""
    changes = {root: Changes(root, own) for root in {part.root for part in flat.parts}}
    top = flat.loaded.root
    if baseline is not None and not changes[top].under_git:
        from pytest_planverify.work_tree import WorkTree

        changes[top].compare(baseline.snapshot().digests(), WorkTree(top).digests())
    return changes
