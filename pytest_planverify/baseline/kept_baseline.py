"""Storage of baselines: a file below the plan's root, and a copy in git that is compared on loading.

Code under test can overwrite the file. The copy in git's object database, under a ref, cannot be changed by
a plain file write, so that a manipulated baseline is noticed: the copy is then used, and the difference
becomes a doubt (:attr:`KeptBaseline.doubts`). File contents that no commit has are stored by SHA-256.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from planner.errors import BaselineError
from planner.model.baseline import Acceptance, JudgeKind, Remake
from planner.model.verdicts import TestOutcome
from planner.planfile.file_writer import replace_file
from planner.planfile.plan_folder import HOME, PLANS, PlanFolder, file_name, make_home
from planner.planfile.project_files import read_regular
from planner.planfile.record_files import baseline_bytes, parse_baseline, read_baseline
from planner.policy.outcomes import GREEN
from pytest_planverify.baseline import REFS, record_command
from pytest_planverify.baseline.repository import GitFailed, Repository, ask
from pytest_planverify.baseline.work_tree import LARGEST_BYTES, Judges, WorkTree, judges_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from planner.model.baseline import Baseline, BaselineCheck
    from planner.planfile.tree import FlatPlan

Standing = Literal["red", "expected", "green", "skipped", "flaky", "unknown", "absent"]
"""State of a test at the baseline.

``expected`` was expected to fail, ``unknown`` may have existed but did not run, ``absent`` did not exist.
"""

OBJECTS = "baseline/objects"
"""Folder of file contents that no commit contains, named by SHA-256."""
_REFS, _LINKED_REFS = REFS


@dataclass(frozen=True)
class KeptBaseline:
    """A loaded baseline, and a snapshot of the root's files with contents from git or from stored copies.

    Implements :class:`pytest_planverify.baseline.work_tree.Snapshot`.
    """

    root: Path
    document: Baseline = field(repr=False)
    path: Path = field(kw_only=True)
    """Its file, which may be missing; the name of that of a revision begins with the commit."""
    doubts: tuple[str, ...] = field(default=(), kw_only=True)
    """Signs that something other than ``planverify baseline`` changed the file."""
    begins_run: bool = field(default=False, kw_only=True)
    """Recorded by ``planverify run`` for itself, so its failures are that run's work."""
    contents: dict[str, bytes | None] = field(
        default_factory=dict[str, "bytes | None"], kw_only=True, repr=False
    )
    """Former contents of files that were read already, by path."""
    _former: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    def digests(self) -> Mapping[str, str]:
        """Return the SHA-256 of every file by path, in hexadecimal."""
        return {path: file.sha256 for path, file in self.document.files.items()}

    def read(self, path: str) -> bytes | None:
        """Return the content that a file had; ``None`` if no copy of exactly that content is left."""
        if path not in self.contents:
            self.contents[path] = self._read(path)
        return self.contents[path]

    def _read(self, path: str) -> bytes | None:
        file = self.document.files.get(path)
        if file is None:
            return None
        content = None
        if file.committed and self.document.revision is not None:
            if self._repository is not None:
                content = self._repository.content(self.document.revision, path)
        else:
            with suppress(OSError):
                content = read_regular(self.root / HOME / OBJECTS / file.sha256, LARGEST_BYTES)
        # A stored copy may have been overwritten.
        is_same = content is not None and hashlib.sha256(content).hexdigest() == file.sha256
        return content if is_same else None

    @cached_property
    def _repository(self) -> Repository | None:
        return Repository.around(self.root)

    def accepted(self, path: str, sha256: str | None) -> bool:
        """Return whether a person accepted this content of a file; ``None`` stands for its removal."""
        return any((path, sha256) in each.files.items() for each in self.document.accepted)

    def differing(self, now: Mapping[str, str]) -> list[str]:
        """Return the sorted paths whose SHA-256 in ``now`` is neither the former nor an accepted one."""
        then = self.digests()
        paths = (path for path in sorted({*then, *now}) if then.get(path) != now.get(path))
        return [path for path in paths if not self.accepted(path, now.get(path))]

    @cached_property
    def _functions(self) -> frozenset[str]:
        """Node ids of the executed tests, without parameters."""
        return frozenset(known.partition("[")[0] for known in self.document.tests)

    def check(self, todo_id: str, check_id: str) -> BaselineCheck | None:
        """Return the result of a todo's check at the baseline; ``None`` if it was not recorded."""
        todo = self.document.todos.get(todo_id)
        return None if todo is None else todo.checks.get(check_id)

    def kind_of(self, path: str) -> JudgeKind:
        """Return the kind of a file as recorded; for a file that did not exist, by its name."""
        known = self.document.files.get(path)
        return Judges().kind_of(path) if known is None else known.kind

    def former(self, nodeid: str) -> str:
        """Return the node id that a test had at the baseline; another one only if its file was renamed.

        A file counts as renamed only if its content is unchanged and its former path is unambiguous.
        """
        path, separator, names = nodeid.partition("::")
        if path not in self._former:
            self._former[path] = self._former_path(path)
        return f"{self._former[path]}{separator}{names}"

    def _former_path(self, path: str) -> str:
        """Return the only missing file of the baseline with the same content, else ``path`` itself."""
        if path in self.document.files:
            return path
        try:
            digest = hashlib.sha256(read_regular(self.root / path, LARGEST_BYTES)).hexdigest()
        except (OSError, ValueError):
            return path
        candidates = [
            name
            for name, file in self.document.files.items()
            if file.sha256 == digest and not os.path.lexists(self.root / name)
        ]
        return candidates[0] if len(candidates) == 1 else path

    def standing(self, nodeid: str) -> Standing:
        """Return the state that a test had at the baseline."""
        name = self.former(nodeid)
        # The record of a file is that of one which could not be collected.
        test = self.document.tests.get(name) or self.document.tests.get(name.partition("::")[0])
        if test is None:
            return "unknown" if self._may_have_had(name) else "absent"
        if test.flaky:
            return "flaky"
        if test.outcome.is_red:
            return "red"
        if test.outcome is TestOutcome.XFAILED:
            return "expected"
        return "green" if test.outcome in GREEN else "skipped"

    def _may_have_had(self, nodeid: str) -> bool:
        """Return whether a test that did not run may have existed: its file has its name, or is lost."""
        function = nodeid.partition("[")[0]
        path, _, names = function.partition("::")
        # One that ran with other parameters did not exist with these.
        if path not in self.document.files or function in self._functions:
            return False
        # By text, not by syntax: this only has to exclude tests that certainly did not exist.
        name = names.rpartition("::")[2]
        content = self.read(path)
        if content is None or not name:
            return True
        return re.search(rf"\b{re.escape(name)}\b".encode(), content) is not None


