"""The command ``planverify``, the one program for people: it verifies plans, and decides what comes next.

``planverify verify`` runs ``pytest --planverify`` in a process of its own. The commands of ``planner`` are
included, by the same names and the same functions.

Commands are imported when they are called, and their functions import what they need: ``--help`` and
completion in a shell must answer at once. Docstrings of commands are their help texts.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import COMMANDS as PLANNER_COMMANDS
from planner.cli.app import Entry, LazyGroup, program_app
from planner.cli.arguments import PlanArgument, TodosArgument, option, plan_or_usual
from planner.cli.exits import Status, UsageMistake, as_called, call_program, complain, guarded, say
from planner.cli.screen import Screen
from planner.errors import PlannerError
from planner.planfile.discovery import PLAN_ENDINGS, SEPARATOR
from planner.planfile.file_writer import STANDARD_OUTPUT
from pytest_planverify import module_code, verify_command

if TYPE_CHECKING:
    from collections.abc import Mapping

EPILOG = """\
\b
planverify COMMAND --help describes a command.
Exit status: that of pytest --planverify for verifications; otherwise 0 done or found,
1 findings, 2 wrong usage, 3 a bug of planverify, 4 a file cannot be read, 130 interrupted.
Start with: planverify init; planverify verify; planverify next
"""


COMMANDS: dict[str, Entry] = {
    "verify": Entry("", "Verify a plan, as pytest --planverify does. Short: planverify PLAN."),
    "run": Entry("", "Carry out a plan with coding agents."),
    "baseline": Entry(
        "pytest_planverify.baseline.command", "Record the state before the work; accept changed tests."
    ),
    "qualify": Entry("", "Check whether the checks fail before the work."),
    "report": Entry("", "Write reports of the last outcomes: junit, sarif, markdown, …"),
    "undo": Entry("", "Undo the last run, or the last edit of the plan."),
    "hook": Entry("", "Stop hook: let a coding agent stop only when all is done."),
    "mcp": Entry("", "Run an MCP server for coding agents."),
}
"""Commands that do not belong to ``planner``; those without a module are defined below."""

GROUPS = {
    "Every day": ("init", "new", "decompose", "verify", "run", "next", "status", "answer"),
    "Decide": ("approve", "reject", "modify", "undo", "gaps", "iterate", "design", "workflow"),
    "Look closer": ("explain", "validate", "history", "report", "serve"),
    "Prove the checks": ("baseline", "qualify"),
    "Coding agents": ("hook", "mcp"),
}
"""Command groups in display order. Ungrouped commands, mostly for programs, are listed last on one line."""

_GROUPED = [name for names in GROUPS.values() for name in names]


class Program(LazyGroup):
    """The commands of both programs; the help texts of ``planner``'s are rewritten for ``planverify``."""

    accepted = "command or plan"
    """What an unknown first word was expected to be, for the error message."""
    entries: Mapping[str, Entry] = {**PLANNER_COMMANDS, **COMMANDS}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return command names in display order."""
        return [*_GROUPED, *(name for name in self.entries if name not in _GROUPED)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return the command of that name; its help texts name ``planverify``."""
        command = super().get_command(ctx, cmd_name)
        # A group of commands has texts of its own, and so have its commands and the options of each.
        holders = () if command is None else (command, *getattr(command, "commands", {}).values())
        for each in (each for holder in holders for each in (holder, *holder.params)):
            for text in ("help", "epilog"):
                if getattr(each, text, None):
                    setattr(each, text, as_called(getattr(each, text)))
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command of the first word; a plan (existing or not) in its place means ``verify``."""
        if args and args[0] not in self.entries and args[0].partition(SEPARATOR)[0].endswith(PLAN_ENDINGS):
            args = ["verify", *args]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by groups, one line each."""
        width = max(map(len, self.entries))
        for title, members in GROUPS.items():
            lines = (f"  {name:<{width}}  {self.entries[name].help}\n" for name in members)
            formatter.write("".join((f"\n{title}:\n", *lines)))
        rest = ", ".join(name for name in self.entries if name not in _GROUPED)
        formatter.write(f"\nPrograms: {rest}\n")


