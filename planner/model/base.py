"""The base of every value in the vocabulary: frozen, closed to unknown keys; and how things are named."""

from typing import NewType

from pydantic import BaseModel, ConfigDict

Signature = NewType("Signature", str)
"""Twelve hexadecimal digits that name a root cause."""


class Value(BaseModel):
    """An immutable value. Two values with equal fields are equal."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        allow_inf_nan=False,
        defer_build=True,
        hide_input_in_errors=True,
    )


class ReadValue(Value):
    """A value read back from a file that a newer version may have written: unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore")


def qualified(within: str, todo_id: str) -> str:
    """Return the id of a todo as the plan at the top names it: ``phase-2/buffer-impl``."""
    return f"{within}/{todo_id}" if within else todo_id


def report_path(todo_id: str | None) -> str:
    """Return where the report of a todo is written, relative to the plan's root."""
    return f"diagnostics/{todo_id}_failure_report.json"
