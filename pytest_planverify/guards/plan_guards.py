"""Guards of one plan: collect the violations of hygiene, allowlist and budget, by todo.

:class:`Guards` reads the tree once before any project code runs, and evaluates the observations of the
sessions when the run has ended. The tree must be read first: tests may write files, and those writes must
not be blamed on a todo. The module also determines which files differ from the state before the work
(:func:`since`), and whether code under verification wrote to the plan or to the records in ``.planverify``
(:class:`OwnFiles`).
"""

from __future__ import annotations

import json
import os
import posixpath
import time
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from planner.model.evidence import Evidence, HygieneSignal
from planner.model.plan import TodoStatus
from planner.model.verdicts import EvidenceKind
from planner.planfile.left_files import left_by_runs, remember_run
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.project_files import GONE, digest_of, open_regular
from planner.policy.dependencies import reachable
from planner.text.display import listed
from planner.text.glob_patterns import allowed
from pytest_planverify.baseline import record_command
from pytest_planverify.guards import Violation
from pytest_planverify.guards.budget import is_expected, violation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.model.evidence import BudgetFact
    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.changes import Changes
    from pytest_planverify.baseline.kept_baseline import KeptBaseline
    from pytest_planverify.baseline.work_tree import WorkTree
    from pytest_planverify.guards.hygiene.compare import HygieneWatch
    from pytest_planverify.guards.session_signals import RunResult


UNCHECKED = "unchecked: no baseline"
LOST = "unchecked: the baseline of earlier runs is gone"
_WORST_FIRST = ("violated", "unchecked", "clean")
MOST_NAMED = 3
"""Number of files that a reason names."""


def hygiene_of(reports: Iterable[str]) -> str:
    """Return the worst hygiene of several plans, for the outcome file; unchecked if there are none."""
    return min(reports, key=lambda each: _WORST_FIRST.index(each.partition(":")[0]), default=UNCHECKED)


def lost_baseline(outcomes: Path) -> str | None:
    """Return a note if earlier runs were compared with a baseline, as the last ``outcomes`` tell.

    Code under test can remove the file of a baseline, and outside of git there is no copy.
    """
    was = _fact_of_run(outcomes, "hygiene")
    if was is None or (was != LOST and "checked against the baseline" not in was):
        return None
    return (
        f"the baseline of earlier runs is gone (the last one said: {was}); restore it, or review all "
        "changes and record it again: planverify baseline PLAN"
    )


def _fact_of_run(outcomes: Path, name: str) -> str | None:
    """Return a fact about the run that wrote an outcome file; ``None`` if it cannot be read."""
    try:
        with open_regular(outcomes) as file:  # a test may have put a pipe there
            return str(json.loads(file.read())["run"][name])
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None


