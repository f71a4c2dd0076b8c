"""Last verdicts of a plan's commands, from the journals of earlier runs, and whether they still apply.

A verdict is valid while plan, interpreter, packages, options and environment are the same and no file
that it depends on has changed. The newest verdict on a criterion counts.

The worker reports which files it read. Without such a report a verdict depends on all files. What has
changed follows from the state of the tree at the start of each run: under git the commit and digests of all
files that differ from it, elsewhere digests of all files; caches and this plugin's own files are excluded.
"""

from __future__ import annotations

import json
import os
import re
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Literal

from planner.model.base import ReadValue
from planner.model.journal import RestsOn
from planner.model.verdicts import CheckKind, Verdict
from planner.planfile.latest_outcomes import PastRun, past_runs
from planner.planfile.project_files import GONE, digest_of, is_cache_or_report, is_code, read_regular, walk
from pytest_planverify.baseline.repository import GitFailed, git, top_of
from pytest_planverify.observe.audit import MOST_EVENTS
from pytest_planverify.session.check_runs import is_settled
from pytest_planverify.session.run_folder import TREE, conditions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from planner.model.journal import CheckRun
    from planner.model.outcome import PlanRef
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline
    from pytest_planverify.options import Settings
    from pytest_planverify.session.records import WorkerRecord

Key = tuple[str, str]
"""Todo id and criterion id."""

COMMANDS = (CheckKind.TEST, CheckKind.COMMAND)
"""Only commands keep verdicts; evaluating other criteria again costs nothing."""

OWN_DOING_SECONDS = 2.0
"""Seconds after a killed run's last record in which its processes may still have written files."""

NEVER = "no earlier run has verified it"
HAS_CHANGED = "has changed"


@dataclass(slots=True, kw_only=True)
class LastVerdicts:
    """Verdicts of earlier runs on the commands of a plan."""

    held: dict[Key, CheckRun] = field(default_factory=dict[Key, "CheckRun"])
    """Valid verdicts, each with its evidence and its run."""
    stale: dict[Key, str] = field(default_factory=dict[Key, str])
    """Reasons why other verdicts are stale."""
    newest: PastRun | None = None
    """The newest run with a verdict or an end record."""
    taken: frozenset[Key] = frozenset()
    """Commands of requested todos that are not run again."""
    remarks: tuple[str, ...] = ()
    """Lines to show the user about it."""

    def why_not(self, key: Key) -> str:
        """Return why a command has no valid verdict."""
        return self.stale.get(key, NEVER)


@dataclass(frozen=True, kw_only=True)
class Present:
    """The current plan, files and settings, against which past verdicts are checked."""

    flat: FlatPlan
    settings: Settings
    reference: PlanRef
    tree: TreeState | None
    apart: Sequence[Path]
    """Files excluded from the comparison: the plan's files and our own reports."""
    baseline: KeptBaseline | None = None

    @cached_property
    def _conditions(self) -> Mapping[str, str]:
        return conditions(self.settings, self.baseline)

    def why_none(self, run: PastRun) -> str | None:
        """Return why no verdict of the run can be valid; ``None`` if that depends on files."""
        name = f"run {run.run_id}"
        if run.is_alive():
            return f"{name} is still running"
        if run.unexplained is not None:
            return f"{name} could not be accepted: {run.unexplained}"
        # A kept verdict contributes no measurement, so that the report would show too little coverage.
        if any(word.startswith(("--cov", "--no-cov")) for word in self.settings.worker_args):
            return "coverage needs a complete run"
        for condition, value in self._conditions.items():
            if run.started.conditions.get(condition) != value:
                return f"not the same {condition} as in {name}"
        return None

    def why_told_otherwise(self, run: PastRun, todo_id: str, rests_on: RestsOn | None) -> str | None:
        """Return why a verdict does not belong to the plan's current criteria; ``None`` if it does."""
        then, now = run.started.reference, self.reference
        if then is None or then.todos.get(todo_id) != now.todos.get(todo_id) or todo_id not in now.todos:
            return f"its part of the plan has changed since run {run.run_id}"
        # A test may read the plan file; if reads are unknown, it has to be assumed.
        if (then.digest, then.sub_plans) != (now.digest, now.sub_plans):
            plans = {os.path.relpath(each.path, self.flat.loaded.root) for each in self.flat.parts}
            if rests_on is None or not plans.isdisjoint(rests_on.files):
                return f"the plan has changed since run {run.run_id}"
        return None

    def changes_since(self, run: PastRun) -> dict[str, str]:
        """Return the file changes since the run began. Raises :class:`UnknownChangesError`."""
        then = TreeState.read(run.folder / TREE)
        if then is None:
            raise UnknownChangesError(f"run {run.run_id} did not record them")
        if self.tree is None:
            raise UnknownChangesError("git does not answer, or there are too many")
        # A killed run has no end record, and what it had started may have written a little longer.
        ended = run.last_at + (0 if run.finished is not None else OWN_DOING_SECONDS)
        root, began = self.flat.loaded.root, run.started.at
        return difference(then, self.tree, root, began=began, ended=ended, apart=self.apart)


