"""What the shell is offered when the user presses Tab: plan files, ids of todos, words to explain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MOST_OFFERED = 500


def complete_plan(ctx: Any, incomplete: str) -> list[str]:
    """Return folders, and files that may be plans, whose paths begin like that."""
    from planner.planfile.discovery import PLAN_ENDINGS

    folder, slash, start = incomplete.rpartition("/")
    try:
        entries = sorted(Path(f"{folder}{slash}").iterdir())
    except OSError:
        return []
    return [
        f"{folder}{slash}{each.name}{'/' if each.is_dir() else ''}"
        for each in entries
        if each.name.startswith(start)
        and (start or not each.name.startswith("."))
        and (each.is_dir() or each.name.endswith(PLAN_ENDINGS))
    ][:MOST_OFFERED]


def complete_todo(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of the todos of the plan that was named or is meant, with their titles."""
    from planner.errors import PlannerError
    from planner.planfile.discovery import find_plans
    from planner.planfile.tree import load_flat
    from planner.text.sanitizing import clean

    named = None if ctx is None else ctx.params.get("plan") or ctx.params.get("word")
    try:
        path = Path(named) if named else next(each.path for each in find_plans(Path.cwd()))
        todos = load_flat(path).loaded.plan.items
    except (PlannerError, OSError, StopIteration):
        return []
    found = [(todo.id, clean(todo.title, limit=80)) for todo in todos if todo.id.startswith(incomplete)]
    return found[:MOST_OFFERED]


def complete_word(ctx: Any, incomplete: str) -> list[str]:
    """Return everything that ``planner explain`` knows by a name that begins so, and plans."""
    from planner.cli.glossary import load_glossary

    folded = incomplete.casefold()
    words = [word for word in load_glossary().words() if word.casefold().startswith(folded)]
    return [*words, *complete_plan(ctx, incomplete)][:MOST_OFFERED]
