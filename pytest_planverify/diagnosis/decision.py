"""Evidence to diagnosis: the first rule of the table that speaks decides. Total: it never raises."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from planner.model.outcome import Diagnosis, Location, RunnerUp
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind
from planner.policy.branches import agent_at
from pytest_planverify.diagnosis.case import Case
from pytest_planverify.diagnosis.confidence import calibrated
from pytest_planverify.diagnosis.location import candidates_of, location_of
from pytest_planverify.diagnosis.rule import PRINTED, Hit, Rule
from pytest_planverify.diagnosis.rules import DEEPER, UNKNOWN_RULE, rules_for
from pytest_planverify.diagnosis.signatures import signature_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from planner.model.evidence import Evidence
    from planner.model.outcome import Candidate

_LONGEST_SUGGESTION = 600
_NOT_FOUND = "builtins.ModuleNotFoundError"
_EXPECTATIONS = (Category.TEST_REGRESSION, Category.SPEC_MISMATCH)
_BY_TESTS = (EvidenceKind.TEST, EvidenceKind.COLLECTION, EvidenceKind.COMMAND)
_ONLY_TESTS = 0.85
"""How much is left of a rule's confidence when what was changed decides whose fault it is."""
_SURE = 0.8
"""From here on a rule without a second reading of its own is believed alone."""


class Judged(NamedTuple):
    """What the table says of a failure, before its confidence is compared with what it has earned."""

    rule: Rule
    hit: Hit
    raw: float
    """The rule's own confidence, for this case."""
    case: Case
    broken: tuple[str, ...]
    """Rules that could not read the evidence."""
    second: Rule | None
    """The next rule that speaks and says something else, where the first is not sure."""
    is_of_changed_tests: bool
    """A test does not get what it expects, and of all code only tests were changed."""

    @property
    def owner(self) -> Owner:
        """Whose fault it is; the tests', where no other code was changed."""
        owner = self.hit.owner or self.rule.owner or self.rule.category.facts.usual_owner
        return Owner.TEST if owner is Owner.PRODUCT and self.is_of_changed_tests else owner

    @property
    def category(self) -> Category:
        """What kind of failure: a promise that only changed tests know of was made by nobody."""
        return Category.TEST_REGRESSION if self.is_of_changed_tests else self.rule.category


def diagnose(evidence: Evidence) -> Diagnosis:
    """The opinion about one failure. A rule that breaks on odd evidence is passed over, and said so."""
    return _diagnosis(judge(evidence))


def diagnose_by(rules: Container[Rule], evidence: Evidence) -> Diagnosis:
    """Return the opinion of some rules of the table."""
    return _diagnosis(judge(evidence, rules))


def judge(evidence: Evidence, rules: Container[Rule] | None = None) -> Judged:
    """Find which rule of the table, or of these, speaks, and how sure it is by itself."""
    case = Case.of(evidence)
    asked = rules_for(case)
    if rules is not None:
        asked = ((rule, at) for rule, at in asked if rule in rules)
    broken: list[str] = []
    rule, hit, at = _first(asked, broken) or (UNKNOWN_RULE, Hit(suggestion="Nothing is known."), case)
    raw = rule.confidence * hit.weight * (PRINTED if case.printed and case.error else 1.0)
    if at is not case:
        raw *= DEEPER
        hit = hit if hit.frame or hit.location else replace(hit, frame=at.raised_at)
    second = None
    if rule.second is None and rule is not UNKNOWN_RULE and raw < _SURE:
        second = _next_other(asked, rule.category, broken)
    by_tests = _is_of_changed_tests(rule, case)
    if by_tests:
        raw *= _ONLY_TESTS
    raw = round(min(max(raw, 0.0), 1.0), 3)
    return Judged(rule, hit, raw, case, tuple(broken), second, by_tests)


def _is_of_changed_tests(rule: Rule, case: Case) -> bool:
    return (
        rule.category in _EXPECTATIONS
        and case.only_tests_changed
        and case.tests_on_way_changed
        and case.evidence.kind in _BY_TESTS
    )


def _first(asked: Iterator[tuple[Rule, Case]], broken: list[str]) -> tuple[Rule, Hit, Case] | None:
    for rule, case in asked:
        try:
            hit = rule.read(case)
        except Exception as error:  # evidence comes from outside: no rule may keep it from the others
            broken.append(f"{rule.id} ({type(error).__name__})")
            continue
        if hit is not None:
            return rule, hit, case
    return None


def _next_other(asked: Iterator[tuple[Rule, Case]], said: Category, broken: list[str]) -> Rule | None:
    """Return the next rule that speaks for another category; that nothing is known is no reading."""
    while found := _first(asked, broken):
        rule = found[0]
        if rule is UNKNOWN_RULE:
            return None
        if rule.category is not said:
            return rule
    return None


def _diagnosis(judged: Judged) -> Diagnosis:
    rule, hit, case = judged.rule, judged.hit, judged.case
    confidence = round(calibrated(rule.id, judged.raw), 3)
    because = rule.because
    candidates = candidates_of(case.evidence, hit.frame)
    location = _location(judged, candidates)
    if judged.is_of_changed_tests:
        because += " Of all code only tests were changed."
    if judged.broken:
        because += f" Rules that could not read the evidence: {', '.join(judged.broken)}."
    return Diagnosis(
        category=judged.category,
        owner=judged.owner,
        repeatability=case.repeatability,
        confidence=confidence,
        rule=rule.id,
        because=because,
        signature=signature_of(case, judged.category),
        runner_up=_runner_up(judged, confidence),
        location=location,
        candidates=candidates,
        target_agent=agent_at(judged.category, judged.owner, location),
        suggestion=_clipped(hit.suggestion),
    )


def _runner_up(judged: Judged, confidence: float) -> RunnerUp | None:
    """The second reading: as the rule tells it, or as the next rule does. It never outweighs the first."""
    if judged.category is not judged.rule.category:
        category, weight = judged.rule.category, _ONLY_TESTS / 2
    elif judged.rule.second is not None:
        category, weight = judged.rule.second
    elif judged.second is not None:
        category, weight = judged.second.category, judged.second.confidence
    else:
        return None
    return RunnerUp(category=category, confidence=round(min(weight, confidence, 1 - confidence), 3))


def _location(judged: Judged, candidates: tuple[Candidate, ...]) -> Location | None:
    """Return the place of the fault: the likeliest function, where that is the product's and not told."""
    hit, case = judged.hit, judged.case
    if hit.location is not None:
        return hit.location
    frame = hit.frame or case.raised_at
    told = Location(path=frame.path, line=frame.line, function=frame.function) if frame else None
    if judged.owner is not Owner.PRODUCT or case.evidence.kind not in _BY_TESTS[:2] or _is_exact(case):
        return told
    return location_of(candidates[0]) if candidates else told


def _is_exact(case: Case) -> bool:
    """Return whether the exception itself names the place: broken syntax, a library that is missing."""
    if case.error is None:
        return False
    missing = case.is_error(_NOT_FOUND) and not case.is_first_party(case.error.name or "")
    return missing or case.error.line is not None


def _clipped(text: str) -> str:
    tidy = text.replace("..", ".") if text.endswith("..") else text
    return tidy if len(tidy) <= _LONGEST_SUGGESTION else f"{tidy[: _LONGEST_SUGGESTION - 1]}…"
