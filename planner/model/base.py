"""The base of every value in the vocabulary: frozen, closed to unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


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
