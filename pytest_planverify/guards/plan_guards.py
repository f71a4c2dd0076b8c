"""Guards of one plan: evaluated on the tree before the run, and on what the run has shown.

Also determines which files differ from before the work, which files runs themselves left behind, and
whether anything under verification wrote to our own files.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from planner.model.evidence import HygieneSignal
from planner.model.plan import TodoStatus
from planner.model.verdicts import Hardness

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.model.evidence import BudgetFact
    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.baseline.changes import Changes
    from pytest_planverify.baseline.work_tree import WorkTree
    from pytest_planverify.guards import Violation
    from pytest_planverify.guards.allowlist import Author, Ground
    from pytest_planverify.guards.hygiene.compare import HygieneWatch
    from pytest_planverify.guards.session_signals import RunResult


UNCHECKED = "unchecked: no baseline"
_WORST_FIRST = ("violated", "unchecked", "clean")


def hygiene_of(said: Iterable[str]) -> str:
    """Return the overall hygiene of several plans: the worst."""
    return min(said, key=lambda each: _WORST_FIRST.index(each.partition(":")[0]), default=UNCHECKED)


class Guards:
    """The guards of one plan of the run."""

    def __init__(
        self,
        flat: FlatPlan,
        todos: Sequence[Todo],
        changes: Mapping[Path, Changes],
        asked: Sequence[str] | None = None,
        baseline: KeptBaseline | None = None,
        commit: str | None = None,
    ) -> None:
        """Create the guards. ``todos`` are verified, ``asked`` are those that may have done work.

        ``baseline`` is compared with the top root; ``commit`` is the revision given on the command
        line.
        """
        self._flat = flat
        self._todos = todos
        self._changes = changes
        self._asked = asked
        self._kept = baseline
        self._commit = commit
        self._hygiene: HygieneWatch | None = None
        self._violated = False
        self._own: OwnFiles | None = None
        self._tree: WorkTree | None = None
        self._home = flat.loaded.root / ".planverify"
        self._before: dict[Path, tuple[str, ...]] = {}
        self._touched: dict[Path, tuple[str, ...]] = {}
        self.added: tuple[str, ...] = ()
        """Files added since the baseline, relative to the top root."""
        self.notes: list[str] = []
        """Lines on what could not be checked."""

    @property
    def hygiene(self) -> str:
        """Hygiene in the outcome file: ``clean``, ``violated`` or ``unchecked``, with the reason."""
        if self._hygiene is None:
            return "violated: records of ours were touched; no baseline" if self._violated else UNCHECKED
        return f"{'violated' if self._violated else 'clean'}: {self._hygiene.said}"

    def look(self) -> None:
        """Inspect everything that must be seen before any project code runs."""

        root = self._flat.loaded.root
        self._own = OwnFiles(root, (part.path for part in self._flat.parts))
        if self._kept is not None:
            from pytest_planverify.baseline.work_tree import WorkTree
            from pytest_planverify.guards.hygiene.compare import HygieneWatch

            self._tree = WorkTree(root)
            self._hygiene = HygieneWatch(self._flat, self._kept, self._tree)
            self.notes += self._hygiene.notes
            names_protected = "protected_files" in self._flat.loaded.plan.metadata.model_fields_set
            if not names_protected and all(author.allowed_files is None for author in self._authors()):
                self.notes.append(
                    "no todo has allowed_files: every file may be changed but those that judged at the "
                    "baseline"
                )
        limited = self._limited_roots()
        counts_files = self._flat.loaded.plan.metadata.budget.new_files is not None
        for root, changed in self._changes.items():
            if root not in limited and not (counts_files and root == self._flat.loaded.root):
                continue
            self._look_at(root, changed, limited=root in limited)

    def leave_unwatched(self, commands: Sequence[str]) -> None:
        """Note commands that run without observation, if the plan denies any access."""
        policies = (part.plan.metadata for part in self._flat.parts)
        denies = any({each.network, each.processes, each.writes} != {"record"} for each in policies)
        if denies and commands:
            self.notes.append(
                "what the plan denies was not watched in commands that are no pytest session of this "
                "interpreter: " + ", ".join(commands)
            )

    def violations(
        self,
        spent: tuple[BudgetFact, Sequence[str]] | None = None,
        result: RunResult | None = None,
        *,
        narrowed: bool = False,
    ) -> list[Violation]:
        """Return the violations by todo.

        ``spent`` is an exceeded limit with its todos, ``result`` what the run has shown, ``narrowed``
        whether the user excluded tests.
        """
        tampered = list(self._tampered(result, narrowed))
        self._violated = bool(tampered)
        if spent is None:
            return [*self._outside(), *tampered]
        from pytest_planverify.guards.budget import violation

        fact, todo_ids = spent
        return [*self._outside(), *(violation(todo_id, fact) for todo_id in todo_ids), *tampered]

    # -- hygiene ---------------------------------------------------------------------------------

    def _tampered(self, result: RunResult | None, narrowed: bool) -> Iterator[Violation]:
        """Yield violations from all signals: in the tree, in the run, in our own files."""
        found = [] if self._own is None else [*self._own.signals()]
        if self._hygiene is not None:
            shown = () if result is None else self._shown(result, narrowed)
            found = [*self._hygiene.signals, *shown, *found]
        if found:
            from pytest_planverify.guards.hygiene import Grants, violations

            grants = Grants.of(self._flat) if self._hygiene is None else self._hygiene.grants
            present = {todo.id for todo in self._todos}
            working = {author.todo_id for author in self._authors()} & present
            yield from violations(found, grants=grants, passed=working or present, present=present)

    def _shown(self, result: RunResult, narrowed: bool) -> Iterator[HygieneSignal]:
        from pytest_planverify.baseline.record import inventory_of
        from pytest_planverify.guards.session_signals import Shown, signals, without_known

        assert self._hygiene is not None
        assert self._kept is not None
        assert self._tree is not None
        records = [each for record in result.records for each in record.inventories]
        shown = Shown(
            sessions=result.records,
            checks={name: [run.check for run in runs.values()] for name, runs in result.checks.items()},
            inventory=inventory_of(records, self._flat.loaded.root),
            narrowed=narrowed,
        )
        found = signals(shown, self._kept, self._flat, self._hygiene.grants, self._tree.digests())
        yield from without_known(found, self._hygiene.signals)

    # -- the allowlist ---------------------------------------------------------------------------

    def _look_at(self, root: Path, changed: Changes, *, limited: bool) -> None:

        differing = since(root, self._flat, self._kept, self._commit)
        if differing is not None:
            changed.are(differing.files)
            if root == self._flat.loaded.root:
                self.added = differing.added
        touched = changed.files() if limited else ()
        if touched is None:
            where = "" if root == self._flat.loaded.root else f" below {root}"
            self.notes.append(
                f"allowed_files and protected_files were not looked at: there is neither a commit{where} "
                "nor a baseline to compare with; make one: planverify baseline PLAN"
            )
            return
        self._before[root] = touched
        if touched:
            left = left_by_runs(self._home, root, touched)
            touched = tuple(
                file for file in touched if file not in left and not self._is_reformatted(root, file)
            )
        self._touched[root] = touched

    def _is_reformatted(self, root: Path, file: str) -> bool:
        """Return whether a source differs from the baseline in formatting and comments only."""
        from pytest_planverify.guards.hygiene.source import has_same_tree

        if self._kept is None or self._tree is None or root != self._flat.loaded.root:
            return False
        return has_same_tree(file, self._kept.read(file), self._tree.read(file))

    def remember(self) -> None:
        """Record the new files that the run left, before anybody is blamed for them."""

        for root, before in self._before.items():
            after = self._changes[root].new_files()
            if after or before:
                remember(self._home, root, before, after)

    def _limited_roots(self) -> set[Path]:
        """Return the roots in which some todo has an allowlist."""
        roots = {part.root for part in self._flat.parts if part.plan.metadata.protected_files}
        if any(author.allowed_files is not None for author in self._authors()):
            roots |= set(self._changes)
        return roots

    def _outside(self) -> Iterator[Violation]:
        if not any(self._touched.values()):
            return
        from pytest_planverify.guards.allowlist import violations

        present = {todo.id for todo in self._todos}
        for violation in violations(self._authors(), self._grounds(), self._touched):
            if violation.todo_id in present:
                yield violation

    def _authors(self) -> list[Author]:
        """Return the todos that may have done work: claimed or requested ones; without any, all."""
        from pytest_planverify.guards.allowlist import Author

        items = self._flat.loaded.plan.items
        working = {todo.id for todo in items if todo.status is TodoStatus.CLAIMED} | self._asked_for()
        return [
            Author(todo_id=todo.id, root=self._flat.owner(todo.id).root, allowed_files=todo.allowed_files)
            for todo in items
            if (not working or todo.id in working)
            # A parent's work is done by its todos.
            and (todo.allowed_files is not None or not self._flat.children.get(todo.id))
        ]

    def _asked_for(self) -> set[str]:
        """Return the requested todos with their dependencies and their sub-plans' todos."""
        by_id = {todo.id: todo for todo in self._flat.loaded.plan.items}
        pending = list(self._asked or ())
        found: set[str] = set()
        while pending:
            name = pending.pop()
            if name in by_id and name not in found:
                found.add(name)
                pending += by_id[name].dependencies
                pending += self._flat.children.get(name, ())
        return found

    def _grounds(self) -> Iterator[Ground]:
        from pytest_planverify.guards.allowlist import Ground

        items = self._flat.loaded.plan.items
        for root in self._touched:
            expected = (
                artifact.path
                for todo in items
                if self._flat.owner(todo.id).root == root
                for artifact in todo.acceptance_criteria.expected_artifacts
            )
            parts = [part for part in self._flat.parts if part.root == root]
            protected = (glob for part in parts for glob in part.plan.metadata.protected_files)
            yield Ground(
                root=root, expected=(*self._changes[root].apart, *expected), protected=tuple(protected)
            )


