"""The short brief of a root cause: the facts of the page that matter most, a line each.

It is for an agent that asks after every run: some hundred tokens, whatever the number of red tests.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from planner.brief.advice import acting_role, describe_scope, fault_location, place
from planner.brief.page import CHARACTERS_PER_TOKEN, OWNERS, fit, read_repair
from planner.brief.quoting import block, code, command
from planner.model.taxonomy import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.brief.page import Part
    from planner.model.failure_report import FailureContext
    from planner.model.outcome import Failure, Hunk, Outcome
    from planner.model.plan import Plan, Todo

_HUNK_LINES = (8, 4, 2)
_MESSAGE = (240, 120, 80)
_SHORTEST_MESSAGE = 44
"""So many lines and characters are shown, as there is room."""

_CLAUSE_ENDS = ("; ", ": ", ", ")
_MOST_TODOS = 3


class Consequences(NamedTuple):
    """What a root cause makes red."""

    todos: Sequence[str]
    tests: int


def write_short_brief(
    plan: Plan,
    todo: Todo,
    outcome: Outcome,
    context: FailureContext | None = None,
    *,
    reds: Consequences,
    rerun: str,
    worker: Todo | None = None,
    tried: Sequence[str] = (),
    max_tokens: int,
) -> str:
    """Return the brief of a root cause that ``todo`` shows, of at most ``max_tokens`` tokens.

    The arguments are those of :func:`planner.brief.page.write_brief`.
    """
    repair = read_repair(plan, todo, outcome, context, worker)
    failure, evidence = repair.failure, repair.evidence
    location = fault_location(failure, evidence)
    hunk = next((each.hunk for each in failure.candidates if each.hunk is not None), None)
    role = acting_role(failure, repair.role)
    _, kept = describe_scope(failure, repair.scope)
    parts: list[Part] = [
        (0, *_headlines(failure, reds)),
        *_changed(hunk),
        *_message(failure, is_place_known=hunk is not None and location is not None),
        (0, *(f"next, {_actor(role)}: {each}" for each in _shortened(repair.next_action))),
        (1, *(f"never edit: {each}" for each in _shortened(kept))),
        *((1, f"tried in vain: {code(each, limit=100)}") for each in tried[-1:]),
        (0, f"check: {command(rerun)}"),
    ]
    return _fit_evenly(parts, max_tokens * CHARACTERS_PER_TOKEN)


def _fit_evenly(parts: Sequence[Part], most: int) -> str:
    """Return all parts, each a step shorter until they fit; only then some are left out."""
    steps = max(len(texts) for _, *texts in parts)
    shortened = list(parts)
    for step in range(steps):
        shortened = [(rank, texts[min(step, len(texts) - 1)]) for rank, *texts in parts]
        if sum(len(text) + 1 for _, text in shortened) <= most:
            break
    return fit(shortened, most)


def _headlines(failure: Failure, reds: Consequences) -> Iterator[str]:
    owner = f", {OWNERS[who]}" if (who := failure.owner) and who in OWNERS else ""
    sure = f", {failure.confidence:.0%} sure" if failure.confidence is not None else ""
    more = f" and {left} more" if (left := len(reds.todos) - _MOST_TODOS) > 0 else ""
    todos = ", ".join(map(code, reds.todos[:_MOST_TODOS])) + more
    tests = f"{reds.tests} test{'s' if reds.tests != 1 else ''} in " if reds.tests else ""
    yield f"{failure.category}{owner}{sure}: {tests}{todos}"
    yield f"{failure.category}{owner}: {tests}{todos}"


def _changed(hunk: Hunk | None) -> Iterator[Part]:
    if hunk is None:
        return
    function = f" in {code(hunk.function)}" if hunk.function else ""
    yield 0, f"changed {code(f'{hunk.path}:{hunk.line}')}{function}"
    lines = [line for line in hunk.text.split("\n") if line.startswith(("+", "-"))]
    if lines:
        yield 1, *(block("\n".join(lines[:most]), "") for most in _HUNK_LINES)


def _message(failure: Failure, *, is_place_known: bool) -> Iterator[Part]:
    at = f"at {place(failure.location)}: " if failure.location else ""
    head = failure.stack_trace_head or failure.because or ""
    said = [f"{at}{code(head, limit=most)}" for most in _MESSAGE] if head else [at.rstrip(": ")]
    if is_place_known:
        said.append(code(head, limit=_SHORTEST_MESSAGE))
    if said[0]:
        yield (2 if is_place_known else 1), *said


def _shortened(text: str) -> Iterator[str]:
    """Yield a sentence, then what stands before its later clauses, ever less."""
    yield text
    for end in _CLAUSE_ENDS:
        head = re.split(re.escape(end), text)[0]
        if head != text and head.count("`") % 2 == 0:
            yield head


def _actor(role: Role) -> str:
    return "a person" if role is Role.HUMAN else role.value