def find_baseline(root: Path, plan_id: str) -> KeptBaseline | None:
    """Return the baseline of a plan, or of the parent plan that contains it; ``None`` if there is none.

    If git has a copy, the copy is used: a file that differs from it is recorded as a doubt, a missing file
    is accepted. Raises :class:`planner.errors.BaselineError` if the baseline is unreadable or of another
    plan.
    """
    path = PlanFolder(root, plan_id).baseline
    ref, copy = _copy_in_git(Repository.around(root), plan_id)
    exists = os.path.lexists(path)  # a dangling link has to be reported, not ignored
    if not exists and copy is None:
        return _part_of_parent(root, plan_id)
    # Where there is a copy, the file is only compared with it: code under test can write to the file.
    document = read_baseline(path)[0] if copy is None else parse_baseline(copy, ref)
    if document.plan != plan_id:
        raise BaselineError(
            f"{path if copy is None else ref}: this is the baseline of the plan '{document.plan}', not of "
            f"'{plan_id}'; record one for this plan: planverify baseline PLAN --reason TEXT"
        )
    doubts: tuple[str, ...] = ()
    if exists and copy is not None and not _holds(path, copy):
        doubt = (
            f"{os.path.relpath(path, root)} differs from the copy of the baseline that git keeps as {ref}"
        )
        doubts = (doubt,)
    return KeptBaseline(root, document, path=path, doubts=doubts)


def keep_baseline(root: Path, document: Baseline, contents: Mapping[str, bytes]) -> tuple[Path, str | None]:
    """Write a baseline, its copy in git, and those contents (by SHA-256) that no commit contains.

    Returns the path of the file, and the reason if git could not store the copy (``None`` if it did, or
    without a repository). Raises :class:`planner.errors.FileWriteError`.
    """
    path = PlanFolder(root, document.plan).baseline
    data = baseline_bytes(document)
    keep_contents(root, contents)  # first, so that a stored baseline never lacks its contents
    # Durable, as it cannot be recorded again once the work has started.
    replace_file(path, data, durable=True)
    repository = Repository.around(root)
    if repository is None:
        return path, None
    ref = _ref(repository, document.plan)
    try:
        repository.keep(ref, data)
    except GitFailed as error:
        return path, str(error)
    if document.revision is not None:
        # Once no branch contains the commit, git would remove it, and with it the contents of the files.
        ask(root, "update-ref", f"{ref}@commit", document.revision)
    return path, None


def keep_contents(root: Path, contents: Mapping[str, bytes]) -> None:
    """Store contents under their SHA-256; existing files are replaced only if their content differs.

    Raises :class:`planner.errors.FileWriteError`.
    """
    folder = make_home(root) / OBJECTS
    for digest, content in contents.items():
        place = folder / digest
        # The name does not prove the content: code under test may have overwritten the file.
        if not _holds(place, content):
            replace_file(place, content)


