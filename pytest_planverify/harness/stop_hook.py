"""Command ``planverify hook``: makes a coding agent continue until the plan is verified.

Claude Code, Codex and Gemini CLI call a hook with JSON on standard input when the agent wants to stop. Exit
status 2 makes the agent continue, with standard error as its message. An agent is made to continue a
limited number of times in a row, so that it cannot loop for ever.
"""

from __future__ import annotations

import json
import os
import select
import time
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from planner.cli.arguments import choose_plan
from planner.cli.exits import Status, UsageMistake, complain, say
from planner.errors import PlannerError
from planner.model.verdicts import TodoState
from planner.planfile.file_writer import replace_file
from planner.planfile.loader import load_plan
from planner.planfile.plan_folder import HOME, make_home
from planner.planfile.project_files import read_regular
from planner.text.display import counted, listed
from planner.text.sanitizing import one_line
from pytest_planverify.harness.agent_commands import run_planverify, verify_plan

MOST_INPUT = 1_000_000
"""Limit of the agent's JSON in bytes."""
INPUT_SECONDS = 5.0
"""Time limit for reading it."""

_COUNT = "stop_hook.json"
_CONTINUE = 2
_STANDARD_INPUT = 0
_PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR")
_FIXABLE_BY_AGENT = (
    Status.FOUND,
    Status.UNREADABLE,
    None,  # stopped at its limit
    5,  # nothing left to verify
)
"""Exit statuses of a verification whose cause an agent can fix; others need a person."""


class _Call(BaseModel):
    """Call of the hook by an agent that wants to stop; further fields are ignored."""

    session_id: str | None = None
    stop_hook_active: bool | None = None


class _Count(BaseModel):
    """Content of the file with the number of times that an agent was made to continue."""

    session: str | None = None
    times: int = Field(default=0, ge=0)


def stop_hook(plan: Path | None, *, times: int, seconds: float) -> int:
    """Verify the plan and decide whether the agent may stop; return the hook's exit status.

    The agent is made to continue at most ``times`` times in a row; ``seconds`` limits the verification.
    """
    call = _read_call()
    _enter_project()
    status, text, root = _verify(plan, seconds)
    head = text.partition("\n\n")[0]
    if status == Status.OK:
        _write_count(root, call, 0)
        return _allow_stop(text or None)
    if status not in _FIXABLE_BY_AGENT:
        return _allow_stop(f"not done, and a person must decide: {head}")
    count = _read_count(root, call)
    # If the count cannot be written, the agent may stop: otherwise it would loop for ever.
    if count >= times or not _write_count(root, call, count + 1):
        _write_count(root, call, 0)
        told = f", although the agent was told {counted(count, 'time')}" if count else ""
        return _allow_stop(f"not done{told}: {head}")
    complain(f"not done.\n{text}", many=True)
    return _CONTINUE


def _verify(plan: Path | None, seconds: float) -> tuple[int | None, str, Path]:
    """Return the verification's status, the message to the agent, and the plan's root.

    The message ends with the brief of the first failed todo. A plan that is missing or unreadable does not
    pass, as the agent may have caused that. If everything passes, the message, to a person, names the open
    todos that have no checks; it is empty if there are none.
    """
    here = Path.cwd()
    try:
        choice = choose_plan(plan)
        root = load_plan(choice.path).root
        found = verify_plan(None if plan is None else str(plan), here, seconds=seconds)
    except (PlannerError, UsageMistake) as error:
        return Status.UNREADABLE, one_line(error, limit=1_000), here
    text = found.text
    outcomes = () if found.document is None else found.document.outcomes
    first = next((each.todo_id for each in outcomes if each.failure_evidence is not None), None)
    if first is not None:
        brief = run_planverify(["next", f"--brief={first}", "--", str(choice.path)], here)
        text = text if brief.is_error else f"{text}\n\n{brief.text}"
    if found.status != Status.OK:
        return found.status, text, root
    # A status of success without new outcomes proves nothing.
    if found.document is None:
        return Status.UNREADABLE, text, root
    is_open = (each for each in outcomes if each.state is TodoState.PENDING and not each.checks)
    left = [] if choice.todo_ids else [each.todo_id for each in is_open]
    return found.status, f"not done, as nothing checks it: {listed(left, 5)}" if left else "", root


def _enter_project() -> None:
    """Change to the project's folder, because the agent may have changed to another."""
    for name in _PROJECT_VARIABLES:
        if (folder := os.environ.get(name)) and os.path.isdir(folder):
            os.chdir(folder)
            return


def _read_call() -> _Call:
    """Return the call on standard input; an empty one if a person calls from a terminal."""
    data, give_up = b"", time.monotonic() + INPUT_SECONDS
    with suppress(OSError):  # standard input may be closed
        while not os.isatty(_STANDARD_INPUT) and len(data) < MOST_INPUT:
            # Do not wait for the end of input: the agent may keep its end of the pipe open.
            left = max(give_up - time.monotonic(), 0)
            if not select.select([_STANDARD_INPUT], [], [], left)[0]:
                break
            if not (part := os.read(_STANDARD_INPUT, 65_536)):
                break
            data += part
    with suppress(ValidationError):
        return _Call.model_validate_json(data)
    return _Call()


def _read_count(root: Path, call: _Call) -> int:
    """Return how often this agent was made to continue since a person last wrote to it.

    The count is in a file, and valid for one session.
    """
    if call.stop_hook_active is False:  # first stop since the person's message
        return 0
    with suppress(OSError, ValidationError):
        stored = _Count.model_validate_json(read_regular(root / HOME / _COUNT))
        return stored.times if stored.session == call.session_id else 0
    return 0


def _write_count(root: Path, call: _Call, times: int) -> bool:
    """Store how often the agent was made to continue; return whether that succeeded."""
    with suppress(OSError, PlannerError):
        make_home(root)
        replace_file(root / HOME / _COUNT, _Count(session=call.session_id, times=times).model_dump_json())
        return True
    return False


def _allow_stop(why: str | None) -> int:
    """Allow the agent to stop, with a message to the person if there is a reason for one."""
    if why is not None:
        say(json.dumps({"systemMessage": f"planverify: {why}"}))
    return Status.OK