app = program_app(
    "planverify",
    Program,
    epilog=EPILOG,
    help="Proves that the todos of a plan are done, and shows what comes next.",
)


def main() -> None:
    """Run the command line, then end the process."""
    call_program("planverify", PLANNER_COMMANDS)
    with suppress(ValueError):  # not in the main thread
        # Like an interrupt from the keyboard, so that processes are ended and files written.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        # When the terminal is closed, but not under nohup.
        if (number := getattr(signal, "SIGHUP", None)) and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
        if hasattr(signal, "SIGCHLD"):  # inherited as ignored, it would make each exit status a 0
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    guarded(lambda: app(prog_name="planverify"))


_PYTEST = (
    f"try:\n    {module_code('pytest')}"
    + """
except KeyboardInterrupt:
    print("planverify: interrupted before anything was verified", file=sys.stderr)
    sys.exit(2)
except Exception as error:
    cause = f"{type(error).__name__}: {error}"
    print(f"planverify: pytest cannot start with this configuration: {cause}", file=sys.stderr)
    print("nothing was verified; pytest alone ends with the same error", file=sys.stderr)
    sys.exit(4)
"""
)
"""``python -m pytest``, where an interrupt or a configuration that pytest cannot use shows no traceback."""


@app.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
    epilog="Exit status: that of pytest --planverify. 0 accepted, 1 a criterion failed, 4 an invalid plan.",
)
def verify(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PLAN[::TODO,...]] [OPTIONS OF PYTEST]",
            help="Plans, todos of plans, and any option of pytest --planverify.",
        ),
    ] = None,
) -> int:
    """Run the criteria of a plan, in pytest --planverify, and write its outcomes.

    Without a plan the one of the ini file or of a usual name is verified: planverify.yaml, plan.yaml or
    todo.yaml. All options of pytest work: planverify verify plan.yaml -x -n 4 --planverify-scope claimed.
    """
    process = subprocess.Popen(verify_command(*(words or ()), code=_PYTEST))

    # The child decides how to end; this process waits for it in any case.
    def pass_on(number: int, frame: object) -> None:
        process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    status = process.wait()
    return status if status >= 0 else 128 - status  # like a shell: 128 + signal number


@app.command(
    epilog=(
        "Exit status: 0 all checks are good, 1 some are not, 2 wrong usage, 4 the plan cannot be verified."
    )
)
def qualify(
    plan: PlanArgument = None,
    runs: Annotated[
        int, option("--runs N", "How often each check runs on the current tree.", min=1, max=100)
    ] = 3,
) -> int:
    """Check the checks: a good one is red before the work.

    Each check of the todos that are not claimed is called red_ok, vacuous, unrunnable or unstable.
    The result is written to qualification.json in the plan's folder below .planverify.
    """
    from planner.planfile.plan_folder import PlanFolder, make_home
    from planner.planfile.record_files import write_qualification
    from planner.planfile.tree import load_flat
    from pytest_planverify.baseline import qualification

    flat = load_flat(plan_or_usual(plan))
    make_home(flat.loaded.root)
    output = PlanFolder(flat.loaded.root, flat.loaded.plan.todo_list_id).qualification
    found = qualification.qualify(flat, directory=Path.cwd(), runs=runs, say=complain)
    write_qualification(found, output)
    screen = Screen()
    for check in found.checks:
        name = f"{check.todo_id} {check.check_id}"
        is_bad = check in found.bad_checks
        style = "bad" if is_bad else "good"
        head = f"{screen.style(f'{check.quality:<11}', style)} {screen.style(name, 'strong')}"
        screen.line(f"{head}  {screen.one_line(check.cmd or '')}")
        screen.labelled("why", check.because, room=5)
        if check.remedy and is_bad:
            screen.labelled("fix", check.remedy, room=5)
        elif check.remedy:
            screen.labelled("note", "a command may pass beside a check of the todo that is red_ok", room=5)
    counts = Counter(check.quality.value for check in found.checks)
    summary = ", ".join(f"{count} {quality}" for quality, count in sorted(counts.items()))
    screen.line(summary or "no todo is open, so there is nothing to qualify")
    if found.skipped:
        screen.paragraph(f"not qualified, because claimed already: {', '.join(found.skipped)}")
    screen.line(f"wrote {os.path.relpath(output)}")
    screen.show()
    return Status.FOUND if found.bad_checks else Status.OK


