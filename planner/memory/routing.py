"""From what is known about each role to the one that should repair a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.memory.advice import RoutingAdvice
from planner.memory.tallies import surely_better
from planner.model.taxonomy import Category, Family, Owner, Role
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.memory.repairs import Standing
    from planner.memory.tallies import Belief
    from planner.model.outcome import Failure
    from planner.model.past import Correction
    from planner.model.plan import Todo

NOT_MEMORYS = frozenset({Family.SANDBOX, Family.BUDGET, Family.ENVIRONMENT})
"""Families of failures whose role memory leaves alone, whatever it holds."""

WORKERS = (Role.CODER, Role.ARCHITECT, Role.TESTER, Role.DEBUGGER)
"""Roles that numbers may choose. That a person or the planner should act, only a person's word can say."""

ENOUGH = 1.5
"""A role is changed only for one of which at least so many experiences are known, faded as they are …"""

SURE = 0.8
"""… that is better than the default with this probability …"""

MARGIN = 0.1
"""… and by so much at least."""

FEW = 3
"""Where less is remembered that is like the failure, the reason tells of its whole category."""

_LONGEST_NAME = 80


def refusal(failure: Failure, todo: Todo, default: Role) -> str | None:
    """Why memory has no say in who repairs a failure, or ``None``."""
    category = failure.category
    if default is Role.HUMAN or category.facts.family in NOT_MEMORYS or _is_nobodys(failure):
        return f"who acts on {category.value} is not for memory to say"
    key = category.facts.routing_key
    word = category if category in todo.failure_routing else key
    if word is not None and word in todo.failure_routing:
        return f"the todo says itself who acts on {word.value}"
    return None


def choose(
    category: Category, default: Role, standings: Mapping[Role, Standing], word: Correction | None
) -> RoutingAdvice:
    """The role that should act. A person's word about this very failure goes before all numbers."""
    if word is not None:
        said = "; ".join(part for part in (_said(word), _numbers(category, standings)) if part)
        return _advice(word.role, default, standings[word.role].belief, said)
    told = reason(category, standings)
    if not told:
        return _advice(default, default, standings[default].belief, "nothing like it is remembered")
    best = _best(default, standings)
    if best is None:
        return _advice(default, default, standings[default].belief, told)
    if _is_clear(standings[best], standings[default]):
        return _advice(best, default, standings[best].belief, told)
    told = f"{told}; too little to prefer the {best.value} to the {default.value}"
    return _advice(default, default, standings[default].belief, told)


def reason(category: Category, standings: Mapping[Role, Standing]) -> str:
    """``12 like this; debugger fixed 9 of 10, coder 1 of 2``; empty where nothing is known."""
    told = _numbers(category, standings)
    by_word = [role.value for role, each in standings.items() if each.seen > 0]
    if told or not by_word:
        return told
    return f"a person named the {' and the '.join(by_word)} for {category.value}"


def _numbers(category: Category, standings: Mapping[Role, Standing]) -> str:
    alike = sum(each.alike for each in standings.values())
    if alike >= FEW:
        numbers = [(role, each.alike_fixed, each.alike) for role, each in standings.items()]
        what = f"{alike} like this"
    else:
        numbers = [(role, each.kindred_fixed, each.kindred) for role, each in standings.items()]
        what = f"{sum(number for _, _, number in numbers)} of {category.value}"
    shown = sorted((each for each in numbers if each[2]), key=lambda each: (-each[1], each[2]))
    said = [f"{role.value} fixed {fixed} of {number}" for role, fixed, number in shown[:1]]
    said += [f"{role.value} {fixed} of {number}" for role, fixed, number in shown[1:]]
    return f"{what}; {', '.join(said)}" if said else ""


def _best(default: Role, standings: Mapping[Role, Standing]) -> Role | None:
    """The role with the best chance, where it is known at all and not the default."""
    known = [role for role in WORKERS if role is not default and standings[role].seen > 0]
    best = max(known, key=lambda role: standings[role].belief.rate, default=None)
    if best is None or standings[best].belief.rate <= standings[default].belief.rate:
        return None
    return best


def _is_clear(best: Standing, default: Standing) -> bool:
    return (
        best.seen >= ENOUGH
        and best.belief.rate - default.belief.rate >= MARGIN
        and surely_better(best.belief, default.belief) >= SURE
    )


def _advice(role: Role, default: Role, belief: Belief, because: str) -> RoutingAdvice:
    return RoutingAdvice(
        role=role, confidence=round(belief.rate, 4), because=because, changed=role is not default
    )


def _said(word: Correction) -> str:
    who = " ".join(clean(word.by or "", limit=_LONGEST_NAME).split()) or "a person"
    meant = f", as {word.right_category.value}" if word.right_category is not None else ""
    return f"{who} said on {word.at:%Y-%m-%d} that this is for the {word.role.value}{meant}"


def _is_nobodys(failure: Failure) -> bool:
    """What only the environment lacks is nobody's work; only a missing import can be declared by a role."""
    return (
        failure.owner in (Owner.ENVIRONMENT, Owner.HARNESS)
        and failure.category is not Category.IMPORT_ERROR
    )
