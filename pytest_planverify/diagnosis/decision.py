"""Decision of the diagnosis: the first rule of the table that applies determines it.

:func:`diagnose` is total: a rule that raises on odd evidence is skipped, and the rule for unknown failures
applies if no other does.

A rule's written confidence is calibrated to the hit rate that it achieved on the labelled corpus. The
fitted numbers are data, made by ``python -m tools.corpus fit`` on the part of the corpus that the rules
were developed on.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from functools import cache, lru_cache
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.catalog.test_paths import is_test_path
from planner.model.outcome import UNRELATED, Diagnosis, Location, RunnerUp
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Side
from planner.policy.branches import agent_at
from pytest_planverify.diagnosis.case import Case, last_frame_of
from pytest_planverify.diagnosis.location import candidates_of, is_data, location_of
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.rules import UNKNOWN_RULE, rules_for
from pytest_planverify.diagnosis.signatures import signature_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.evidence import Evidence, Frame
    from planner.model.outcome import Candidate


DEEPER = 0.9
"""Factor on the confidence of a rule that applies to a cause, context or group member."""
PRINTED = 0.95
"""Factor on the confidence for an exception parsed from printed output."""
_ONLY_TESTS = 0.85
"""Factor on the confidence if only the set of changed files decides the owner."""

_REMOVAL_SCORE = 0.55
"""Score above which a changed function is taken for the one that removed the missing name."""

_LONGEST_SUGGESTION = 600
_EXPECTATIONS = (Category.TEST_REGRESSION, Category.SPEC_MISMATCH)
_OF_TESTS = (EvidenceKind.TEST, EvidenceKind.COLLECTION)
_OF_RESULTS = (EvidenceKind.COMMAND, EvidenceKind.METRIC)


class Judged(NamedTuple):
    """Decision on a failure before calibration."""

    rule: Rule
    hit: Hit
    raw: float
    """The rule's written confidence for this case."""
    case: Case
    at: Case
    """The case whose exception in focus is the one that the rule applies to."""
    broken: tuple[str, ...]
    """Ids of rules that raised on this evidence, each with the exception's type."""
    is_of_changed_tests: bool
    """The rule names the product, but only tests were changed."""

    @property
    def owner(self) -> Owner:
        """The owner of the failure: the tests instead of the product, if only tests were changed."""
        return Owner.TEST if self.is_of_changed_tests else _owner(self.rule, self.hit)

    @property
    def category(self) -> Category:
        """The category; an expectation that only changed tests have is no specification of the product."""
        is_expectation = self.is_of_changed_tests and self.rule.category is Category.SPEC_MISMATCH
        return Category.TEST_REGRESSION if is_expectation else self.rule.category


def diagnose(evidence: Evidence) -> Diagnosis:
    """Return the diagnosis of one failure. Rules that raise on odd evidence are skipped and named in it."""
    return _diagnosis(judge(evidence))


def judge(evidence: Evidence) -> Judged:
    """Return the first rule that applies, with its confidence for this case before calibration."""
    case = Case.of(evidence)
    broken: list[str] = []
    rule, hit, at = _first_match(case, broken)
    raw = rule.confidence * hit.weight * (PRINTED if case.printed and case.has_error else 1.0)
    raw *= 1.0 if at is case else DEEPER
    # A missing artifact is still to be written, whatever tests ask for it. Of commands, only those that run
    # tests depend on changed tests: a linter reads each file by itself.
    may_be_of_tests = (
        rule.category in _EXPECTATIONS
        if evidence.kind is EvidenceKind.COMMAND
        else evidence.kind in _OF_TESTS and rule.category is not Category.ARTIFACT_MISSING
    )
    is_of_product = may_be_of_tests and _owner(rule, hit) is Owner.PRODUCT
    is_of_changed_tests = is_of_product and case.is_of_changed_tests
    raw = round(raw * (_ONLY_TESTS if is_of_changed_tests else 1.0), 3)
    return Judged(rule, hit, raw, case, at, tuple(broken), is_of_changed_tests)


