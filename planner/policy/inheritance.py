"""The policy of a sub-plan under that of the plan above it: what it leaves out it has from there, and what
it says may only be stricter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.model.plan import Policy, ToolSpec

_ALLOWANCES = ("auto_fix_mode", "auto_approve_branches")
"""Granted where both grant it."""

_LIMITS = (
    "max_branch_depth",
    "max_debug_attempts",
    "branch_timeout_seconds",
    "max_concurrent_branches",
    "notify_after_n_failures",
)
"""The lower counts."""


def tools_under(policy: Policy, above: tuple[ToolSpec, ...] | None) -> tuple[ToolSpec, ...]:
    """Return the tools that the commands of a plan may name: its own, else those of the plan above it."""
    return policy.tools if above is None or "tools" in policy.model_fields_set else above


def is_stricter_tool(spec: ToolSpec, above: ToolSpec) -> bool:
    """Whether a tool of a sub-plan runs nothing but what that tool of the plan above runs."""
    words, allowed = spec.argv or (spec.name,), above.argv or (above.name,)
    return words[: len(allowed)] == allowed


def inherited(policy: Policy, above: Policy) -> Policy:
    """The policy by which the todos of a sub-plan are carried out.

    Its budget, its halts and what it says of the network count for nobody else, and stay as they are.
    """
    said = policy.model_fields_set
    changes: dict[str, Any] = {}
    for name in (*_ALLOWANCES, *_LIMITS):
        own, theirs = getattr(policy, name), getattr(above, name)
        strict = min(own, theirs)  # of two allowances, too: false is less than true
        changes[name] = strict if name in said else theirs
    if "require_planner_approval" not in said or above.require_planner_approval is True:
        changes["require_planner_approval"] = above.require_planner_approval
    retry = policy.flaky_retry
    attempts = above.flaky_retry.attempts
    if "flaky_retry" in said and "attempts" in retry.model_fields_set:
        attempts = min(attempts, retry.attempts)
    changes["tools"] = tools_under(policy, above.tools)
    changes["flaky_retry"] = retry.model_copy(update={"attempts": attempts})
    kept = {name: value for name, value in changes.items() if value != getattr(policy, name)}
    return policy.model_copy(update=kept) if kept else policy
