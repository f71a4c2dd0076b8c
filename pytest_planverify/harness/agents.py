"""Agents: the program for each role, and one turn of work by it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter, ValidationError

from planner.errors import PlannerError
from planner.model.taxonomy import Role
from planner.planfile.file_writer import write_file
from planner.text.redaction import redact
from planner.text.sanitizing import clean, one_line
from pytest_planverify.checks.processes import run_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.model.actions import Implement
    from pytest_planverify.checks.processes import ProcessResult

MANUAL = "manual"
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
MOST_NOTES = 2_000
DEFAULT_SECONDS = 1_800.0
"""Limit of a turn if neither plan nor command line sets one."""

_ROLES = [role.value for role in Role]
_TABLE: TypeAdapter[dict[str, str | list[str]]] = TypeAdapter(dict[str, str | list[str]])
_MOST_LAST_LINE = 200
_MOST_PROMPT = 100_000
"""Limit of an argument in characters; systems refuse longer ones."""


class AgentError(PlannerError):
    """An agent that cannot be called; ``str()`` has the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of work, with the location of its files."""

    id: str
    """Unique within the run: ``0007-t2_indicators``."""
    action: Implement
    """The engine's request."""
    role: Role
    """The role at work; changes to coder if the debugger could not repair the failure."""
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
    """How an agent's turn ended; it proves nothing about the work."""

    ended_well: bool
    message: str | None = None
    """Reason of a failed turn, or the agent's notes."""
    tokens: int | None = None
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class Agents:
    """Argument vectors by role; the one under ``None`` serves all other roles."""

    vectors: Mapping[Role | None, tuple[str, ...]] = field(
        default_factory=dict[Role | None, tuple[str, ...]]
    )

    def vector(self, role: Role) -> tuple[str, ...] | None:
        """Return the argument vector for a role, or ``None``."""
        default = (BUILTIN,) if role is Role.DEBUGGER else None
        return self.vectors.get(role) or self.vectors.get(None, default)

    def is_manual(self, role: Role) -> bool:
        """Return whether a person at the terminal acts in that role."""
        return self.vector(role) == (MANUAL,)


def parse_agents(given: Sequence[str], root: Path) -> Agents:
    """Return the agents given by ``--agent``, over those of ``[tool.planverify.agents]``.

    Each is ``COMMAND`` or ``ROLE=COMMAND``, where a command is a preset's name, ``manual``, or
    shell-like words that no shell interprets. Raises :class:`AgentError`.
    """
    vectors: dict[Role | None, tuple[str, ...]] = {}
    for source, name, command in (*_configured(root), *map(_named, given)):
        if name is not None and name not in _ROLES:
            raise AgentError(f"{source}: there is no role '{name}'; the roles are {', '.join(_ROLES)}")
        role = None if name is None else Role(name)
        if command == BUILTIN and role is not Role.DEBUGGER:
            raise AgentError(f"{source}: {BUILTIN} only debugs; write --agent debugger={BUILTIN}")
        vectors[role] = _vector(command, source, root)
    return Agents(vectors)


def run_turn(
    agents: Agents,
    turn: Turn,
    *,
    prompt: str,
    on_output: Callable[[str], None] | None = None,
    watch: Callable[[], None] | None = None,
    surroundings: Mapping[str, str] = MappingProxyType({}),
) -> TurnReport:
    """Run the agent of the turn's role within its time limit; all its processes have ended afterwards.

    If the built-in debugger could not repair the failure, the coder continues with its findings.
    ``watch`` is called meanwhile and may raise; ``surroundings`` are added to the environment. Raises
    :class:`AgentError` if the program cannot be started.
    """
    vector = agents.vector(turn.role)
    assert vector is not None  # checked by the loop
    run = partial(_run_agent, on_output=on_output, watch=watch, surroundings=surroundings)
    if vector != (BUILTIN,):
        return run(vector, turn, prompt)
    report = run((sys.executable, "-m", "pytest_planverify.harness.debugger", "{json}"), turn, prompt)
    coder = agents.vector(Role.CODER)
    if coder is None or coder == (MANUAL,) or _read_result(turn.result).get("repaired") is True:
        return report
    if report.message:
        prompt += f"\n## What the debugger found\n\n{report.message}\n"
        write_file(turn.brief, prompt)
    turn.result.unlink(missing_ok=True)
    left = turn.timeout_seconds - report.duration_ms / 1000
    worked = run(coder, replace(turn, role=Role.CODER, timeout_seconds=max(left, 1.0)), prompt)
    told = [each for each in (report.message, worked.message) if each]
    return replace(
        worked, message="\n".join(told) or None, duration_ms=report.duration_ms + worked.duration_ms
    )


