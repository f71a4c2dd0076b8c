"""From the category of a failure to the role that is asked to act."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.taxonomy import Category, Role, RoutingKey


def route(category: Category, failure_routing: Mapping[RoutingKey | Category, Role]) -> Role:
    """Who acts on a failure of that category, under the routing of its todo. The first that answers:

    the todo's entry for the category; the category's own default, where it differs from that of its key;
    the todo's entry for the key; the default.
    """
    facts = category.facts
    if category in failure_routing:
        return failure_routing[category]
    if facts.routing_key is None or facts.overrides_key:
        return facts.default_role
    return failure_routing.get(facts.routing_key, facts.default_role)
