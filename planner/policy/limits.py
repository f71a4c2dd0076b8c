"""Limits of a run and of each turn: budgets, risk of a todo, policy of the plan above."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.catalog.tools import Purpose
from planner.model.plan import RiskLevel
from planner.policy.allowed_files import claimed_files
from planner.policy.criteria import commands_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.actions import Bounds
    from planner.model.plan import Budget, Plan, Policy, Todo, ToolSpec


class Spent(NamedTuple):
    """Budget spent by a run so far, beside time."""

    tokens: int = 0
    cycles: int = 0
    """Of patching."""
    new_files: int = 0

    def plus(self, tokens: int = 0, cycles: int = 0, new_files: int = 0) -> Spent:
        """Return the sum."""
        return Spent(self.tokens + tokens, self.cycles + cycles, self.new_files + new_files)


def exceeded(budget: Budget, spent: Spent, wall_seconds: float, *, or_used_up: bool = False) -> str | None:
    """Return the first budget of which more is spent than is allowed. To spend exactly all is allowed.

    ``or_used_up`` asks for one that leaves nothing for another turn of work. A turn need not make a new
    file, so of new files nothing is lacking until one too many is made.
    """
    for name, (limit, used) in _lines(budget, spent, wall_seconds).items():
        if used > limit or (or_used_up and used == limit and name != "new_files"):
            return f"{name}: {_number(used)} spent, {_number(limit)} allowed"
    return None


def left(budget: Budget, spent: Spent, wall_seconds: float) -> dict[str, tuple[float, float]]:
    """Return what is left of each budget of the plan, never less than nothing, and how much it was."""
    found = _lines(budget, spent, wall_seconds)
    return {name: (max(limit - used, 0), limit) for name, (limit, used) in found.items()}


def _lines(budget: Budget, spent: Spent, wall_seconds: float) -> dict[str, tuple[float, float]]:
    used = {**spent._asdict(), "wall_seconds": wall_seconds}
    names = ("tokens", "cycles", "wall_seconds", "new_files")
    return {name: (limit, used[name]) for name in names if (limit := getattr(budget, name)) is not None}


def _number(value: float) -> str:
    try:
        return f"{value:,.1f}".removesuffix(".0")
    except OverflowError:
        return f"more than {sys.float_info.max:.0e}"


_PURPOSES: Mapping[RiskLevel, tuple[Purpose, ...]] = {
    RiskLevel.LOW: tuple(Purpose),
    RiskLevel.MEDIUM: (Purpose.TEST, Purpose.LINT, Purpose.TYPE_CHECK, Purpose.VALIDATE),
}
"""Of the tools that may be run, by the risk of a todo; at high risk it is its very own commands alone."""


def bounds_of(todo: Todo, policy: Policy) -> Bounds:
    """Return what a turn of work on a todo may do.

    Without ``allowed_files``, a todo of more than low risk may write only the files that it names; where it
    names none at all, any but the protected ones. Its time is the shortest of the limits that hold for one
    turn; a branch has a lifetime as well.
    """
    from planner.model.actions import Bounds  # what only validates a plan needs no actions

    level = todo.risk_level or RiskLevel.LOW
    commands = tuple(dict.fromkeys(spec.cmd for _, spec in commands_of(todo)))
    if level in _PURPOSES:
        commands = tuple(purpose.value for purpose in _PURPOSES[level])
    files = todo.allowed_files
    if files is None and level is not RiskLevel.LOW:
        files = claimed_files(todo) or None
    limits = [todo.timeout_seconds or policy.max_todo_seconds]
    if todo.parent_id is not None:
        limits.append(todo.max_lifetime_seconds or policy.branch_timeout_seconds)
    return Bounds(
        risk_level=level,
        allowed_files=files,
        protected_files=policy.protected_files,
        commands=commands,
        timeout_seconds=min((limit for limit in limits if limit is not None), default=None),
    )


def asks_a_person(todo: Todo) -> bool:
    """Return whether a person has to agree before a todo is begun and before each of its branches."""
    return todo.risk_level is RiskLevel.HIGH


def lowered(plan: Plan, limits: Mapping[str, float]) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan with the limits of an operator, where they are below its own; and those that are not.

    Limits are named as in the policy and in its budget: ``tokens``, ``max_debug_attempts``.
    """
    policy, budget = plan.metadata, plan.metadata.budget
    of_policy: dict[str, Any] = {}
    of_budget: dict[str, Any] = {}
    higher: list[str] = []
    for name, limit in limits.items():
        is_of_budget = name in type(budget).model_fields
        own = getattr(budget if is_of_budget else policy, name)
        if own is not None and own < limit:
            higher.append(f"{name} stays at {_number(own)}, as the plan says")
        else:
            (of_budget if is_of_budget else of_policy)[name] = limit
    if of_budget:
        of_policy["budget"] = budget.model_copy(update=of_budget)
    policy = policy.model_copy(update=of_policy)
    return plan.model_copy(update={"metadata": policy}), tuple(higher)


_STRICTEST = (
    *("auto_fix_mode", "auto_approve_branches", "max_branch_depth", "max_debug_attempts"),
    *("branch_timeout_seconds", "max_concurrent_branches", "notify_after_n_failures"),
)
"""Of two limits the lower counts; an allowance is granted where both policies grant it."""


def inherited(policy: Policy, above: Policy) -> Policy:
    """Return the policy by which the todos of a sub-plan are carried out.

    What it leaves out it has from the plan above; what it says may only be stricter. Its budget, its halts
    and what it says of the network count for nobody else, and stay as they are.
    """
    said = policy.model_fields_set
    changes: dict[str, Any] = {}
    for name in _STRICTEST:
        own, theirs = getattr(policy, name), getattr(above, name)
        changes[name] = min(own, theirs) if name in said else theirs  # false is less than true
    if "require_planner_approval" not in said or above.require_planner_approval is True:
        changes["require_planner_approval"] = above.require_planner_approval
    retry, attempts = policy.flaky_retry, above.flaky_retry.attempts
    if "flaky_retry" in said and "attempts" in retry.model_fields_set:
        attempts = min(attempts, retry.attempts)
    changes["tools"] = tools_under(policy, above.tools)
    changes["flaky_retry"] = retry.model_copy(update={"attempts": attempts})
    kept = {name: value for name, value in changes.items() if value != getattr(policy, name)}
    return policy.model_copy(update=kept) if kept else policy


def tools_under(policy: Policy, above: tuple[ToolSpec, ...] | None) -> tuple[ToolSpec, ...]:
    """Return the tools that the commands of a plan may name: its own, else those of the plan above it."""
    return policy.tools if above is None or "tools" in policy.model_fields_set else above


def is_stricter_tool(spec: ToolSpec, above: ToolSpec) -> bool:
    """Return whether a tool of a sub-plan runs nothing but what that tool of the plan above runs."""
    words, allowed = spec.argv or (spec.name,), above.argv or (above.name,)
    return words[: len(allowed)] == allowed