def _owner(rule: Rule, hit: Hit) -> Owner:
    return hit.owner or rule.owner or rule.category.facts.usual_owner


def _first_match(case: Case, broken: list[str]) -> tuple[Rule, Hit, Case]:
    """Return the first rule that applies, with its hit and case; append failed rules to ``broken``."""
    for rules, at in rules_for(case):
        for rule in rules:
            try:
                hit = rule.read(at)
            except Exception as error:  # odd evidence must not stop the other rules
                broken.append(f"{rule.id} ({type(error).__name__})")
                continue
            if hit is not None:
                return rule, Hit(suggestion=hit) if isinstance(hit, str) else hit, at
    return UNKNOWN_RULE, Hit(suggestion="No details are known."), case


def _diagnosis(judged: Judged) -> Diagnosis:
    """Return the diagnosis of a decided case, with calibrated confidence, location and runner-up."""
    rule, hit, case = judged.rule, judged.hit, judged.case
    confidence = round(calibrated(rule.id, judged.raw), 3)
    category, owner = judged.category, judged.owner
    because = rule.because
    if judged.is_of_changed_tests:
        because += " Only tests were changed."
    if judged.broken:
        because += f" Rules that could not read the evidence: {', '.join(judged.broken)}."
    frame = hit.frame or (judged.at.raised_at if judged.at is not case else None)
    # No code is at fault if the plan is or a person says no, or if a file is missing that code still needs.
    is_not_of_code = owner is Owner.PLAN or case.evidence.kind is EvidenceKind.MANUAL
    is_of_code = not is_not_of_code and (category is not Category.ARTIFACT_MISSING or hit.location is None)
    of_tests = owner is Owner.TEST
    candidates = candidates_of(case.evidence, frame, hit.holder, of_tests=of_tests) if is_of_code else ()
    # The location, most specific first: the rule's, the change that removed a name or the file that lacks
    # it, the most suspicious product function, the raising frame.
    location = hit.location
    if location is None:
        frame = frame or case.raised_at
        own = [
            each
            for each in candidates
            if each.hunk is None or (each.hunk.side is not Side.TEST and each.score > UNRELATED)
        ]
        first = own[0] if own else None
        # The failing assertion of a command's test shows what is wrong, not where.
        shows_other = owner is Owner.PRODUCT and case.evidence.kind in _OF_RESULTS
        shows_other = shows_other and (frame is None or frame.side is Side.TEST)
        # A test of an unchanged file is not at fault, but a changed fixture, or what hangs below it.
        reached = {each.path for each in case.frames}
        others = [each for each in candidates[:1] if each.hunk and each.path not in reached]
        if hit.holder is not None and owner is Owner.PRODUCT:
            removals = (
                each for each in candidates if each.hunk is not None and each.score > _REMOVAL_SCORE
            )
            first = next(removals, None)
            lacking = _location_at(hit.frame) if hit.frame else Location(path=hit.holder)
            location = lacking if first is None else location_of(first)
        elif first is not None and owner is Owner.PRODUCT and case.evidence.kind in _OF_TESTS:
            location = location_of(first)
        elif shows_other and (change := _only_change(own)) is not None:
            location = change
        elif owner is Owner.TEST and others and (judged.is_of_changed_tests or is_data(others[0].path)):
            location = location_of(others[0])
        elif frame is not None:
            if owner is Owner.TEST and frame.side is Side.PRODUCT:  # the definition of what the test calls
                frame = last_frame_of(case.frames, Side.TEST) or frame
            location = _location_at(frame)
    return Diagnosis(
        category=category,
        owner=owner,
        repeatability=case.repeatability,
        confidence=confidence,
        rule=rule.id,
        because=because,
        signature=signature_of(case, category),
        runner_up=_runner_up(judged, confidence),
        location=location,
        candidates=candidates,
        target_agent=agent_at(category, owner, location),
        suggestion=_clip(hit.suggestion),
    )


def _location_at(frame: Frame) -> Location:
    return Location(path=frame.path, line=frame.line, function=frame.function)


