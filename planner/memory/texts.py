"""The text by which a todo or a repair is found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.task_kinds import own_title

if TYPE_CHECKING:
    from planner.model.outcome import Failure
    from planner.model.plan import Todo

_LONGEST_HEAD = 300
"""Characters of the head of a failure: its message, and no stack of frames that every failure shares."""


def text_of(todo: Todo, failure: Failure | None = None) -> str:
    """What a todo, or the repair of its failure, is about: the ``text`` of what is remembered of it."""
    if failure is None or failure.stack_trace_head is None:
        return own_title(todo)
    return f"{own_title(todo)} {failure.stack_trace_head[:_LONGEST_HEAD]}"


def compared(kind: str, text: str) -> str:
    """What is compared of something remembered: the kind of task is a part of the text."""
    return f"{kind} {text}"
