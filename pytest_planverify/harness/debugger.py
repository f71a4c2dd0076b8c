"""Built-in debugger: mechanical repairs, and a search for the change that broke a check.

It uses no language model, and experiments only in copies of the tree. It is called like any other agent,
with the JSON brief of a turn as its argument, and proceeds in this order:

1. Repairs that need no understanding (a linter's own fixes, a missing ``__init__.py``) are applied to the
   project if they make the check pass.
2. The failing test is run alone, with variable values shown. If it passes, its order or another test is
   involved.
3. All changes since an earlier state are undone. If that makes the test pass, the set of changes is
   minimized by delta debugging (Zeller's ddmin): undoing the remaining ones makes the test pass, undoing
   fewer does not. Otherwise the next state is tried.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias

from planner.errors import PlannerError
from planner.model.actions import Bounds
from planner.model.baseline import JudgeKind
from planner.model.outcome import Failure
from planner.planfile.file_writer import write_file
from planner.planfile.plan_folder import HOME
from planner.planfile.tree import load_flat
from planner.revise.situation import fixing_command
from planner.text.glob_patterns import allowed
from pytest_planverify.baseline.changes import GreenRevisions
from pytest_planverify.baseline.hunks import function_at, spans_of
from pytest_planverify.baseline.kinds import judges_of
from pytest_planverify.baseline.repository import Repository
from pytest_planverify.baseline.work_tree import WorkTree
from pytest_planverify.baseline.worktrees import copy_as_is, environment_for
from pytest_planverify.checks.processes import run_process
from pytest_planverify.harness.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from planner.catalog.commands import Command

SHARE, MOST_SECONDS = 0.4, 300.0
"""Limits of the debugger's time: a share of the turn's time, and seconds; the coder needs the rest."""

MOST_TRIALS = 80
"""Limit of runs of the failing command during the search."""
MOST_TURNS = 5
"""Number of earlier turns whose initial states are tried, latest first."""

MOST_LINES = 12
"""Number of lines shown of a change."""

# Messages of Python and pytest that a missing ``__init__.py`` causes.
_NO_PACKAGE = ("attempted relative import with no known parent package", "import file mismatch")
# A trial counts as passing only if pytest reports a passed test: it also exits with 0 if all were skipped.
_PASSED = re.compile(r"\b[1-9]\d* passed\b")
_BEFORE_TURN = re.compile(r"before-\d+-")
_IGNORED_PREFIXES = (HOME, "diagnostics/", "../")

Fix: TypeAlias = "Callable[[Path], None]"
"""A repair, applied to the root of a tree."""

EarlierState: TypeAlias = "tuple[str, Sequence[str], Callable[[str], bytes | None]]"
"""Name of the state, files changed since, and a function that reads their earlier contents."""


class OutOfTime(Exception):
    """No time, or no trial, is left for this turn."""


@dataclass(frozen=True, slots=True)
class Change:
    """Block of lines, or whole file, that differs from an earlier state."""

    path: str
    first: int
    """Index of the first line in the current file, from 0."""
    last: int
    """Index behind the last line."""
    before: tuple[str, ...]
    after: tuple[str, ...]
    is_file: bool = False
    """Whether the whole file was added or removed."""

    def describe(self, now: str | None) -> str:
        """Return the place and the lines, as in a diff. ``now`` is the current text of the file."""
        function = function_at(spans_of(now or ""), self.first + 1) if self.path.endswith(".py") else None
        place = f"{self.path}:{self.first + 1} (+{len(self.after)} -{len(self.before)})"
        lines = [f"-{line}" for line in self.before] + [f"+{line}" for line in self.after]
        more = ["…"] if len(lines) > MOST_LINES else []
        head = f"{place} in {function}" if function else place
        return "\n".join([head, *(line.rstrip("\n") for line in lines[:MOST_LINES]), *more])


def changes_of(path: str, before: str | None, now: str | None) -> list[Change]:
    """Return the differing blocks of lines of two versions of a file; ``None`` is a missing file."""
    then, lines = (before or "").splitlines(keepends=True), (now or "").splitlines(keepends=True)
    if before is None or now is None:
        return [] if before is now else [Change(path, 0, len(lines), tuple(then), tuple(lines), True)]
    # Without autojunk, which in long files passes over frequent lines and so finds larger blocks.
    blocks = difflib.SequenceMatcher(None, then, lines, autojunk=False).get_opcodes()
    return [
        Change(path, first, last, tuple(then[start:end]), tuple(lines[first:last]))
        for kind, start, end, first, last in blocks
        if kind != "equal"
    ]


def put_without(path: Path, now: str | None, undone: Sequence[Change]) -> None:
    """Write the text ``now`` with some of its changes undone, or remove the file if nothing is left."""
    text = None if now is None else now.splitlines(keepends=True)
    # From the end, so that the line numbers of the remaining changes stay valid.
    for change in sorted(undone, key=lambda each: -each.first):
        if change.is_file:
            text = list(change.before) if text is None else None
        elif text is not None:
            text[change.first : change.last] = change.before
    if text is None:
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("".join(text).encode())


@dataclass(slots=True)
class Trials:
    """Runs of a command in one copy of the tree, each with some changes undone."""

    tree: Path
    env: Mapping[str, str]
    deadline: float
    """Time of :func:`time.monotonic` after which no trial starts, and at which a running one is ended."""
    now: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """Current texts of the changed files by path; ``None`` for a removed file."""
    count: int = 0

    def is_green(self, argv: Sequence[str], undone: Sequence[Change] = ()) -> bool:
        """Return whether a command passes with these changes undone.

        Raises :class:`OutOfTime` if the deadline has passed or the number of trials is used up.
        """
        left = self.deadline - time.monotonic()
        if left <= 0 or self.count >= MOST_TRIALS:
            raise OutOfTime
        self.count += 1
        # All changed files are written anew, which also reverts what the previous trial had undone.
        for path, text in self.now.items():
            put_without(self.tree / path, text, [each for each in undone if each.path == path])
        ended = run_process(argv, cwd=self.tree, env=self.env, timeout_seconds=left)
        is_pytest = list(argv[1:3]) == ["-m", "pytest"]
        green = ended.exit_code == 0 and (not is_pytest or _PASSED.search(ended.stdout) is not None)
        # The first trial runs with --showlocals: its output is part of the turn's output, for the coder.
        if self.count == 1:
            print(ended.stdout[-4_000:], ended.stderr[-1_000:], flush=True)
        print(f"{len(undone)} changes undone: {'green' if green else 'red'}", flush=True)
        return green

    def narrow(self, argv: Sequence[str], changes: list[Change]) -> list[Change]:
        """Return a minimal subset of the changes whose undoing makes a command pass (ddmin).

        If the time is up, the smallest subset found so far is returned.
        """
        parts = 2
        with suppress(OutOfTime):
            while len(changes) > 1:
                size = -(-len(changes) // parts)
                pieces = [changes[at : at + size] for at in range(0, len(changes), size)]
                rests = [[each for each in changes if each not in piece] for piece in pieces]
                # With two parts, the rest of one is the other.
                tried = pieces if parts == 2 else [*pieces, *rests]
                fewer = next((each for each in tried if self.is_green(argv, each)), None)
                if fewer is not None:
                    changes, parts = fewer, 2 if fewer in pieces else max(parts - 1, 2)
                elif parts >= len(changes):
                    break
                else:
                    parts = min(2 * parts, len(changes))
        return changes


class Debugger:
    """One turn of the debugger."""

    def __init__(self, brief: Mapping[str, Any], failure: Failure, root: Path) -> None:
        """Create the turn for ``failure``; ``brief`` is the turn's JSON brief.

        Raises :class:`planner.errors.PlannerError` if the plan cannot be loaded.
        """
        self.root = root
        self.failure = failure
        self.flat = load_flat(root / brief["plan"])
        self.todo_id: str = brief.get("parent_id") or brief["todo_id"]
        """Id of the primary todo: for a branch, the todo that it repairs."""
        self.bounds = Bounds.model_validate(brief.get("bounds", {}))
        self.turn: Mapping[str, Any] = brief["turn"]
        criteria = self.flat.loaded.criteria.get(self.todo_id, ())
        self.command = next((each.command for each in criteria if each.id == failure.check_id), None)

    def find(self) -> tuple[str, bool]:
        """Try repairs, then search for the change; return the findings and whether a repair was applied."""
        if self.command is None:
            return "the failed criterion is not a command that could run again", False
        single, whole, name = _commands(self.command, self.failure)
        deadline = time.monotonic() + min(SHARE * float(self.turn["timeout_seconds"]), MOST_SECONDS)
        try:
            for description, fix in self._fixes(self.command):
                if self._repair(fix, whole, deadline):
                    return description, True
            with copy_as_is(self.root) as tree:
                trials = Trials(tree, self._environment(tree), deadline)
                if trials.is_green(single):
                    return (
                        f"{name} passes alone: the order of the tests, or another test, is involved.",
                        False,
                    )
                for since, paths, read in self._earlier_states():
                    changes = self._changes(trials, paths, read)
                    if changes and trials.is_green(single, changes):
                        changes = trials.narrow(single, changes)
                        many = "this change" if len(changes) == 1 else f"these {len(changes)} changes"
                        notes = f"Reverting {many}, made since {since}, makes {name} pass:"
                        return "\n".join(
                            [notes, *(self._describe(each, trials) for each in changes)]
                        ), False
        except OutOfTime:
            return f"{name} fails alone, too; the time was up before a change was found.", False
        return f"{name} fails alone, too; undoing the changes does not make it pass.", False

    def _environment(self, tree: Path) -> dict[str, str]:
        """Return the environment for commands in a copy, so that they import from the copy."""
        scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        own = () if self.command is None else self.command.env
        return {**os.environ, "PATH": scripts, **environment_for(tree, self.root), **dict(own)}

    def _describe(self, change: Change, trials: Trials) -> str:
        """Return a change as in a diff, with the commit that introduced it, if it is committed."""
        described = change.describe(trials.now[change.path])
        repository = Repository.around(self.root)
        if repository is None or not change.after or change.is_file:
            return described
        commit = repository.last_commit_of(change.path, change.first + 1)
        return described if commit is None else f"{described}\nby commit {commit}"

    def _fixes(self, command: Command) -> Iterator[tuple[str, Fix]]:
        """Yield the mechanical repairs that fit the failure, with their descriptions."""
        fixing = fixing_command(command)
        if fixing is not None:
            yield f"Ran {fixing}.", partial(self._run, shlex.split(fixing))
        if any(each in (self.failure.stack_trace_head or "") for each in _NO_PACKAGE):
            paths = [each.partition("::")[0] for each in self.failure.tests]
            paths += [self.failure.location.path] if self.failure.location is not None else []
            for path in dict.fromkeys(f"{PurePosixPath(each).parent}/__init__.py" for each in paths):
                if not (self.root / path).exists():
                    yield (
                        f"Wrote {path}: without it, the folder is not a package.",
                        partial(_write_empty, path),
                    )

    def _run(self, argv: Sequence[str], tree: Path) -> None:
        run_process(argv, cwd=tree, env=self._environment(tree), timeout_seconds=MOST_SECONDS)

    def _repair(self, fix: Fix, whole: Sequence[str], deadline: float) -> bool:
        """Apply a repair to the project if it passes in a copy; return whether it was applied.

        The check must pass, and all files that the repair changes must be allowed for the todo. Raises
        :class:`OutOfTime`.
        """
        with copy_as_is(self.root) as tree:
            before = WorkTree(tree).digests()
            fix(tree)
            now = WorkTree(tree).digests()
            changed = [path for path in {**before, **now} if before.get(path) != now.get(path)]
            if not changed or not all(map(self._may_change, changed)):
                return False
            if not Trials(tree, self._environment(tree), deadline).is_green(whole):
                return False
            for path in changed:
                write_file(self.root / path, (tree / path).read_bytes())
        return True

    def _may_change(self, path: str) -> bool:
        """Return whether the todo's allowlist grants a file and the plan does not protect it."""
        globs = self.bounds.allowed_files
        is_granted = globs is None or allowed(path, globs)
        return is_granted and not allowed(path, self.bounds.protected_files)

    def _changes(
        self, trials: Trials, paths: Sequence[str], read: Callable[[str], bytes | None]
    ) -> list[Change]:
        """Return the changes of product files since an earlier state; add their texts to the trials.

        Changes in functions that the diagnosis names come first, so that they are tried first.
        """
        judges = judges_of(self.flat, (), WorkTree(self.root))
        found: list[Change] = []
        for path in paths:
            if judges.kind_of(path) is JudgeKind.PRODUCT and not path.startswith(_IGNORED_PREFIXES):
                with suppress(UnicodeDecodeError, OSError):  # changes of binary files are not undone
                    file, before = self.root / path, read(path)
                    now = file.read_bytes().decode() if file.exists() else None
                    found += changes_of(path, None if before is None else before.decode(), now)
                    trials.now[path] = now
        places = [(each.path, each.function) for each in self.failure.candidates]

        def rank(change: Change) -> int:
            spans = spans_of(trials.now[change.path] or "")
            place = (change.path, function_at(spans, change.first + 1))
            return places.index(place) if place in places else len(places)

        return sorted(found, key=rank)

    def _earlier_states(self) -> Iterator[EarlierState]:
        """Yield the states to compare with.

        These are, in this order, the states before the latest turns of this run, the last passing
        verification, and the last commit.
        """
        own = f"before-{self.turn['id']}"
        if (self.root / HOME / "harness/objects.git").is_dir():
            snapshots = Snapshots(self.root, str(self.turn.get("run")))
            now = snapshots.find(own)
            # The ids of turns begin with their number in four digits, so that names sort by time.
            labels = [each for each in snapshots.labels() if _BEFORE_TURN.match(each) and each != own]
            for label in sorted(labels, reverse=True)[:MOST_TURNS]:
                then = snapshots.find(label)
                if now is not None and then is not None:
                    changed = snapshots.compare(then, now).changed
                    yield (
                        f"the turn {label.removeprefix('before-')}",
                        changed,
                        partial(snapshots.read, then),
                    )
        repository = Repository.around(self.root)
        loaded = self.flat.loaded
        green = GreenRevisions(loaded.root, loaded.plan.todo_list_id).revision_of(self.todo_id)
        if repository is not None and green is not None:
            yield "the last green run", *_since(repository, green)
        if repository is not None and (commit := repository.commit("HEAD")) is not None:
            yield "the last commit", *_since(repository, commit)


