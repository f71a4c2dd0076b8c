"""The order in which causes are best mended: total, and the same for equal runs.

First what keeps tests from running, then what tests find; an earlier todo before a later one; the cause
with more consequences before the one with fewer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_planverify.diagnosis.cause_links import explanations
from pytest_planverify.diagnosis.cause_stages import Stage, stage_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_planverify.diagnosis.grouping import Group
    from pytest_planverify.diagnosis.todo_order import TodoOrder

BECAUSE: Mapping[Stage, str] = {
    Stage.STOPS: "a person has to decide before work goes on",
    Stage.SURROUNDS: "most failures need it, whatever the code does",
    Stage.UNLOADED: "what imports it cannot be loaded, which hides other failures there",
    Stage.UNPREPARED: "the tests that use this set-up did not run",
    Stage.FOLLOWS: "it should come out of other work",
    Stage.REMARKED: "a remark about the code: it keeps no test from running",
    Stage.UNSTEADY: "not reproducible, so it comes after what is",
}
"""Why a cause of that stage comes where it does; what tests found is ordered among itself."""


@dataclass(eq=False)
class Ordered:
    """A group with its place among the others."""

    group: Group
    stage: Stage
    depth: int
    """Of the earliest todo that shows it."""
    key: tuple[int | str, ...]
    because: str = ""
    explained_by: list[Ordered] = field(default_factory=list["Ordered"])
    explains: set[str] = field(default_factory=set[str])
    """Signatures of other groups."""


def in_order(groups: Sequence[Group], order: TodoOrder) -> list[Ordered]:
    """The groups, the first to mend first."""
    failing = len({todo for group in groups for todo in group.todos})
    consequences = sum(group.consequences for group in groups)
    entries = [_entry(group, order, failing, consequences) for group in groups]
    entries.sort(key=lambda entry: entry.key)
    for early, late in explanations([(entry.stage, entry.group) for entry in entries]):
        entries[late].explained_by.append(entries[early])
        entries[early].explains.update(entries[late].group.signatures)
    places = {id(entry): place for place, entry in enumerate(entries, start=1)}
    for entry, following in zip(entries, [*entries[1:], None], strict=False):
        entry.because = _because(entry, following, places)
    return entries


def _entry(group: Group, order: TodoOrder, failing: int, consequences: int) -> Ordered:
    stage = stage_of(group, failing=failing, consequences=consequences)
    depth = min(order.depth(todo) for todo in group.todos)
    first = min(order.place(todo) for todo in group.todos)
    key = (int(stage), depth, -group.consequences, first, group.signatures[0])
    return Ordered(group=group, stage=stage, depth=depth, key=key)


def _because(entry: Ordered, following: Ordered | None, places: Mapping[int, int]) -> str:
    if len(places) == 1:
        return "every failure shows it"
    if entry.explained_by:
        return f"likely fixed by cause {min(places[id(each)] for each in entry.explained_by)}"
    if entry.stage in BECAUSE:
        return BECAUSE[entry.stage]
    if following is None or following.stage is not entry.stage or following.explained_by:
        return "independent of the others"
    if following.depth > entry.depth:
        return "in an earlier todo than the next"
    if following.group.consequences < entry.group.consequences:
        return "explains more failures than the next"
    return "before the next in the plan"
