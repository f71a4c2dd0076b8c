"""Agents: the program that acts in each role, one turn of work by it, and the brief of the turn.

An agent is any command line. It finds its task in the brief, in Markdown for its prompt and in JSON for
programs, by placeholders in its arguments or by environment variables, and may leave a report with notes
and used tokens. Neither its exit status nor its report proves anything: verifications judge the work.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from planner.brief.page import CHARACTERS_PER_TOKEN
from planner.engine.requests import brief_of
from planner.errors import PlannerError
from planner.model.events import WorkFinished
from planner.model.taxonomy import Role
from planner.planfile.discovery import planverify_settings
from planner.planfile.file_writer import write_file
from planner.planfile.project_files import open_regular
from planner.store.run_log import RunLog
from planner.text.display import listed
from planner.text.redaction import redact, redact_and_clip
from planner.text.sanitizing import clean, one_line
from pytest_planverify.checks.processes import run_process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from planner.model.actions import Implement
    from planner.model.outcome import Outcome
    from planner.store.session import RunSession
    from pytest_planverify.checks.processes import ProcessResult

BUILTIN = "builtin"
"""Name of the built-in debugger."""

PRESETS: dict[str, str] = {
    "aider": "aider --yes-always --no-auto-commits --message-file {brief}",
    "claude": "claude -p {prompt} --permission-mode acceptEdits",
    "codex": "codex exec --sandbox workspace-write {prompt}",
    "copilot": "copilot -p {prompt} --allow-all-tools",
    "cursor": "cursor-agent -p {prompt} --force",
    "gemini": "gemini --approval-mode auto_edit -p {prompt}",
    "goose": "goose run -i {brief}",
    "opencode": "opencode run {prompt}",
}
"""Command lines of well-known agents for use without a terminal, with edits allowed."""

PLACEHOLDERS = ("brief", "json", "prompt", "result", "role", "root", "todo")
_PLACEHOLDER = re.compile(rf"\{{({'|'.join(PLACEHOLDERS)})\}}")
MOST_RESULT_BYTES = 65_536
"""Limit of an agent's report in bytes; what follows is not read."""
MOST_NOTES = 2_000
"""Limit of an agent's notes in characters."""
DEFAULT_SECONDS = 1_800.0
"""Limit of a turn if neither plan nor command line sets one."""
MOST_PATHS = 12
MOST_FAILURES = 4
_MOST_EARLIER = 3

_ROLES = [role.value for role in Role]
_DEFAULT = "default"
"""Name, in the table of ``pyproject.toml``, of the agent for all roles without their own."""
_TABLE: TypeAdapter[dict[str, str | list[str]]] = TypeAdapter(dict[str, str | list[str]])
_MOST_LAST_LINE = 200


class AgentResult(BaseModel):
    """Content of the file in which an agent may report; it is not trusted."""

    model_config = ConfigDict(strict=True, frozen=True)

    tokens: int | None = Field(default=None, ge=0, le=10**12)
    notes: str | None = None
    repaired: bool = False
    """Whether the built-in debugger has repaired the failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of work, with the locations of its files."""

    id: str
    """Unique within the run: ``0007-t2_indicators``."""
    action: Implement
    """The engine's request for this work."""
    role: Role
    """Role of the agent; a turn of the debugger continues as coder if the failure is not repaired."""
    folder: Path
    """Holds ``brief.md``, ``brief.json``, ``output.txt``, ``result.json``."""
    root: Path
    """Root in which the agent works."""
    timeout_seconds: float

    @property
    def brief(self) -> Path:
        """Path of the brief in Markdown."""
        return self.folder / "brief.md"

    @property
    def result(self) -> Path:
        """Path of the file in which the agent may report tokens and notes."""
        return self.folder / "result.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReport:
    """The end of an agent's turn; this proves nothing about the work."""

    ended_well: bool
    message: str | None = None
    """Reason of a failed turn, or the agent's notes."""
    tokens: int | None = None
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class Agents:
    """Argument vectors by role; that of ``None`` serves all roles without their own."""

    vectors: Mapping[Role | None, tuple[str, ...]]

    def vector(self, role: Role) -> tuple[str, ...] | None:
        """Return the argument vector for a role; ``None`` if no agent has it.

        Without any other agent for it, the debugger is the built-in one.
        """
        default = (BUILTIN,) if role is Role.DEBUGGER else None
        return self.vectors.get(role) or self.vectors.get(None, default)


