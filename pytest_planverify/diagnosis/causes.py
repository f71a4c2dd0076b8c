"""From the diagnosed failures of a run to its root causes, in the order in which they are best mended.

Failures with one signature are one cause, and so are those that :mod:`.same_cause` proves to be one. The
order of the causes is made in :mod:`.cause_order`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.outcome import Cause, CauseTodo
from pytest_planverify.diagnosis.cause_order import Ordered, in_order
from pytest_planverify.diagnosis.grouping import Group, grouped
from pytest_planverify.diagnosis.seen import Seen
from pytest_planverify.diagnosis.todo_order import TodoKey, TodoOrder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Seen", "TodoKey", "find_causes", "grouping"]

TOP_TESTS = 10


def find_causes(seen: Sequence[Seen], depends: Mapping[TodoKey, Sequence[TodoKey]]) -> tuple[Cause, ...]:
    """The causes of a run's failures, the first to mend first; the order of ``seen`` does not matter.

    ``depends`` names, in the plan's order, every todo of the run with those that it depends on.
    """
    order = TodoOrder(depends, (each.todo for each in seen))
    return tuple(_cause(rank, each, order) for rank, each in enumerate(_ordered(seen, order), start=1))


def grouping(seen: Sequence[Seen], depends: Mapping[TodoKey, Sequence[TodoKey]]) -> list[list[int]]:
    """The failures of each cause by their places in ``seen``, the first cause to mend first."""
    order = TodoOrder(depends, (each.todo for each in seen))
    place = {id(each): number for number, each in enumerate(seen)}
    return [sorted(place[id(member)] for member in each.group.members) for each in _ordered(seen, order)]


def _ordered(seen: Sequence[Seen], order: TodoOrder) -> list[Ordered]:
    return in_order(grouped(seen, order), order)


def _cause(rank: int, ordered: Ordered, order: TodoOrder) -> Cause:
    group = ordered.group
    clearest = group.clearest
    tests = sorted(group.tests, key=lambda key: (order.place(key.todo), key.nodeid))
    return Cause(
        rank=rank,
        signatures=group.signatures,
        category=clearest.diagnosis.category,
        owner=clearest.diagnosis.owner,
        confidence=clearest.diagnosis.confidence,
        headline=clearest.evidence.headline,
        location=clearest.diagnosis.location,
        todos=tuple(_todo(todo, group) for todo in sorted(group.todos, key=order.place)),
        tests=group.test_count,
        files=group.file_count,
        top_tests=tuple(dict.fromkeys(key.nodeid for key in tests))[:TOP_TESTS],
        because=ordered.because,
        joined=tuple(sorted(group.joined)),
        explains=tuple(sorted(ordered.explains)),
    )


def _todo(todo: TodoKey, group: Group) -> CauseTodo:
    plan, todo_id = todo
    return CauseTodo(todo_id=todo_id, plan=plan, tests=group.tests_of[todo])