class Guards:
    """The guards of one plan of the run."""

    def __init__(
        self,
        flat: FlatPlan,
        todos: Sequence[Todo],
        changes: Mapping[Path, Changes],
        asked: Sequence[str] | None,
        baseline: KeptBaseline | None,
        commit: str | None,
    ) -> None:
        """Create the guards of the plan ``flat``. Nothing is read before :meth:`look`.

        ``todos`` are the todos under verification. ``changes`` are the changed files by root. ``asked``
        are the ids of the requested todos, which may have done work; with ``None`` only claimed todos
        count. ``baseline`` is compared with the top root; without one, hygiene is unchecked. ``commit``
        is the revision given on the command line.
        """
        self._flat = flat
        self._todos = todos
        self._changes = changes
        self._asked = asked
        self._kept = baseline
        self._commit = commit
        self._hygiene: HygieneWatch | None = None
        self._violated = False
        self._unchecked = UNCHECKED
        self._own: OwnFiles | None = None
        self._tree: WorkTree | None = None
        self._home = flat.loaded.root / ".planverify"
        self._started = time.time()
        self._grounds: list[Ground] = []
        self.added: tuple[str, ...] = ()
        """Files added since the baseline, relative to the top root."""
        self.notes: list[str] = []
        """Lines on what could not be checked."""

    @property
    def hygiene(self) -> str:
        """Hygiene in the outcome file: ``clean``, ``violated`` or ``unchecked``, with the reason."""
        if self._hygiene is None:
            changed = "violated: records of planverify were changed; no baseline"
            return changed if self._violated else self._unchecked
        if self._hygiene.notes and not self._violated:
            return f"unchecked: {self._hygiene.notes[0]}"
        return f"{'violated' if self._violated else 'clean'}: {self._hygiene.summary}"

    def look(self) -> None:
        """Read the tree and our own files, which must happen before any project code runs."""
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
                    "no todo has allowed_files: every file may be changed except the judging files of "
                    "the baseline"
                )
        elif note := lost_baseline(PlanFolder(root, self._flat.loaded.plan.todo_list_id).outcomes):
            self._unchecked = LOST
            self.notes.append(note)
        limited = self._limited_roots()
        counts_files = self._flat.loaded.plan.metadata.budget.new_files is not None
        for root, changed in self._changes.items():
            # The budget needs the files that the work has added since the baseline, see `added`.
            if root in limited or (counts_files and root == self._flat.loaded.root):
                self._inspect_root(root, changed, limited=root in limited)

    def note_unobserved(self, commands: Sequence[str]) -> None:
        """Add a note on commands that run without the audit hook, if the plan denies any access."""
        policies = (part.plan.metadata for part in self._flat.parts)
        denies = any({each.network, each.processes, each.writes} != {"record"} for each in policies)
        if denies and commands:
            self.notes.append(
                "these commands are not pytest sessions of this interpreter, so what the plan denies "
                "was not watched in them: " + ", ".join(commands)
            )

    def violations(
        self,
        spent: tuple[BudgetFact, Sequence[str]] | None,
        result: RunResult | None,
        *,
        narrowed: bool,
    ) -> list[Violation]:
        """Return the violations of all todos, and update :attr:`hygiene`.

        ``spent`` is an exceeded budget limit with the ids of the todos that were being verified,
        ``result`` the observations of the run (``None``: there was no run). With ``narrowed`` the user
        excluded tests, so that missing tests are no signal.
        """
        found = [*self._allowlist_violations()]
        if spent is not None:
            fact, todo_ids = spent
            found += [violation(todo_id, fact) for todo_id in todo_ids]
        tampered = list(self._hygiene_violations(result, narrowed))
        self._violated = bool(tampered)
        return [*found, *tampered]

    # -- hygiene ---------------------------------------------------------------------------------

    def _hygiene_violations(self, result: RunResult | None, narrowed: bool) -> Iterator[Violation]:
        """Yield the violations for all tampering signals: of the tree, the sessions and the own files."""
        found = [] if self._own is None else [*self._own.signals()]
        if self._hygiene is not None:
            session = self._session_signals(result, narrowed)
            found = [*self._hygiene.signals, *self._hygiene.meanwhile(), *session, *found]
        if found:
            from pytest_planverify.guards.hygiene.compare import violations
            from pytest_planverify.guards.hygiene.grants import Grants

            grants = Grants.of(self._flat) if self._hygiene is None else self._hygiene.grants
            present = {todo.id for todo in self._todos}
            working = {author.todo_id for author in self._authors()} & present
            # Signals without a permitted author count against the todos that may have done work; if
            # none of these is part of the run, against every todo of it.
            yield from violations(found, grants=grants, passed=working or present, present=present)

    def _session_signals(self, result: RunResult | None, narrowed: bool) -> Iterator[HygieneSignal]:
        """Yield the signals of the sessions; none without a run or a baseline."""
        if result is not None and self._hygiene and self._kept is not None and self._tree is not None:
            from pytest_planverify.guards.session_signals import SessionComparison

            digests = self._tree.digests()
            compared = SessionComparison(self._flat, self._kept, self._hygiene.grants, digests)
            yield from compared.signals(result, narrowed=narrowed)

    # -- the allowlist ---------------------------------------------------------------------------

    def _inspect_root(self, root: Path, changed: Changes, *, limited: bool) -> None:
        """Determine the changed files of one root; with ``limited``, those that the allowlist judges."""
        differing = since(root, self._flat, self._kept, self._commit)
        if differing is not None:
            files, added = differing
            changed.are(files)
            if root == self._flat.loaded.root:
                self.added = added
        touched = changed.files() if limited else ()
        if touched is None:
            where = "" if root == self._flat.loaded.root else f" below {root}"
            why = (
                f"there is neither a commit{where} nor a baseline to compare with; record one: "
                f"{record_command(self._flat)}"
                if changed.refusal() is None
                else "git refuses to answer"
            )
            self.notes.append(f"allowed_files and protected_files were not checked: {why}")
            return
        parts = (part for part in self._flat.parts if part.root == root)
        protected = tuple(glob for part in parts for glob in part.plan.metadata.protected_files)
        expected = (
            artifact.path
            for todo in self._flat.loaded.plan.items
            if self._flat.owner(todo.id).root == root
            for artifact in todo.acceptance_criteria.expected_artifacts
        )
        left = left_by_runs(self._home, root, touched) if touched else set[str]()
        ground = Ground(
            root=root,
            changed=touched,
            # A command that writes where it is told could overwrite a protected file unnoticed.
            left=frozenset(file for file in left if not allowed(file, protected)),
            # A source that differs from the baseline in formatting and comments only is nobody's work.
            reformatted=frozenset(file for file in touched if self._is_reformatted(root, file)),
            expected=(*changed.apart, *expected),
            protected=protected,
        )
        self._grounds.append(ground)

    def _is_reformatted(self, root: Path, file: str) -> bool:
        """Return whether a source differs from the baseline in formatting and comments only."""
        from pytest_planverify.guards.hygiene.source import has_same_tree

        if self._kept is None or self._tree is None or root != self._flat.loaded.root:
            return False
        return has_same_tree(file, self._kept.read(file), self._tree.read(file))

    def remember(self) -> None:
        """Store the new files that this run left, so that the next run blames no todo for them."""
        for each in self._grounds:
            after = self._changes[each.root].new_files()
            if after or each.changed:
                remember_run(
                    self._home, each.root, each.changed, after, left=each.left, started=self._started
                )

    def _limited_roots(self) -> set[Path]:
        """Return the roots with protected files; all roots if any possible author has an allowlist."""
        roots = {part.root for part in self._flat.parts if part.plan.metadata.protected_files}
        if any(author.allowed_files is not None for author in self._authors()):
            roots |= set(self._changes)
        return roots

    def _allowlist_violations(self) -> Iterator[Violation]:
        """Yield the violations of allowlists and protected files, for todos of the run."""
        if any(ground.changed for ground in self._grounds):
            present = {todo.id for todo in self._todos}
            working = self._working()
            is_part = bool(working) and any(todo.id not in working for todo in self._flat.loaded.plan.items)
            found = outside_allowlist(self._authors(), self._grounds, is_part=is_part)
            yield from (each for each in found if each.todo_id in present)

    def _working(self) -> set[str]:
        """Return the claimed and the requested todos."""
        items = {todo.id: todo for todo in self._flat.loaded.plan.items}
        children = self._flat.children

        def related(name: str) -> Iterator[str]:
            """Yield the dependencies of a todo, the todos of its sub-plan, and what a branch repairs."""
            if (todo := items.get(name)) is not None:
                yield from (*todo.dependencies, *children.get(name, ()), todo.parent_id or name)

        requested = reachable(self._asked or (), related)
        claimed = {todo.id for todo in items.values() if todo.status is TodoStatus.CLAIMED}
        return claimed | (items.keys() & set(requested))

    def _authors(self) -> list[Author]:
        """Return the todos that may have done work: claimed or requested ones; if there are none, all."""
        children, working = self._flat.children, self._working()
        return [
            Author(todo_id=todo.id, root=self._flat.owner(todo.id).root, allowed_files=todo.allowed_files)
            for todo in self._flat.loaded.plan.items
            if (not working or todo.id in working)
            # A parent without an allowlist of its own does no work: the todos of its sub-plan do.
            and (todo.allowed_files is not None or not children.get(todo.id))
        ]


