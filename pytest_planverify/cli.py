"""The command ``planverify``, the one program for people: it verifies plans, and decides what comes next.

``planverify verify`` runs ``pytest --planverify`` in a process of its own. The commands of ``planner`` are
here by the same names and the same functions.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path  # noqa: TC003  # Typer reads the annotations of commands when they run
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from planner.cli import app as planner_app
from planner.cli.arguments import PlanArgument, TodosArgument, complete_todo, nearest, plan_or_usual
from planner.cli.exits import UsageMistake, call_program, ends, guarded, say
from planner.planfile.discovery import PLAN_ENDINGS, SEPARATOR

EPILOG = """\
\b
planverify COMMAND --help says more about a command.
Exit status: that of pytest --planverify where something is verified; 0 done or found,
1 findings, 2 wrong usage, 3 a fault of planverify, 4 a file that cannot be read, 130 interrupted.
Start with: planverify init; planverify verify; planverify next
"""


class Entry(NamedTuple):
    """Where a command of this package is, and what it is for."""

    module: str
    help: str
    is_group: bool = False
    """It has commands of its own: the module holds an ``app``."""


COMMANDS: dict[str, Entry] = {
    "verify": Entry("", "Run the criteria of a plan: pytest --planverify. Also: planverify PLAN."),
    "run": Entry("pytest_planverify.harness.command", "Carry a plan to done with coding agents."),
    "baseline": Entry(
        "pytest_planverify.baseline.command",
        "Record what holds before the work; accept changes of tests.",
        is_group=True,
    ),
    "qualify": Entry("pytest_planverify.qualification", "Check the checks: are they red before the work?"),
    "report": Entry("", "Render the last outcomes: junit, sarif, markdown, …"),
    "recover": Entry("pytest_planverify.session.recovery", "Render the outcomes of a run that was killed."),
    "undo": Entry("pytest_planverify.harness.undo", "Undo the last run, or the last edit of the plan."),
    "hook": Entry("pytest_planverify.stop_hook", "Keep a coding agent from stopping before all is done."),
    "mcp": Entry("pytest_planverify.mcp", "Serve coding agents by the Model Context Protocol."),
}
"""The commands that are not of ``planner``."""

GROUPS = {
    "Every day": ("init", "new", "decompose", "verify", "run", "next", "status", "answer"),
    "Decide": ("approve", "reject", "modify", "undo", "waves", "gaps", "iterate", "design", "workflow"),
    "Look closer": ("explain", "validate", "history", "report", "serve"),
    "Prove the checks": ("baseline", "qualify", "recover"),
    "Coding agents": ("hook", "mcp"),
}
"""In which order the commands are shown; those in no group, for programs mostly, come last in one line."""


class Program(TyperGroup):
    """A group that knows the names and purposes of its commands without importing them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, in the order in which they are shown."""
        there = {**planner_app.COMMANDS, **COMMANDS}
        grouped = [name for names in GROUPS.values() for name in names if name in there]
        return [*grouped, *(name for name in there if name not in grouped)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command of that name."""
        entry = COMMANDS.get(cmd_name) or planner_app.COMMANDS.get(cmd_name)
        if cmd_name in self.commands or entry is None:
            return self.commands.get(cmd_name)
        command = planner_app.load_command(planner_app.Entry(entry.module, entry.help))
        command.name, command.short_help = cmd_name, entry.help
        if cmd_name in planner_app.COMMANDS:
            _call_planverify(command)
        self.commands[cmd_name] = command
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first word names; a plan in its place is verified."""
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            if not _is_plan(args[0]):
                hint = nearest(args[0], names, "the commands are")
                ctx.fail(f"there is no command and no plan '{args[0]}'; {hint}")
            args = ["verify", *args]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands by groups, a line each."""
        there = {**planner_app.COMMANDS, **COMMANDS}
        names = self.list_commands(ctx)
        grouped = {name for each in GROUPS.values() for name in each}
        width = max(map(len, names))
        for title, members in GROUPS.items():
            known = [name for name in members if name in there]
            if known:
                formatter.write(f"\n{title}:\n")
                for name in known:
                    formatter.write(f"  {name:<{width}}  {there[name].help}\n")
        formatter.write(f"\nPrograms: {', '.join(name for name in names if name not in grouped)}\n")


