"""Built-in debugger: mechanical repairs, and the report of the failing test when it runs alone.

It uses no language model. It is called like any other agent, with the JSON brief of a turn as its argument,
and proceeds in this order:

1. Repairs that need no understanding (a linter's own fixes, a missing ``__init__.py``) are tried, and stay
   if they make the check pass.
2. The failing test is run alone, with variable values shown. If it passes, its order or another test is
   involved. Otherwise the end of its output is the result, for the coder or for a person.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from planner.errors import PlannerError
from planner.model.actions import Bounds
from planner.model.outcome import Failure
from planner.planfile.file_writer import write_file
from planner.planfile.project_files import is_code, read_regular, walk
from planner.planfile.tree import load_flat
from planner.revise.situation import fixing_command
from planner.text.glob_patterns import allowed
from planner.text.markdown import block
from planner.text.redaction import redact
from pytest_planverify.checks.processes import run_process
from pytest_planverify.harness.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from planner.catalog.commands import Command
    from pytest_planverify.checks.processes import ProcessResult

SHARE, MOST_SECONDS = 0.4, 300.0
"""Limits of the debugger's time: a share of the turn's time, and seconds; the coder needs the rest."""

MOST_IGNORED = 1 << 20
"""Limit in bytes of an ignored file that is protected from repairs."""
MOST_OUTPUT = 1_500
"""Number of characters shown of the failing test's output; an agent's notes are limited, too."""

# Messages of Python and pytest that a missing ``__init__.py`` causes.
_NO_PACKAGE = ("attempted relative import with no known parent package", "import file mismatch")
# A run counts as passing only if pytest reports a passed test: it also exits with 0 if all were skipped.
_PASSED = re.compile(r"\b[1-9]\d* passed\b")


class Debugger:
    """One turn of the debugger. Whatever it tries in vain is undone by a snapshot of the tree."""

    def __init__(self, brief: Mapping[str, Any], failure: Failure, root: Path, index: Path) -> None:
        """Create the turn for ``failure``; ``brief`` is the turn's JSON brief.

        ``index`` is a file for git. Raises :class:`planner.errors.PlannerError` if the plan cannot be
        loaded or the tree cannot be kept.
        """
        self.root = root
        self.failure = failure
        # For a branch, the criteria are those of the todo that it repairs.
        todo_id: str = brief.get("parent_id") or brief["todo_id"]
        criteria = load_flat(root / brief["plan"]).loaded.criteria.get(todo_id, ())
        self.command = next((each.command for each in criteria if each.id == failure.check_id), None)
        self.bounds = Bounds.model_validate(brief.get("bounds", {}))
        share = SHARE * float(brief["turn"]["timeout_seconds"])
        self._deadline = time.monotonic() + min(share, MOST_SECONDS)
        self._snapshots = Snapshots(root, "debugger", index=index)

    def find(self) -> tuple[str, bool]:
        """Try repairs, then run the failing test; return the findings and whether a repair was applied."""
        if self.command is None:
            return "the failed criterion is not a command that could run again", False
        single, whole, name = _commands(self.command, self.failure)
        before = self._snapshots.take("before")
        for description, fix in self._fixes(self.command):
            if self._repair(fix, whole, before):
                return description, True
        ended = self._run(single)
        self._snapshots.restore(before)  # tests may write files
        print(ended.stdout, ended.stderr, flush=True)  # the whole of it, for the turn's output
        if ended.timed_out:
            return f"{name} did not end within the debugger's time.", False
        if _is_green(ended, single):
            return f"{name} passes alone: the order of the tests, or another test, is involved.", False
        output = redact(ended.stdout.strip() or ended.stderr.strip())
        return f"{name} fails alone, too:\n\n{block(output[-MOST_OUTPUT:])}", False

    def _fixes(self, command: Command) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield the mechanical repairs that fit the failure, with their descriptions."""
        fixing = fixing_command(command)
        if fixing is not None:
            yield f"Ran {fixing}.", partial(self._run, shlex.split(fixing))
        if any(each in (self.failure.stack_trace_head or "") for each in _NO_PACKAGE):
            paths = [each.partition("::")[0] for each in self.failure.tests]
            paths += [self.failure.location.path] if self.failure.location is not None else []
            for path in dict.fromkeys(f"{PurePosixPath(each).parent}/__init__.py" for each in paths):
                place = Path(os.path.realpath(self.root / path))
                # Snapshots, which undo a repair in vain, have no files outside of the root.
                if place.is_relative_to(os.path.realpath(self.root)) and place.parent.is_dir():
                    yield f"Wrote {path}: without it, the folder is not a package.", place.touch

    def _repair(self, fix: Callable[[], object], whole: Sequence[str], before: str) -> bool:
        """Apply a repair if the check passes with it; return whether it was applied.

        All files that the repair changes must be allowed for the todo. Tools also fix files that git
        ignores, which no snapshot has.
        """
        ignored = self._ignored_code(before)
        fix()
        for path, content in ignored.items():
            if not path.is_file() or path.read_bytes() != content:
                path.write_bytes(content)
        now = self._snapshots.take("repaired")
        changed = self._snapshots.compare(before, now).changed
        free, protected = self.bounds.allowed_files, self.bounds.protected_files
        may_stay = changed != () and all(
            (free is None or allowed(path, free)) and not allowed(path, protected) for path in changed
        )
        is_repaired = may_stay and _is_green(self._run(whole), whole)
        self._snapshots.restore(now if is_repaired else before)
        return is_repaired

    def _ignored_code(self, snapshot: str) -> dict[Path, bytes]:
        """Return the contents of the code that a snapshot lacks because git ignores it."""
        found: dict[Path, bytes] = {}
        for path in {*filter(is_code, walk(self.root))} - self._snapshots.files(snapshot):
            with suppress(OSError):
                found[self.root / path] = read_regular(self.root / path, MOST_IGNORED)
        return found

    def _run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a command in the tree, with the programs of this interpreter first on the path."""
        scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        own = () if self.command is None else self.command.env
        left = max(self._deadline - time.monotonic(), 0.1)
        env = {**os.environ, "PATH": scripts, **dict(own)}
        return run_process(argv, cwd=self.root, env=env, timeout_seconds=left)


def _is_green(ended: ProcessResult, argv: Sequence[str]) -> bool:
    """Return whether a command passed; pytest must also have reported a passed test."""
    is_pytest = list(argv[1:3]) == ["-m", "pytest"]
    return ended.exit_code == 0 and (not is_pytest or _PASSED.search(ended.stdout) is not None)


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


def main(path: Path) -> int:
    """Perform the turn of the brief at ``path`` in the current folder, and write its result file.

    Returns the exit status, always 0: an error is reported in the notes of the result.
    """
    brief: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    failure = brief["brief"].get("failure") or brief.get("seen")
    notes, repaired = "nothing has failed yet", False
    try:
        if failure is not None:
            # An index of its own, as git may be killed with the turn and leave a lock on the common one.
            with tempfile.TemporaryDirectory() as folder:
                index = Path(folder, "index")
                seen = Failure.model_validate(failure)
                notes, repaired = Debugger(brief, seen, Path.cwd(), index).find()
    except (PlannerError, OSError) as error:
        notes = str(error)
    print(notes, flush=True)
    write_file(Path(brief["turn"]["result"]), json.dumps({"notes": notes, "repaired": repaired}))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
