"""``planverify mcp``: the commands as tools for coding agents, by the Model Context Protocol over stdio.

The SDK is an optional dependency, imported by this module only. Each tool runs a command of
``planverify`` in a child process. Plans must lie below the folder in which the server was started.

Everything that an agent passes is untrusted. It reaches commands as arguments only, never as options. No
tool decides anything: approvals and answers are given on the command line, by a person.
Docstrings of the tools are their descriptions for the agent.
"""

from __future__ import annotations

import os
import threading
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

# The SDK inspects annotations at run time, so that these are no imports for type checking.
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from planner.cli.arguments import choose_plan
from planner.cli.exits import UsageMistake
from planner.errors import PlannerError
from planner.text.display import listed
from planner.text.sanitizing import one_line
from pytest_planverify.harness.agent_commands import CommandResult, run_planverify, verify_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    Watch = Callable[[], None]

INSTRUCTIONS = """\
Work is done when planverify has verified it, and not before. Call next for what to do, brief for the
instructions of a todo, verify to check whether it is done. Do not edit tests, the plan or .planverify to
make a check pass."""

STOP_SECONDS = 20
"""Seconds to wait for a cancelled call while its processes are ended."""


class _Cancelled(Exception):
    """Raised in the thread of a call that the agent has cancelled."""


class _StrictServer(MCPServer[Any]):
    """The SDK's server, which would ignore unknown arguments: a verification of more than was asked."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool; refuse arguments that it does not have, and name those that it has."""
        for tool in await self.list_tools():
            known = tool.input_schema["properties"]
            unknown = [each for each in arguments if each not in known]
            if tool.name == name and unknown:
                text = f"{name} has no argument {listed(unknown, 3)}; it has {listed([*known], 3)}"
                return _tool_result(
                    CommandResult(text=one_line(f"planverify: {text}", limit=300), status=2)
                )
        return await super().call_tool(name, arguments, context)