app = typer.Typer(
    cls=Program,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command with the words of the command line; ends the process."""
    call_program("planverify")
    with suppress(ValueError):  # only the main thread may
        signal.signal(signal.SIGTERM, _interrupt)
    guarded(lambda: app(prog_name="planverify"))


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _is_plan(word: str) -> bool:
    """Return whether a word in the place of a command names a plan, there or not."""
    return word.partition(SEPARATOR)[0].endswith(PLAN_ENDINGS)


def _call_planverify(command: Any) -> None:
    """Have the help of a command of ``planner`` speak of ``planverify``, as it was called so."""
    pattern = re.compile(rf"\bplanner (?=(?:{'|'.join(planner_app.COMMANDS)})\b)")
    for holder in (command, *getattr(command, "commands", {}).values()):
        for text in ("help", "epilog"):
            if getattr(holder, text, None):
                setattr(holder, text, pattern.sub("planverify ", getattr(holder, text)))
        for parameter in holder.params:
            if getattr(parameter, "help", None):
                parameter.help = pattern.sub("planverify ", parameter.help)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"planverify {version('pytest-planverify')}")
        raise typer.Exit


@app.callback()
def planverify(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Proves that the todos of a plan are done, and says what comes next."""


@app.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
    epilog="Exit status: that of pytest --planverify. 0 accepted, 1 a criterion failed, 4 an invalid plan.",
)
@ends
def verify(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PLAN[::TODO,...]] [OPTIONS OF PYTEST]",
            help="Plans, todos of them, and any option that pytest --planverify takes.",
        ),
    ] = None,
) -> int:
    """Run the criteria of a plan, in pytest --planverify, and write its outcomes.

    Without a plan the one of the ini file or of a usual name is verified: planverify.yaml, plan.yaml or
    todo.yaml. All options of pytest work: planverify verify plan.yaml -x -n 4 --planverify-scope claimed.
    """
    command = [sys.executable, "-m", "pytest", "--planverify", *(words or ())]
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):  # then nothing else loads this plugin
        command += ["-p", "pytest_planverify.plugin"]
    process = subprocess.Popen(command)

    def pass_on(number: int, frame: object) -> None:
        process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    status = process.wait()
    return status if status >= 0 else _ENDED_BY_SIGNAL - status


_ENDED_BY_SIGNAL = 128
"""What shells add to the number of the signal."""


@app.command(
    epilog="Exit status: 0 every check is good, 1 some are not, 2 wrong usage, 4 the plan cannot be "
    "verified."
)
@ends
def qualify(
    plan: PlanArgument = None,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", help="How often each check is run on the tree as it is.")
    ] = 3,
    todo: Annotated[
        list[str] | None,
        typer.Option(
            "--todo",
            metavar="TODO",
            help="Qualify this todo only; may be given several times.",
            autocompletion=complete_todo,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="PATH",
            help="Where the file goes. Default: qualification.json in the plan's folder below .planverify.",
        ),
    ] = None,
) -> int:
    """Check the checks: a good one is red before the work, or red where its negative control broke it.

    Each check of the todos that are not claimed is called red_ok, vacuous, unrunnable or unstable.
    """
    qualified = import_module(COMMANDS["qualify"].module).qualify_command
    return qualified(plan_or_usual(plan), runs=runs, todo_ids=todo or (), output=output)


