"""The last verdict of each command of a plan, out of the journals of earlier runs, and whether it holds.

It holds while plan, interpreter, packages, options and environment are the same, and no file that it rests
on has changed. Of several runs the newest that has a verdict on a criterion is the one that counts.

Which files those are a worker tells: it names what it read. Of a verdict without such a basis nobody knows
it, so it rests on all files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.model.verdicts import CheckKind, Verdict
from planner.planfile.past_runs import PastRun, past_runs
from planner.planfile.project_files import digest_of
from pytest_planverify.observe.audit import MOST_EVENTS
from pytest_planverify.session.check_runs import is_settled
from pytest_planverify.session.run_journal import TREE, check_run_of, conditions
from pytest_planverify.session.tree_state import Difference, TreeState, difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from planner.model.journal import CheckJudged, RestsOn
    from planner.model.outcome import PlanRef
    from planner.planfile.tree import FlatPlan
    from planner.policy.criteria import Criterion
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.checks.result import CheckRun
    from pytest_planverify.options import Settings
    from pytest_planverify.session.records import WorkerRecord

Key = tuple[str, str]
"""Ids of a todo and of one of its criteria."""

COMMANDS = (CheckKind.TEST, CheckKind.COMMAND)
"""Files, metrics, contracts and questions are looked at again: that costs nothing."""

OWN_DOING_SECONDS = 2.0
"""How long after its last record what a run that was killed had started may still have been writing."""

NEVER = "no earlier run has verified it"


@dataclass(slots=True, kw_only=True)
class LastVerdicts:
    """Verdicts of earlier runs on the commands of a plan."""

    held: dict[Key, CheckRun] = field(default_factory=dict[Key, "CheckRun"])
    """The verdicts that still hold, each with its evidence and the run that reached it."""
    stale: dict[Key, str] = field(default_factory=dict[Key, str])
    """Why the others do not."""
    newest: PastRun | None = None
    """The newest run that has reached a verdict, or come to its end."""
    taken: frozenset[Key] = frozenset()
    """The commands of todos that are asked for, and that are not run again."""
    remarks: tuple[str, ...] = ()
    """What to say of it."""

    def why_not(self, key: Key) -> str:
        """Return why there is no verdict that holds."""
        return self.stale.get(key, NEVER)


class Present:
    """The plan, files and settings of now, and which verdicts of past runs hold under them."""

    def __init__(
        self,
        *,
        flat: FlatPlan,
        settings: Settings,
        reference: PlanRef,
        tree: TreeState | None,
        apart: Sequence[Path],
        baseline: KeptBaseline | None = None,
    ) -> None:
        """``apart`` are files that are not compared: the plan's, and reports of our own."""
        self.flat = flat
        self.settings = settings
        self.reference = reference
        self.tree = tree
        self.apart = apart
        self._conditions = conditions(settings, baseline)
        self._digests = FileDigests(flat.loaded.root)
        self._run: PastRun
        self._reason: str | None = None
        self._difference: Difference | None = None

    def turn_to(self, run: PastRun) -> None:
        """Look at the verdicts of this run from now on."""
        self._run, self._difference = run, None
        self._reason = self._why_none()

    def why_not(self, todo_id: str, criterion: Criterion, judged: CheckJudged) -> str | None:
        """Return why a verdict of that run does not hold; ``None`` where it does."""
        if self._reason is not None:
            return self._reason
        then = self._run.started.reference
        said = None if then is None else then.todos.get(todo_id)
        if said is None or said != self.reference.todos.get(todo_id):
            return f"the plan says something else of it since run {self._run.run_id}"
        # A test may read the plan's file as any other; of what is unseen that has to be supposed.
        if then is not None and _files_of(then) != _files_of(self.reference):
            plans = {os.path.relpath(each.path, self.flat.loaded.root) for each in self.flat.parts}
            if judged.rests_on is None or not plans.isdisjoint(judged.rests_on.files):
                return f"the plan has changed since run {self._run.run_id}"
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
        if any(word.startswith(("--cov", "--no-cov")) for word in self.settings.worker_args):
            return "coverage is measured in a whole run"
        for condition, value in self._conditions.items():
            if run.started.conditions.get(condition) != value:
                return f"not the same {condition} as in {name}"
        return None

    def _compare(self) -> Difference:
        run = self._run
        then = TreeState.read(run.folder / TREE)
        if then is None:
            return Difference(unknown=f"run {run.run_id} had not written down what they were like")
        if self.tree is None:
            return Difference(unknown="git does not answer, or there are too many of them")
        return difference(
            then,
            self.tree,
            self.flat.loaded.root,
            began=run.started.at,
            ended=run.last_at + (0 if run.finished is not None else OWN_DOING_SECONDS),
            apart=self.apart,
        )