class PlanServer:
    """Tools for one folder; each method without an underscore is one, except ``build``."""

    def __init__(self, root: Path, plan: Path | None, *, seconds: float) -> None:
        """``plan`` is the default of calls; ``seconds`` limits a verification."""
        self._root = root.resolve()
        self._plan = plan
        self._seconds = seconds

    def build(self) -> _StrictServer:
        """Return the SDK's server, with the tools registered by the names of the methods."""
        server = _StrictServer(
            "planverify",
            instructions=INSTRUCTIONS,
            version=metadata.version("pytest-planverify"),
            log_level="WARNING",
        )
        for read in (self.next, self.status, self.explain, self.brief):
            server.add_tool(read, annotations=ToolAnnotations(read_only_hint=True))
        server.add_tool(self.verify)
        return server

    async def verify(self, plan: str | None = None, todo: str | None = None) -> CallToolResult:
        """Run the criteria of the plan, or of one todo (several: with commas): is it really done?"""

        def work(watch: Watch) -> CallToolResult:
            target = next(iter(self._plan_words(plan)), None)
            # PLAN::TODO needs the path, which the command would otherwise choose itself.
            if todo is not None:
                target = f"{self._plan_file(plan)}::{todo}"
            found = verify_plan(target, self._root, seconds=self._seconds, watch=watch)
            return _tool_result(found, {"accepted": found.is_accepted, "exit_status": found.status})

        return await _in_thread(work)

    async def next(self, plan: str | None = None) -> CallToolResult:
        """Say what to do now: repairs, todos that are ready, questions that wait for a person."""
        return await self._run(lambda: ["next", "--", *self._plan_words(plan)])

    async def status(self, plan: str | None = None, todo: str | None = None) -> CallToolResult:
        """Show how each todo of the plan stands, or one todo in detail."""
        if todo is None:
            return await self._run(lambda: ["status", "--", *self._plan_words(plan)])
        return await self._run(lambda: ["status", "--", str(self._plan_file(plan)), todo])

    async def explain(self, word: str | None = None) -> CallToolResult:
        """Explain a category, rule or state; of a plan, tell the story of its run."""
        names = [] if word is None else [word]
        return await self._run(
            lambda: ["explain", "--", *(self._require_below_root(each) for each in names)]
        )

    async def brief(self, todo: str, plan: str | None = None) -> CallToolResult:
        """Give the instructions for one todo: what failed, where, what may be edited, how to check it."""
        return await self._run(lambda: ["next", f"--brief={todo}", "--", *self._plan_words(plan)])

    async def _run(self, words: Callable[[], list[str]]) -> CallToolResult:
        """Run a command and return its output.

        ``words`` is called in the thread, as it reads files, and may raise :class:`UsageMistake`. Words of
        the agent must follow ``--`` or ``=`` in it, so that they cannot be options.
        """
        return await _in_thread(
            lambda watch: _tool_result(run_planverify(words(), self._root, watch=watch))
        )

    def _plan_words(self, plan: str | None) -> list[str]:
        """Return the argument that names the plan of the call or the server; none means the usual one.

        Raises :class:`UsageMistake` for a plan outside of the root.
        """
        if plan is not None:
            return [self._require_below_root(plan)]
        return [] if self._plan is None else [str(self._plan)]

    def _plan_file(self, plan: str | None) -> Path:
        """Return the file of the plan, by default one of a usual name. Raises :class:`UsageMistake`."""
        return choose_plan(next(map(Path, self._plan_words(plan)), None)).path

    def _require_below_root(self, word: str) -> str:
        """Return the word if it is no option and names no file outside of the root.

        Raises :class:`UsageMistake` otherwise. Words that name no file, as a category does, are below the
        root as well.
        """
        path = word.partition("::")[0]
        try:
            # Resolved, so that no link leads out of the folder.
            is_below = Path(os.path.realpath(self._root / path)).is_relative_to(self._root)
        except (OSError, ValueError):  # name too long, or a null byte
            is_below = False
        if word.startswith("-") or not is_below:
            raise UsageMistake(f"{path}: there is no such file below {self._root}; name an existing file")
        return word


def serve(plan: Path | None, *, seconds: float) -> None:
    """Serve calls on standard input until it is closed; ``seconds`` limits each verification."""
    PlanServer(Path.cwd(), plan, seconds=seconds).build().run("stdio")


async def _in_thread(work: Callable[[Watch], CallToolResult]) -> CallToolResult:
    """Run the work of a call in a thread, so that the server can answer other calls meanwhile.

    ``work`` receives a function that it must call regularly: this raises once the call is cancelled.
    Expected errors become results with the exit status 2. On cancellation, wait until the processes of the
    call have ended, but not longer than :data:`STOP_SECONDS`.
    """
    stopped, ended = threading.Event(), threading.Event()

    def watch() -> None:
        if stopped.is_set():
            raise _Cancelled

    def guarded() -> CallToolResult:
        try:
            return work(watch)
        except (PlannerError, UsageMistake) as error:
            return _tool_result(CommandResult(text=f"planverify: {one_line(error, limit=1_000)}", status=2))
        except _Cancelled:
            return _tool_result(CommandResult(text="planverify: cancelled", status=None))
        finally:
            ended.set()

    try:
        # Abandoned, as a thread cannot be cancelled: else the cancellation would wait for the end of the
        # verification, and watch() would never learn of it.
        return await anyio.to_thread.run_sync(guarded, abandon_on_cancel=True)
    finally:
        if not ended.is_set():
            stopped.set()
            # Shielded: in a cancelled scope every further wait would be cancelled at once.
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(ended.wait, STOP_SECONDS)


def _tool_result(result: CommandResult, structured: dict[str, Any] | None = None) -> CallToolResult:
    """Return the output of a command as the result of a tool."""
    return CallToolResult(
        content=[TextContent(type="text", text=result.text or "nothing to say")],
        structured_content=structured,
        is_error=result.is_error,
    )
