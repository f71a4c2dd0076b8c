"""Keeps the baseline below the plan's root, and a second copy with git; loads it and compares the two."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from planner.errors import BaselineError
from planner.model.baseline import Acceptance, JudgeKind, Remake
from planner.planfile.file_writer import replace_file
from planner.planfile.plan_folder import HOME, PLANS, PlanFolder, file_name, make_home
from planner.planfile.record_files import baseline_bytes, parse_baseline, read_baseline
from pytest_planverify.baseline.kinds import Judges, judges_of
from pytest_planverify.baseline.record import now, user
from pytest_planverify.baseline.repository import GitFailed, Repository, may_keep
from pytest_planverify.baseline.work_tree import WorkTree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from planner.model.baseline import Baseline, BaselineTest
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.record import BaselineRun

OBJECTS = "baseline/objects"
"""The folder of contents that no commit holds, each under its sha256."""

REFS = "refs/planverify"
REVISION_REFS = "refs/planverify-revisions"
_OF_LINKED = "refs/worktree/planverify"
"""Refs below ``refs/worktree`` are not shared between the work trees of a repository."""


@dataclass(frozen=True)
class KeptBaseline:
    """A baseline that was found, and what is to be said of it.

    It is a snapshot: the files of the root as they were, their contents from git, or from kept copies.
    """

    root: Path
    document: Baseline = field(repr=False)
    path: Path = field(kw_only=True)
    """Its file; it may be gone where git keeps the baseline."""
    doubts: tuple[str, ...] = field(default=(), kw_only=True)
    """Signs that it was changed by something else than ``planverify baseline``."""
    begins_run: bool = field(default=False, kw_only=True)
    """``planverify run`` has made it for itself: what is red in it, that run is there to mend."""
    _contents: dict[str, bytes | None] = field(default_factory=dict[str, "bytes | None"], repr=False)
    _former: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    def digests(self) -> Mapping[str, str]:
        """Return the sha256 of every file, in hexadecimal."""
        return {path: file.sha256 for path, file in self.document.files.items()}

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; nothing where no copy of just that content is left."""
        if path not in self._contents:
            self._contents[path] = self._read(path)
        return self._contents[path]

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
                content = (self.root / HOME / OBJECTS / file.sha256).read_bytes()
        is_same = content is not None and hashlib.sha256(content).hexdigest() == file.sha256
        return content if is_same else None

    @cached_property
    def _repository(self) -> Repository | None:
        return Repository.around(self.root)

    def accepted(self, path: str, sha256: str | None) -> bool:
        """Return whether a person has accepted that content of a file; ``None`` is a file that is gone."""
        return (path, sha256) in self._accepted

    @cached_property
    def _accepted(self) -> set[tuple[str, str | None]]:
        return {item for each in self.document.accepted for item in each.files.items()}

    @cached_property
    def _functions(self) -> frozenset[str]:
        """The tests that were run, without parameters."""
        return frozenset(known.partition("[")[0] for known in self.document.tests)

    def kind_of(self, path: str) -> JudgeKind:
        """Return what a file has to do with verdicts; of a file that was not there its name decides."""
        known = self.document.files.get(path)
        return Judges().kind_of(path) if known is None else known.kind

    def former(self, nodeid: str) -> str:
        """The node id that a test had at the baseline: its file may have another name since.

        Only a file that is just what it was counts as renamed; so does one alone of several alike.
        """
        path, separator, names = nodeid.partition("::")
        if path not in self._former:
            self._former[path] = self._former_path(path)
        return f"{self._former[path]}{separator}{names}"

    def _former_path(self, path: str) -> str:
        if path in self.document.files:
            return path
        try:
            digest = hashlib.sha256((self.root / path).read_bytes()).hexdigest()
        except (OSError, ValueError):
            return path
        gone = [
            name
            for name, file in self.document.files.items()
            if file.sha256 == digest and not os.path.lexists(self.root / name)
        ]
        return gone[0] if len(gone) == 1 else path

    def test(self, nodeid: str) -> BaselineTest | None:
        """Return what a test said; of a test in a file that could not be imported, what the file said."""
        name = self.former(nodeid)
        return self.document.tests.get(name) or self.document.tests.get(name.partition("::")[0])

    def had_test(self, nodeid: str) -> bool:
        """Return whether the test may have been there: it was run, or its file speaks of its name."""
        if self.test(nodeid) is not None:
            return True
        path, _, names = self.former(nodeid).partition("[")[0].partition("::")
        if path not in self.document.files:
            return False
        name = names.rpartition("::")[2]
        function = f"{path}::{names}"
        if function in self._functions:
            return False  # its other parameters were run, so it would have been, too
        content = self.read(path)
        return (
            content is None
            or not name
            or re.search(rf"\b{re.escape(name)}\b".encode(), content) is not None
        )


