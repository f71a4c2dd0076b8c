"""The ordered table of rules: the first that speaks decides."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.rules.behaviour import (
    BEHAVIOUR_RULES,
    BOUNDARY_RULES,
    LAST_RULES,
    NAME_RULES,
    RAISING_RULES,
)
from pytest_planverify.diagnosis.rules.commands import (
    COMMAND_FALLBACKS,
    COMMAND_RULES,
    EARLY_SCRIPT_RULES,
    RUST_RULES,
    SCRIPT_RULES,
    TOOL_USE_RULES,
)
from pytest_planverify.diagnosis.rules.criteria import CHECK_RULES, GUARD_RULES, SELECTION_RULES
from pytest_planverify.diagnosis.rules.imports import IMPORTED_NAME_RULES, LOADING_RULES
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

DEEPER = 0.9
"""How much is left of a rule's confidence when it speaks of a cause, a context or a member of a group."""


def _anything(case: Case) -> Hit | None:
    evidence = case.evidence
    said = evidence.headline or evidence.longrepr or evidence.nodeid or evidence.check_id
    return Hit(suggestion=f"No rule knows this failure: {quote(said or evidence.kind.value)}.")


UNKNOWN_RULE = Rule(
    "unknown", Category.UNKNOWN, 0.3, _anything, "No rule knows this failure.", owner=Owner.UNKNOWN
)

_HARD = MACHINE_RULES + LOADING_RULES + IMPORTED_NAME_RULES
"""What says by its type alone what is wrong, also beneath the exception that surfaced."""

_SOFT = BOUNDARY_RULES + NAME_RULES + BEHAVIOUR_RULES + RAISING_RULES

_GUARDS = (EvidenceKind.HYGIENE, EvidenceKind.SANDBOX, EvidenceKind.ALLOWLIST, EvidenceKind.BUDGET)
_CHECKS = (
    EvidenceKind.ARTIFACT,
    EvidenceKind.FIXTURE,
    EvidenceKind.METRIC,
    EvidenceKind.CONTRACT,
    EvidenceKind.MANUAL,
)
_COMMANDS = (EvidenceKind.COMMAND,)
_SESSIONS = (EvidenceKind.SESSION,)
_ALL = tuple(EvidenceKind)


class Section(NamedTuple):
    """Rules that stand together, the kinds of evidence that they speak of, and a cheap question before."""

    kinds: tuple[EvidenceKind, ...]
    rules: tuple[Rule, ...]
    concerns: Callable[[Case], bool] | None = None
    looks_at: Callable[[Case], tuple[Case, ...]] | None = None
    """The exceptions that are looked at one by one; the case itself where absent."""


def _is_selection(case: Case) -> bool:
    evidence = case.evidence
    return bool(evidence.selectors) or evidence.vacuous is not None or case.evidence.kind in _SELECTING


_SELECTING = (EvidenceKind.SELECTION, EvidenceKind.SESSION)


def _has_limit(case: Case) -> bool:
    return case.evidence.timed_out or case.evidence.swallowed_timeout or case.process.timed_out


def _was_repeated(case: Case) -> bool:
    return bool(case.evidence.confirmations)


def _was_process(case: Case) -> bool:
    return case.evidence.process is not None


def _beneath(case: Case) -> tuple[Case, ...]:
    return case.deeper_cases


def _leaves(case: Case) -> tuple[Case, ...]:
    return case.leaves


def _surfaced(case: Case) -> tuple[Case, ...]:
    return (case,) if case.error is not None else ()


SECTIONS: tuple[Section, ...] = (
    Section(_GUARDS, GUARD_RULES),
    Section(_CHECKS, CHECK_RULES),
    Section(_COMMANDS, TOOL_USE_RULES + EARLY_SCRIPT_RULES + RUST_RULES + COMMAND_RULES),
    Section(_ALL, SELECTION_RULES, _is_selection),
    Section(_ALL, REPETITION_RULES, _was_repeated),
    Section(_ALL, TIMEOUT_RULES, _has_limit),
    Section(_ALL, PROCESS_RULES),
    Section(_SESSIONS, STARTING_RULES),
    Section(_ALL, EARLY_END_RULES, _was_process),
    Section(_ALL, _HARD, looks_at=_surfaced),
    Section(_ALL, _HARD, looks_at=_beneath),
    Section(_ALL, _SOFT, looks_at=_leaves),
    Section(_ALL, _SOFT),
    Section(_SESSIONS, SESSION_FALLBACKS),
    Section(_COMMANDS, SCRIPT_RULES + COMMAND_FALLBACKS),
    Section(_ALL, (*LAST_RULES, UNKNOWN_RULE)),
)
"""What a guard found, then what decides by the kind of criterion, then what repeated runs proved, then
limits and deaths, then what an exception says by its type (first the one that surfaced, then those
beneath), then whose frame raised."""

RULES: tuple[Rule, ...] = tuple(dict.fromkeys(rule for section in SECTIONS for rule in section.rules))
"""The same as one table."""


def rules_for(case: Case) -> Iterator[tuple[Rule, Case]]:
    """Yield the rules that may speak, in their order, each with the exception that it looks at."""
    for number in _sections_of(case.evidence.kind):
        section = SECTIONS[number]
        if section.concerns is not None and not section.concerns(case):
            continue
        members = (case,) if section.looks_at is None else section.looks_at(case)
        if not members:
            continue
        classes = frozenset(name for each in members for name in each.classes)
        for rule in _about(number, classes):
            for each in members:
                yield rule, each


@cache
def _sections_of(kind: EvidenceKind) -> tuple[int, ...]:
    return tuple(number for number, section in enumerate(SECTIONS) if kind in section.kinds)


@cache
def _about(section: int, classes: frozenset[str]) -> tuple[Rule, ...]:
    """Return the rules of a section that speak of one of these exceptions, or of any."""
    return tuple(
        rule for rule in SECTIONS[section].rules if not rule.about or not classes.isdisjoint(rule.about)
    )