def verdicts_to_keep(now: Present, asked: Sequence[str]) -> LastVerdicts:
    """Return the last verdicts, with those of the todos ``asked`` for that make running them needless."""
    settings = now.settings
    if not settings.resume or settings.last_failed:
        last = last_verdicts(now)
        green = (key for key, run in last.held.items() if run.check.verdict is Verdict.PASSED)
        last.taken = frozenset(key for key in green if settings.last_failed and key[0] in asked)
        return last
    last = last_verdicts(now, unfinished=True)
    last.taken = frozenset(key for key in last.held if key[0] in asked)
    newest = last.newest
    if last.taken and newest is not None:
        criteria = now.flat.loaded.criteria
        count = sum(each.kind in COMMANDS for todo_id in asked for each in criteria[todo_id])
        how = "was killed" if newest.finished is None else "was interrupted"
        said = f"resumed: {len(last.taken)} of {count} commands keep the verdicts of run {newest.run_id}, "
        last.remarks = (f"{said}which {how}",)
        return last
    if newest is None:
        why = "there is no earlier run of the plan"
    elif newest.came_to_its_end:
        why = f"the last run, {newest.run_id}, came to its end"
    else:
        why = next(iter(last.stale.values()), f"run {newest.run_id} had reached no verdict")
    last.remarks = (f"nothing was resumed, everything was run: {why}",)
    return last


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
    for run in past_runs(plan.root, plan.plan.todo_list_id):
        if unfinished and run.came_to_its_end:
            found.newest = found.newest or run
            break
        if run.checks or run.finished is not None:
            found.newest = found.newest or run
        now.turn_to(run)
        for key in missing.keys() & run.checks.keys():
            reason = now.why_not(key[0], missing.pop(key), run.checks[key])
            if reason is None:
                held = check_run_of(run.checks[key])
                taken_from = held.check.taken_from or run.run_id
                found.held[key] = replace(
                    held, check=held.check.model_copy(update={"taken_from": taken_from})
                )
            else:
                found.stale[key] = reason
        if not missing:
            break
    return found


def _files_of(reference: PlanRef) -> list[str]:
    """Return the digests of a plan's files."""
    return [reference.digest, *(each.digest for each in reference.sub_plans)]


_OF_EVERYBODY = frozenset({"pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", ".env"})
"""Files that say how pytest and its plugins start; which of them it is depends on what is in the others."""

_LIBRARIES = (".so", ".dylib", ".dll", ".pyd")
_PYTHON = (".py", ".pyi")
_CLOCK_TICK = 0.01
"""Seconds by which the time of a file's change may lie before the moment at which it was changed."""


class FileDigests:
    """Digests of files, each computed once as long as nobody has written the file."""

    def __init__(self, root: Path) -> None:
        """Paths are relative to the ``root`` of the plan."""
        self._root = root
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}
        self._names: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return the digest of a file."""
        return self._look_at(name)[0]

    def _look_at(self, name: str) -> tuple[str, float]:
        """Return the digest of a file, and when it was last written, moved or made."""
        path = f"{self._root}/{name}"
        try:
            facts = os.stat(path)
        except OSError:
            return digest_of(self._root / name, follow=True), 0
        stamp = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        known = self._known.get(name)
        if known is None or known[0] != stamp:
            known = self._known[name] = stamp, digest_of(self._root / name, follow=True)
        return known[1], facts.st_ctime

    def _name_of(self, path: str) -> str:
        name = self._names.get(path)
        if name is None:
            name = self._names[path] = os.path.relpath(path, self._root)
        return name

    def basis(self, record: WorkerRecord, more: Iterable[str | None]) -> tuple[RestsOn | None, bool]:
        """Return what the verdict on a worker rests on, and whether that stayed the same while it ran.

        ``more`` are files that it depends on and did not read itself.
        """
        from planner.model.journal import RestsOn

        facts = record.files_read
        if facts is None or facts.get("unknown") or not _is_whole(record):
            return None, True
        read = (*map(str, facts.get("files", ())), *(path for path in more if path is not None))
        seen = {name: self._look_at(name) for name in sorted(map(self._name_of, read))}
        rests_on = RestsOn(
            files={name: digest for name, (digest, _) in seen.items()}, native=bool(facts.get("native"))
        )
        began = record.launched_at - _CLOCK_TICK
        return rests_on, all(changed <= began for _, changed in seen.values())

    def why_stale(self, basis: RestsOn | None, difference: Difference) -> str | None:
        """Return what has changed of that which a verdict rests on; ``None`` where the verdict holds."""
        if difference.unknown is not None:
            return f"nobody knows which files have changed: {difference.unknown}"
        # No event tells of a test that only asks whether a file is there; a new one may also be collected,
        # or take the place of another.
        for name in difference.gone:
            return f"{name} is gone"
        for name in difference.added:
            return f"{name} is new"
        if basis is None:
            return next((f"{name} has changed" for name in difference.changed), None)
        return next(self._stale(basis, difference), None)

    def _stale(self, basis: RestsOn, difference: Difference) -> Iterator[str]:
        for name in difference.changed:
            if name.rpartition("/")[2] in _OF_EVERYBODY or name.endswith(_LIBRARIES):
                yield f"{name} has changed"
        for name, digest in basis.files.items():
            if self.of(name) != digest:
                yield f"{name} has changed"
        if basis.native:
            for name in difference.changed:
                if not name.endswith(_PYTHON):
                    yield f"{name} has changed"


def _is_whole(record: WorkerRecord) -> bool:
    """Return whether the worker came to its end, and nothing took part that cannot tell what it read."""
    reached = {each["event"] for each in record.audit.values()}
    return not (
        record.death is not None
        or record.cut_short
        or record.journal_lost
        or record.xdist_workers
        or reached & {"process", "connect"}
        or len(record.audit) >= MOST_EVENTS
    )