def find_baseline(root: Path, plan_id: str) -> KeptBaseline | None:
    """Return the baseline of a plan; ``None`` where none was made.

    Where git keeps a copy that copy counts, and a file that differs from it is a doubt; the file may be
    gone. Raises :class:`planner.errors.BaselineError` for one that cannot be read or is of another plan.
    """
    path = PlanFolder(root, plan_id).baseline
    repository = Repository.around(root) if may_keep(root, REFS) or may_keep(root, _OF_LINKED) else None
    ref, copy = _copy(repository, plan_id)
    is_there = os.path.lexists(path)
    if not is_there and copy is None:
        return _of_parent(root, plan_id)
    document, data = None, b""
    if is_there:
        try:
            held, data = read_baseline(path)
            document = _of_plan(held, plan_id, str(path))
        except BaselineError:
            if copy is None:
                raise
            data = b""
    doubts: tuple[str, ...] = ()
    if copy is not None and copy != data:
        document = _of_plan(parse_baseline(copy, ref), plan_id, ref)
        if is_there:
            doubts = (f"{os.path.relpath(path, root)} is not the baseline that git keeps as {ref}",)
    assert document is not None
    return KeptBaseline(root, document, path=path, doubts=doubts)


def keep_baseline(root: Path, document: Baseline, contents: Mapping[str, bytes]) -> tuple[Path, str | None]:
    """Write a baseline and the contents by sha256 that no commit holds.

    Returns its path, and why git has no copy of it, where there is git. Raises
    :class:`planner.errors.FileWriteError`.
    """
    path = PlanFolder(root, document.plan).baseline
    data = baseline_bytes(document)
    keep_contents(root, contents)
    replace_file(path, data, durable=True)
    repository = Repository.around(root)
    if repository is None:
        return path, None
    try:
        repository.keep(_ref(repository, document.plan), data)
    except GitFailed as error:
        return path, str(error)
    return path, None


def baseline_of_file(root: Path, path: Path, *, begins_run: bool = False) -> KeptBaseline:
    """Return the baseline in a file. Raises :class:`planner.errors.BaselineError`."""
    document, _ = read_baseline(path)
    return KeptBaseline(root, document, path=path, begins_run=begins_run)


def keep_contents(root: Path, contents: Mapping[str, bytes]) -> None:
    """Keep contents that no commit holds, each under its sha256. Raises ``FileWriteError``."""
    folder = make_home(root) / OBJECTS
    for digest, content in contents.items():
        place = folder / digest
        if not place.exists() or hashlib.sha256(place.read_bytes()).hexdigest() != digest:
            replace_file(place, content)


def run_baseline(root: Path, plan_id: str) -> Path:
    """Return where a run with agents keeps the baseline of a plan that has none of its own."""
    return PlanFolder(root, plan_id).baseline.with_name("run-baseline.json")


def outcomes_of(path: Path) -> Path:
    """Return where the outcomes of the run are kept that made the baseline in a file."""
    return path.with_name(f"{path.stem}-outcomes.json")


def keep_outcomes(path: Path, runs: Sequence[BaselineRun]) -> None:
    """Keep what was found when the baseline in a file was made, for the run of the plan that comes next."""
    replace_file(outcomes_of(path), runs[0].document.model_dump_json())


def _of_plan(document: Baseline, plan_id: str, shown: str) -> Baseline:
    if document.plan == plan_id:
        return document
    raise BaselineError(
        f"{shown}: this is the baseline of the plan '{document.plan}', not of '{plan_id}'; make one of "
        "this plan: planverify baseline PLAN --force --reason TEXT"
    )


