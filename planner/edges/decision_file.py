"""Writes decisions as JSON: the same bytes for the same decisions."""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from planner.edges.plan_text import as_written
from planner.model.base import ReadValue, Value

if TYPE_CHECKING:
    from planner.model.decision import Decisions


def render_decisions(decisions: Decisions) -> str:
    """The JSON text. What is absent is left out; a todo is written as a plan file writes it.

    Beyond ASCII everything is escaped, so that the bytes do not depend on the terminal's encoding.
    """
    return json.dumps(_plain(decisions), indent=2, sort_keys=True, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, ReadValue):
        held = ((name, getattr(value, name)) for name in type(value).model_fields)
        return {name: _plain(item) for name, item in held if item is not None}
    if isinstance(value, Value):
        return as_written(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[Any, ...]", value)]
    return value
