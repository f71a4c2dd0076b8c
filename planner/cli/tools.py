"""``planner tools``: list the tools and recipes that plans may name, and which of them are installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.authoring.repository import is_module_there, is_runnable, is_there
from planner.catalog import RECIPES, TOOLS
from planner.cli.app import command
from planner.cli.arguments import JsonOption
from planner.cli.exits import Status
from planner.cli.screen import Screen, print_json
from planner.planfile.discovery import repository_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, Any]


@command("Exit status: 0 shown, 2 wrong usage, 4 the tools of the repository cannot be used.")
def tools(as_json: JsonOption = False) -> int:
    """List the tools of this repository and of the catalog, and the recipes, with what each runs.

    A repository may define tools in pyproject.toml, under [tool.planverify.tools]; init, new and
    decompose copy them into plans that use them.
    """
    recipes: list[Row] = [
        {"name": name, "runs": [{"cmd": each, "here": is_runnable(each)} for each in commands]}
        for name, commands in RECIPES.items()
    ]
    listing: dict[str, list[Row]] = {"tools": list(_tools()), "recipes": recipes}
    if as_json:
        print_json(listing)
        return Status.OK
    screen, is_here = Screen(), {True: "yes", False: "no"}
    screen.table(
        ("TOOL", "FOR", "RUNS", "HERE", "OF"),
        [
            (row["name"], row["kind"], row["runs"], is_here[row["here"]], row["of"])
            for row in listing["tools"]
        ],
        apart=False,
    )
    screen.table(
        ("RECIPE", "HERE", "RUNS"),
        [
            ("" if number else row["name"], is_here[each["here"]], each["cmd"])
            for row in listing["recipes"]
            for number, each in enumerate(row["runs"])
        ],
    )
    screen.show()
    return Status.OK


def _tools() -> Iterator[Row]:
    """Yield the tools of the repository, then those of the catalog."""
    for spec in repository_tools(Path.cwd()):
        argv = spec.argv or (spec.name,)
        about = {"name": spec.name, "kind": spec.kind.value, "runs": " ".join(argv)}
        yield {**about, "here": is_there(argv[0]), "of": "repository"}
    for tool in TOOLS:
        words = [*tool.programs[:1], "|".join(tool.subcommands)] if tool.programs else []
        # Only the entry of Python has neither programs nor modules: it runs scripts of the project.
        runs = " ".join(filter(None, words)) or " ".join(f"python -m {each}" for each in tool.modules[:1])
        here = any(map(is_there, tool.programs)) or any(map(is_module_there, tool.modules))
        about = {"name": tool.name, "kind": tool.purpose.value, "runs": runs or "python FILE.py"}
        yield {**about, "here": here or not runs, "of": "catalog"}