def _of_parent(root: Path, plan_id: str) -> KeptBaseline | None:
    """Return the part of a baseline of a plan above for this one, its sub-plan verified by itself."""
    for path in sorted((root / PLANS).glob("*/baseline.json")):
        with suppress(BaselineError):  # of another plan, whose own run complains
            parent, _ = read_baseline(path)
            name = next((name for name, held in parent.sub_plans.items() if held == plan_id), None)
            kept = None if name is None else find_baseline(root, parent.plan)
            if kept is not None:
                before = f"{name}/"
                todos = {
                    todo_id.removeprefix(before): todo
                    for todo_id, todo in kept.document.todos.items()
                    if todo_id.startswith(before)
                }
                part = kept.document.model_copy(update={"todos": todos})
                return KeptBaseline(root, part, path=kept.path, doubts=kept.doubts)
    return None


def _copy(repository: Repository | None, plan_id: str) -> tuple[str, bytes | None]:
    """The ref that keeps the baseline of a plan, and what it keeps."""
    if repository is None:
        return "", None
    own = _ref(repository, plan_id)
    refs = [own, own.replace(_OF_LINKED, REFS)] if repository.linked else [own]
    for ref in refs:
        copy = repository.kept(ref)
        if copy is not None:
            return ref, copy
    return own, None


def _ref(repository: Repository, plan_id: str) -> str:
    """One of its own for each plan and root; a linked work tree has its own baseline."""
    names = _OF_LINKED if repository.linked else REFS
    place = hashlib.sha256(os.fsencode(repository.prefix)).hexdigest()[:8]
    return f"{names}/{file_name(plan_id)}" + (f"@{place}" if repository.prefix else "")


def remade(document: Baseline, earlier: KeptBaseline | None, reason: str) -> Baseline:
    """The new baseline with the reason why it was made, and with those of the times before."""
    replaced = None
    history = ()
    if earlier is not None:
        replaced = "sha256:" + hashlib.sha256(baseline_bytes(earlier.document)).hexdigest()
        history = earlier.document.remade
    entry = Remake(reason=reason.strip(), at=now(), by=user(), replaced=replaced)
    return document.model_copy(update={"remade": (*history, entry)})


def accept_changes(
    flat: FlatPlan, todo_id: str, reason: str, only: Sequence[str] | None = None
) -> tuple[Acceptance | None, str | None]:
    """Accept the files that judge and differ from the baseline; ``only`` names some of them.

    Return what was accepted, ``None`` where nothing differs, and why git has no copy of the new baseline.
    Raises :class:`planner.errors.BaselineError`.
    """
    root = flat.loaded.root
    kept = find_baseline(root, flat.loaded.plan.todo_list_id)
    if kept is None:
        raise BaselineError("there is no baseline of this plan; make one: planverify baseline PLAN")
    if kept.doubts:
        raise BaselineError(
            f"{kept.doubts[0]}; nothing is accepted on top of that: make the baseline again with --force"
        )
    changed = _changed_judges(flat, kept)
    if only:
        wanted = {path: path if path in changed else os.path.relpath(path, root) for path in only}
        unknown = next((path for path, name in wanted.items() if name not in changed), None)
        if unknown is not None:
            names = ", ".join(changed) or "none"
            raise BaselineError(f"--file {unknown}: it judges nothing or is as it was; changed are {names}")
        changed = {name: changed[name] for name in wanted.values()}
    if not changed:
        return None, None
    acceptance = Acceptance(todo_id=todo_id, reason=reason, at=now(), by=user(), files=changed)
    document = kept.document.model_copy(update={"accepted": (*kept.document.accepted, acceptance)})
    return acceptance, keep_baseline(root, document, {})[1]


def _changed_judges(flat: FlatPlan, kept: KeptBaseline) -> dict[str, str | None]:
    """Return the files that judge and are not as they were, with their sha256, and are not accepted yet."""
    tree = WorkTree(flat.loaded.root)
    files, then, now_there = kept.document.files, kept.digests(), tree.digests()
    judges = judges_of(flat, {name.partition("::")[0] for name in kept.document.tests}, tree)
    return {
        path: now_there.get(path)
        for path in sorted({*then, *now_there})
        if then.get(path) != now_there.get(path)
        and (files[path].kind if path in files else judges.kind_of(path)) is not JudgeKind.PRODUCT
        and not kept.accepted(path, now_there.get(path))
    }
