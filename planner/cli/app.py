"""The commands of ``planner``, and the Typer classes that all of them share.

:data:`COMMANDS` is the table of commands. A command's module is imported only when that command is run,
so that ``planner --help`` and short commands start fast. A command function returns its exit status, or
nothing if it always succeeds; :class:`CommandApp` wraps it in :func:`planner.cli.exits.ends`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import typer
from typer.core import TyperGroup

from planner.cli.exits import ends

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Entry(NamedTuple):
    """One row of the table of commands: ``module:attribute`` and its line of help."""

    module: str
    help: str


COMMANDS: dict[str, Entry] = {
    "init": Entry(
        "planner.cli.new_plans:init", "Make a first plan from this repository or from a Markdown list."
    ),
    "new": Entry("planner.cli.new_plans:new", "Write a plan for a goal, from a template."),
    "decompose": Entry("planner.cli.new_plans:decompose", "Break a goal into todos and phases."),
    "next": Entry("planner.cli.next:next_", "Show what comes next: repairs, ready todos, questions."),
    "answer": Entry("planner.cli.answer:answer", "Answer a question about a todo."),
    "approve": Entry("planner.cli.answer:approve", "Approve a branch, an edit or the start of a todo."),
    "reject": Entry("planner.cli.answer:reject", "Reject a branch, an edit or the start of a todo."),
    "modify": Entry("planner.cli.answer:modify", "Approve a branch with changes."),
    "validate": Entry("planner.cli.plan_file:validate", "Check a plan for errors and weaknesses."),
    "status": Entry("planner.cli.status:status", "Show the tree of todos with states and progress."),
    "undo": Entry("planner.cli.plan_file:undo", "Restore a plan as it was before its last revision."),
    "explain": Entry("planner.cli.explain:explain", "Explain a word or a rule, or what happened in a run."),
    "step": Entry("planner.cli.protocol:step", "Drive a plan from outside: events in, actions out."),
    "replay": Entry("planner.cli.protocol:replay", "Replay a recorded log and compare the decisions."),
    "metrics": Entry("planner.cli.metrics:metrics", "Print metrics of runs for Prometheus."),
    "history": Entry("planner.cli.history", "Show earlier runs: branches, failures and repairs."),
    "serve": Entry("planner.web.serve:serve", "Show runs and questions in a browser."),
    "schema": Entry("planner.cli.plan_file:schema", "Print the JSON Schema of a file format."),
    "tools": Entry("planner.cli.new_plans:tools", "List the tools and recipes that plans may name."),
    "gaps": Entry("planner.cli.iterate:gaps", "Report what is missing or failing in a project."),
    "iterate": Entry("planner.cli.iterate:iterate", "Plan the next iteration: the most critical gap."),
    "design": Entry("planner.cli.design", "Write, review, freeze and export a design plan."),
    "workflow": Entry(
        "planner.cli.design:workflow", "Show the instructions for a step of planning or execution."
    ),
}
"""The commands in the order of the help. An entry without attribute is the group ``app`` of its module."""

EPILOG = """\
\b
Exit status
   0  success: decided, ready, found
   1  errors (validate), different decisions (replay), or nothing found (explain)
   2  wrong usage of a command
   3  a bug of planner itself
   4  a file cannot be read or does not fit
  10  next: only problems of the environment are left
  11  next, decompose: a person must decide
  12  next: halted because the budget is used up
  13  next: halted by a violation of the sandbox, of hygiene or of the allowed files
 130  interrupted

Start with: pytest --planverify plan.yaml; planner next plan.yaml
"""


class LazyGroup(TyperGroup):
    """A group that lists its commands from a table and imports the one that is run."""

    entries: Mapping[str, Entry] = COMMANDS
    accepted = "command"
    """What the error message calls the first word."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order in which the help shows them."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command of that name, once; return ``None`` if there is none."""
        entry = self.entries.get(cmd_name)
        if cmd_name not in self.commands and entry is not None:
            module, _, name = entry.module.partition(":")
            command = typer.main.get_command(getattr(import_module(module), name or "app"))
            command.name = cmd_name
            self.commands[cmd_name] = command
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first word names; fail with the nearest names if there is none."""
        # An unknown option is reported by click.
        if args and args[0] not in self.entries and not args[0].startswith("-"):
            from planner.cli.arguments import nearest

            hint = nearest(args[0], self.entries, "the commands are")
            ctx.fail(f"there is no {self.accepted} '{args[0]}'; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from the table, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])


class CommandGroup(TyperGroup):
    """A group whose help shows each command's purpose in full; click would cut it at 45 characters."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands with their whole first sentences."""
        with formatter.section("Commands"):
            lines = [(name, each.get_short_help_str(limit=1_000)) for name, each in self.commands.items()]
            formatter.write_dl(lines)


class DefaultGroup(CommandGroup):
    """A group whose first command need not be named: ``history PLAN`` is ``history show PLAN``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the name of the first command where the first word names none."""
        # --help is that of the group, which lists the other commands; other options are those of the first.
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


class CommandApp(typer.Typer):
    """A Typer application whose command functions return the exit status."""

    def command(self, *args: Any, **kwargs: Any) -> Callable[[Callable[..., Any]], Any]:
        """Return a decorator that registers a function as a command, wrapped in ``ends``."""
        register = super().command(*args, **kwargs)
        return lambda function: register(ends(function))


def command_app(*, add_completion: bool = False, **settings: Any) -> CommandApp:
    """Return an application for one command or one group, with the settings that all of them share."""
    return CommandApp(
        # click writes the help, because rich takes long to import.
        rich_markup_mode=None,
        # ``guarded`` reports every exception.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=add_completion,
        **settings,
    )


def program_app(name: str, group: type[LazyGroup], **settings: Any) -> CommandApp:
    """Return the application of a whole program, with ``--version`` and shell completion."""

    def show_version(asked: bool) -> None:
        if asked:
            from importlib.metadata import version

            typer.echo(f"{name} {version('pytest-planverify')}")
            raise typer.Exit

    program = command_app(cls=group, add_completion=True, no_args_is_help=True, **settings)

    # Without a callback, Typer makes no group of an application that has no command yet.
    @program.callback()
    def start(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Show the version and exit."
        ),
    ) -> None: ...

    return program


def command(epilog: str) -> Callable[[Callable[..., int | None]], CommandApp]:
    """Return a decorator that turns a function into an application with that one command.

    The function returns the exit status, or nothing; ``epilog`` is shown below its help.
    """

    def make(function: Callable[..., int | None]) -> CommandApp:
        single = command_app()
        single.command(epilog=epilog)(function)
        return single

    return make


app = program_app(
    "planner",
    LazyGroup,
    epilog=EPILOG,
    help="Decides what comes next in a plan that pytest --planverify has verified.\n\n"
    "It reads the plan and the outcomes of the last run, and runs nothing. It writes only files that you\n"
    "name, the log of planner step, and the store.",
)