def _commands(command: Command, failure: Failure) -> tuple[list[str], list[str], str]:
    """Return the commands for one failing test and for the whole check, and the name for messages.

    For other commands than pytest, and if no failing test is known, both commands are the check's own.
    """
    invocation, given = command.pytest, list(command.argv)
    if invocation is None or invocation.foreign:
        return given, given, command.text
    start = [sys.executable, "-m", "pytest"]
    whole = [*start, *invocation.args]
    test = next((each for each in failure.tests if "::" in each), None)
    one = whole if test is None else [*start, *invocation.options, "-x", "--showlocals", test]
    return one, whole, test or command.text


def _write_empty(path: str, tree: Path) -> None:
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).touch()


def _since(repository: Repository, commit: str) -> tuple[Sequence[str], Callable[[str], bytes | None]]:
    """Return the files changed since a commit, and a function that reads their contents at that commit."""
    changed, added = repository.differing(commit)
    return sorted({*changed, *added}), partial(repository.content, commit)


def main(path: Path) -> int:
    """Perform the turn of the brief at ``path`` in the current folder, and write its result file.

    Returns the exit status, always 0: an error is reported in the notes of the result.
    """
    brief: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    failure = brief["brief"].get("failure") or brief.get("seen")
    notes, repaired = "nothing has failed yet", False
    try:
        if failure is not None:
            notes, repaired = Debugger(brief, Failure.model_validate(failure), Path.cwd()).find()
    except (PlannerError, OSError) as error:
        notes = str(error)
    print(notes, flush=True)
    write_file(Path(brief["turn"]["result"]), json.dumps({"notes": notes, "repaired": repaired}))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