def _only_change(candidates: Sequence[Candidate]) -> Location | None:
    """Return the most likely change of the product if only one of its files was changed."""
    changed = [each for each in candidates if each.hunk is not None and not is_test_path(each.path)]
    return location_of(changed[0]) if len({each.path for each in changed}) == 1 else None


def _runner_up(judged: Judged, confidence: float) -> RunnerUp | None:
    """Return the second most likely category, with what the confidence leaves of 1, at most as much."""
    category = judged.rule.second
    if judged.category is not judged.rule.category:
        category = judged.rule.category
    rest = round(min(confidence, 1 - confidence), 3)
    return RunnerUp(category=category, confidence=rest) if category is not None else None


def _clip(text: str) -> str:
    """Return a suggestion of limited length, which begins with a capital letter unless a name begins it.

    It has no period after the last mark of a quoted message.
    """
    text = text[:1].upper() + text[1:] if text.startswith(("the ", "no ")) else text
    tidy = text[:-1] if text.endswith(("..", "?.", "!.")) else text
    return tidy if len(tidy) <= _LONGEST_SUGGESTION else f"{tidy[: _LONGEST_SUGGESTION - 1]}…"


# -- calibrated confidence -----------------------------------------------------------------------------

FILE = Path(__file__).parent / "data" / "confidence.json"
"""JSON file of the fitted calibration."""

SUREST = 0.999
"""Upper bound of confidences when they are converted to log-odds; the lower one is ``1 - SUREST``."""

MOST = 0.99
"""Maximum of a calibrated confidence: a perfect record on the corpus is no certainty."""


class Fit(NamedTuple):
    """Fitted calibration: a shift per rule, and a curve for all rules."""

    curve: tuple[tuple[float, ...], tuple[float, ...]]
    """Scores and hit rates, both increasing; interpolated linearly."""
    shifts: dict[str, float]
    """By rule id, the difference in log-odds between the rule's score and its written confidence."""


@lru_cache(maxsize=4096)
def calibrated(rule_id: str, raw: float) -> float:
    """Return the calibrated confidence, the estimated hit rate from 0 to 1.

    ``raw`` is the rule's confidence for a case before calibration. Monotonic in ``raw``. For a rule without
    corpus cases: the mean of its written confidence and the value of the curve of all rules. Cached, as a
    rule has few values of ``raw``.
    """
    return earned(fit(), rule_id, raw)


def earned(fitted: Fit, rule_id: str, raw: float) -> float:
    """Return the calibrated confidence by a given fit, at most :data:`MOST`."""
    shift = fitted.shifts.get(rule_id)
    if shift is None:
        return min((on_curve(fitted.curve, raw) + min(max(raw, 0.0), 1.0)) / 2, MOST)
    return min(on_curve(fitted.curve, shifted(raw, shift)), MOST)


@cache
def fit() -> Fit:
    """Return the fit that is shipped with the package; the file is read once."""
    return fit_of(json.loads(FILE.read_text(encoding="utf-8")))


def fit_of(plain: dict[str, Any]) -> Fit:
    """Parse a fit from a file's content."""
    scores, right = zip(*plain["curve"], strict=True)
    return Fit(
        curve=(tuple(scores), tuple(right)),
        shifts={rule: facts["shift"] for rule, facts in plain["rules"].items()},
    )


def shifted(raw: float, shift: float) -> float:
    """Return a confidence shifted in log-odds."""
    return 1 / (1 + exp(-log_odds(raw) - shift))


def log_odds(raw: float) -> float:
    """Return the log-odds of a confidence, which is clamped so that 0 and 1 give finite values."""
    clamped = min(max(raw, 1 - SUREST), SUREST)
    return log(clamped / (1 - clamped))


def on_curve(curve: tuple[tuple[float, ...], tuple[float, ...]], score: float) -> float:
    """Interpolate an increasing piecewise linear curve, constant beyond its ends."""
    scores, right = curve
    above = bisect_right(scores, score)
    if above == 0:
        return right[0]
    if above == len(scores):
        return right[-1]
    left, low = scores[above - 1], right[above - 1]
    return low + (right[above] - low) * (score - left) / (scores[above] - left)