# -- the allowlist ----------------------------------------------------------------------------------


class Author(NamedTuple):
    """A todo that may have done work."""

    todo_id: str
    root: Path
    """Root of its paths."""
    allowed_files: tuple[str, ...] | None
    """Globs of the files that it may change; ``None`` if it has no allowlist."""


class Ground(NamedTuple):
    """One root of the plan, with its changed and protected files, relative to it."""

    root: Path
    changed: Sequence[str]
    left: Collection[str] = frozenset()
    """Those of them that earlier runs left."""
    reformatted: Collection[str] = frozenset()
    """Those that differ in form only; neither these nor files that runs left are the work of a todo."""
    expected: tuple[str, ...] = ()
    """Globs of files that are nobody's work, such as the artifacts that todos have to create."""
    protected: tuple[str, ...] = ()
    """Globs of files that nobody may change."""


def outside_allowlist(
    authors: Sequence[Author], grounds: Iterable[Ground], *, is_part: bool = False
) -> Iterator[Violation]:
    """Yield the violations; all of them have the same reason, on all files together.

    ``is_part`` is true if only the claimed and selected todos of the plan are authors.

    A file that no allowlist grants may be the work of any author, so each author with an allowlist is
    blamed, or each author if none has one.
    """
    outside: dict[str, None] = {}
    protected: dict[str, None] = {}
    for ground in grounds:
        for file in ground.changed:
            if file in ground.left or file in ground.reformatted:
                continue
            above = os.path.relpath(ground.root, authors[0].root) if authors else "."
            shown = posixpath.normpath(f"{above}/{file}".replace(os.sep, "/"))
            if ground.protected and allowed(file, ground.protected):
                protected[shown] = None
            elif not is_expected(file, ground.expected) and not _is_granted(ground.root / file, authors):
                outside[shown] = None
    any_todo = "any claimed or selected todo" if is_part else "any todo"
    parts = (
        (outside, f"changed, but not in the allowed_files of {any_todo}"),
        (protected, "changed, but protected by the plan"),
    )
    reason = "; ".join(f"{listed(files, MOST_NAMED)} {suffix}" for files, suffix in parts if files)
    reason = reason.replace("\n", " ")  # of file names; only its first line would be shown
    limited = [author for author in authors if author.allowed_files is not None]
    for author in (limited or authors) if reason else ():
        evidence = Evidence(
            kind=EvidenceKind.ALLOWLIST,
            headline=reason,
            outside=(*protected, *outside),
            granted=author.allowed_files or (),
        )
        yield Violation(author.todo_id, evidence)


