"""Answers to manual criteria, as ``planner answer`` keeps them in ``.planverify/answers.json``."""

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
    """Where the question stands in its todo: ``manual[0]``."""
    question: Named
    """The question as it was asked; an answer to other words is stale."""
    answer: Literal["yes", "no"]
    by: Named
    """Who answered."""
    at: str | None = None
    """When, RFC 3339."""
    note: str | None = None


class Answers(ReadValue):
    """The answers file. Of several answers to one question the last one counts."""

    schema_version: Literal[1] = 1
    answers: tuple[Answer, ...] = Field(default=())