def verdicts_to_keep(now: Present, asked: Sequence[str]) -> LastVerdicts:
    """Return the last verdicts, and which commands of the requested todos they make unnecessary to run."""
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
        remark = (
            f"resumed: {len(last.taken)} of {count} commands keep the verdicts of run {newest.run_id}, "
        )
        last.remarks = (f"{remark}which {how}",)
        return last
    if newest is None:
        why = "there is no earlier run of the plan"
    elif newest.has_finished:
        why = f"the last run, {newest.run_id}, was complete"
    else:
        why = next(iter(last.stale.values()), f"run {newest.run_id} had reached no verdict")
    last.remarks = (f"nothing was resumed, and everything ran: {why}",)
    return last


def last_verdicts(now: Present, *, unfinished: bool = False) -> LastVerdicts:
    """Read journals of earlier runs, newest first, until each command has a verdict.

    ``unfinished`` restricts this to killed and interrupted runs since the last complete one.
    """
    found = LastVerdicts()
    plan = now.flat.loaded
    digests = FileDigests(plan.root)
    missing = {
        (todo_id, each.id): each
        for todo_id, criteria in plan.criteria.items()
        for each in criteria
        if each.kind in COMMANDS
    }
    for run in past_runs(plan.root, plan.plan.todo_list_id):
        # What was judged before the last complete run is not what was interrupted.
        if unfinished and run.has_finished:
            found.newest = found.newest or run
            break
        if run.checks or run.finished is not None:
            found.newest = found.newest or run
        why_none, changes = now.why_none(run), None
        for key in missing.keys() & run.checks.keys():
            # The newest verdict alone counts: an older one may be a pass that a later failure has refuted.
            criterion, held = missing.pop(key), run.checks[key]
            is_final = held.final and is_settled(held.check) and held.check.kind is criterion.kind
            why = why_none or now.why_told_otherwise(run, key[0], held.rests_on)
            if why is None and not is_final:
                why = f"run {run.run_id} had reached no final verdict on it"
            elif why is None:
                try:
                    if changes is None:
                        changes = now.changes_since(run)
                    changed = digests.why_stale(held.rests_on, changes)
                    why = None if changed is None else f"{changed} since run {run.run_id}"
                except UnknownChangesError as error:
                    why = why_none = f"the changed files are unknown: {error} since run {run.run_id}"
            if why is None:
                # A run that kept the verdict itself names the one that reached it.
                update = {"taken_from": held.check.taken_from or run.run_id}
                check = held.check.model_copy(update=update)
                found.held[key] = held.model_copy(update={"check": check})
            else:
                found.stale[key] = why
        if not missing:
            break
    return found


_CONFIG_FILES = frozenset({"pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", ".env"})
"""Configuration files of pytest and plugins; which of them applies depends on the contents of the
others.
"""

_LIBRARIES = (".so", ".dylib", ".dll", ".pyd")
_PYTHON = (".py", ".pyi")
_EXAMINING = re.compile(rb"\b(l?stat|st_\w+|get(size|[acm]time)|readlink|filecmp)\b")
_CLOCK_TICK = 0.01
"""Granularity, in seconds, by which a file's change time may precede the actual change."""


