"""The arguments that several commands share, and the nearest names of a word that means nothing."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.completing import complete_plan, complete_todo
from planner.cli.ending import UsageMistake

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_NAMED = 12

USUAL_NAMES = ("planverify.yaml", "plan.yaml", "todo.yaml")
"""The plan that is meant where none is named, the first that is there."""

PlanArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="PLAN",
        help="The plan file. Default: planverify.yaml, plan.yaml or todo.yaml here.",
        autocompletion=complete_plan,
    ),
]
OutcomesOption = Annotated[
    Path | None,
    typer.Option(
        "--outcomes",
        metavar="FILE",
        help="The outcomes of a run, or one outcome. Default: those of the plan's last run.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
TodoOption = Annotated[
    str | None,
    typer.Option(
        "--todo", metavar="ID", help="Only what concerns this todo.", autocompletion=complete_todo
    ),
]


def plan_or_usual(plan: Path | None) -> Path:
    """The plan that was named, else the usual one here. Raises ``UsageMistake`` where there is none."""
    usual = plan or usual_plan()
    if usual is None:
        raise UsageMistake(
            f"there is no {', '.join(USUAL_NAMES[:-1])} or {USUAL_NAMES[-1]} here; name the plan"
        )
    return usual


def usual_plan() -> Path | None:
    """The plan that is meant where none is named, if it is there."""
    return next((Path(name) for name in USUAL_NAMES if Path(name).is_file()), None)


def nearest(word: str, known: Iterable[str], listing: str) -> str:
    """``did you mean 'a' or 'b'?``; where nothing is near, the names themselves after ``listing``."""
    names = list(known)
    by_fold = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(word.casefold(), by_fold, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(repr(by_fold[name]) for name in near)}?"
    if not names:
        return "there are none"
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"{listing} {', '.join(names[:_MAX_NAMED])}{more}"
