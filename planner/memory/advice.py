"""What memory has to say, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.taxonomy import Role


@dataclass(frozen=True, slots=True)
class Advice:
    """Something worth doing."""

    value: str
    because: str
    """``12 like this; 5 met LINT_ERROR``."""


@dataclass(frozen=True, slots=True)
class RoutingAdvice:
    """Who should repair a failure."""

    role: Role
    confidence: float
    """The chance that this role repairs it, as far as the past tells: 0 to 1."""
    because: str
    """``12 like this; debugger fixed 9 of 10, coder 1 of 2``."""
    changed: bool
    """Whether it is another role than the default."""