@app.command(
    epilog="Exit status: 0 completed, 1 halted with something broken, 2 wrong usage, 4 a file or an agent "
    "that cannot be used, 11 a person is asked, 12 a budget is used up, 13 a security halt."
)
@ends
def run(
    plan: PlanArgument = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="[ROLE=]COMMAND",
            help="Who works: words with {brief}, {prompt}, {json}, {todo}, {role}, {root} or {result}, the "
            "name of a well-known agent (aider, claude, codex, copilot, cursor, gemini, goose, opencode) "
            "or manual. Several times, for roles. Default: [tool.planverify.agents] in pyproject.toml.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that was cut off, or waits.")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, though a run is not over.")
    ] = False,
    dirty: Annotated[
        str,
        typer.Option(
            "--dirty", metavar="refuse|save", help="What becomes of uncommitted work: save keeps it in git."
        ),
    ] = "refuse",
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            metavar="N",
            help="So many todos are worked on at the same time, each in a work tree of its own. "
            "Default: 1, in your tree.",
        ),
    ] = None,
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="threads|dask://HOST:PORT",
            help="Where agents run: on this machine, or on the workers of a dask cluster.",
        ),
    ] = "threads",
    turn_seconds: Annotated[
        float | None,
        typer.Option("--max-turn-seconds", min=1, metavar="SECONDS", help="No turn takes longer."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="TODO",
            help="Carry out these todos, and what they depend on; a pattern may name several: 'phase-2*'.",
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--max-seconds", min=1, metavar="N", help="The run takes no longer.")
    ] = None,
    turns: Annotated[
        int | None, typer.Option("--max-turns", min=0, metavar="N", help="No more turns of work.")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=0, metavar="N", help="As agents report them.")
    ] = None,
    new_files: Annotated[
        int | None, typer.Option("--max-new-files", min=0, metavar="N", help="No more files are made.")
    ] = None,
    attempts: Annotated[
        int | None,
        typer.Option("--max-attempts", min=0, metavar="N", help="No more turns on one branch."),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option("--max-branch-depth", min=0, metavar="N", help="No deeper branches of branches."),
    ] = None,
    brief_tokens: Annotated[
        int, typer.Option("--brief-tokens", min=200, metavar="N", help="No brief is longer.")
    ] = 800,
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            min=0,
            metavar="SECONDS",
            help="Where only a person can go on, wait so long for an answer from a page or a command.",
        ),
    ] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what happens as JSON, one object a line.")
    ] = False,
) -> int:
    """Carry a plan to done: agents work, verifications decide, until it is done or a person is needed.

    Files are kept before each turn; a turn that changes what it may not is undone, and stops the run.
    The limits of the plan hold as well: --max-… can only lower them.
    """
    limits = {
        "wall_seconds": seconds,
        "cycles": turns,
        "tokens": tokens,
        "new_files": new_files,
        "max_debug_attempts": attempts,
        "max_branch_depth": depth,
    }
    if dirty not in ("refuse", "save"):
        raise UsageMistake(f"--dirty {dirty}: write refuse or save")
    harness = import_module(COMMANDS["run"].module)
    options = harness.RunOptions(
        agents=agent or (),
        resume=resume,
        restart=restart,
        dirty=dirty,
        jobs=jobs,
        executor=executor,
        turn_seconds=turn_seconds,
        brief_tokens=brief_tokens,
        wait=wait,
        only=only or (),
        limits={name: limit for name, limit in limits.items() if limit is not None},
        as_json=as_json,
    )
    return harness.run_command(plan_or_usual(plan), options)


@app.command(epilog="Exit status: 0 undone, 2 wrong usage, 4 nothing to undo, or edited since.")
@ends
def undo(
    plan: PlanArgument = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Undo it though it was edited since; edits of a plan are lost."),
    ] = False,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="SNAPSHOT", help="Put all files back as in a snapshot of an earlier undo."
        ),
    ] = None,
) -> int:
    """Undo what came last: the work of a run, or an edit of the plan by next --in-place.

    The files that the run has changed are put back as they were before it, uncommitted work too; what
    stands there now is kept as a snapshot first. Each call goes back by one.
    """
    module, path = import_module(COMMANDS["undo"].module), plan_or_usual(plan)
    told = module.undo_run(path, force=force) if to is None else module.restore_snapshot(path, to)
    if told is None:
        return import_module("planner.cli.plan_file").undo_last_edit(path, force=force)
    for line in told:
        say(line)
    return 0


