"""``planner tools``: list the tools and recipes that plans may name, and which of them are installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planner.authoring.repository import is_module_there, is_runnable, is_there
from planner.catalog import RECIPES, TOOLS
from planner.cli.app import command
from planner.cli.exits import Status
from planner.cli.screen import Screen
from planner.planfile.discovery import repository_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = {True: "yes", False: "no"}


@command("Exit status: 0 shown, 2 wrong usage, 4 the tools of the repository cannot be used.")
def tools() -> int:
    """List the tools of this repository and of the catalog, and the recipes, with what each runs.

    A repository may define tools in pyproject.toml, under [tool.planverify.tools]; init, new and
    decompose copy them into plans that use them.
    """
    recipes = [
        ("" if number else name, _HERE[is_runnable(each)], each)
        for name, commands in RECIPES.items()
        for number, each in enumerate(commands)
    ]
    screen = Screen()
    screen.table(("TOOL", "FOR", "RUNS", "HERE", "OF"), list(_tools()), apart=False)
    screen.table(("RECIPE", "HERE", "RUNS"), recipes)
    screen.show()
    return Status.OK


def _tools() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the tools of the repository, then those of the catalog."""
    for spec in repository_tools(Path.cwd()):
        argv = spec.argv or (spec.name,)
        yield spec.name, spec.kind, " ".join(argv), _HERE[is_there(argv[0])], "repository"
    for tool in TOOLS:
        words = [*tool.programs[:1], "|".join(tool.subcommands)] if tool.programs else []
        # Only the entry of Python has neither programs nor modules: it runs scripts of the project.
        runs = " ".join(filter(None, words)) or " ".join(f"python -m {each}" for each in tool.modules[:1])
        here = any(map(is_there, tool.programs)) or any(map(is_module_there, tool.modules)) or not runs
        yield tool.name, tool.purpose, runs or "python FILE.py", _HERE[here], "catalog"