def _is_granted(file: Path, authors: Iterable[Author]) -> bool:
    """Return whether any author may change a file; one without an allowlist may change every file."""
    return any(
        author.allowed_files is None
        or (
            file.is_relative_to(author.root)
            and allowed(file.relative_to(author.root).as_posix(), author.allowed_files)
        )
        for author in authors
    )


# -- our own files -------------------------------------------------------------------------------------

_RECORDS = ("answers.json", "outcomes.json", "plans/*/*", "baseline/objects/*")
"""Globs of the records in ``.planverify``."""
_LARGEST_HASHED = 64 << 20
"""Limit in bytes of plans and records that are compared by content, so that a copy of them, or a link to
them, is no change. Stored contents may be many."""


class OwnFiles:
    """State of the plan files and of the records in ``.planverify`` at the start of the run.

    An agent could write a passing verdict into these files; nothing under verification may touch them.
    """

    def __init__(self, root: Path, plans: Iterable[Path]) -> None:
        self._root = root
        self._home = root / ".planverify"
        self._plans = tuple(plans)
        self._before = self._digests()
        self._journals = {path: digest_of(path) for path in self._home.glob("runs/*/journal.jsonl")}

    def signals(self) -> Iterator[HygieneSignal]:
        """Yield a signal for each file changed since the start."""
        after = self._digests()
        for path in sorted({*self._before, *after}):
            before, now = self._before.get(path), after.get(path)
            if before != now and not (path.endswith("/outcomes.json") and self._is_of_another_run(path)):
                how = "was removed" if now is None else "was made" if before is None else "was changed"
                message = f"{path} {how} during the run"
                yield HygieneSignal(sign="records-touched", message=message, path=path)

    def _digests(self) -> dict[str, str]:
        """Return the digest of each existing file, by path relative to the root."""
        found = (path for names in _RECORDS for path in self._home.glob(names))
        return {
            os.path.relpath(path, self._root).replace(os.sep, "/"): (
                digest_of(path)
                if path.parent.name == "objects"
                else digest_of(path, largest=_LARGEST_HASHED)
            )
            for path in (*self._plans, *found)
            # Temporary files belong to a concurrent run of another plan, which may be writing records.
            if os.path.lexists(path) and path.suffix != ".tmp" and (path.is_symlink() or not path.is_dir())
        }

    def _is_of_another_run(self, path: str) -> bool:
        """Return whether an outcome file was written by a concurrent run, which may do so.

        A run is concurrent if the journal in its folder has been made or has grown since the start.
        """
        run = _fact_of_run(self._root / path, "run_id")
        if run is None or "/" in run:
            return False
        journal = self._home / "runs" / run / "journal.jsonl"
        # Any finished run has a journal: it must have grown, else an old outcome file could be put back.
        return digest_of(journal) not in (GONE, self._journals.get(journal))


# -- files that differ ---------------------------------------------------------------------------------


Differing: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Sorted files of a root, relative to it, whose content is neither that before the work nor accepted by a
person; and those of them that did not exist before.
"""


def since(
    root: Path, flat: FlatPlan, kept: KeptBaseline | None, commit: str | None = None
) -> Differing | None:
    """Return the files that differ below one root of a plan; ``None`` if its earlier state is unknown.

    The baseline ``kept`` covers the plan's top root and all roots below it. Any other root is compared
    with ``commit``, the revision that the run is compared with, or, if none was given, with a baseline of
    its own.
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
    now = {folder + path: digest for path, digest in WorkTree(root).digests().items()}
    paths = (path.removeprefix(folder) for path in kept.differing(now) if path.startswith(folder))
    differing = sorted(path for path in paths if not path.startswith("../"))
    added = (path for path in differing if folder + path not in kept.document.files)
    return tuple(differing), tuple(added)


def _since_commit(root: Path, commit: str) -> Differing | None:
    """Compare by git alone; ``None`` if the root's repository has no such commit."""
    from pytest_planverify.baseline.repository import Repository

    repository = Repository.around(root)
    if repository is None or repository.commit(commit) is None:
        return None
    changed, added = repository.differing(commit)
    return tuple(sorted({*changed, *added})), tuple(sorted(added))
