"""The ordered table of rules: the first that speaks decides."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind
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
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_planverify.diagnosis.case import Case

_NOTHING_RULES = Rules()


@_NOTHING_RULES.rule(Category.UNKNOWN, 0.3, owner=Owner.UNKNOWN)
def unknown(case: Case) -> str:
    """No rule knows this failure."""
    evidence = case.evidence
    said = evidence.headline or evidence.longrepr or evidence.nodeid or evidence.check_id
    return f"No rule knows this failure: {quote(said or evidence.kind.value)}."


UNKNOWN_RULE = _NOTHING_RULES[0]

_HARD = (*MACHINE_RULES, *LOADING_RULES)
"""What says by its type alone what is wrong, also beneath the exception that surfaced."""
_SOFT = (*BOUNDARY_RULES, *BEHAVIOUR_RULES)

_K = EvidenceKind
_ALL = tuple(EvidenceKind)


class Section(NamedTuple):
    """Rules that stand together, the kinds of evidence that they speak of, and a cheap question before."""

    kinds: tuple[EvidenceKind, ...]
    rules: tuple[Rule, ...]
    cases: Callable[[Case], tuple[Case, ...]]
    """The case with each exception in focus that is looked at; none where the rules have nothing to say."""


def _itself(case: Case) -> tuple[Case, ...]:
    return (case,)


def _if_selecting(case: Case) -> tuple[Case, ...]:
    evidence = case.evidence
    is_kind = evidence.kind in (EvidenceKind.SELECTION, EvidenceKind.SESSION)
    return (case,) if is_kind or evidence.selectors or evidence.vacuous is not None else ()


def _if_limited(case: Case) -> tuple[Case, ...]:
    return (case,) if case.timed_out or case.evidence.swallowed_timeout else ()


def _if_repeated(case: Case) -> tuple[Case, ...]:
    return (case,) if case.evidence.confirmations else ()


def _if_ended(case: Case) -> tuple[Case, ...]:
    """Return the case of a process that ended, or of an error."""
    return (case,) if case.has_error or case.evidence.process is not None else ()


def _if_process(case: Case) -> tuple[Case, ...]:
    return (case,) if case.evidence.process is not None else ()


def _if_raised(case: Case) -> tuple[Case, ...]:
    return (case,) if case.has_error else ()


def _beneath(case: Case) -> tuple[Case, ...]:
    return case.deeper


def _in_group(case: Case) -> tuple[Case, ...]:
    return case.leaves


SECTIONS: tuple[Section, ...] = (
    Section((_K.HYGIENE, _K.SANDBOX, _K.ALLOWLIST, _K.BUDGET), tuple(GUARD_RULES), _itself),
    Section((_K.ARTIFACT, _K.FIXTURE, _K.METRIC, _K.CONTRACT, _K.MANUAL), tuple(CHECK_RULES), _itself),
    Section((_K.COMMAND,), tuple(COMMAND_RULES), _itself),
    Section(_ALL, tuple(SELECTION_RULES), _if_selecting),
    Section(_ALL, tuple(REPETITION_RULES), _if_repeated),
    Section(_ALL, tuple(TIMEOUT_RULES), _if_limited),
    Section(_ALL, tuple(PROCESS_RULES), _if_ended),
    Section((_K.SESSION,), tuple(STARTING_RULES), _itself),
    Section(_ALL, tuple(EARLY_END_RULES), _if_process),
    Section(_ALL, _HARD, _if_raised),
    Section(_ALL, _HARD, _beneath),
    Section(_ALL, _SOFT, _in_group),
    Section(_ALL, _SOFT, _itself),
    Section((_K.SESSION,), tuple(SESSION_FALLBACKS), _itself),
    Section((_K.COMMAND,), tuple(SCRIPT_RULES), _itself),
    Section(_ALL, (*LAST_RULES, UNKNOWN_RULE), _itself),
)
"""What a guard found, then what decides by the kind of criterion, then what repeated runs proved, then
limits and deaths, then what an exception says by its type (first the one that surfaced, then those
beneath), then whose frame raised."""

RULES: tuple[Rule, ...] = tuple(dict.fromkeys(rule for section in SECTIONS for rule in section.rules))
"""The same as one table."""


def rules_for(case: Case) -> Iterator[tuple[Rule, Case]]:
    """Yield the rules that may speak, in their order, each with the exception that it looks at."""
    for number in _sections_of(case.evidence.kind):
        cases = SECTIONS[number].cases(case)
        if len(cases) == 1:
            for rule in _rules_about(number, cases[0].classes):
                yield rule, cases[0]
        elif cases:
            for rule in SECTIONS[number].rules:
                for each in cases:
                    if not rule.about or not each.classes.isdisjoint(rule.about):
                        yield rule, each


@cache
def _sections_of(kind: EvidenceKind) -> tuple[int, ...]:
    return tuple(number for number, section in enumerate(SECTIONS) if kind in section.kinds)


@lru_cache(maxsize=4096)
def _rules_about(section: int, classes: frozenset[str]) -> tuple[Rule, ...]:
    """Return the rules of a section that speak of one of these exceptions, or of any."""
    rules = SECTIONS[section].rules
    return tuple(rule for rule in rules if not rule.about or not classes.isdisjoint(rule.about))