def run_baseline(root: Path, plan_id: str) -> Path:
    """Return the path of the baseline that a run with agents records for a plan without one."""
    return PlanFolder(root, plan_id).baseline.with_name("run-baseline.json")


def _holds(path: Path, content: bytes) -> bool:
    """Return whether a regular file has exactly that content."""
    with suppress(OSError):
        return read_regular(path, len(content)) == content
    return False


def _part_of_parent(root: Path, plan_id: str) -> KeptBaseline | None:
    """Return the part of a parent plan's baseline that covers this plan, or ``None``.

    For a sub-plan that is verified by itself.
    """
    for path in sorted((root / PLANS).glob("*/baseline.json")):
        with suppress(BaselineError):  # of another plan, whose own run reports the error
            parent, _ = read_baseline(path)
            name = next((name for name, sub_plan in parent.sub_plans.items() if sub_plan == plan_id), None)
            kept = None if name is None else find_baseline(root, parent.plan)
            if kept is not None:
                prefix, every = f"{name}/", kept.document.todos
                own = {key.removeprefix(prefix): every[key] for key in every if key.startswith(prefix)}
                part = kept.document.model_copy(update={"todos": own})
                return replace(kept, document=part)
    return None


def _copy_in_git(repository: Repository | None, plan_id: str) -> tuple[str, bytes | None]:
    """Return the git ref of a plan's baseline and its content; ``None`` as content if there is no copy."""
    if repository is None:
        return "", None
    own = _ref(repository, plan_id)
    # A linked work tree without a baseline of its own uses that of the main work tree.
    refs = [own, own.replace(_LINKED_REFS, _REFS)] if repository.linked else [own]
    for ref in refs:
        copy = repository.kept(ref)
        if copy is not None:
            return ref, copy
    return own, None


def _ref(repository: Repository, plan_id: str) -> str:
    """Return the ref of a plan's baseline: unique by plan and root, and separate for linked work trees."""
    names = _LINKED_REFS if repository.linked else _REFS
    # Several roots of one repository may have plans of the same id.
    place = hashlib.sha256(os.fsencode(repository.prefix)).hexdigest()[:8]
    return f"{names}/{file_name(plan_id)}" + (f"@{place}" if repository.prefix else "")


def now(timespec: str = "milliseconds") -> str:
    """Return the current time in RFC 3339, UTC, in the precision that ``isoformat`` calls ``timespec``."""
    return datetime.now(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def user() -> str | None:
    """Return the name of the current user; ``None`` if the system has no name for the user id."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return None


def remade(document: Baseline, earlier: KeptBaseline | None, reason: str) -> Baseline:
    """Return a new baseline with the reason for replacing ``earlier``, and the history of replacements.

    ``earlier`` is ``None`` if there was none or it was unreadable.
    """
    replaced = None
    history = ()
    if earlier is not None:
        replaced = "sha256:" + hashlib.sha256(baseline_bytes(earlier.document)).hexdigest()
        history = earlier.document.remade
    entry = Remake(reason=reason.strip(), at=now("seconds"), by=user(), replaced=replaced)
    return document.model_copy(update={"remade": (*history, entry)})


def accept_changes(
    flat: FlatPlan, todo_id: str, reason: str, named: Collection[str] = ()
) -> tuple[Acceptance | None, str | None]:
    """Accept the current content of protected files that differ from the baseline, and store the baseline.

    ``named`` are files of the product, relative to the root, that are accepted as well. Returns the
    acceptance (``None`` if nothing differs), and the reason if git could not store a copy. Raises
    :class:`planner.errors.BaselineError` without a baseline, or with a doubtful one.
    """
    root = flat.loaded.root
    kept = find_baseline(root, flat.loaded.plan.todo_list_id)
    if kept is None:
        raise BaselineError(f"the plan has no baseline; record one: {record_command(flat)}")
    if kept.doubts:
        raise BaselineError(
            f"{kept.doubts[0]}; no change is accepted on top of it: record the baseline again with --reason"
        )
    tree = WorkTree(root)
    files, current = kept.document.files, tree.digests()
    judges = judges_of(flat, kept.document.tests, tree)
    changed = {
        path: current.get(path)  # None stands for a removed file
        for path in kept.differing(current)
        # A file that existed keeps its kind, whatever the current configuration implies.
        if path in named
        or (files[path].kind if path in files else judges.kind_of(path)) is not JudgeKind.PRODUCT
    }
    if not changed:
        return None, None
    acceptance = Acceptance(todo_id=todo_id, reason=reason, at=now("seconds"), by=user(), files=changed)
    document = kept.document.model_copy(update={"accepted": (*kept.document.accepted, acceptance)})
    return acceptance, keep_baseline(root, document, {})[1]
