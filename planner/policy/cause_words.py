"""Root causes in words: what one brings about, where it is, and whether there is an order worth telling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.outcome import Cause


def is_worth_telling(causes: Sequence[Cause]) -> bool:
    """Whether the todos alone do not show what to mend first: two causes, or one that several show."""
    return len(causes) > 1 or any(len(cause.todos) > 1 for cause in causes)


def consequences(cause: Cause) -> str:
    """``1700 tests in 12 todos``."""
    todos = len(cause.todos)
    where = f"in '{cause.todos[0].todo_id}'" if todos == 1 else f"in {counted(todos, 'todo')}"
    counts = [
        counted(count, noun) for count, noun in ((cause.tests, "test"), (cause.files, "test file")) if count
    ]
    return f"{' and '.join(counts)} {where}".strip()


def place(cause: Cause) -> str:
    """``shop/tax.py:3``, or nothing."""
    if cause.location is None:
        return ""
    line = "" if cause.location.line is None else f":{cause.location.line}"
    return f"{cause.location.path}{line}"