class FileDigests:
    """File digests, each computed once while the file is not written."""

    def __init__(self, root: Path) -> None:
        """Names are relative to ``root``, the plan's."""
        self._root = root
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}
        self._examining: dict[str, bool] = {}

    def of(self, name: str) -> str:
        """Return the digest of a file."""
        return self._digest_and_change(name)[0]

    def _digest_and_change(self, name: str) -> tuple[str, float]:
        """Return a file's digest and the time of its last change (epoch seconds)."""
        path = f"{self._root}/{name}"
        try:
            facts = os.stat(path)
        except OSError:
            return digest_of(self._root / name, follow=True), 0
        # With the change time, which nobody can set, unlike the modification time.
        stamp = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        known = self._known.get(name)
        if known is None or known[0] != stamp:
            known = self._known[name] = stamp, digest_of(self._root / name, follow=True)
        return known[1], facts.st_ctime

    def _examines_files(self, name: str) -> bool:
        """Return whether a module may look at files without opening them, which raises no audit event."""
        digest = self.of(name)
        if name.endswith(_PYTHON) and digest not in self._examining:
            with suppress(OSError):
                self._examining[digest] = _EXAMINING.search(read_regular(self._root / name)) is not None
        return self._examining.get(digest, False)

    def basis(self, record: WorkerRecord, more: Iterable[str | None]) -> tuple[RestsOn | None, bool]:
        """Return the files that a worker's verdict depends on, and whether none changed while it ran.

        ``more`` are files that it depends on without reading them itself. The files are ``None`` if the
        worker could not report all that it read.
        """
        facts = record.files_read
        if facts is None or facts.get("unknown") or not _is_complete(record):
            return None, True
        read = {*map(str, facts.get("files", ())), *(path for path in more if path is not None)}
        names = sorted(os.path.relpath(path, self._root) for path in read)
        seen = {name: self._digest_and_change(name) for name in names}
        rests_on = RestsOn(
            files={name: digest for name, (digest, _) in seen.items()},
            native=bool(facts.get("native")) or any(map(self._examines_files, seen)),
        )
        # A file changed while the worker ran may have been read before: the verdict is not of its digest.
        began = record.launched_at - _CLOCK_TICK
        return rests_on, all(changed <= began for _, changed in seen.values())

    def read_data(self, record: WorkerRecord) -> tuple[str, ...]:
        """Return the files other than Python's that a worker is known to have read."""
        files = map(str, (record.files_read or {}).get("files", ()))
        return tuple(os.path.relpath(path, self._root) for path in files if not path.endswith(_PYTHON))

    def why_stale(self, basis: RestsOn | None, changes: Mapping[str, str]) -> str | None:
        """Return what changed among the files that a verdict depends on; ``None`` if it is still valid."""
        for name, how in changes.items():
            # Existence checks raise no audit event; and a new file may be collected, or shadow another one.
            if how != HAS_CHANGED:
                return f"{name} {how}"
            # Native code may have read any file but Python's.
            may_be_read = basis is None or (basis.native and not name.endswith(_PYTHON))
            if may_be_read or name.rpartition("/")[2] in _CONFIG_FILES or name.endswith(_LIBRARIES):
                return f"{name} {how}"
        for name, digest in () if basis is None else basis.files.items():
            if self.of(name) != digest:
                return f"{name} {HAS_CHANGED}"
        return None


def _is_complete(record: WorkerRecord) -> bool:
    """Return whether the worker finished and nothing took part whose reads are unknown."""
    reached = {each["event"] for each in record.audit.values()}
    return not (
        record.death is not None
        or record.cut_short
        or record.journal_lost
        or record.xdist_workers
        or reached & {"process", "connect"}
        or len(record.audit) >= MOST_EVENTS  # further events were not recorded
    )


# -- the files at the start of a run -------------------------------------------------------------------


MOST_FILES = 5_000
"""Limit of compared files; under git only files that differ from the commit count."""


class TreeState(ReadValue):
    """The files below one or several roots at one time."""

    version: Literal[1] = 1
    heads: dict[str, str]
    """Commits by top folder of the repository. All paths are relative to the plan's root."""
    files: dict[str, str]
    """Digest by file; ``gone`` for a deleted one."""
    loose: frozenset[str]
    """Files that no commit contains."""

    @classmethod
    def read(cls, path: Path) -> TreeState | None:
        """Read a state that a journal wrote; ``None`` if it is missing, foreign or of a newer version."""
        with suppress(OSError, ValueError, RecursionError):
            return cls.model_validate(json.loads(read_regular(path)))
        return None


def read_tree(roots: Sequence[Path], apart: Sequence[Path] = ()) -> TreeState | None:
    """Return the current state; the first root is the plan's own, files in ``apart`` are excluded.

    ``None`` if git fails or there are too many files.
    """
    base = roots[0]
    heads: dict[str, str] = {}
    files: dict[str, str] = {}
    loose: set[str] = set()
    # Several roots may lie in one repository, which is read once.
    for top in dict.fromkeys(top_of(root) or root for root in roots):
        head, names = None, {}
        if (top / ".git").exists():
            found = _under_git(top)
            if found is None:
                return None
            head, names = found
        else:
            names = dict.fromkeys(islice(walk(top), MOST_FILES + 1), True)
        if len(names) > MOST_FILES:
            return None
        if head is not None:
            heads[os.path.relpath(top, base)] = head
        for name, is_loose in names.items():
            path = top / name
            if _lies_in(path, apart):
                continue
            shown = os.path.relpath(path, base)
            files[shown] = digest_of(path)
            if is_loose:
                loose.add(shown)
    return TreeState(heads=heads, files=files, loose=frozenset(loose))


