"""Commands of planverify run for coding agents: in a child process, with a time limit and short output.

The MCP server and the stop hook use them, so that agents see the same texts as on the command line. In a
child process a hanging command cannot block the caller, and printed output cannot corrupt the protocol; an
error is one line.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.arguments import choose_plan
from planner.cli.exits import Status
from planner.errors import PlannerError
from planner.planfile.loader import load_plan
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.record_files import read_outcomes
from planner.text.redaction import redact_and_clip
from pytest_planverify import python_command
from pytest_planverify.checks.processes import run_process

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.model.outcome import OutcomeDocument

MOST_CHARACTERS = 6_000
"""Limit of a command's output in characters, about 1,500 tokens."""

MOST_OF_A_VERIFICATION = 2_000
"""Limit of a verification's output in characters."""
COMMAND_SECONDS = 120.0
"""Time limit of a command that is no verification."""

_ERRORS = (Status.USAGE, Status.INTERNAL_ERROR, Status.UNREADABLE)
_START = "from pytest_planverify.cli import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Result of a command, with its text for an agent."""

    text: str
    status: int | None
    """Exit status; ``None`` if it was stopped at its time limit or ended by a signal."""
    document: OutcomeDocument | None = None
    """Outcomes, if the command was a verification."""

    @property
    def is_error(self) -> bool:
        """Return whether the command itself failed; a failed verification is no error."""
        return self.status is None or self.status in _ERRORS

    @property
    def is_accepted(self) -> bool:
        """Return whether there was a verification, and everything in it passed."""
        return self.status == Status.OK and self.document is not None


def run_planverify(
    words: Sequence[str],
    root: Path,
    *,
    seconds: float = COMMAND_SECONDS,
    most: int = MOST_CHARACTERS,
    watch: Callable[[], None] | None = None,
) -> CommandResult:
    """Run ``planverify WORDS`` in the folder ``root``; return its redacted output and exit status.

    ``most`` limits the output in characters, ``seconds`` the time. ``watch`` is called repeatedly while the
    command runs; if it raises, the command is stopped.
    """
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    argv = [*python_command(_START), *words]
    try:
        ended = run_process(argv, cwd=root, env=env, timeout_seconds=seconds, watch=watch)
    except (OSError, ValueError) as error:  # an argument is too long, or has a null character
        why = error.strerror if isinstance(error, OSError) else str(error)
        return CommandResult(text=f"planverify: {words[0]} cannot be started ({why})", status=None)
    if ended.timed_out:
        line = (
            f"planverify: {words[0]} did not end within {seconds:g} s and was stopped; verify fewer todos"
        )
        return CommandResult(text=line, status=None)
    # Errors are written to standard error, results to standard output; the other stream is a fallback.
    streams = (
        [ended.stdout, ended.stderr] if ended.exit_code not in _ERRORS else [ended.stderr, ended.stdout]
    )
    output = next(filter(str.strip, streams), "")
    return CommandResult(text=redact_and_clip(output, most).strip(), status=ended.exit_code)


def verify_plan(
    target: str | None,
    root: Path,
    *,
    seconds: float,
    watch: Callable[[], None] | None = None,
) -> CommandResult:
    """Verify ``PLAN[::TODO,...]``; ``None`` is the plan that the command line would choose.

    The result has the outcomes only if this verification wrote them. Raises
    :class:`planner.errors.PlannerError` or ``UsageMistake`` if there is no usable plan.
    """
    choice = choose_plan(None if target is None else Path(target))
    loaded = load_plan(choice.path)
    outcomes = PlanFolder(loaded.root, loaded.plan.todo_list_id).outcomes
    before = _outcomes(outcomes)
    words = ["verify", *([] if target is None else [target]), "-q"]
    result = run_planverify(words, root, seconds=seconds, most=MOST_OF_A_VERIFICATION, watch=watch)
    after = _outcomes(outcomes)
    # A verification that failed early leaves the outcomes of a previous run in place.
    is_new = after is not None and (before is None or before.run.run_id != after.run.run_id)
    return replace(result, document=after) if is_new else result


def _outcomes(path: Path) -> OutcomeDocument | None:
    with suppress(PlannerError):
        return read_outcomes(path)
    return None
