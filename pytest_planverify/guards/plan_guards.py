"""Asks the guards about one plan: before the first session what the tree looks like, afterwards what the
run has shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.plan import TodoStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.model.evidence import BudgetFact, HygieneSignal
    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.baseline.changes import Changes
    from pytest_planverify.baseline.work_tree import WorkTree
    from pytest_planverify.guards import Violation
    from pytest_planverify.guards.allowlist import Author, Ground
    from pytest_planverify.guards.hygiene.compare import HygieneWatch
    from pytest_planverify.guards.own_files import OwnFiles
    from pytest_planverify.guards.session_signals import RunResult


UNCHECKED = "unchecked: no baseline"
_WORST_FIRST = ("violated", "unchecked", "clean")


def hygiene_of(said: Iterable[str]) -> str:
    """Return the hygiene word of several plans: that of the worst."""
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
        """``todos`` are those that are verified; ``asked`` those that have done work.

        ``baseline`` is what the top root is compared with; ``commit`` what the command line asks to compare
        with.
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
        """The files that the work has added since the baseline, relative to the top root."""
        self.notes: list[str] = []
        """What could not be looked at, for the reader of the outcomes."""

    @property
    def hygiene(self) -> str:
        """Return the hygiene of the outcome file: ``clean``, ``violated`` or ``unchecked``, and why."""
        if self._hygiene is None:
            return "violated: records of ours were touched; no baseline" if self._violated else UNCHECKED
        return f"{'violated' if self._violated else 'clean'}: {self._hygiene.said}"

    def look(self) -> None:
        """See what has to be seen before anything of the project runs."""
        from pytest_planverify.guards.own_files import OwnFiles

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
        """These commands run where nothing sees what they reach for: said where the plan denies any."""
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
        """Return the violations by todo. ``spent`` is a passed limit, and its todos.

        ``result`` is what the run has shown; ``narrowed`` if the user left tests out.
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
        """All signs together: what was found in the tree, what the run has shown, our own files."""
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
        from pytest_planverify.guards.changed_files import left_by_runs, since

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
        """Return whether a source differs from the baseline's in format and comments only."""
        from pytest_planverify.guards.hygiene.source import has_same_tree

        if self._kept is None or self._tree is None or root != self._flat.loaded.root:
            return False
        return has_same_tree(file, self._kept.read(file), self._tree.read(file))

    def remember(self) -> None:
        """Note which new files the run has left, before anybody can be blamed for them."""
        from pytest_planverify.guards.changed_files import remember

        for root, before in self._before.items():
            after = self._changes[root].new_files()
            if after or before:
                remember(self._home, root, before, after)

    def _limited_roots(self) -> set[Path]:
        """The roots in which some todo may not touch everything."""
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
        """The todos that can have done work: claimed or asked for; where there are none, all of them."""
        from pytest_planverify.guards.allowlist import Author

        items = self._flat.loaded.plan.items
        working = {todo.id for todo in items if todo.status is TodoStatus.CLAIMED} | self._asked_for()
        return [
            Author(todo_id=todo.id, root=self._flat.owner(todo.id).root, allowed_files=todo.allowed_files)
            for todo in items
            if (not working or todo.id in working)
            # A parent's work is that of the todos below it.
            and (todo.allowed_files is not None or not self._flat.children.get(todo.id))
        ]

    def _asked_for(self) -> set[str]:
        """The todos that the command line names, with what they depend on and what lies below them."""
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
