"""The page of docs with the life cycles of todos and plans, drawn from the tables of legal transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.verdicts import PlanState, TodoLife
from planner.policy.lifecycle import PLAN_MOVES, TODO_MOVES
from tools.key_tables import paragraph, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from enum import StrEnum


def text() -> str:
    """The text of the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# Life cycles\n"
    yield paragraph(
        "The states in which a todo and a plan may be while a plan is carried out, and every way from one "
        "to another. There is no other way: an event that would need one is refused, with an error naming "
        "the two states and the event, and nothing has changed. `planner explain STATE` tells what a state "
        "means."
    )
    yield "## A todo\n"
    yield from _cycle(TODO_MOVES, tuple(TodoLife))
    yield paragraph(
        "A todo that has failed is out of the run; only where its failure has brought everything to a stop "
        "does it go on, to `halted`. A branch lives like any other todo."
    )
    yield "## A plan\n"
    yield from _cycle(PLAN_MOVES, tuple(PlanState))


def _cycle(
    moves: Mapping[tuple[TodoLife, TodoLife], str] | Mapping[tuple[PlanState, PlanState], str],
    states: tuple[TodoLife, ...] | tuple[PlanState, ...],
) -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {states[0].value}"
    yield from (
        f"    {before.value} --> {after.value}: {trigger}" for (before, after), trigger in moves.items()
    )
    yield from (f"    {state.value} --> [*]" for state in states if state.is_final)
    yield "```\n"
    yield from rows(
        ("from", "to", "when"),
        ((_code(before), _code(after), trigger) for (before, after), trigger in moves.items()),
    )
    yield ""


def _code(state: StrEnum) -> str:
    return f"`{state.value}`"
