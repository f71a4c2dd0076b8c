"""Todos small enough to be done and repaired, and plans flat only as long as they are small."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.plan import CommandSpec
from planner.rules.hierarchy import suggest
from planner.rules.todo_parts import MOST_CRITERIA, domain, propose_split, worded_split
from planner.rules.validation.facts import Facts, Found, counted, listed, shown_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.model.plan import Todo
    from planner.rules.criteria import Criterion

MOST_DOMAINS = 2
"""Top folders of the product that one todo may make files in."""

MOST_SECONDS = 3600.0
"""How long the criteria of one todo may take together, as far as the plan says their limits."""

_MOST_SHOWN = 8


def check(facts: Facts) -> Iterator[Found]:
    """Rules about size."""
    for index, todo in facts.primaries:
        criteria = facts.criteria.get(todo.id, ())
        reasons = _reasons(todo, criteria)
        if reasons:
            yield _too_large(index, todo, criteria, reasons)
    suggestion = suggest(facts.plan)
    if suggestion is not None:
        phases = [f"{phase.title} ({listed(list(phase.todo_ids), 10)})" for phase in suggestion.phases]
        yield Found(
            "hierarchy-suggested",
            ("items",),
            None,
            suggestion.reason,
            f"make {counted(len(phases), 'parent todo')} with a sub_plan each: "
            + "; ".join(phases[:_MOST_SHOWN])
            + (f"; and {len(phases) - _MOST_SHOWN} more" if len(phases) > _MOST_SHOWN else ""),
        )


def _reasons(todo: Todo, criteria: Sequence[Criterion]) -> list[str]:
    reasons: list[str] = []
    if len(criteria) > MOST_CRITERIA and not (todo.verify and len(criteria) == 1):
        reasons.append(f"has {len(criteria)} criteria, more than {MOST_CRITERIA}")
    makes = (artifact.path for artifact in todo.acceptance_criteria.expected_artifacts)
    domains = list(dict.fromkeys(name for path in makes if (name := domain(path)) is not None))
    if len(domains) > MOST_DOMAINS:
        reasons.append(f"makes files in {len(domains)} parts of the product: {listed(domains)}")
    seconds = sum(
        each.spec.timeout_seconds
        for each in criteria
        if isinstance(each.spec, CommandSpec)
        and "timeout_seconds" in each.spec.model_fields_set
        and each.spec.timeout_seconds <= MOST_SECONDS
    )
    commands = sum(each.command is not None for each in criteria)
    if seconds > MOST_SECONDS and commands > 1:
        reasons.append(f"has checks that may take {shown_seconds(seconds)} together")
    return reasons


def _too_large(index: int, todo: Todo, criteria: Sequence[Criterion], reasons: list[str]) -> Found:
    parts = propose_split(todo, criteria)
    return Found(
        "todo-too-large",
        ("items", index),
        todo.id,
        f"'{todo.id}' {' and '.join(reasons)}",
        f"split it: {worded_split(parts)}"
        if len(parts) > 1
        else f"leave the {MOST_CRITERIA} criteria that matter most, and drop what they imply",
    )
