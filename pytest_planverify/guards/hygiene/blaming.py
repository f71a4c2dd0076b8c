"""Whom the signs are held against: the todos whose judge was changed, or who may have played the trick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.evidence import Evidence
from planner.model.kinds import EvidenceKind, Hardness
from pytest_planverify.guards import Guard, Violation
from pytest_planverify.guards.hygiene.signs import SIGNS, fires

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from planner.model.evidence import HygieneSignal
    from pytest_planverify.guards.hygiene.grants import Grants

MOST_SIGNALS = 50
"""So many are kept as evidence, the hard ones first."""


def violations(
    signals: Iterable[HygieneSignal],
    *,
    grants: Grants,
    passed: Collection[str],
    present: Collection[str] | None = None,
) -> Iterator[Violation]:
    """What is held against each todo: one hard sign, or two soft ones.

    ``passed`` are the todos that have passed; they answer for what nobody may have done. ``present`` are
    those of the run, all where it is absent.
    """
    here = {reach.todo_id for reach in grants.todos} if present is None else set(present)
    held: dict[str, list[HygieneSignal]] = {}
    for signal in signals:
        for todo_id in answering(signal, grants, passed, here):
            held.setdefault(todo_id, []).append(signal)
    for reach in grants.todos:
        found = held.get(reach.todo_id, ())
        if fires(found):
            yield violation(reach.todo_id, found)


def answering(
    signal: HygieneSignal, grants: Grants, passed: Collection[str], present: Collection[str]
) -> tuple[str, ...]:
    """The todos of the run that a sign is held against.

    A changed judge concerns whom it judges and who may change it; a trick who may have played it, and where
    he is no part of the run, everybody who profits.
    """
    sign = SIGNS.get(signal.sign)
    named: tuple[str, ...] = ()
    if signal.path is not None:
        if sign is not None and sign.in_product:
            named = grants.owners(signal.path)
        else:
            owners = (reach.todo_id for reach in grants.todos if reach.may_change(signal.path))
            named = tuple(dict.fromkeys((*owners, *grants.dependants(signal.path))))
            if named:
                return tuple(each for each in named if each in present)
    found = tuple(each for each in named if each in present)
    return found or tuple(reach.todo_id for reach in grants.todos if reach.todo_id in passed)


def violation(todo_id: str, signals: Iterable[HygieneSignal]) -> Violation:
    """The violation that some signs are."""
    ordered = sorted(signals, key=lambda each: each.hardness is not Hardness.HARD)
    more = f" (and {len(ordered) - 1} more)" if len(ordered) > 1 else ""
    reason = f"{ordered[0].message}{more}"
    return Violation(
        todo_id=todo_id,
        guard=Guard.HYGIENE,
        reason=reason,
        evidence=Evidence(
            kind=EvidenceKind.HYGIENE, headline=reason, signals=tuple(ordered[:MOST_SIGNALS])
        ),
    )