def parse_agents(given: Sequence[str], root: Path) -> Agents:
    """Return the agents of ``[tool.planverify.agents]`` in ``pyproject.toml``, overridden by ``--agent``.

    ``given`` has the values of ``--agent``: ``COMMAND`` or ``ROLE=COMMAND``. A command is the name of a
    preset, or words in shell syntax that are run without a shell. Raises
    :class:`planner.errors.PlannerError` for an unknown role, a missing program, a malformed command, or a
    table of another form.
    """
    table = "[tool.planverify.agents]"
    try:
        configured = _TABLE.validate_python(planverify_settings(root).get("agents", {}), strict=True)
    except ValidationError as error:
        name = "".join(f" {part}" for part in error.errors()[0]["loc"][:1])
        raise PlannerError(
            f"{root / 'pyproject.toml'}: {table}{name} is neither a text nor a list of texts; "
            'write default = "COMMAND" in it'
        ) from None
    named = [(f"{table} {name}", name, command) for name, command in configured.items()]
    for text in given:
        # An equals sign behind anything else than a role belongs to the command: "agent --model=NAME".
        name, separator, command = map(str.strip, text.partition("="))
        is_role = separator and name in _ROLES
        named.append((f"--agent {text}", name if is_role else _DEFAULT, command if is_role else text))
    vectors: dict[Role | None, tuple[str, ...]] = {}
    for source, name, command in named:
        if name not in (_DEFAULT, *_ROLES):
            raise PlannerError(f"{source}: unknown role '{name}'; the roles are {', '.join(_ROLES)}")
        role = None if name == _DEFAULT else Role(name)
        vectors[role] = _vector(command, source, root)
        if vectors[role] == (BUILTIN,) and role is not Role.DEBUGGER:
            raise PlannerError(
                f"{source}: {BUILTIN} is only for the role debugger; write --agent debugger={BUILTIN}"
            )
    return Agents(vectors)


def run_turn(
    agents: Agents,
    turn: Turn,
    *,
    prompt: str,
    watch: Callable[[], None] | None = None,
    surroundings: Mapping[str, str] = MappingProxyType({}),
) -> TurnReport:
    """Run the agent of the turn's role within its time limit; all its processes have ended afterwards.

    If the built-in debugger did not repair the failure, the coder continues with its findings, in the
    remaining time. ``watch`` is called repeatedly meanwhile; if it raises, the agent is stopped.
    ``surroundings`` are added to the environment. Raises :class:`planner.errors.PlannerError` if the
    program cannot be started.
    """
    vector = agents.vector(turn.role)
    assert vector is not None  # the loop sends no turn for which there is no agent
    run = partial(_run_agent, watch=watch, surroundings=surroundings)
    if vector != (BUILTIN,):
        return run(vector, turn, prompt)
    report = run((sys.executable, "-m", "pytest_planverify.harness.debugger", "{json}"), turn, prompt)
    coder = agents.vector(Role.CODER)
    if coder is None or _read_result(turn.result).repaired:
        return report
    if report.message:
        prompt += f"\n## Result of the debugger\n\n{report.message}\n"
        write_file(turn.brief, prompt)
    turn.result.unlink(missing_ok=True)  # the coder's report must not be mistaken for the debugger's
    remaining = turn.timeout_seconds - report.duration_ms / 1000
    worked = run(coder, replace(turn, role=Role.CODER, timeout_seconds=max(remaining, 1.0)), prompt)
    messages = [each for each in (report.message, worked.message) if each]
    return replace(
        worked, message="\n".join(messages) or None, duration_ms=report.duration_ms + worked.duration_ms
    )


