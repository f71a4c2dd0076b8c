"""What the shell is offered when the user presses Tab: plan files, ids of todos, words to explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def complete_plan(ctx: Any, incomplete: str) -> list[str]:
    """Folders, and files that may be plans."""
    from planner.edges.offering import plan_files

    return plan_files(incomplete)


def complete_todo(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """The ids of the todos of the plan that was already named, with their titles."""
    path = _named_plan(ctx)
    if path is None:
        return []
    from planner.edges.offering import todo_ids
    from planner.errors import PlannerError
    from planner.planfile.loader import load_plan

    try:
        return todo_ids(load_plan(path).plan.items, incomplete)
    except (PlannerError, OSError):
        return []


def complete_word(ctx: Any, incomplete: str) -> list[str]:
    """Everything that ``planner explain`` knows by name, and the todos of a plan that was named."""
    from planner.cli.glossary import load_glossary
    from planner.edges.offering import MOST_OFFERED

    folded = incomplete.casefold()
    words = [word for word in load_glossary().words() if word.casefold().startswith(folded)]
    return [*words, *(todo_id for todo_id, _ in complete_todo(ctx, incomplete))][:MOST_OFFERED]


def _named_plan(ctx: Any) -> Path | None:
    """The plan among the words before the one that is being completed."""
    from pathlib import Path

    from planner.edges.offering import PLAN_ENDINGS

    named = ctx.params.get("plan")
    for word in (named, *_typed()) if named is not None else _typed():
        path = Path(word)
        if path.suffix in PLAN_ENDINGS and path.is_file():
            return path
    return None


def _typed() -> list[str]:
    """The words of the line as the shell tells them: an option without its value hides them from Typer."""
    import os
    import shlex

    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    try:
        return shlex.split(line)
    except ValueError:  # a quotation that is not closed yet
        return line.split()