def _run_agent(
    vector: Sequence[str],
    turn: Turn,
    prompt: str,
    *,
    on_output: Callable[[str], None] | None,
    watch: Callable[[], None] | None,
    surroundings: Mapping[str, str],
) -> TurnReport:
    values = {
        "brief": str(turn.brief),
        "json": str(turn.folder / "brief.json"),
        "prompt": prompt[:_MOST_PROMPT],
        "result": str(turn.result),
        "role": turn.role.value,
        "root": str(turn.root),
        "todo": turn.action.todo_id,
    }
    # One pass: other braces stay, and inserted text is not expanded again, as a title may contain
    # braces.
    argv = [_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in vector]
    variables = {f"PLANVERIFY_{name.upper()}": values[name] for name in PLACEHOLDERS if name != "prompt"}
    try:
        ended = run_process(
            argv,
            cwd=turn.root,
            env={**os.environ, **surroundings, **variables},
            timeout_seconds=turn.timeout_seconds,
            on_output=on_output,
            watch=watch,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise AgentError(f"the agent '{argv[0]}' cannot be started ({why}); fix --agent") from None
    write_file(turn.folder / "output.txt", redact(clean(f"{ended.stdout}{ended.stderr}")))
    result = _read_result(turn.result)
    tokens, notes = result.get("tokens"), result.get("notes")
    is_count = isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens <= 10**12
    said = redact(clean(notes, limit=MOST_NOTES)) if isinstance(notes, str) and notes.strip() else None
    message = _why_it_ended(ended, turn.timeout_seconds)
    return TurnReport(
        ended_well=message is None,
        message=message or said,
        tokens=tokens if is_count else None,
        duration_ms=ended.duration_ms,
    )


def _configured(root: Path) -> Iterator[tuple[str, str | None, str | list[str]]]:
    path, source = root / "pyproject.toml", "[tool.planverify.agents]"
    try:
        held: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    table = held.get("tool", {}).get("planverify", {}).get("agents", {})
    try:
        agents = _TABLE.validate_python(table, strict=True)
    except ValidationError as error:
        name = "".join(f" {part}" for part in error.errors()[0]["loc"][:1])
        raise AgentError(
            f'{path}: {source}{name} is neither a text nor a list of texts; write default = "COMMAND" in it'
        ) from None
    for name, command in agents.items():
        yield f"{source} {name}", None if name == "default" else name, command


def _named(text: str) -> tuple[str, str | None, str]:
    name, separator, command = text.partition("=")
    is_role = separator and name.strip() in _ROLES
    return (
        (f"--agent {text}", name.strip(), command.strip()) if is_role else (f"--agent {text}", None, text)
    )


def _vector(command: str | list[str], source: str, root: Path) -> tuple[str, ...]:
    """Return the words of a command, with the brief appended if no placeholder uses it."""
    try:
        words = shlex.split(PRESETS.get(command, command)) if isinstance(command, str) else command
    except ValueError as error:
        raise AgentError(f"{source}: {error}; close the quotation") from None
    if words in ([MANUAL], [BUILTIN]):
        return (words[0],)
    if not words:
        raise AgentError(f"{source}: names no program; write --agent 'COMMAND {{brief}}'")
    if words[0] in ("python", "python3") and shutil.which(words[0]) is None:
        words = [sys.executable, *words[1:]]
    if shutil.which(words[0]) is None:
        raise AgentError(f"{source}: there is no program '{words[0]}'; install it, or name its path")
    if not any(f"{{{name}}}" in word for word in words for name in ("brief", "prompt", "json")):
        words = [*words, "{brief}"]
    # Turns run in other trees, so files outside of the root need absolute paths.
    is_outside = (word.startswith("..") and (root / word).exists() for word in words)
    return tuple(
        os.path.abspath(root / word) if outside else word
        for word, outside in zip(words, is_outside, strict=True)
    )


def _why_it_ended(ended: ProcessResult, limit: float) -> str | None:
    if ended.timed_out:
        return f"the agent was stopped after {limit:g} s"
    if ended.signal is not None:
        return f"the agent was ended by {ended.signal}"
    if ended.exit_code == 0:
        return None
    lines = [line for line in f"{ended.stdout}\n{ended.stderr}".splitlines() if line.strip()]
    last = f": {one_line(redact(lines[-1]), limit=_MOST_LAST_LINE)}" if lines else ""
    return f"the agent ended with exit status {ended.exit_code}{last}"


def _read_result(path: Path) -> dict[str, Any]:
    """Return an agent's report; an unreadable one counts as empty."""
    try:
        with path.open("rb") as file:
            held: Any = json.loads(file.read(MOST_RESULT_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", held) if isinstance(held, dict) else {}
