"""Answers to manual criteria, which ``planner answer`` stores in ``.planverify/answers.json``."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from planner.model.base import ReadValue

Named = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


class Answer(ReadValue):
    """One person's answer to one question of the plan."""

    plan: Named
    """The plan's ``todo_list_id``."""
    todo_id: Named
    check_id: Named
    """The criterion with the question: ``manual[0]``."""
    question: Named
    """The question as it was asked; if the plan's question has changed, the answer is stale."""
    answer: Literal["yes", "no"]
    by: Named
    """The person who answered."""
    at: str | None = None
    """Time of the answer, RFC 3339."""
    note: str | None = None


class Answers(ReadValue):
    """The answers file. The last of several answers to one question is valid."""

    schema_version: Literal[1] = 1
    answers: tuple[Answer, ...] = Field(default=())
