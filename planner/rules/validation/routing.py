"""Every todo says who acts on the common failures, and names roles that can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.taxonomy import Category, Family, Role, RoutingKey
from planner.model.verdicts import CheckKind
from planner.rules.validation.facts import Facts, Found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.plan import Todo

_USUAL = {
    RoutingKey.IMPLEMENTATION_BUG: (Role.CODER, Role.DEBUGGER),
    RoutingKey.SPEC_MISMATCH: (Role.ARCHITECT, Role.PLANNER, Role.CODER),
    RoutingKey.TIMEOUT: (Role.TESTER, Role.CODER, Role.DEBUGGER),
    RoutingKey.FLAKY_TEST: (Role.TESTER, Role.CODER, Role.DEBUGGER),
    RoutingKey.MISSING_DEPENDENCY: (Role.CODER, Role.ARCHITECT, Role.DEBUGGER, Role.PLANNER),
}
"""By routing key, the roles that can mend such a failure, the default first."""

_HALTS = (Family.SANDBOX, Family.BUDGET)


def check(facts: Facts) -> Iterator[Found]:
    """Rules about ``failure_routing``."""
    for index, todo in facts.primaries:
        if todo.has_sub_plan:
            continue
        for key in _needed(facts, todo):
            if not _answers(todo, key):
                yield _missing(index, todo, key)
        for key, role in todo.failure_routing.items():
            problem = _odd(key, role, automatic=facts.plan.metadata.auto_fix_mode)
            if problem is not None:
                yield Found(
                    "routing-odd",
                    ("items", index, "failure_routing", key.value),
                    todo.id,
                    f"{key.value} goes to {role.value}, {problem[0]}",
                    problem[1],
                )


def _needed(facts: Facts, todo: Todo) -> Iterator[RoutingKey]:
    """The failures that a todo can have."""
    criteria = facts.criteria.get(todo.id, ())
    if any(criterion.kind in (CheckKind.TEST, CheckKind.COMMAND) for criterion in criteria):
        yield RoutingKey.IMPLEMENTATION_BUG
    if todo.contract_path is not None:
        yield RoutingKey.SPEC_MISMATCH


def _answers(todo: Todo, key: RoutingKey) -> bool:
    """Whether the routing names the key, or one of its categories."""
    return key in todo.failure_routing or any(
        isinstance(each, Category) and each.facts.routing_key is key for each in todo.failure_routing
    )


def _missing(index: int, todo: Todo, key: RoutingKey) -> Found:
    default = _USUAL[key][0].value
    reason = "has tests" if key is RoutingKey.IMPLEMENTATION_BUG else "has a contract"
    return Found(
        "routing-missing",
        ("items", index, "failure_routing") if todo.failure_routing else ("items", index),
        todo.id,
        f"'{todo.id}' {reason}, but failure_routing does not say who acts on {key.value}; "
        f"the default is {default}",
        f"add to failure_routing: {key.value}: {default}",
    )


def _odd(key: RoutingKey | Category, role: Role, *, automatic: bool) -> tuple[str, str] | None:
    """What is odd about a route, and what to write."""
    if isinstance(key, Category):
        if key.facts.family in _HALTS and role is not Role.HUMAN:
            return (
                "but such a failure stops the plan until a person has looked",
                f"write {key.value}: human, or leave it out",
            )
        routing_key = key.facts.routing_key
        usual = (key.facts.default_role, *(_USUAL[routing_key] if routing_key else ()))
    else:
        usual = _USUAL[key]
    if role in usual or (isinstance(key, Category) and key.facts.routing_key is None):
        return None
    if role is Role.HUMAN:
        if not automatic:
            return None
        return (
            "so every such failure waits for a person although auto_fix_mode is on",
            f"write {key.value}: {usual[0].value}, or set auto_fix_mode: false",
        )
    return (
        f"who usually does not mend what is {key.value}",
        f"write {key.value}: {usual[0].value}",
    )
