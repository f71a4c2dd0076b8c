"""Evidence to diagnosis: the first rule of the table that speaks decides. Total: it never raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.outcome import Diagnosis, Location, RunnerUp
from pytest_planverify.diagnosis.reading import Case
from pytest_planverify.diagnosis.repeating import repeatability
from pytest_planverify.diagnosis.rule import PRINTED, Hit, Rule
from pytest_planverify.diagnosis.rules import RULES, UNKNOWN_RULE
from pytest_planverify.diagnosis.signatures import signature

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.evidence import Evidence
    from planner.model.taxonomy import Category, Owner

_LONGEST_SUGGESTION = 600


def diagnose(evidence: Evidence) -> Diagnosis:
    """The opinion about one failure. A rule that breaks on odd evidence is passed over, and said so."""
    return diagnose_by(RULES, evidence)


def diagnose_by(rules: Iterable[Rule], evidence: Evidence) -> Diagnosis:
    """The same by another table."""
    broken: list[str] = []
    case = Case.of(evidence)
    for rule in rules:
        try:
            hit = rule.read(case)
        except Exception as error:  # evidence comes from outside: no rule may keep it from the others
            broken.append(f"{rule.id} ({type(error).__name__})")
            continue
        if hit is not None:
            return _diagnosis(rule, hit, case, broken)
    return _diagnosis(
        UNKNOWN_RULE, UNKNOWN_RULE.read(case) or Hit(suggestion="Nothing is known."), case, broken
    )


def _diagnosis(rule: Rule, hit: Hit, case: Case, broken: list[str]) -> Diagnosis:
    confidence = rule.confidence * hit.weight * (PRINTED if case.printed and case.error else 1.0)
    because = rule.because
    if broken:
        because += f" Rules that could not read the evidence: {', '.join(broken)}."
    return Diagnosis(
        category=rule.category,
        owner=_owner(rule, hit),
        repeatability=repeatability(case.evidence.confirmations),
        confidence=round(min(max(confidence, 0.0), 1.0), 3),
        rule=rule.id,
        because=because,
        signature=signature(case.evidence, rule.category),
        runner_up=_runner_up(rule, confidence),
        location=_location(hit, case),
        suggestion=_clipped(hit.suggestion),
    )


def _owner(rule: Rule, hit: Hit) -> Owner:
    return hit.owner or rule.owner or rule.category.facts.usual_owner


def _runner_up(rule: Rule, confidence: float) -> RunnerUp | None:
    """The rule's second reading; it never outweighs the first."""
    if rule.runner_up is None:
        return None
    category, weight = rule.runner_up
    return RunnerUp(category=category, confidence=round(min(weight, confidence), 3))


def _location(hit: Hit, case: Case) -> Location | None:
    if hit.location is not None:
        return hit.location
    frame = hit.frame or case.raised_at
    return Location(path=frame.path, line=frame.line, function=frame.function) if frame else None


def _clipped(text: str) -> str:
    tidy = text.replace("..", ".") if text.endswith("..") else text
    return tidy if len(tidy) <= _LONGEST_SUGGESTION else f"{tidy[: _LONGEST_SUGGESTION - 1]}…"


def rules_of(category: Category) -> tuple[Rule, ...]:
    """The rows of the table that conclude a category."""
    return tuple(rule for rule in RULES if rule.category is category)