# -- our own files -------------------------------------------------------------------------------------

_FILES = ("answers.json", "outcomes.json")
_OF_PLANS = ("plans/*/*", "plans/*/baselines/*")
_LIKE_RECORDS = ("journal", "outcome", "baseline", "qualification", "answers")
_LARGEST = 64 << 20


class OwnFiles:
    """State of the plan files and of ``.planverify`` at the start of the run."""

    def __init__(self, root: Path, plans: Iterable[Path]) -> None:
        self._root = root
        self._home = root / ".planverify"
        self._plans = tuple(plans)
        self._before = self._stamps()
        names = sorted(os.listdir(self._home)) if self._home.is_dir() else []
        self._strangers = [
            f".planverify/{name}"
            for name in names
            if name not in (*_FILES, "baseline") and name.lower().startswith(_LIKE_RECORDS)
        ]

    def signals(self) -> Iterator[HygieneSignal]:
        """Yield a signal for each file changed since, and for each that is not ours."""
        after = self._stamps()
        for path in sorted({*self._before, *after}):
            before, now = self._before.get(path), after.get(path)
            if before != now and not (path.endswith("/outcomes.json") and self._is_of_another_run(path)):
                how = "was removed" if now is None else "was made" if before is None else "was changed"
                yield _signal(f"{path} {how} while the run was on", path)
        for path in self._strangers:
            yield _signal(f"{path} looks like a record of ours, and none of ours has that name", path)

    def _stamps(self) -> dict[str, str]:
        files = [*self._plans, *(self._home / name for name in _FILES)]
        # A concurrent run of another plan may be writing it.
        files += [path for names in _OF_PLANS for path in self._home.glob(names) if path.suffix != ".tmp"]
        found = {path: _digest(path) for path in files}
        # Contents are stored under their digests, which are checked when read.
        found |= {path: _facts(path) for path in self._home.glob("baseline/objects/*")}
        return {
            os.path.relpath(path, self._root).replace(os.sep, "/"): each
            for path, each in found.items()
            if each
        }

    def _is_of_another_run(self, path: str) -> bool:
        """Return whether a path belongs to a concurrent run, which has its own folder and writes
        outcomes.
        """
        try:
            run = str(json.loads((self._root / path).read_bytes())["run"]["run_id"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return "/" not in run and (self._home / "runs" / run / "journal.jsonl").is_file()


def _signal(message: str, path: str) -> HygieneSignal:
    return HygieneSignal(sign="records-touched", hardness=Hardness.HARD, message=message, path=path)


def _digest(path: Path) -> str | None:
    with suppress(OSError):
        if path.is_symlink():
            return f"-> {os.readlink(path)}"
        if path.is_file():
            return _facts(path) if path.stat().st_size > _LARGEST else sha256(path.read_bytes()).hexdigest()
    return None


def _facts(path: Path) -> str | None:
    with suppress(OSError):
        return f"{path.lstat().st_size} {path.lstat().st_mtime_ns}"
    return None


# -- files that differ, and what runs left -------------------------------------------------------------

LEFT_BY_RUNS = "left_by_runs.json"
MOST_FILES = 10_000
_NEVER_LEFT = frozenset(
    {".py", ".pyi", ".pyx", ".so", ".pth", ".toml", ".cfg", ".ini", ".sh", ".yaml", ".yml", ".js", ".ts"}
)
"""Suffixes of files that affect a project's behaviour; a run may not excuse writing one."""


class Differing(NamedTuple):
    """Differing files, as sorted paths relative to the root."""

    files: tuple[str, ...]
    """Differing files that no person has accepted."""
    added: tuple[str, ...]
    """New ones among them."""


def since(
    root: Path, flat: FlatPlan, kept: KeptBaseline | None, commit: str | None = None
) -> Differing | None:
    """Return what differs below one root of a plan; ``None`` if its earlier state is unknown.

    ``kept`` is compared with the plan's top root, and its parts with roots below. For other roots their
    own baseline counts, or the ``commit`` that the run is compared with.
    """
    from pytest_planverify.baseline import load_baseline
    from pytest_planverify.baseline.work_tree import WorkTree

    folder = ""
    if kept is not None and root.is_relative_to(flat.loaded.root):
        folder = os.path.relpath(root, flat.loaded.root) + "/"
    elif commit is not None:
        return _since_commit(root, commit)
    else:
        own = (load_baseline(root, part.plan.todo_list_id) for part in flat.parts if part.root == root)
        kept = next((each for each in own if each is not None), None)
        if kept is None:
            return None
    folder = folder.removeprefix("./")
    held = kept.digests().items()
    then = {path.removeprefix(folder): digest for path, digest in held if path.startswith(folder)}
    now = WorkTree(root).digests()
    differing = sorted(
        path
        for path in {*then, *now}
        if then.get(path) != now.get(path)
        and not path.startswith("../")
        and not kept.accepted(folder + path, now.get(path))
    )
    return Differing(tuple(differing), tuple(path for path in differing if path not in then))


def _since_commit(root: Path, commit: str) -> Differing | None:
    """Compare by git alone; ``None`` if the root's repository has no such commit."""
    from pytest_planverify.baseline.repository import Repository

    repository = Repository.around(root)
    if repository is None or repository.commit(commit) is None:
        return None
    changed, added = repository.differing(commit)
    return Differing(tuple(sorted({*changed, *added})), tuple(sorted(added)))


# Only new files that are neither source nor configuration, and are unchanged since, count as left by a
# run.
# Changes of existing files by tests count like any other change.


def left_by_runs(home: Path, root: Path, files: Iterable[str]) -> set[str]:
    """Return the files below the root that are unchanged since an earlier run left them."""
    known = _read(home).get(str(root), {})
    return {file for file in files if file in known and known[file] == _digest_left(root / file)}


def remember(home: Path, root: Path, before: Collection[str], after: Iterable[str]) -> None:
    """Record files that are new since before the run, besides unchanged ones of earlier runs."""
    from planner.planfile.file_writer import replace_file

    found = _read(home)
    known = found.get(str(root), {})
    new = [file for file in after if file not in before and PurePosixPath(file).suffix not in _NEVER_LEFT]
    digests = {file: _digest_left(root / file) for file in new[:MOST_FILES]}
    kept = {file: known[file] for file in left_by_runs(home, root, before)}
    kept |= {file: digest for file, digest in digests.items() if digest is not None}
    if kept != known:
        found[str(root)] = kept
        replace_file(home / LEFT_BY_RUNS, json.dumps({"version": 1, "roots": found}, indent=1))


def _read(home: Path) -> dict[str, dict[str, str]]:
    try:
        data: Any = json.loads((home / LEFT_BY_RUNS).read_bytes())
        roots = cast("dict[str, Any]", dict(data["roots"]))
        return {root: dict(files) for root, files in roots.items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _digest_left(path: Path) -> str | None:
    return None if path.is_symlink() else _digest(path)
