"""The arguments that several commands share, and the nearest names of a word that means nothing."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.completing import complete_plan, complete_todo

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_NAMED = 12

PlanArgument = Annotated[
    Path, typer.Argument(metavar="PLAN", help="The plan file.", autocompletion=complete_plan)
]
OutcomesOption = Annotated[
    Path | None,
    typer.Option(
        "--outcomes",
        metavar="FILE",
        help="The outcomes of a run. Default: .planverify/outcomes.json below the plan's root.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
TodoOption = Annotated[
    str | None,
    typer.Option(
        "--todo", metavar="ID", help="Only what concerns this todo.", autocompletion=complete_todo
    ),
]


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
