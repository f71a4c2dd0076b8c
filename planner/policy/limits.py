"""Limits of a run and of single turns of work: budgets, risk levels, and inheritance by sub-plans."""

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
    """Budget that a run has spent so far, except time."""

    tokens: int = 0
    cycles: int = 0
    """Patch cycles."""
    new_files: int = 0

    def plus(self, tokens: int = 0, cycles: int = 0, new_files: int = 0) -> Spent:
        """Return the sum."""
        return Spent(self.tokens + tokens, self.cycles + cycles, self.new_files + new_files)


def exceeded(budget: Budget, spent: Spent, wall_seconds: float, *, or_used_up: bool = False) -> str | None:
    """Return a phrase on the first budget that is exceeded, or ``None``.

    Spending exactly the budget is allowed. ``or_used_up`` also reports a budget that leaves nothing for
    another turn of work.
    """
    for name, (limit, used) in _lines(budget, spent, wall_seconds).items():
        # A turn of work need not create files, so a used-up number of them leaves room for one.
        if used > limit or (or_used_up and used == limit and name != "new_files"):
            return f"{name}: {_number(used)} spent, {_number(limit)} allowed"
    return None


def left(budget: Budget, spent: Spent, wall_seconds: float) -> dict[str, tuple[float, float]]:
    """Return the remainder (at least zero) and the limit of each budget that the plan states."""
    found = _lines(budget, spent, wall_seconds)
    return {name: (max(limit - used, 0), limit) for name, (limit, used) in found.items()}


def _lines(budget: Budget, spent: Spent, wall_seconds: float) -> dict[str, tuple[float, float]]:
    """Return the limit and the amount spent of each budget that the plan states."""
    used = {**spent._asdict(), "wall_seconds": wall_seconds}
    names = ("tokens", "cycles", "wall_seconds", "new_files")
    return {name: (limit, used[name]) for name in names if (limit := getattr(budget, name)) is not None}


def _number(value: float) -> str:
    try:
        return f"{value:,.1f}".removesuffix(".0")
    except OverflowError:  # an integer that is too large for the float of the format
        return f"more than {sys.float_info.max:.0e}"


_PURPOSES: Mapping[RiskLevel, tuple[Purpose, ...]] = {
    RiskLevel.LOW: tuple(Purpose),
    RiskLevel.MEDIUM: (Purpose.TEST, Purpose.LINT, Purpose.TYPE_CHECK, Purpose.VALIDATE),
}
"""Purposes of the tools that a turn may run, by risk level; at high risk only the todo's own commands."""


def bounds_of(todo: Todo, policy: Policy) -> Bounds:
    """Return the bounds of a turn of work on a todo.

    Above low risk, a todo without ``allowed_files`` may write only the files that it names, or, if it
    names none, any unprotected file. The time limit is the shortest that applies, for a branch including
    its lifetime; ``None`` if there is no limit.
    """
    # Imported here, as callers that only validate a plan do not need the actions.
    from planner.model.actions import Bounds

    level = todo.risk_level or RiskLevel.LOW
    commands = tuple(dict.fromkeys(spec.cmd for _, spec in commands_of(todo)))
    if level in _PURPOSES:
        commands = tuple(purpose.value for purpose in _PURPOSES[level])
    files = todo.allowed_files
    # None if it names no file: an empty list would forbid all files.
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
    """Return whether a person must approve the start of a todo and of each of its branches."""
    return todo.risk_level is RiskLevel.HIGH


def lowered(plan: Plan, limits: Mapping[str, float]) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan with an operator's limits, and a line for each limit that the plan has lower.

    Limits are named as in the policy and its budget, for example ``tokens`` or ``max_debug_attempts``. A
    limit of the plan that is lower than the operator's stays.
    """
    policy, higher = plan.metadata, list[str]()
    for name, limit in limits.items():
        is_of_budget = name in type(policy.budget).model_fields
        own = getattr(policy.budget if is_of_budget else policy, name)
        if own is not None and own < limit:
            higher.append(f"{name} stays at {_number(own)}, the limit of the plan")
            continue
        new: dict[str, Any] = {name: limit}
        new = {"budget": policy.budget.model_copy(update=new)} if is_of_budget else new
        policy = policy.model_copy(update=new)
    return plan.model_copy(update={"metadata": policy}), tuple(higher)


_STRICTEST = (
    *("auto_fix_mode", "auto_approve_branches", "max_branch_depth", "max_debug_attempts"),
    *("branch_timeout_seconds", "max_concurrent_branches", "notify_after_n_failures"),
)
"""Policy keys combined by minimum: the lower limit applies, and a permission needs both policies."""


def inherited(policy: Policy, above: Policy) -> Policy:
    """Return the effective policy of a sub-plan under that of the plan above.

    A key that the sub-plan does not state is inherited; one that it states can only be stricter. Budget,
    halts and network rules are not inherited.
    """
    # Not the values: a sub-plan that states the default must not inherit a wider value.
    stated = policy.model_fields_set
    changes: dict[str, Any] = {}
    for name in _STRICTEST:
        own, theirs = getattr(policy, name), getattr(above, name)
        changes[name] = min(own, theirs) if name in stated else theirs  # False < True: the stricter value
    # Three values: None leaves the decision to auto_fix_mode, so it has no minimum.
    if "require_planner_approval" not in stated or above.require_planner_approval is True:
        changes["require_planner_approval"] = above.require_planner_approval
    retry, attempts = policy.flaky_retry, above.flaky_retry.attempts
    if "flaky_retry" in stated and "attempts" in retry.model_fields_set:
        attempts = min(attempts, retry.attempts)
    changes["tools"] = tools_under(policy, above.tools)
    changes["flaky_retry"] = retry.model_copy(update={"attempts": attempts})
    # Only real changes are applied: a copy records every updated key as stated.
    kept = {name: value for name, value in changes.items() if value != getattr(policy, name)}
    return policy.model_copy(update=kept) if kept else policy


def tools_under(policy: Policy, above: tuple[ToolSpec, ...] | None) -> tuple[ToolSpec, ...]:
    """Return the tools available to a plan's commands: its own, else those of the plan above."""
    return policy.tools if above is None or "tools" in policy.model_fields_set else above


def is_stricter_tool(spec: ToolSpec, above: ToolSpec) -> bool:
    """Return whether a sub-plan's tool runs only what the tool of the plan above runs."""
    words, allowed = spec.argv or (spec.name,), above.argv or (above.name,)
    return words[: len(allowed)] == allowed
