"""What the shell is offered when the user presses Tab: plan files, ids of todos, words to explain."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

MOST_OFFERED = 500


def complete_plan(ctx: Any, incomplete: str) -> list[str]:
    """Return folders, and files that may be plans, whose paths begin like that."""
    from planner.planfile.discovery import PLAN_ENDINGS

    folder, _, start = incomplete.rpartition("/")
    below = f"{folder}/" if folder or incomplete.startswith("/") else ""
    offered: list[str] = []
    try:
        with os.scandir(below or ".") as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
                    continue
                if entry.is_dir():
                    offered.append(f"{below}{entry.name}/")
                elif entry.name.endswith(PLAN_ENDINGS):
                    offered.append(f"{below}{entry.name}")
    except OSError:
        return []
    return offered[:MOST_OFFERED]


def complete_todo(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of the todos of the plan that was named or is meant, with their titles."""
    from pathlib import Path

    from planner.errors import PlannerError
    from planner.planfile.discovery import find_plans
    from planner.planfile.tree import load_flat
    from planner.text.sanitizing import clean

    path = _named_plan(ctx)
    if path is None and (ctx is None or ctx.params.get("plan") is None):
        path = next((each.path for each in find_plans(Path.cwd())), None)
    if path is None:
        return []
    try:
        todos = load_flat(path).loaded.plan.items
    except (PlannerError, OSError):
        return []
    found = [(todo.id, clean(todo.title, limit=80)) for todo in todos if todo.id.startswith(incomplete)]
    return found[:MOST_OFFERED]


def complete_word(ctx: Any, incomplete: str) -> list[str]:
    """Everything that ``planner explain`` knows by name, and the todos of a plan that was named."""
    from planner.cli.glossary import load_glossary

    folded = incomplete.casefold()
    words = [word for word in load_glossary().words() if word.casefold().startswith(folded)]
    return [*words, *(todo_id for todo_id, _ in complete_todo(ctx, incomplete))][:MOST_OFFERED]


def _named_plan(ctx: Any) -> Path | None:
    """Return the plan among the words before the one that is being completed."""
    from pathlib import Path

    from planner.planfile.discovery import PLAN_ENDINGS

    named = None if ctx is None else ctx.params.get("plan")
    for word in (named, *_typed()) if named is not None else _typed():
        path = Path(word)
        if path.suffix in PLAN_ENDINGS and path.is_file():
            return path
    return None


def _typed() -> list[str]:
    """Return the words of the line as the shell tells them: Typer hides them after an unfinished option."""
    import shlex

    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    try:
        return shlex.split(line)
    except ValueError:  # a quotation that is not closed yet
        return line.split()
