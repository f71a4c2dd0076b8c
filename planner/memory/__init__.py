"""What is made of the past: which todo goes first, which recipe is worth running, who repairs a failure.

Memory changes an order or a default. It never makes a pass of a failure, never leads a failure away from a
person who has to see it, and never goes against what a todo says itself.
"""

from __future__ import annotations

from planner.memory.advice import Advice, RoutingAdvice
from planner.memory.memory import Memory
from planner.memory.rates import SuccessRate
from planner.memory.texts import text_of

__all__ = ["Advice", "Memory", "RoutingAdvice", "SuccessRate", "text_of"]