def _run_agent(
    vector: Sequence[str],
    turn: Turn,
    prompt: str,
    *,
    watch: Callable[[], None] | None,
    surroundings: Mapping[str, str],
) -> TurnReport:
    """Run one program with its placeholders filled in; store its output and return how it ended."""
    values = {
        "brief": str(turn.brief),
        "json": str(turn.folder / "brief.json"),
        "prompt": prompt,
        "result": str(turn.result),
        "role": turn.role.value,
        "root": str(turn.root),
        "todo": turn.action.todo_id,
    }
    # One pass: other braces stay, and inserted text is not expanded again, because the title of a todo may
    # contain braces.
    argv = [_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in vector]
    variables = {f"PLANVERIFY_{name.upper()}": values[name] for name in PLACEHOLDERS if name != "prompt"}
    try:
        ended = run_process(
            argv,
            cwd=turn.root,
            env={**os.environ, **surroundings, **variables},
            timeout_seconds=turn.timeout_seconds,
            watch=watch,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise PlannerError(f"the agent '{argv[0]}' cannot be started ({why}); fix --agent") from None
    write_file(turn.folder / "output.txt", redact(clean(f"{ended.stdout}{ended.stderr}")))
    result = _read_result(turn.result)
    message = _failure_reason(ended, turn.timeout_seconds)
    return TurnReport(
        ended_well=message is None,
        message=message or redact_and_clip(result.notes or "", MOST_NOTES).strip() or None,
        tokens=result.tokens,
        duration_ms=ended.duration_ms,
    )


def _vector(command: str | list[str], source: str, root: Path) -> tuple[str, ...]:
    """Return the words of a command; the path of the brief is appended if no placeholder passes the task.

    Raises :class:`planner.errors.PlannerError` for a malformed command or a missing program.
    """
    try:
        words = shlex.split(PRESETS.get(command, command)) if isinstance(command, str) else command
    except ValueError as error:
        raise PlannerError(f"{source}: {error}; close the quotation") from None
    if words == [BUILTIN]:
        return (BUILTIN,)
    if not words:
        raise PlannerError(f"{source}: it names no program; write --agent 'COMMAND {{brief}}'")
    # Python may be installed under another name, or not be on PATH: the running interpreter will do.
    if words[0] in ("python", "python3") and shutil.which(words[0]) is None:
        words = [sys.executable, *words[1:]]
    if shutil.which(words[0]) is None:
        role, equals, _ = words[0].partition("=")
        if equals:
            raise PlannerError(
                f"{source}: '{role}' is no role, and '{words[0]}' no program; the roles are "
                f"{', '.join(_ROLES)}"
            )
        raise PlannerError(
            f"{source}: the program '{words[0]}' was not found; install it, or name its path"
        )
    if not any(f"{{{name}}}" in word for word in words for name in ("brief", "prompt", "json")):
        words = [*words, "{brief}"]
    # Turns may run in other trees, so that files outside of the root need absolute paths.
    is_outside = (word.startswith("..") and (root / word).exists() for word in words)
    return tuple(
        os.path.abspath(root / word) if outside else word
        for word, outside in zip(words, is_outside, strict=True)
    )


def _failure_reason(ended: ProcessResult, limit: float) -> str | None:
    """Return why a turn failed; ``None`` if the agent exited normally with status 0."""
    if ended.timed_out:
        return f"the agent was stopped after {limit:g} s"
    if ended.signal is not None:
        return f"the agent was killed by {ended.signal}"
    if ended.exit_code == 0:
        return None
    lines = [line for line in f"{ended.stdout}\n{ended.stderr}".splitlines() if line.strip()]
    last = f": {one_line(redact(lines[-1]), limit=_MOST_LAST_LINE)}" if lines else ""
    return f"the agent ended with exit status {ended.exit_code}{last}"


def _read_result(path: Path) -> AgentResult:
    """Return an agent's report; a missing or invalid one is empty."""
    with suppress(OSError, ValidationError), open_regular(path) as file:  # opening a pipe would block
        return AgentResult.model_validate_json(file.read(MOST_RESULT_BYTES))
    return AgentResult()


# -- briefs --------------------------------------------------------------------------------------------


def write_briefs(
    turn: Turn, session: RunSession, plan: Path, most_tokens: int, *, seen: Outcome | None = None
) -> str:
    """Write ``brief.md`` and ``brief.json`` of a turn; return the Markdown.

    ``plan`` is the plan file that the agent verifies with. ``seen`` is the outcome of a verification before
    any work on the todo. The Markdown is limited to ``most_tokens``, where a token counts as four
    characters; the least important paragraphs are dropped first.
    """
    shown = str(plan.relative_to(turn.root) if plan.is_relative_to(turn.root) else plan)
    check = f"pytest --planverify {shlex.quote(f'{shown}::{turn.action.todo_id}')} -q"
    text = _page(turn, session, shown, seen, most_tokens * CHARACTERS_PER_TOKEN)
    write_file(turn.brief, text)
    facts = turn.action.model_dump(mode="json", exclude_defaults=True)
    facts["turn"] = {
        "id": turn.id,
        "run": turn.folder.parent.parent.name,
        "result": str(turn.result),
        "timeout_seconds": turn.timeout_seconds,
    }
    facts |= {"plan": shown, "check": check}
    if seen is not None and seen.failure_evidence is not None:
        facts["seen"] = seen.failure_evidence.model_dump(mode="json", exclude_defaults=True)
    write_file(turn.folder / "brief.json", json.dumps(facts, indent=2) + "\n")
    return text


def _page(turn: Turn, session: RunSession, shown: str, seen: Outcome | None, limit: int) -> str:
    """Return the engine's brief, within ``limit`` characters, with what only this run knows.

    That is the role, failures of todos that nobody has worked on, and earlier turns; the last are left out
    first. If even the essential paragraphs exceed the limit, the text is cut.
    """
    head = f"You act as {turn.role.value} on `{turn.action.todo_id}`, attempt {turn.action.attempt}.\n"
    state = session.state
    assert state is not None  # it has requested the turn
    is_first = state.records[turn.action.todo_id].turns < 2
    more = [head, *_seen_failures(turn, seen), *(() if is_first else _earlier_turns(turn, session.log))]
    # At most half: the engine's brief has the task itself, the criteria and the latest failure.
    while len("\n".join(more)) > limit // 2 and len(more) > 1:
        more.pop()
    left = (limit - len("\n".join(more))) // CHARACTERS_PER_TOKEN
    page = brief_of(state, turn.action.todo_id, max_tokens=left)
    # The agent has to check its work as the run does: by the plan with the run's edits.
    page = page.replace(f"{state.path}::", f"{shown}::")
    text = redact(clean("\n".join((head, page, "", *more[1:])).rstrip() + "\n"))
    return text if len(text) <= limit else f"{text[: limit - 20].rstrip()}\n… (cut)\n"


def _seen_failures(turn: Turn, seen: Outcome | None) -> list[str]:
    """Return a line for each failure of a verification before any work, unless the brief has a failure."""
    failures = () if seen is None or turn.action.brief.failure is not None else seen.failures
    lines = ["What a verification sees now:\n"] if failures else []
    for each in failures[:MOST_FAILURES]:
        at = each.location
        place = "" if at is None else f" at {at.path}:{at.line}" if at.line else f" at {at.path}"
        said = one_line(each.stack_trace_head or each.because or "", limit=200).replace("`", "'")
        lines.append(f"- {each.category.value}{place}: `{said}`")
    return [*lines, ""] if lines else []


def _earlier_turns(turn: Turn, log: Path) -> list[str]:
    """Return a line for each of the latest earlier turns on the same todo, latest last."""
    with RunLog.read(log) as run:
        events = [each.event for each in run.entries() if isinstance(each.event, WorkFinished)]
    lines: list[str] = []
    for each in (event for event in events if event.todo_id == turn.action.todo_id):
        changed = listed((f"`{path}`" for path in each.touched_files or ()), MOST_PATHS) or "nothing"
        lines.append(f"Tried before: changed {changed}{f'; {each.message}' if each.message else ''}.\n")
    return lines[-_MOST_EARLIER:]
