"""The last verdict of each command of a plan, out of the journals of earlier runs, and whether it holds.

It holds while plan, interpreter, packages, options and environment are the same, and no file that it rests
on has changed. Of several runs the newest that has a verdict on a criterion is the one that counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.model.verdicts import CheckKind
from pytest_planverify.session.basis import FileDigests
from pytest_planverify.session.check_runs import is_settled
from pytest_planverify.session.past_runs import PastRun, past_runs
from pytest_planverify.session.run_records import TREE, conditions
from pytest_planverify.session.tree_state import Difference, TreeState, difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from planner.model.journal import CheckJudged
    from planner.model.outcome import PlanRef
    from planner.planfile.tree import FlatPlan
    from planner.rules.criteria import Criterion
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.options import Settings
    from pytest_planverify.session.check_runs import CheckRun

Key = tuple[str, str]
"""Ids of a todo and of one of its criteria."""

COMMANDS = (CheckKind.TEST, CheckKind.COMMAND)
"""Files, metrics, contracts and questions are looked at again: that costs nothing."""

OWN_DOING_SECONDS = 2.0
"""How long after its last record what a run that was killed had started may still have been writing."""

NEVER = "no earlier run has verified it"


@dataclass(slots=True, kw_only=True)
class LastVerdicts:
    """What earlier runs have said of the commands of a plan."""

    held: dict[Key, CheckRun] = field(default_factory=dict[Key, "CheckRun"])
    """The verdicts that still hold, each with its evidence and the run that reached it."""
    stale: dict[Key, str] = field(default_factory=dict[Key, str])
    """Why the others do not."""
    newest: PastRun | None = None
    """The newest run that has reached a verdict, or come to its end."""

    def why_not(self, key: Key) -> str:
        """Return why there is no verdict that holds."""
        return self.stale.get(key, NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What the verdicts of earlier runs are compared with."""

    flat: FlatPlan
    settings: Settings
    reference: PlanRef
    tree: TreeState | None
    apart: Sequence[Path]
    """Files that are not compared: the plan's, and reports of our own."""
    baseline: KeptBaseline | None = None


def last_verdicts(now: Present, *, unfinished: bool = False) -> LastVerdicts:
    """Read the journals of the plan's earlier runs, the newest first, until each command has a verdict.

    With ``unfinished`` those of runs that were killed or interrupted since one came to its end.
    """
    found = LastVerdicts()
    plan = now.flat.loaded
    missing = {
        (todo_id, each.id): each
        for todo_id, criteria in plan.criteria.items()
        for each in criteria
        if each.kind in COMMANDS
    }
    reader = _Reader(now)
    for run in past_runs(plan.root, plan.plan.todo_list_id):
        if unfinished and run.came_to_its_end:
            found.newest = found.newest or run
            break
        if run.checks or run.finished is not None:
            found.newest = found.newest or run
        reader.turn_to(run)
        for key in missing.keys() & run.checks.keys():
            reason = reader.why_not(missing.pop(key), run.checks[key])
            if reason is None:
                found.held[key] = _taken(run, run.checks[key])
            else:
                found.stale[key] = reason
        if not missing:
            break
    return found


def _taken(run: PastRun, judged: CheckJudged) -> CheckRun:
    check = judged.check.model_copy(update={"taken_from": judged.check.taken_from or run.run_id})
    return replace(run.run_of(judged), check=check)


class _Reader:
    """Tells which verdicts of past runs hold."""

    def __init__(self, now: Present) -> None:
        self._now = now
        self._conditions = conditions(now.settings, now.baseline)
        self._digests = FileDigests(now.flat.loaded.root)
        self._run: PastRun
        self._reason: str | None = None
        self._difference: Difference | None = None

    def turn_to(self, run: PastRun) -> None:
        self._run, self._difference = run, None
        self._reason = self._why_none()

    def why_not(self, criterion: Criterion, judged: CheckJudged) -> str | None:
        if self._reason is not None:
            return self._reason
        if not judged.final or judged.check.kind is not criterion.kind or not is_settled(judged.check):
            return f"run {self._run.run_id} had reached no verdict on it that is final"
        if self._difference is None:
            self._difference = self._compare()
        changed = self._digests.why_stale(judged.rests_on, self._difference)
        return None if changed is None else f"{changed} since run {self._run.run_id}"

    def _why_none(self) -> str | None:
        """Return why none of the run's verdicts holds; ``None`` where that depends on the files."""
        run, name = self._run, f"run {self._run.run_id}"
        if run.is_alive():
            return f"{name} is still going on"
        if run.unexplained is not None:
            return f"{name} could not be accepted: {run.unexplained}"
        if any(word.startswith(("--cov", "--no-cov")) for word in self._now.settings.worker_args):
            return "coverage is measured in a whole run"
        then, now = run.started.reference, self._now.reference
        if then is None or then.digest != now.digest:
            return f"the plan has changed since {name}"
        before, after = _digests(then), _digests(now)
        if any(after.get(parent, digest) != digest for parent, digest in before.items()):
            return f"a sub-plan has changed since {name}"
        for condition, value in self._conditions.items():
            if run.started.conditions.get(condition) != value:
                return f"not the same {condition} as in {name}"
        return None

    def _compare(self) -> Difference:
        run, now = self._run, self._now
        then = TreeState.read(run.folder / TREE)
        if then is None:
            return Difference(unknown=f"run {run.run_id} had not written down what they were like")
        if now.tree is None:
            return Difference(unknown="git does not answer, or there are too many of them")
        return difference(
            then,
            now.tree,
            now.flat.loaded.root,
            began=run.started.at,
            ended=run.last_at + (0 if run.finished is not None else OWN_DOING_SECONDS),
            apart=now.apart,
        )


def _digests(reference: PlanRef) -> Mapping[str, str]:
    return {each.todo_id: each.digest for each in reference.sub_plans}
