"""Arguments that several commands share, and suggestions for misspelt names.

Where a command names no plan, :func:`choose_plan` finds the one that ``pytest --planverify`` would verify.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.exits import UsageMistake, program
from planner.planfile.discovery import (
    PLAN_NAMES,
    SEPARATOR,
    PlanChoice,
    find_plans,
    parse_choice,
)
from planner.text.display import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Iterable


def option(words: str, help: str, **settings: Any) -> Any:
    """Return the declaration of an option: ``option("--output, -o FILE", "Where it is written.")``."""
    *names, last = words.split(", ")
    name, _, metavar = last.partition(" ")
    return typer.Option(*names, name, metavar=metavar or None, help=help, **settings)


PlanArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="PLAN", help="The plan file. Default: the one that pytest --planverify verifies here."
    ),
]
TodosArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="PLAN[::TODO,...]",
        help="The plan, or some of its todos. Default: the one that pytest --planverify verifies here.",
    ),
]
"""A plan argument that may select some todos: ``plan.yaml::a,b``."""

OutcomesOption = Annotated[
    Path | None,
    option(
        "--outcomes FILE",
        "The outcomes of a run, or one outcome. Default: those of the last run of the plan.",
    ),
]
JsonOption = Annotated[bool, option("--json", "Print JSON, for programs.")]
LogOption = Annotated[
    Path | None, option("--log FILE", "The log of the run. Default: the newest of the plan.")
]


def choose_plan(plan: Path | None) -> PlanChoice:
    """Return the plan and todos named on the command line, else the plan that pytest would verify here.

    The path is relative to the current folder, as a person would write it. Raises ``UsageMistake`` if
    there is no plan, or if the ini file names several.
    """
    here = Path.cwd()
    if plan is not None:
        path = Path(str(plan).partition(SEPARATOR)[0])
        return PlanChoice(path=path, todo_ids=parse_choice(str(plan), here).todo_ids)
    found = find_plans(here)
    if not found:
        raise UsageMistake(
            f"there is no {', '.join(PLAN_NAMES[:-1])} or {PLAN_NAMES[-1]} here; name the plan, or make "
            f"one: {program()} init"
        )
    # Relative, because the path is shown in messages and in commands to copy.
    paths = [Path(os.path.relpath(each.path)) for each in found]
    if len(paths) > 1:
        todos = [f"{SEPARATOR}{','.join(each.todo_ids)}" if each.todo_ids else "" for each in found]
        named = ", ".join(f"{path}{only}" for path, only in zip(paths, todos, strict=True))
        raise UsageMistake(f"the ini file names {named}; name one")
    return PlanChoice(path=paths[0], todo_ids=found[0].todo_ids)


def plan_or_usual(plan: Path | None) -> Path:
    """Return the named plan, else the usual one, for commands about whole plans.

    Raises ``UsageMistake`` as :func:`choose_plan` does, or if todos of the plan were named.
    """
    choice = choose_plan(plan)
    if plan is not None and choice.todo_ids is not None:
        raise UsageMistake(f"{plan}: the command needs a whole plan; name {choice.path}")
    return choice.path


def usual_plan() -> Path | None:
    """Return the plan that is used where none is named; ``None`` if there is none, or more than one."""
    try:
        return choose_plan(None).path
    except UsageMistake:
        return None


def nearest(word: str, known: Iterable[str], listing: str) -> str:
    """Return a hint for an unknown word: ``did you mean 'a' or 'b'?``.

    If no known name is similar, return ``listing`` followed by at most twelve names.
    """
    names = list(known)
    otherwise = f"{listing} {listed(names, 12)}" if names else "there are none"
    return did_you_mean(word, names, otherwise, most=3)
