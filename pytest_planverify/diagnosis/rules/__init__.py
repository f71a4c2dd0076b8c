"""The ordered table of rules: the first that speaks decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.rule import Hit, Rule, in_chain, in_group
from pytest_planverify.diagnosis.rules.behaviour import BEHAVIOUR_RULES
from pytest_planverify.diagnosis.rules.boundary import BOUNDARY_RULES
from pytest_planverify.diagnosis.rules.checks import CHECK_RULES
from pytest_planverify.diagnosis.rules.commands import COMMAND_FALLBACKS, COMMAND_RULES
from pytest_planverify.diagnosis.rules.endings import PROCESS_RULES, SESSION_FALLBACKS, TIMEOUT_RULES
from pytest_planverify.diagnosis.rules.environment import ENVIRONMENT_RULES
from pytest_planverify.diagnosis.rules.guards import GUARD_RULES
from pytest_planverify.diagnosis.rules.loading import LOADING_RULES
from pytest_planverify.diagnosis.rules.raising import LAST_RULES, RAISING_RULES
from pytest_planverify.diagnosis.rules.repetition import REPETITION_RULES
from pytest_planverify.diagnosis.rules.selection import SELECTION_RULES
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
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

_HARD = ENVIRONMENT_RULES + LOADING_RULES
_SOFT = BOUNDARY_RULES + BEHAVIOUR_RULES + RAISING_RULES

RULES: tuple[Rule, ...] = (
    *GUARD_RULES,
    *CHECK_RULES,
    *COMMAND_RULES,
    *SELECTION_RULES,
    *REPETITION_RULES,
    *TIMEOUT_RULES,
    *PROCESS_RULES,
    *_HARD,
    *(in_chain(rule) for rule in _HARD),
    *(in_group(rule) for rule in _SOFT),
    *_SOFT,
    *SESSION_FALLBACKS,
    *COMMAND_FALLBACKS,
    *LAST_RULES,
    UNKNOWN_RULE,
)
"""What a guard found, then what decides by the kind of criterion, then what repeated runs proved, then
limits and deaths, then what an exception says by its type (first the one that surfaced, then those
beneath), then whose frame raised."""
