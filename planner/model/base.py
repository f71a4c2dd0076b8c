"""Base classes of the models, which are frozen and refuse unknown keys; and qualified names of todos."""

from datetime import UTC, datetime
from typing import Annotated, NewType

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

Signature = NewType("Signature", str)
"""Twelve hexadecimal digits that identify a root cause."""

_FIRST, _LAST = (at.replace(tzinfo=UTC) for at in (datetime.min, datetime.max))
Moment = Annotated[AwareDatetime, Field(ge=_FIRST, le=_LAST)]
"""A time that has a date in UTC: with an offset, one near the first or last year could have none."""


class Value(BaseModel):
    """An immutable value. Two values with equal fields are equal."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        allow_inf_nan=False,
        # Building a model takes milliseconds, and most commands use few of them.
        defer_build=True,
        hide_input_in_errors=True,
    )


class ReadValue(Value):
    """A value that is read from files which a newer version may have written: unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore")


def qualified(within: str, todo_id: str) -> str:
    """Return the qualified id of a todo, with the ids of the parents above it: ``phase-2/buffer-impl``."""
    return f"{within}/{todo_id}" if within else todo_id


def report_path(todo_id: str | None) -> str:
    """Return the path of a todo's failure report, relative to the plan's root."""
    return f"diagnostics/{todo_id}_failure_report.json"
