"""The command ``planverify``: what is done about a plan beside the runs of ``pytest --planverify``."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path  # noqa: TC003  # Typer reads the annotations of commands when they run
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from pytest_planverify.command_words import (
    PlanArgument,
    command_app,
    complete_todo,
    ends,
    guarded,
    plan_or_usual,
)

EPILOG = """\
\b
Exit status
   0  done
   1  nothing to do, or findings
   2  wrong usage of a command
   3  a fault of planverify itself
   4  a file that cannot be read, or a plan that cannot be verified
 130  interrupted
recover and qualify end with the statuses of pytest --planverify where they judge.

Start with: planverify baseline plan.yaml; pytest --planverify plan.yaml
"""


class Entry(NamedTuple):
    """Where a command is, and what it is for."""

    module: str
    help: str
    is_group: bool = False
    """It has commands of its own: the module holds an ``app``."""


COMMANDS: dict[str, Entry] = {
    "baseline": Entry(
        "pytest_planverify.baseline.command",
        "Record what holds now; bless changes of what judges.",
        is_group=True,
    ),
    "corpus": Entry(
        "pytest_planverify.corpus.command",
        "How well failures are diagnosed, on a labelled corpus of real ones.",
        is_group=True,
    ),
    "qualify": Entry("pytest_planverify.qualification", "Check the checks: are they red before the work?"),
    "recover": Entry("pytest_planverify.recovery", "Render the outcomes of a run that was killed."),
}
"""A command is there where its module is."""


class LazyGroup(TyperGroup):
    """A group that knows the names and purposes of its commands without importing them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order in which they are shown."""
        return [name for name, entry in COMMANDS.items() if find_spec(entry.module) is not None]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command of that name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        if COMMANDS[cmd_name].is_group:
            command = typer.main.get_command(import_module(COMMANDS[cmd_name].module).app)
            command.name, command.short_help = cmd_name, COMMANDS[cmd_name].help
            return command
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])


app = command_app(cls=LazyGroup, no_args_is_help=True, epilog=EPILOG)


def main() -> None:
    """Run the command with the words of the command line; ends the process."""
    guarded(lambda: app(prog_name="planverify"))


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
    """What is done about a plan beside verifying it, which is: pytest --planverify PLAN."""


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
            help="Where the file goes. Default: qualification.json in the plan's folder."
            " below .planverify.",
        ),
    ] = None,
) -> int:
    """Check the checks: a good one is red before the work, or red where its negative control broke it.

    Each check of the todos that are not claimed is called red_ok, vacuous, unrunnable or unstable.
    """
    qualified = import_module(COMMANDS["qualify"].module).qualify_command
    return qualified(plan_or_usual(plan), runs=runs, todo_ids=todo or (), output=output)


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
