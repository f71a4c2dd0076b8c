"""Values of the vocabulary as JSON has them; the parts of a plan as a plan file writes them."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, cast

from planner.model.base import ReadValue, Value
from planner.planfile.dump import plain


def plainly(value: Any) -> Any:
    """Text, numbers, lists and mappings. What is absent is left out."""
    if isinstance(value, ReadValue):
        held = ((name, getattr(value, name)) for name in type(value).model_fields)
        return {name: plainly(item) for name, item in held if item is not None}
    if isinstance(value, Value):
        return plain(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plainly(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, dict):
        return {str(name): plainly(item) for name, item in cast("dict[Any, Any]", value).items()}
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
