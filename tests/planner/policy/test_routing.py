"""Who is asked to act on a failure."""

from __future__ import annotations

import pytest

from planner.model.outcome import Failure, Location
from planner.model.plan import Todo
from planner.model.taxonomy import Category, Role, RoutingKey
from planner.policy.branches import role_for, route


def test_the_role_of_the_diagnosis_takes_the_place_of_the_defaults_only() -> None:
    for category in (Category.TEST_REGRESSION, Category.TEST_CRASH, Category.BUDGET_EXCEEDED):
        assert route(category, {}, Role.TESTER) is Role.TESTER
        assert route(category, {category: Role.PLANNER}, Role.TESTER) is Role.PLANNER
    keyed: dict[RoutingKey | Category, Role] = {RoutingKey.IMPLEMENTATION_BUG: Role.DEBUGGER}
    assert route(Category.TEST_REGRESSION, keyed, Role.TESTER) is Role.DEBUGGER
    failure = Failure(category=Category.TEST_REGRESSION, target_agent=Role.TESTER)
    assert role_for(failure, Todo(id="a", title="a")) is Role.TESTER
    assert role_for(failure, Todo(id="a", title="a", failure_routing=keyed)) is Role.DEBUGGER


@pytest.mark.parametrize(
    ("path", "role"), [("shop/cart.py", Role.CODER), ("tests/test_cart.py", Role.TESTER)]
)
def test_a_timeout_goes_to_who_may_edit_the_place_where_it_was_ended(path: str, role: Role) -> None:
    ended = Failure(category=Category.TEST_TIMEOUT, location=Location(path=path, line=3))
    assert role_for(ended, Todo(id="t1", title="T")) is role
    assert (
        role_for(
            ended, Todo.model_validate({"id": "t1", "title": "T", "failure_routing": {"timeout": "human"}})
        )
        is Role.HUMAN
    )
