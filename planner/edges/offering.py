"""What a shell is offered when the user presses Tab: plan files, and the ids of todos."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.plan import Todo

PLAN_ENDINGS = (".yaml", ".yml", ".json")
MOST_OFFERED = 500


def plan_files(incomplete: str) -> list[str]:
    """Folders, and files that may be plans, whose paths begin like that."""
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


def todo_ids(todos: Iterable[Todo], incomplete: str) -> list[tuple[str, str]]:
    """The ids that begin like that, with the titles of their todos."""
    found = [(todo.id, clean(todo.title, limit=80)) for todo in todos if todo.id.startswith(incomplete)]
    return found[:MOST_OFFERED]