@app.command(
    epilog=(
        "Exit status: 0 completed, 1 halted with failures, 2 wrong usage, 4 a file or an agent that "
        "cannot be used, 11 a person must decide, 12 a budget is used up, 13 a security halt."
    )
)
def run(
    plan: PlanArgument = None,
    agent: Annotated[
        list[str] | None,
        option(
            "--agent [ROLE=]COMMAND",
            "The agent: a command with {brief}, {prompt}, {json}, {todo}, {role}, {root} or {result}, "
            "or the name of a known one (aider, claude, codex, copilot, cursor, gemini, goose, opencode). "
            "May be repeated, for roles. Default: [tool.planverify.agents] in pyproject.toml.",
        ),
    ] = None,
    resume: Annotated[bool, option("--resume", "Resume the run that was interrupted or waits.")] = False,
    restart: Annotated[bool, option("--restart", "Start again, even if a run is not finished.")] = False,
    dirty: Annotated[
        str,
        option("--dirty refuse|save", "What to do with uncommitted changes: refuse, or save them in git."),
    ] = "refuse",
    jobs: Annotated[
        int | None,
        option(
            "-j, --jobs N",
            "The number of todos to work on at once, each in its own work tree. Default: 1, in your tree.",
            min=1,
        ),
    ] = None,
    executor: Annotated[
        str,
        option(
            "--executor threads|dask://HOST:PORT",
            "Where agents run: on this machine, or on the workers of a dask cluster.",
        ),
    ] = "threads",
    turn_seconds: Annotated[
        float | None, option("--max-turn-seconds SECONDS", "The longest time of a turn.", min=1)
    ] = None,
    only: Annotated[
        list[str] | None,
        option(
            "--only TODO",
            "Carry out only these todos and their dependencies; a pattern may name several: 'phase-2*'.",
        ),
    ] = None,
    seconds: Annotated[
        float | None, option("--max-seconds N", "The longest time of the run.", min=1)
    ] = None,
    turns: Annotated[int | None, option("--max-turns N", "The greatest number of turns.", min=0)] = None,
    tokens: Annotated[
        int | None, option("--max-tokens N", "The greatest number of tokens, as agents report them.", min=0)
    ] = None,
    new_files: Annotated[
        int | None, option("--max-new-files N", "The greatest number of new files.", min=0)
    ] = None,
    brief_tokens: Annotated[
        int, option("--brief-tokens N", "The greatest length of a brief.", min=200)
    ] = 800,
    wait: Annotated[
        float,
        option(
            "--wait SECONDS",
            "If only a person can continue, wait this long for an answer from a page or a command.",
            min=0,
        ),
    ] = 0,
    as_json: Annotated[bool, option("--json", "Print events as JSON, one object per line.")] = False,
) -> int:
    """Carry a plan to done: agents work, verifications decide, until it is done or a person is needed.

    Files are kept before each turn; a turn that changes what it may not is undone, and stops the run.
    The limits of the plan hold as well: --max-… can only lower them.
    """
    from pytest_planverify.harness.command import run_command
    from pytest_planverify.harness.loop import RunOptions

    if dirty not in ("refuse", "save"):
        raise UsageMistake(f"--dirty {dirty}: write refuse or save")
    limits = {"wall_seconds": seconds, "cycles": turns, "tokens": tokens, "new_files": new_files}
    options = RunOptions(
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
    return run_command(plan_or_usual(plan), options)


@app.command(
    epilog="Exit status: 0 undone, or the run changed no file, 2 wrong usage, 4 no run, or edited since."
)
def undo(
    plan: PlanArgument = None,
    force: Annotated[
        bool, option("--force", "Undo even if files were edited since; edits of a plan are lost.")
    ] = False,
    to: Annotated[
        str | None,
        option("--to SNAPSHOT", "Restore all files from the snapshot of an earlier undo."),
    ] = None,
) -> int:
    """Undo what came last: the work of a run, or an edit of the plan by next --in-place.

    The files that the run has changed are put back as they were before it, uncommitted work too; what
    stands there now is kept as a snapshot first. Each call goes back by one.
    """
    from planner.cli.plan_file import undo_last_edit
    from pytest_planverify.harness.undo import restore_snapshot, undo_run

    path = plan_or_usual(plan)
    lines = undo_run(path, force=force) if to is None else restore_snapshot(path, to)
    if lines is None:
        return undo_last_edit(path, force=force)
    for line in lines:
        say(line)
    return 0


@app.command(
    epilog="Exit status: 0 written, 2 wrong usage, 4 there are no outcomes, or the file cannot be written."
)
def report(
    asked: Annotated[
        str, typer.Argument(metavar="FORMAT[=PATH]", help="PATH may be -, for standard output.")
    ],
    plan: PlanArgument = None,
) -> int:
    """Render the last outcomes of a plan as a report: what pytest --planverify-report does, afterwards.

    Formats: ctrf, gitlab, html, junit, markdown, prometheus, sarif. Without PATH, the report goes to
    .planverify/reports/.
    """
    from planner.planfile.latest_outcomes import find_outcomes
    from planner.planfile.loader import shown_path
    from planner.planfile.tree import load_tree
    from pytest_planverify.reports.formats import parse_report, path_of, report_input, write_reports

    try:
        report = parse_report(asked, Path.cwd())
    except ValueError as error:
        raise UsageMistake(str(error)) from None
    flat = load_tree(plan_or_usual(plan)).load_all().flat()
    if report.path is not None:
        flat.refuse_to_replace(report.path)
    found = find_outcomes(flat.loaded, None, flat.files)
    if found.document is None:
        raise PlannerError(f"{found.path}: there are no outcomes; run first: {found.verify}")
    problems = list(write_reports(report_input(found.document, [flat]), [report], flat.loaded.root))
    for line in problems:
        complain(line)
    if not problems and report.path != STANDARD_OUTPUT:
        say(f"wrote {shown_path(path_of(report, flat.loaded.root))}")
    return Status.UNREADABLE if problems else Status.OK


AGENT_SECONDS = 540.0
"""Seconds a hook may take; coding agents allow ten minutes."""
SecondsOption = Annotated[
    float, option("--max-seconds SECONDS", "The longest time of a verification.", min=1)
]


@app.command(
    epilog="Exit status: 0 the agent may stop, 2 it may not; standard error shows what is not done."
)
def hook(
    plan: TodosArgument = None,
    times: Annotated[int, option("--times N", "How often to hold the agent in a row.", min=1)] = 3,
    seconds: SecondsOption = AGENT_SECONDS,
) -> int:
    """Verify the plan when a coding agent wants to stop; hold it back, and tell it what is not done.

    The agent's settings name this command as a hook. What the agent asks is read from standard input.
    """
    from pytest_planverify.harness.stop_hook import stop_hook

    return stop_hook(plan, times=times, seconds=seconds)


@app.command(epilog="Exit status: 0 the agent has disconnected, 2 wrong usage, 4 the SDK is not installed.")
def mcp(plan: PlanArgument = None, seconds: SecondsOption = AGENT_SECONDS) -> int:
    """Serve coding agents by the Model Context Protocol on standard input and output.

    Their tools are verify, next, status, explain and brief. Plans are those below the current folder.
    """
    try:
        from pytest_planverify.mcp import serve
    except ImportError as error:
        # Any other missing module is a defect of ours, which the advice below would hide.
        if (error.name or "").partition(".")[0] not in ("mcp", "anyio"):
            raise
        raise PlannerError(
            f"planverify mcp needs the MCP SDK, version 2 ({error.name} is missing); install it: "
            "pip install 'pytest-planverify[mcp]'"
        ) from None
    serve(plan, seconds=seconds)
    return 0
