"""The ordered table of rules: the first that speaks decides."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind
from pytest_planverify.diagnosis.messages import quote
from pytest_planverify.diagnosis.rule import Rule, Rules
from pytest_planverify.diagnosis.rules.behaviour import BEHAVIOUR_RULES, BOUNDARY_RULES, LAST_RULES
from pytest_planverify.diagnosis.rules.commands import COMMAND_RULES, SCRIPT_RULES
from pytest_planverify.diagnosis.rules.criteria import CHECK_RULES, GUARD_RULES, SELECTION_RULES
from pytest_planverify.diagnosis.rules.imports import LOADING_RULES
from pytest_planverify.diagnosis.rules.machine import MACHINE_RULES
from pytest_planverify.diagnosis.rules.processes import (
    EARLY_END_RULES,
    PROCESS_RULES,
    REPETITION_RULES,
    SESSION_FALLBACKS,
    STARTING_RULES,
    TIMEOUT_RULES,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.diagnosis.case import Case

_NOTHING_RULES = Rules()


@_NOTHING_RULES.rule(Category.UNKNOWN, 0.3, owner=Owner.UNKNOWN)
def unknown(case: Case) -> str:
    """No rule knows this failure."""
    evidence = case.evidence
    said = evidence.headline or evidence.longrepr or evidence.nodeid or evidence.check_id
    return f"No rule knows this failure: {quote(said or evidence.kind.value)}."


UNKNOWN_RULE = _NOTHING_RULES[0]

_HARD = Rules([*MACHINE_RULES, *LOADING_RULES])
"""What says by its type alone what is wrong, also beneath the exception that surfaced."""
_SOFT = Rules([*BOUNDARY_RULES, *BEHAVIOUR_RULES])
_LAST = Rules([*LAST_RULES, UNKNOWN_RULE])

_GUARDS = (EvidenceKind.HYGIENE, EvidenceKind.SANDBOX, EvidenceKind.ALLOWLIST, EvidenceKind.BUDGET)
_TESTS = (EvidenceKind.TEST, EvidenceKind.COLLECTION, EvidenceKind.SESSION, EvidenceKind.COMMAND)

RULES: tuple[Rule, ...] = tuple(
    chain(
        GUARD_RULES,
        CHECK_RULES,
        COMMAND_RULES,
        SELECTION_RULES,
        REPETITION_RULES,
        TIMEOUT_RULES,
        PROCESS_RULES,
        STARTING_RULES,
        EARLY_END_RULES,
        _HARD,
        _SOFT,
        SESSION_FALLBACKS,
        SCRIPT_RULES,
        _LAST,
    )
)
"""All of them as one table, in the order in which they are asked."""


def _groups_for(case: Case) -> Iterator[tuple[Rules, tuple[Case, ...]]]:
    """Yield rules that may have something to say, each with the exceptions that they look at one by one.

    First comes what a guard found, then what decides by the kind of criterion, then what repeated runs
    proved, then limits and deaths, then what an exception says by its type (first the one that surfaced,
    then those beneath), then whose frame raised.
    """
    evidence, kind, itself = case.evidence, case.evidence.kind, (case,)
    has_process = evidence.process is not None
    if kind in _GUARDS:
        yield GUARD_RULES, itself
    elif kind is EvidenceKind.COMMAND:
        yield COMMAND_RULES, itself
    elif kind not in _TESTS:
        yield CHECK_RULES, itself
    is_selecting = kind in (EvidenceKind.SELECTION, EvidenceKind.SESSION)
    if is_selecting or evidence.selectors or evidence.vacuous is not None:
        yield SELECTION_RULES, itself
    if evidence.confirmations:
        yield REPETITION_RULES, itself
    if case.timed_out or evidence.swallowed_timeout:
        yield TIMEOUT_RULES, itself
    if case.has_error or has_process:
        yield PROCESS_RULES, itself
    if kind is EvidenceKind.SESSION:
        yield STARTING_RULES, itself
    if has_process:
        yield EARLY_END_RULES, itself
    if case.has_error:
        yield _HARD, itself
        yield _HARD, case.deeper
        yield _SOFT, case.leaves
    yield _SOFT, itself
    if kind is EvidenceKind.SESSION:
        yield SESSION_FALLBACKS, itself
    if kind is EvidenceKind.COMMAND:
        yield SCRIPT_RULES, itself
    yield _LAST, itself


def rules_for(case: Case) -> Iterator[tuple[Rule, Case]]:
    """Yield the rules that may speak, in their order, each with the exception that it looks at."""
    for rules, cases in _groups_for(case):
        if len(cases) == 1:
            for rule in rules.about(cases[0].classes):
                yield rule, cases[0]
        else:
            yield from ((rule, each) for rule in rules for each in cases if rule.concerns(each.classes))