class UnknownChangesError(Exception):
    """It is not known which files have changed; the message is the reason."""


def difference(
    then: TreeState,
    now: TreeState,
    root: Path,
    *,
    began: float,
    ended: float,
    apart: Sequence[Path] = (),
) -> dict[str, str]:
    """Return the files that differ from ``then``, the state at the start of a past run, and how.

    Names are relative to the plan's root. New data that no commit contains is left out if the run wrote it.
    ``began`` and ``ended`` are the times of that run in epoch seconds. ``apart`` are excluded files, as in
    :func:`read_tree`. Raises :class:`UnknownChangesError`.
    """
    # Without a commit all files have digests, with one only those that differ from it: not comparable.
    if now.heads.keys() != then.heads.keys():
        raise UnknownChangesError("the files were added to git, or removed from it")
    found: dict[str, str] = {}
    committed = _between_commits(then, now, root, apart)
    for name in sorted({*then.files, *now.files, *committed}):
        is_new = committed.get(name, name in now.loose)  # and so not in the earlier commit
        # A file without a digest was as in its commit then, or did not exist.
        before = then.files.get(name, GONE if is_new else "as committed")
        after = now.files.get(name) or digest_of(root / name)
        if before == after:
            continue
        if after == GONE:
            found[name] = "is gone"
        elif before != GONE:
            # Where a link leads is also seen without opening it, as by resolve() and listdir().
            found[name] = "is another link" if "link:" in (before[:5], after[:5]) else HAS_CHANGED
        elif name not in now.loose or not _is_own(root / name, name, began, ended):
            found[name] = "is new"
    return found


def _between_commits(then: TreeState, now: TreeState, root: Path, apart: Sequence[Path]) -> dict[str, bool]:
    """Return the files that differ between the commits, with whether each is new.

    Raises :class:`UnknownChangesError` if git fails.
    """
    found: dict[str, bool] = {}
    for top, head in then.heads.items():
        if now.heads[top] == head:
            continue
        folder = root / top
        try:
            output = git(folder, "diff", "--name-status", "-z", "--no-renames", head, now.heads[top], "--")
        except GitFailed:
            raise UnknownChangesError(
                "HEAD is another commit, and git cannot list the changes between them"
            ) from None
        words = os.fsdecode(output).split("\0")  # status and name alternate; the last one is empty
        for status, name in zip(words[::2], words[1::2], strict=False):
            path = folder / name
            if not is_cache_or_report(name) and not _lies_in(path, apart):
                found[os.path.relpath(path, root)] = status == "A"
    return found


def _lies_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == each or each in path.parents for each in folders)


def _is_own(path: Path, name: str, began: float, ended: float) -> bool:
    """Return whether a new file, code excepted, was written by the run itself.

    Judged by its ctime, which nobody can set.
    """
    try:
        return not is_code(name) and began <= path.lstat().st_ctime <= ended
    except OSError:
        return False


def start_reading(roots: Sequence[Path], apart: Sequence[Path] = ()) -> Future[TreeState | None]:
    """Read the state in a thread, while the run starts; arguments and result as of :func:`read_tree`."""
    reading: Future[TreeState | None] = Future()

    def read() -> None:
        try:
            reading.set_result(read_tree(roots, apart))
        except BaseException as error:  # of any kind: else the reader would wait for ever
            reading.set_exception(error)

    # A daemon, so that a git that hangs does not keep this process from ending.
    threading.Thread(target=read, name="planverify-tree", daemon=True).start()
    return reading


def _under_git(top: Path) -> tuple[str, dict[str, bool]] | None:
    """Return the commit and the files that differ from it, with whether each is untracked."""
    try:
        output = git(
            *(top, "status", "--porcelain=v2", "--branch", "-z", "--no-renames"),
            *("--untracked-files=all", "--ignored=matching"),
        )
    except GitFailed:
        return None
    head = ""
    names: dict[str, bool] = {}
    for entry in os.fsdecode(output).split("\0"):
        if entry.startswith("# branch.oid "):  # "(initial)" before the first commit, which no diff accepts
            head = entry.removeprefix("# branch.oid ")
        place = _FIELDS_BEFORE_PATH.get(entry[:2])
        if place is None:
            continue
        name = entry.split(" ", place)[place]
        # Of ignored files only code counts; the rest are artifacts of builds and tests.
        if not is_cache_or_report(name) and (entry[0] != "!" or (is_code(name) and not name.endswith("/"))):
            names[name] = entry[0] in "?!"
    return head, names


_FIELDS_BEFORE_PATH = {"1 ": 8, "u ": 10, "? ": 1, "! ": 1}
"""Number of fields before the path, by kind of entry in ``git status --porcelain=v2``."""
