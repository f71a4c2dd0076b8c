"""The ordered table of rules: the first that applies decides.

:data:`RULES` lists all rules. :func:`rules_for` returns those that may apply to a case, in the same order.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.messages import error_text, place, quote
from pytest_planverify.diagnosis.rule import Hit, Rule, Rules
from pytest_planverify.diagnosis.rules.behaviour import BEHAVIOUR_RULES
from pytest_planverify.diagnosis.rules.commands import COMMAND_RULES, FAILED_COMMAND_RULES
from pytest_planverify.diagnosis.rules.criteria import CRITERIA_RULES
from pytest_planverify.diagnosis.rules.imports import LOADING_RULES
from pytest_planverify.diagnosis.rules.machine import MACHINE_RULES
from pytest_planverify.diagnosis.rules.processes import PROCESS_RULES, SESSION_RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.diagnosis.case import Case

_LAST_RULES = Rules()
"""For failures that no other rule applies to."""


@_LAST_RULES.rule(Category.ENVIRONMENT_ERROR, 0.5, facts="outside", second=Category.UNKNOWN)
def raised_outside_project(case: Case) -> Hit:
    """Something failed with no code of the project on the way."""
    last = case.innermost
    where = f" in {place(last)}" if last else ""
    return Hit(
        suggestion=f"{error_text(case.error)}{where}, without code of the project in the traceback.",
        frame=last,
    )


@_LAST_RULES.rule(Category.UNKNOWN, 0.3, owner=Owner.UNKNOWN)
def unknown(case: Case) -> str:
    """No rule knows this failure."""
    evidence = case.evidence
    headline = evidence.headline or evidence.longrepr or evidence.nodeid or evidence.check_id
    return f"No rule matches this failure: {quote(headline or evidence.kind.value)}."


UNKNOWN_RULE = _LAST_RULES[-1]

_TABLES: tuple[tuple[Rule, ...], ...] = (
    (*COMMAND_RULES, *CRITERIA_RULES, *PROCESS_RULES, *SESSION_RULES),
    (*MACHINE_RULES, *LOADING_RULES),
    tuple(BEHAVIOUR_RULES),
    (*FAILED_COMMAND_RULES, *_LAST_RULES),
)
"""Rules in order of evaluation. Those of the second table decide by exception type, also for causes and
group members; those of the third by the side of the raising frame, also for group members.
"""

RULES = tuple(chain.from_iterable(_TABLES))
"""All rules in order of evaluation."""


_ALL, _UP_TO_HARD, _HARD = range(4), range(2), range(1, 2)
_SOFT, _FROM_SOFT = range(2, 3), range(2, 4)


@lru_cache(maxsize=4096)
def _applicable(tables: range, facts: int, classes: frozenset[str]) -> tuple[Rule, ...]:
    """Return the rules of some tables that may apply; cached, as cases have few combinations of facts."""
    return tuple(rule for table in tables for rule in _TABLES[table] if rule.may_apply(facts, classes))


def rules_for(case: Case) -> Iterator[tuple[tuple[Rule, ...], Case]]:
    """Yield the rules that may apply, in order, with the case to evaluate them on."""
    if not case.has_error or not case.deeper:
        yield _applicable(_ALL, case.facts, case.classes), case
        return
    yield _applicable(_UP_TO_HARD, case.facts, case.classes), case
    for each in case.deeper:
        yield _applicable(_HARD, each.facts, each.classes), each
    for each in case.leaves:
        yield _applicable(_SOFT, each.facts, each.classes), each
    yield _applicable(_FROM_SOFT, case.facts, case.classes), case
