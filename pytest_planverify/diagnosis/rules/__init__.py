"""The ordered table of rules: the first that applies decides.

:data:`RULES` lists all rules. :func:`rules_for` yields those that may apply to a case, in the same order;
rules about exception types are evaluated for causes and group members as well.
"""

from __future__ import annotations

from functools import lru_cache
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
    headline = evidence.headline or evidence.longrepr or evidence.nodeid or evidence.check_id
    return f"No rule matches this failure: {quote(headline or evidence.kind.value)}."


UNKNOWN_RULE = _NOTHING_RULES[0]

_HARD = Rules([*MACHINE_RULES, *LOADING_RULES])
"""Rules that decide by exception type, also for causes and group members."""
_SOFT = Rules([*BOUNDARY_RULES, *BEHAVIOUR_RULES])
"""Rules that decide by the side of the raising frame, also for group members."""
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
"""All rules in order of evaluation."""


@lru_cache(maxsize=4096)
def _tables(
    kind: EvidenceKind, asked: frozenset[str], classes: frozenset[str]
) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Return the rules to evaluate before and after those for causes and group members.

    ``asked`` names the kinds of facts that the evidence contains: rules about other facts are skipped.
    Cached, as a run has few combinations of kind, facts and exception type.
    """
    before: list[Rules] = []
    if kind in _GUARDS:
        before.append(GUARD_RULES)
    elif kind is EvidenceKind.COMMAND:
        before.append(COMMAND_RULES)
    elif kind not in _TESTS:
        before.append(CHECK_RULES)
    before += [rules for name, rules in _BY_FACT if name in asked or (kind, name) in _ALWAYS]
    after = [_SOFT]
    if kind is EvidenceKind.SESSION:
        after.append(SESSION_FALLBACKS)
    elif kind is EvidenceKind.COMMAND:
        after.append(SCRIPT_RULES)
    after.append(_LAST)
    first, last = (
        tuple(rule for rules in groups for rule in rules if rule.concerns(classes))
        for groups in (before, after)
    )
    return first, last


_BY_FACT = (
    ("selection", SELECTION_RULES),
    ("runs", REPETITION_RULES),
    ("limit", TIMEOUT_RULES),
    ("process", PROCESS_RULES),
    ("start", STARTING_RULES),
    ("end", EARLY_END_RULES),
    ("error", _HARD),
)
"""Rules by the kind of fact that they need, in order of evaluation."""
_ALWAYS = {
    (EvidenceKind.SELECTION, "selection"),
    (EvidenceKind.SESSION, "selection"),
    (EvidenceKind.SESSION, "start"),
}
"""Rules that a kind of evidence is checked for even without such facts."""


def rules_for(case: Case) -> Iterator[tuple[Rule, Case]]:
    """Yield the rules that may apply, in order, each with the case to evaluate.

    Order: findings of guards; rules by kind of criterion; repeated runs; time limits and dead processes;
    exception types (the surfacing exception, then causes and group members); last the side of the raising
    frame.
    """
    evidence, asked = case.evidence, set[str]()
    if evidence.selectors or evidence.vacuous is not None:
        asked.add("selection")
    if evidence.confirmations:
        asked.add("runs")
    if case.timed_out or evidence.swallowed_timeout:
        asked.add("limit")
    if evidence.process is not None:
        asked |= {"process", "end"}
    if case.has_error:
        asked |= {"process", "error"}
    before, after = _tables(evidence.kind, frozenset(asked), case.classes)
    for rule in before:
        yield rule, case
    if case.has_error and case.deeper:
        for rules, cases in ((_HARD, case.deeper), (_SOFT, case.leaves)):
            yield from ((rule, each) for rule in rules for each in cases if rule.concerns(each.classes))
    for rule in after:
        yield rule, case
