"""From the category of a failure to the role that is asked to act."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path
from planner.model.taxonomy import Category, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.outcome import Failure, Location
    from planner.model.plan import Todo
    from planner.model.taxonomy import RoutingKey


def route(
    category: Category,
    failure_routing: Mapping[RoutingKey | Category, Role],
    diagnosed: Role | None = None,
) -> Role:
    """Who acts on a failure of that category, under the routing of its todo. The first that answers:

    the todo's entry for the category; the category's own default, where it differs from that of its key;
    the todo's entry for the key; the default. The role that a diagnosis names takes the place of both
    defaults.
    """
    facts = category.facts
    default = diagnosed or facts.default_role
    if category in failure_routing:
        return failure_routing[category]
    if facts.routing_key is None or facts.overrides_key:
        return default
    return failure_routing.get(facts.routing_key, default)


def role_for(failure: Failure, todo: Todo) -> Role:
    """Who acts on a diagnosed failure of a todo: what the diagnosis says, where the todo does not."""
    diagnosed = failure.target_agent or agent_at(failure.category, failure.location)
    return route(failure.category, todo.failure_routing, diagnosed)


def agent_at(category: Category, location: Location | None) -> Role | None:
    """Return who may touch the place at fault, where the default of the category may not.

    A timeout goes to the tester, who must not edit the product in which it was ended.
    """
    in_product = location is not None and not is_test_path(location.path)
    return Role.CODER if category is Category.TEST_TIMEOUT and in_product else None