@app.command(
    epilog="Exit status: 0 written, 2 wrong usage, 4 there are no outcomes, or it cannot be written."
)
@ends
def report(
    asked: Annotated[
        str, typer.Argument(metavar="FORMAT[=PATH]", help="PATH may be -, which is standard output.")
    ],
    plan: PlanArgument = None,
) -> int:
    """Render the last outcomes of a plan as a report: what pytest --planverify-report does, afterwards.

    Formats: ctrf, gitlab, html, junit, markdown, prometheus, sarif. Without PATH, the report goes to
    .planverify/reports/.
    """
    return import_module("pytest_planverify.reports.formats").report_command(asked, plan_or_usual(plan))


@app.command(epilog="Exit status: that of the run, 2 wrong usage, 4 nothing to recover.")
@ends
def recover(
    plan: PlanArgument = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="ID", help="Which run. Default: the latest that has a journal."),
    ] = None,
    outcomes: Annotated[
        Path | None,
        typer.Option(
            "--outcomes",
            metavar="PATH",
            help="Where the outcomes go, - is standard output. Default: where the run itself writes them.",
        ),
    ] = None,
) -> int:
    """Render the outcomes of a run that was killed, from the journal that it left behind."""
    return import_module(COMMANDS["recover"].module).recover_command(plan_or_usual(plan), run, outcomes)


@app.command(
    epilog="Exit status: 0 the agent may stop, 2 it may not: standard error tells it what is not done."
)
@ends
def hook(
    plan: TodosArgument = None,
    install: Annotated[
        str | None,
        typer.Option(
            "--install",
            metavar="AGENT",
            help="Write the hook into the settings of this project: claude, codex, cursor or gemini.",
        ),
    ] = None,
    times: Annotated[
        int, typer.Option("--times", min=1, metavar="N", help="Hold the agent so often without a pause.")
    ] = 3,
    seconds: Annotated[
        float,
        typer.Option("--max-seconds", min=1, metavar="SECONDS", help="A verification takes no longer."),
    ] = 540,
) -> int:
    """Verify the plan when a coding agent wants to stop; hold it back, and tell it what is not done.

    The agent calls this itself, once it is set up by --install. What it asks is read from standard input.
    """
    module = import_module(COMMANDS["hook"].module)
    if install is not None:
        return module.install_hook(install, plan)
    return module.stop_hook(plan, times=times, seconds=seconds)


@app.command(epilog="Exit status: 0 the agent has gone, 2 wrong usage, 4 the SDK is not installed.")
@ends
def mcp(
    plan: PlanArgument = None,
    allow_approvals: Annotated[
        bool,
        typer.Option(
            "--allow-approvals", help="Let agents decide what a person is asked; their name is recorded."
        ),
    ] = False,
    seconds: Annotated[
        float,
        typer.Option("--max-seconds", min=1, metavar="SECONDS", help="A verification takes no longer."),
    ] = 540,
) -> int:
    """Serve coding agents by the Model Context Protocol on standard input and output.

    Their tools are verify, next, status, explain, brief, approve, reject and answer; plan, outcomes and
    history can be read. Plans are those below the current folder.
    """
    from planner.errors import PlannerError

    try:
        module = import_module(COMMANDS["mcp"].module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "anyio"):
            raise
        raise PlannerError(
            f"planverify mcp needs the MCP SDK, version 2 ({error.name} is not there); install it: "
            "pip install 'pytest-planverify[mcp]'"
        ) from None
    module.serve(plan, allow_approvals=allow_approvals, seconds=seconds)
    return 0
