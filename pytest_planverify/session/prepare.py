"""From the plans that are asked for to runs that are ready: folders, journals, baseline, guards, budget."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from planner.model.plan import Budget
from planner.planfile.project_files import OWN_REPORTS
from pytest_planverify.baseline.changes import Changes
from pytest_planverify.guards.budget import BudgetWatch
from pytest_planverify.guards.plan_guards import Guards
from pytest_planverify.session.last_verdicts import LastVerdicts, Present, verdicts_to_keep
from pytest_planverify.session.plans import PreparedPlan, reference_of, todos_in_scope
from pytest_planverify.session.run import SessionRun
from pytest_planverify.session.run_folder import RunFolder
from pytest_planverify.session.run_journal import RunJournal, open_journal
from pytest_planverify.session.tree_state import TreeWatch, read_tree
from pytest_planverify.session.workers import planned_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.baseline.demands import Demands
    from pytest_planverify.options import Settings
    from pytest_planverify.session.plans import ChosenPlan, RunFacts


def prepare_runs(facts: RunFacts, plans: Sequence[ChosenPlan]) -> Iterator[SessionRun]:
    """Make the plans of one run ready. Raises ``pytest.UsageError`` and ``PlannerError``."""
    counts: Counter[Path] = Counter()
    for chosen in plans:
        root = chosen.plan.root
        counts[root] += 1
        # Further plans of the same root have folders, and so journals, of their own.
        folder = RunFolder(root, facts.run_id if counts[root] == 1 else f"{facts.run_id}.{counts[root]}")
        yield _prepare(facts, chosen, folder)


def _prepare(facts: RunFacts, chosen: ChosenPlan, folder: RunFolder) -> SessionRun:
    flat, settings, root = chosen.flat, facts.settings, chosen.plan.root
    baseline = _baseline(settings, chosen)
    try:
        folder.create()
    except OSError as error:
        raise pytest.UsageError(
            f"{folder.home}: the run's records cannot be written: {error.strerror}; make the plan's "
            "root writable"
        ) from None
    asked = todos_in_scope(chosen, settings.scope)
    # The todos that are not asked for are shown with their last verdicts.
    keeps_others = chosen.whole and chosen.todo_ids is not None
    keeps_others = keeps_others and not (settings.collect_only or settings.recording)
    todos = list(flat.loaded.plan.items) if keeps_others else asked
    own = (*(part.path for part in flat.parts), root / OWN_REPORTS)
    changes = _changes(flat, own, baseline)
    reference, journal, last = reference_of(flat, chosen.shown), None, LastVerdicts()
    if not settings.collect_only:
        roots = [part.root for part in flat.parts]
        tree = None
        if settings.resume or settings.may_stop_or_narrow or len(asked) < len(todos):
            tree = read_tree(roots, own)
            now = Present(
                flat=flat, settings=settings, reference=reference, tree=tree, apart=own, baseline=baseline
            )
            last = verdicts_to_keep(now, [todo.id for todo in asked])
        journal = RunJournal(folder.journal, flat.loaded.plan.todo_list_id, TreeWatch(roots, own, tree))
    open_journal(
        folder.journal,
        facts.run_id,
        reference,
        settings,
        todos,
        boundary=chosen.boundary,
        baseline=baseline,
        remarks=last.remarks,
    )
    plan = PreparedPlan(
        flat=flat,
        shown=chosen.shown,
        todos=todos,
        asked=frozenset(todo.id for todo in asked),
        folder=folder,
        budget=_budget(facts, flat),
        changes=changes,
        last=last,
        journal=journal,
        baseline=baseline,
        demands=_demands(settings, flat, asked, baseline),
    )
    commit = None if baseline is None or settings.baseline is None else baseline.document.revision
    guards = Guards(flat, asked, changes, (*(chosen.todo_ids or ()), *settings.worked), baseline, commit)
    run = SessionRun(facts, plan, guards)
    unwatched = (job for job in run.schedule.jobs if not job.is_pytest)
    guards.leave_unwatched([f"{job.todo.id} {job.criterion.id}" for job in unwatched])
    return run


def _baseline(settings: Settings, chosen: ChosenPlan) -> KeptBaseline | None:
    """Return the baseline to compare with: of the revision that was asked for, else the recorded one."""
    if settings.recording or settings.collect_only:
        return None
    if settings.baseline is not None:
        from pytest_planverify.baseline.revisions import baseline_at

        return baseline_at(settings.baseline, chosen.flat, settings.invocation_dir)
    from pytest_planverify.baseline import load_baseline

    root = chosen.plan.root
    kept = load_baseline(root, chosen.plan.plan.todo_list_id)
    if kept is None and settings.baseline_file is not None:
        from pytest_planverify.baseline.kept_baseline import baseline_of_file

        kept = baseline_of_file(root, settings.baseline_file, begins_run=True)
    return kept


def _demands(
    settings: Settings, flat: FlatPlan, todos: Sequence[Todo], baseline: KeptBaseline | None
) -> Demands | None:
    asked = any(todo.must_turn_green or todo.must_stay_green for todo in todos)
    if not asked or settings.recording or settings.collect_only or settings.narrows:
        return None
    from pytest_planverify.baseline.demands import Demands

    return Demands(flat, baseline)


def _budget(facts: RunFacts, flat: FlatPlan) -> BudgetWatch:
    """The budget of a plan; a run that is only compared with has none."""
    settings, root = facts.settings, flat.loaded.root
    return BudgetWatch(
        Budget() if settings.recording else flat.loaded.plan.metadata.budget,
        root,
        spared=lambda: facts.own_pids,
        expected=[
            *(path for paths in planned_paths(flat).values() for path in paths),
            *([] if settings.outcomes is None else [os.path.relpath(settings.outcomes, root)]),
        ],
    )


def _changes(flat: FlatPlan, own: Sequence[Path], baseline: KeptBaseline | None) -> dict[Path, Changes]:
    """Return the changes by root. Without git a baseline tells what was there before."""
    changes = {root: Changes(root, own) for root in {part.root for part in flat.parts}}
    top = flat.loaded.root
    if baseline is not None and not changes[top].under_git:
        from pytest_planverify.baseline.work_tree import WorkTree

        changes[top].compare(baseline.snapshot().digests(), WorkTree(top).digests())
    return changes
