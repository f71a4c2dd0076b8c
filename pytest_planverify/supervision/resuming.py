"""Goes on where a run of the same plan was killed: which of its verdicts hold, and what is left to run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.model.verdicts import CheckKind, Verdict
from planner.rules.dependencies import blockers
from pytest_planverify.supervision.schedule import Fold, Stage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from planner.edges.plan_tree import FlatPlan
    from planner.model.outcome import Check, PlanRef
    from planner.model.plan import Todo
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.options import Settings
    from pytest_planverify.supervision.check_runs import CheckRun
    from pytest_planverify.supervision.past_runs import PastRun

_TAKEN_KINDS = (CheckKind.TEST, CheckKind.COMMAND)
"""Files, metrics, contracts and questions are looked at again: that costs nothing, and they may change."""

_OF_A_WHOLE_RUN = ("--cov", "--no-cov", "--pdb", "--trace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """What is taken over."""

    note: str
    """For the reader of the outcomes."""
    taken: Mapping[tuple[str, str], CheckRun] = field(default_factory=dict[tuple[str, str], "CheckRun"])


def resume(
    flat: FlatPlan,
    todos: Sequence[Todo],
    settings: Settings,
    reference: PlanRef,
    apart: Sequence[Path],
    baseline: KeptBaseline | None = None,
) -> Resumed:
    """The verdicts of the last run of the plan, if it was killed or stopped and they still hold.

    What lies ``apart`` is not compared; ``baseline`` is what this run compares its own verdicts with.
    """
    from pytest_planverify.supervision.run_records import conditions

    now = conditions(settings, baseline)
    from pytest_planverify.supervision.past_runs import past_runs

    taken: dict[tuple[str, str], CheckRun] = {}
    in_doubt: set[tuple[str, str]] = set()
    why = "there is no earlier run of the plan"
    sources: list[PastRun] = []
    for last in past_runs(flat.loaded.root, flat.loaded.plan.todo_list_id):
        if last.finished is None and not last.checks and not last.is_alive():
            why = f"run {last.run_id} had reached no verdict"  # but perhaps one before it, which it resumed
            continue
        reason = _why_not(last, settings, reference, now) or _changed_file(last, flat, apart)
        if reason is not None:
            why = why if sources else reason
            break
        sources.append(last)
        found = _taken(last, flat, todos)
        taken = {key: run for key, run in found.items() if key not in in_doubt} | taken
        in_doubt |= set(last.checks) - set(found)
        why = f"run {last.run_id} had reached no verdict that is final"
    if not taken:
        return _nothing(why)
    everything = sum(len(flat.loaded.criteria[todo.id]) for todo in todos)
    first = sources[0]
    return Resumed(
        taken=taken,
        note=f"resumed: {len(taken)} of {everything} verdicts are those of run {first.run_id}, which "
        + ("was killed" if first.finished is None else "was interrupted"),
    )


def is_settled(check: Check) -> bool:
    """Whether a verdict is an answer. A flaky check in quarantine is run again: that may have expired."""
    return check.verdict is Verdict.PASSED or check.counts_as.is_red


def without(stages: Iterable[Stage], taken: Collection[tuple[str, str]]) -> list[Stage]:
    """The stages without the commands whose verdicts are known."""
    if not taken:
        return list(stages)
    return [
        Stage(
            folds=[
                Fold(fold.key, jobs)
                for fold in stage.folds
                if (jobs := [job for job in fold.jobs if (job.todo.id, job.criterion.id) not in taken])
            ],
            singles=[job for job in stage.singles if (job.todo.id, job.criterion.id) not in taken],
            todos=stage.todos,
        )
        for stage in stages
    ]


def failed_todos(
    checks: Mapping[str, Mapping[str, CheckRun]],
    order: Iterable[str],
    by_id: Mapping[str, Todo],
    parent_of: Mapping[str, str],
) -> set[str]:
    """The todos of which a check is red and which nothing blocks, and the parents above them."""
    failed: set[str] = set()
    for todo_id in order:
        red = any(run.check.counts_as.is_red for run in checks.get(todo_id, {}).values())
        if red and not blockers(todo_id, failed, by_id):
            name: str | None = todo_id
            while name is not None and name in by_id:
                failed.add(name)
                name = parent_of.get(name)
    return failed


def _nothing(why: str) -> Resumed:
    return Resumed(note=f"nothing was resumed, everything was run: {why}")


def _why_not(
    last: PastRun, settings: Settings, reference: PlanRef, conditions: Mapping[str, str]
) -> str | None:
    """Why none of a run's verdicts may be taken over; ``None`` where only the files may forbid it."""
    name = f"run {last.run_id}"
    if last.came_to_its_end:
        return f"the last run, {last.run_id}, came to its end"
    if last.is_alive():
        return f"{name} is still going on"
    if last.unexplained is not None:
        return f"{name} could not be accepted: {last.unexplained}"
    if settings.narrows:
        return "only a part of the plan is asked for"
    if settings.junit is not None or any(map(_needs_a_whole_run, settings.shared_args)):
        return "coverage, a JUnit XML file or a debugger needs a whole run"
    then, now = last.started.reference, reference
    if then is None or then.digest != now.digest:
        return f"the plan has changed since {name}"
    before = _digests(then)
    if any(before.get(parent, digest) != digest for parent, digest in _digests(now).items()):
        return f"a sub-plan has changed since {name}"
    for condition, value in conditions.items():
        if last.started.conditions.get(condition) != value:
            return f"{condition} of {name}: not the same as now"
    return None


def _needs_a_whole_run(word: str) -> bool:
    return word.startswith(_OF_A_WHOLE_RUN)


def _digests(reference: PlanRef) -> dict[str, str]:
    return {each.todo_id: each.digest for each in reference.sub_plans}


def _changed_file(last: PastRun, flat: FlatPlan, apart: Sequence[Path]) -> str | None:
    """What of the files is no longer as it was; ``None`` where nothing is."""
    from pytest_planverify.supervision.run_records import TREE
    from pytest_planverify.supervision.tree_state import TreeState, difference, read_tree

    nobody = "nobody knows which files have changed"
    then = TreeState.read(last.folder / TREE)
    if then is None:
        return f"{nobody}: run {last.run_id} had not written down what they were like"
    now = read_tree([part.root for part in flat.parts], apart)
    if now is None:
        return f"{nobody}: git does not answer, or there are too many of them"
    root = flat.loaded.root
    changed = difference(then, now, root, began=last.started.at, ended=last.last_at)
    return None if changed is None else f"since run {last.run_id} began, {changed}"


def _taken(last: PastRun, flat: FlatPlan, todos: Sequence[Todo]) -> dict[tuple[str, str], CheckRun]:
    known = last.runs()
    taken: dict[tuple[str, str], CheckRun] = {}
    for todo in todos:
        for criterion in flat.loaded.criteria[todo.id]:
            key = todo.id, criterion.id
            judged = last.checks.get(key)
            if judged is None or not judged.final or criterion.kind not in _TAKEN_KINDS:
                continue
            check = judged.check
            if check.kind is not criterion.kind or not is_settled(check):
                continue
            taken_from = check.taken_from or last.run_id
            taken[key] = replace(known[key], check=check.model_copy(update={"taken_from": taken_from}))
    return taken
