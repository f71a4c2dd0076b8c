"""Memory: order of todos, choice of recipes and of the role that repairs, from past outcomes.

Memory changes an order or a default. It never makes a pass of a failure, never leads a failure away from a
person who has to see it, and never goes against what a todo says itself.
"""

from __future__ import annotations

from planner.memory.memory import Memory, RecipeAdvice, RoutingAdvice, text_of
from planner.memory.task_kinds import TaskKind, task_kind

__all__ = ["Memory", "RecipeAdvice", "RoutingAdvice", "TaskKind", "task_kind", "text_of"]
