"""The ordered table of rules: the first that speaks decides."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from planner.model.kinds import EvidenceKind
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.rule import Hit, Rule, in_chain, in_group
from pytest_planverify.diagnosis.rules.behaviour import BEHAVIOUR_RULES
from pytest_planverify.diagnosis.rules.boundary import BOUNDARY_RULES
from pytest_planverify.diagnosis.rules.changed_names import CHANGED_NAME_RULES
from pytest_planverify.diagnosis.rules.checks import CHECK_RULES
from pytest_planverify.diagnosis.rules.command_ends import COMMAND_FALLBACKS
from pytest_planverify.diagnosis.rules.commands import COMMAND_RULES
from pytest_planverify.diagnosis.rules.endings import (
    EARLY_END_RULES,
    PROCESS_RULES,
    SESSION_FALLBACKS,
    TIMEOUT_RULES,
)
from pytest_planverify.diagnosis.rules.environment import ENVIRONMENT_RULES
from pytest_planverify.diagnosis.rules.guards import GUARD_RULES
from pytest_planverify.diagnosis.rules.imported_names import IMPORTED_NAME_RULES
from pytest_planverify.diagnosis.rules.loading import LOADING_RULES
from pytest_planverify.diagnosis.rules.machine import MACHINE_RULES
from pytest_planverify.diagnosis.rules.names import NAME_RULES
from pytest_planverify.diagnosis.rules.plugins import PLUGIN_RULES
from pytest_planverify.diagnosis.rules.raising import LAST_RULES, RAISING_RULES
from pytest_planverify.diagnosis.rules.repetition import REPETITION_RULES
from pytest_planverify.diagnosis.rules.rust import RUST_RULES
from pytest_planverify.diagnosis.rules.scripts import EARLY_SCRIPT_RULES, SCRIPT_RULES
from pytest_planverify.diagnosis.rules.selection import SELECTION_RULES
from pytest_planverify.diagnosis.rules.starting import STARTING_RULES
from pytest_planverify.diagnosis.rules.tool_use import TOOL_USE_RULES
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.model.evidence import Evidence
    from pytest_planverify.diagnosis.reading import Case


def _anything(case: Case) -> Hit:
    return Hit(suggestion=f"No rule knows this failure: {quote(_summary(case.evidence))}.")


def _summary(evidence: Evidence) -> str:
    return (
        evidence.headline
        or evidence.longrepr
        or evidence.nodeid
        or evidence.check_id
        or evidence.kind.value
    )


UNKNOWN_RULE = Rule(
    id="unknown",
    because="No rule knows this failure.",
    category=Category.UNKNOWN,
    confidence=0.3,
    owner=Owner.UNKNOWN,
    read=_anything,
)

_HARD = (
    CHANGED_NAME_RULES
    + ENVIRONMENT_RULES
    + MACHINE_RULES
    + PLUGIN_RULES
    + LOADING_RULES
    + IMPORTED_NAME_RULES
)
_SOFT = BOUNDARY_RULES + NAME_RULES + BEHAVIOUR_RULES + RAISING_RULES


class Section(NamedTuple):
    """Rules that stand together, and whether a case can concern any of them."""

    concerns: Callable[[Case], bool]
    """Cheap; where it says no, none of the rules would speak."""
    rules: tuple[Rule, ...]
    classes: Callable[[Case], frozenset[str]] | None = None
    """Of which exceptions the section speaks: rules about others are not asked."""


_GUARDS = frozenset(
    {EvidenceKind.HYGIENE, EvidenceKind.SANDBOX, EvidenceKind.ALLOWLIST, EvidenceKind.BUDGET}
)
_CHECKS = frozenset(
    {
        EvidenceKind.ARTIFACT,
        EvidenceKind.FIXTURE,
        EvidenceKind.METRIC,
        EvidenceKind.CONTRACT,
        EvidenceKind.MANUAL,
    }
)


def _is_command(case: Case) -> bool:
    return case.evidence.kind is EvidenceKind.COMMAND


def _is_selection(case: Case) -> bool:
    evidence = case.evidence
    return (
        bool(evidence.selectors)
        or evidence.vacuous is not None
        or evidence.kind in (EvidenceKind.SELECTION, EvidenceKind.SESSION)
    )


def _has_limit(case: Case) -> bool:
    evidence = case.evidence
    return evidence.timed_out or evidence.swallowed_timeout or case.process.timed_out


def _is_guard(case: Case) -> bool:
    return case.evidence.kind in _GUARDS


def _is_check(case: Case) -> bool:
    return case.evidence.kind in _CHECKS


def _is_session(case: Case) -> bool:
    return case.evidence.kind is EvidenceKind.SESSION


def _was_process(case: Case) -> bool:
    return case.evidence.process is not None


def _was_repeated(case: Case) -> bool:
    return bool(case.evidence.confirmations)


def _has_error(case: Case) -> bool:
    return case.error is not None


def _has_chain(case: Case) -> bool:
    return bool(case.deeper)


def _has_group(case: Case) -> bool:
    return bool(case.evidence.exceptions_in_group)


def _of_error(case: Case) -> frozenset[str]:
    return case.classes


def _of_chain(case: Case) -> frozenset[str]:
    return frozenset(name for each in case.deeper_cases for name in each.classes)


def _of_group(case: Case) -> frozenset[str]:
    return frozenset(name for each in case.leaves for name in each.classes)


def _always(case: Case) -> bool:
    return True


_KINDS_OF: dict[Callable[[Case], bool], frozenset[EvidenceKind]] = {
    _is_guard: _GUARDS,
    _is_check: _CHECKS,
    _is_command: frozenset({EvidenceKind.COMMAND}),
    _is_session: frozenset({EvidenceKind.SESSION}),
}
"""Of questions that ask for nothing but the kind of evidence: which they say yes to."""

SECTIONS: tuple[Section, ...] = (
    Section(_is_guard, GUARD_RULES),
    Section(_is_check, CHECK_RULES),
    Section(_is_command, TOOL_USE_RULES),
    Section(_is_command, EARLY_SCRIPT_RULES),
    Section(_is_command, RUST_RULES),
    Section(_is_command, COMMAND_RULES),
    Section(_is_selection, SELECTION_RULES),
    Section(_was_repeated, REPETITION_RULES),
    Section(_has_limit, TIMEOUT_RULES),
    Section(_always, PROCESS_RULES),
    Section(_is_session, STARTING_RULES),
    Section(_was_process, EARLY_END_RULES),
    Section(_has_error, _HARD, _of_error),
    Section(_has_chain, tuple(in_chain(rule) for rule in _HARD), _of_chain),
    Section(_has_group, tuple(in_group(rule) for rule in _SOFT), _of_group),
    Section(_always, _SOFT, _of_error),
    Section(_is_session, SESSION_FALLBACKS),
    Section(_is_command, SCRIPT_RULES),
    Section(_is_command, COMMAND_FALLBACKS),
    Section(_always, (*LAST_RULES, UNKNOWN_RULE)),
)
"""What a guard found, then what decides by the kind of criterion, then what repeated runs proved, then
limits and deaths, then what an exception says by its type (first the one that surfaced, then those
beneath), then whose frame raised."""

RULES: tuple[Rule, ...] = tuple(rule for section in SECTIONS for rule in section.rules)
"""The same as one table."""


def rules_for(case: Case) -> Iterator[Rule]:
    """The rules that may speak of a case, in their order."""
    for number, section in _sections_for(case.evidence.kind):
        if section.concerns(case):
            if section.classes is None:
                yield from section.rules
            else:
                yield from _about(number, section.classes(case))


@cache
def _sections_for(kind: EvidenceKind) -> tuple[tuple[int, Section], ...]:
    """Without those that speak of other kinds of evidence only."""
    return tuple(
        (number, section)
        for number, section in enumerate(SECTIONS)
        if kind in _KINDS_OF.get(section.concerns, EvidenceKind)
    )


@cache
def _about(section: int, classes: frozenset[str]) -> tuple[Rule, ...]:
    """The rules of a section that speak of one of these exceptions, or of any."""
    return tuple(
        rule for rule in SECTIONS[section].rules if rule.about is None or not rule.about.isdisjoint(classes)
    )
