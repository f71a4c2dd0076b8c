"""Refuses outcomes that speak of todos or plans that are not there, or of one todo twice."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from planner.errors import OutcomeFileError
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.model.outcome import OutcomeDocument
    from planner.planfile.loader import LoadedPlan

_MAX_LINE = 600


def refuse_misfits(
    document: OutcomeDocument, loaded: LoadedPlan, subs: Mapping[str, LoadedPlan], *, where: str
) -> None:
    """Raise :class:`planner.errors.OutcomeFileError` for the first outcome that fits no todo of the plan.

    What no todo answers for would be passed over, and a failure with it. ``subs`` holds the loaded
    sub-plans by the qualified id of their parent, ``where`` names the outcome file.
    """
    problem = next(_misfits(document, loaded, subs), None)
    if problem is not None:
        line = f"{where}: the outcome file cannot be used: {problem}"
        raise OutcomeFileError(" ".join(clean(line, limit=_MAX_LINE).split()))


def _misfits(
    document: OutcomeDocument, loaded: LoadedPlan, subs: Mapping[str, LoadedPlan]
) -> Iterator[str]:
    name = loaded.plan.todo_list_id
    plans = {ref.todo_list_id for ref in document.plans}
    known = {todo.id: todo.has_sub_plan for todo in loaded.plan.items}
    for within, sub in subs.items():
        known.update((f"{within}/{todo.id}", todo.has_sub_plan) for todo in sub.plan.items)
    seen: set[str] = set()
    for index, outcome in enumerate(document.outcomes):
        todo_id = outcome.todo_id
        if outcome.plan is not None and outcome.plan not in plans:
            yield (
                f"outcomes[{index}] is of the plan '{outcome.plan}', which is not among its plans; "
                "add it to plans, or mend the name"
            )
        if outcome.plan not in (None, name):
            continue
        if todo_id in seen:
            yield f"outcomes[{index}] is the second of todo '{todo_id}'; leave one of them"
        seen.add(todo_id)
        if todo_id not in known and not _is_below_what_is_not_loaded(todo_id, known, subs):
            near = get_close_matches(todo_id, sorted(known), n=1)
            remedy = f"did you mean '{near[0]}'?" if near else "name the id of a todo of this plan"
            yield f"the plan '{name}' has no todo '{todo_id}'; {remedy}"


def _is_below_what_is_not_loaded(
    todo_id: str, known: Mapping[str, bool], subs: Mapping[str, LoadedPlan]
) -> bool:
    """Whether it may be of a sub-plan that could not be loaded: only its parent is known."""
    within = todo_id.rpartition("/")[0]
    while within:
        if within in known:
            return known[within] and within not in subs
        within = within.rpartition("/")[0]
    return False
