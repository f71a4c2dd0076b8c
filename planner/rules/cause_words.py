"""Root causes in words: what one brings about, where it is, and whether there is an order worth telling."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.outcome import Cause


def is_worth_telling(causes: Sequence[Cause]) -> bool:
    """Whether the todos alone do not show what to mend first: two causes, or one that several show."""
    return len(causes) > 1 or any(len(cause.todos) > 1 for cause in causes)


def consequences(cause: Cause) -> str:
    """``1,700 tests in 12 todos``."""
    todos = len(cause.todos)
    where = f"in '{cause.todos[0].todo_id}'" if todos == 1 else f"in {_many(todos, 'todo')}"
    counts = [_many(cause.tests, "test"), _many(cause.files, "test file")]
    return f"{' and '.join(count for count in counts if count)} {where}".strip()


def place(cause: Cause) -> str:
    """``shop/tax.py:3``, or nothing."""
    if cause.location is None:
        return ""
    line = "" if cause.location.line is None else f":{cause.location.line}"
    return f"{cause.location.path}{line}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}" if count else ""
