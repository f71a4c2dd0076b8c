"""What the plan allows does not contradict itself, and its exceptions are still in force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.rules.validation.facts import Facts, Found, shown_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.model.plan import Policy


_COUNTED = ("consecutive_failures", "identical_failures", "flaky_streak", "file_growth")


@dataclass(frozen=True, slots=True)
class _Doubtful:
    """Settings that had better not be so, reported at ``key``."""

    key: str
    holds: Callable[[Policy], bool]
    message: str
    fix: str


_CONTRADICTIONS = (
    _Doubtful(
        "require_planner_approval",
        lambda policy: policy.require_planner_approval is True and policy.auto_approve_branches,
        "require_planner_approval always asks, auto_approve_branches answers where nobody can be asked",
        "keep require_planner_approval: true and set auto_approve_branches: false, or the other way round",
    ),
    _Doubtful(
        "require_planner_approval",
        lambda policy: policy.require_planner_approval is True and policy.auto_fix_mode,
        "require_planner_approval always asks, auto_fix_mode acts without asking",
        "set auto_fix_mode: false, or leave require_planner_approval out",
    ),
    _Doubtful(
        "require_planner_approval",
        lambda policy: (
            policy.require_planner_approval is False
            and not policy.auto_fix_mode
            and "auto_fix_mode" in policy.model_fields_set
            and not policy.auto_approve_branches
        ),
        "require_planner_approval: false says not to ask, auto_fix_mode: false to ask before each branch",
        "set auto_fix_mode: true, or leave require_planner_approval out",
    ),
    _Doubtful(
        "max_branch_depth",
        lambda policy: policy.auto_fix_mode and policy.max_branch_depth == 0,
        "auto_fix_mode makes branches, max_branch_depth: 0 allows none",
        "set max_branch_depth: 2, or auto_fix_mode: false",
    ),
    _Doubtful(
        "max_debug_attempts",
        lambda policy: policy.auto_fix_mode and policy.max_debug_attempts == 0,
        "auto_fix_mode makes branches, max_debug_attempts: 0 lets nobody work on them",
        "set max_debug_attempts: 3, or auto_fix_mode: false",
    ),
    _Doubtful(
        "max_concurrent_branches",
        lambda policy: policy.auto_fix_mode and policy.max_concurrent_branches == 0,
        "auto_fix_mode makes branches, max_concurrent_branches: 0 allows none at a time",
        "set max_concurrent_branches: 5, or auto_fix_mode: false",
    ),
)


_SWITCHED_OFF = (
    _Doubtful(
        "security",
        lambda policy: policy.halt.security == "ask",
        "halt.security: ask lets a person wave through a violation of the sandbox, of hygiene or of the "
        "allowed files",
        "leave it out, so that such a violation stops everything",
    ),
    _Doubtful(
        "",
        lambda policy: all(getattr(policy.halt, name) is None for name in _COUNTED),
        f"every halt condition that counts is null ({', '.join(_COUNTED)}): a run that repairs in vain "
        "goes on until each todo has used up its tries",
        "leave at least consecutive_failures or identical_failures at its default",
    ),
)
"""Settings by which a plan gives up what protects it, reported at ``key`` of ``halt``."""


def check(facts: Facts) -> Iterator[Found]:
    """Rules about ``metadata``."""
    policy = facts.plan.metadata
    for row in _SWITCHED_OFF:
        if row.holds(policy):
            where = ("metadata", "halt", row.key) if row.key else ("metadata", "halt")
            yield Found("safety-off", where, None, row.message, row.fix)
    for row in _CONTRADICTIONS:
        if row.holds(policy):
            yield Found("policy-contradiction", ("metadata", row.key), None, row.message, row.fix)
    wall, most = policy.budget.wall_seconds, policy.max_todo_seconds
    if wall is not None and most is not None and most > wall:
        yield Found(
            "policy-contradiction",
            ("metadata", "max_todo_seconds"),
            None,
            f"one todo may take {shown_seconds(most)}, the whole plan only {shown_seconds(wall)} "
            "(budget.wall_seconds)",
            f"lower max_todo_seconds below {wall:g}, or raise the budget",
        )
    yield from _quarantine(facts)


def _quarantine(facts: Facts) -> Iterator[Found]:
    if facts.today is None:
        return
    for index, entry in enumerate(facts.plan.metadata.flaky_retry.quarantine):
        # Dates that are written as YYYY-MM-DD are in order as texts.
        if entry.expires < facts.today:
            yield Found(
                "quarantine-expired",
                ("metadata", "flaky_retry", "quarantine", index, "expires"),
                None,
                f"the quarantine of {entry.nodeid} ended on {entry.expires}",
                f"mend the test ({entry.ticket}, {entry.owner}) and remove the entry, "
                "or agree with its owner on another date",
            )
