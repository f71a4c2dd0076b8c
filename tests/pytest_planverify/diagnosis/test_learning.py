"""Corrections sharpen what the rules are unsure of, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from learning_samples import NOW, command, finding, said, unusable

from planner.model.evidence import Confirmation, ExceptionFact, Frame
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.diagnosis import RULES, diagnose
from pytest_planverify.diagnosis.corrections import (
    HARD,
    RULE,
    SURE,
    features,
    is_possible,
    learned,
    likeness,
    may_learn,
)

if TYPE_CHECKING:
    from planner.model.evidence import Evidence
    from planner.model.outcome import Diagnosis
    from planner.model.past import Correction

FAILURE = unusable()
BUILT_IN = diagnose(FAILURE).model_copy(update={"confidence": 0.6})
"""As the rules read it, with a confidence that no fitting of theirs changes."""

SPEC = Category.SPEC_MISMATCH
TWICE = (said(FAILURE, by="ann"), said(FAILURE, by="bob"))


def after(
    *corrections: Correction, evidence: Evidence = FAILURE, built_in: Diagnosis = BUILT_IN
) -> Diagnosis:
    return learned(built_in, evidence, corrections, NOW)


def test_two_people_who_agree_correct_what_the_rules_are_unsure_of() -> None:
    found = after(*TWICE)

    assert (found.category, found.owner, found.rule) == (SPEC, Owner.PRODUCT, RULE)
    assert found.runner_up is not None
    assert (found.runner_up.category, found.runner_up.confidence) == (BUILT_IN.category, 0.6)
    assert 0.85 < found.confidence < 0.9
    assert found.because == (
        "2 corrections say SPEC_MISMATCH of the product (2 of this very failure); the rule "
        "raised-in-test-alone alone would say TEST_REGRESSION of the test."
    )
    kept = ("signature", "location", "suggestion", "repeatability")
    assert {name: getattr(found, name) for name in kept} == {name: getattr(BUILT_IN, name) for name in kept}


def test_without_corrections_nothing_changes() -> None:
    assert after() is BUILT_IN


@pytest.mark.parametrize("rule", sorted(HARD))
def test_no_correction_speaks_against_hard_evidence(rule: str) -> None:
    hard = BUILT_IN.model_copy(update={"rule": rule})
    assert after(*TWICE, built_in=hard) is hard


def test_hard_are_the_rules_of_guards_checks_selections_proofs_limits_and_ends() -> None:
    assert {rule.id for rule in RULES} > HARD
    by_category = {rule.category for rule in RULES if rule.id in HARD}
    assert by_category >= {
        Category.SANDBOX_VIOLATION,
        Category.HYGIENE_VIOLATION,
        Category.ALLOWLIST_VIOLATION,
        Category.BUDGET_EXCEEDED,
        Category.FLAKY_TEST,
        Category.ARTIFACT_MISSING,
        Category.METRIC_UNMET,
        Category.TEST_NOT_FOUND,
        Category.TEST_TIMEOUT,
        Category.TEST_CRASH,
    }
    assert not HARD & {"contract-unresolved", "answered-no", "raised-in-test", "unknown"}


@pytest.mark.parametrize("confidence", [SURE, 0.8, 1.0])
def test_no_correction_speaks_against_a_sure_diagnosis(confidence: float) -> None:
    sure = BUILT_IN.model_copy(update={"confidence": confidence})
    assert not may_learn(sure)
    assert after(*TWICE, built_in=sure) is sure


@pytest.mark.parametrize(
    "corrections",
    [
        (said(FAILURE),),
        (said(FAILURE), said(FAILURE)),
        (said(FAILURE), said(unusable("test_sum"))),
        (said(FAILURE, by=None), said(FAILURE, by=None)),
    ],
    ids=["once", "twice-a-day", "two-failures-a-day", "nobody-twice-a-day"],
)
def test_one_persons_word_of_one_day_is_not_enough(corrections: tuple[Correction, ...]) -> None:
    assert after(*corrections) is BUILT_IN


def test_one_person_who_says_it_again_on_another_day_is_enough() -> None:
    assert after(said(FAILURE), said(FAILURE, days_ago=2)).category is SPEC


def test_who_changed_their_mind_counts_with_the_last_word_alone() -> None:
    changed = said(FAILURE, Category.ENVIRONMENT_ERROR, days_ago=0.1)
    assert after(said(FAILURE), said(FAILURE, days_ago=2), changed) is BUILT_IN
    assert after(said(FAILURE, Category.ENVIRONMENT_ERROR, days_ago=9), *TWICE).category is SPEC


def test_conflicts_cancel_each_other() -> None:
    against = [said(FAILURE, Category.ENVIRONMENT_ERROR, by=name) for name in ("cy", "dan")]
    assert after(*TWICE, *against) is BUILT_IN
    assert after(*TWICE, said(FAILURE, by="eve"), said(FAILURE, by="flo"), against[0]).category is SPEC


def test_who_agrees_with_the_rules_has_a_vote_too() -> None:
    assert after(
        *TWICE, said(FAILURE, BUILT_IN.category, by="cy"), said(FAILURE, BUILT_IN.category, by="di")
    ) is (BUILT_IN)


def test_how_another_failure_was_rightly_read_is_no_reason_to_read_this_one_so() -> None:
    alike = unusable("test_sum")
    for category in (None, SPEC):
        confirmed = [
            said(alike, category, by=name, owner=Owner.PRODUCT).model_copy(update={"category": SPEC})
            for name in ("ann", "bob", "cy", "di")
        ]
        assert after(*confirmed) is BUILT_IN
    corrected = [said(alike, by=name) for name in ("ann", "bob", "cy", "di")]
    assert after(*corrected).category is SPEC


def test_corrections_age() -> None:
    old = [said(FAILURE, by=name, days_ago=60) for name in ("ann", "bob")]
    assert after(*old) is BUILT_IN
    fresh, month = after(*TWICE), after(*(said(FAILURE, by=name, days_ago=15) for name in ("ann", "bob")))
    assert month.category is SPEC
    assert month.confidence < fresh.confidence


def test_a_correction_from_a_clock_that_goes_ahead_counts_as_of_now() -> None:
    ahead = [said(FAILURE, by=name, days_ago=-30) for name in ("ann", "bob")]
    assert (
        after(*ahead).confidence
        == after(*(said(FAILURE, by=n, days_ago=0) for n in ("ann", "bob"))).confidence
    )


def test_failures_that_are_alike_count_less_than_this_very_one() -> None:
    alike = unusable("test_sum")
    near = [said(alike, by=name) for name in ("ann", "bob", "cy", "di")]
    found = after(*near, built_in=BUILT_IN.model_copy(update={"confidence": 0.4}))

    assert found.category is SPEC
    assert found.confidence < after(*TWICE, said(FAILURE, by="cy"), said(FAILURE, by="di")).confidence
    assert "4 of failures that are " in found.because
    strange = command(output_tail="x")
    assert after(*(said(strange, by=name) for name in ("ann", "bob"))) is BUILT_IN


def test_a_failure_that_looks_the_same_with_another_signature_counts_less() -> None:
    twins = [each.model_copy(update={"signature": "another"}) for each in TWICE]
    found = after(*twins)
    assert found.category is SPEC
    assert found.confidence < after(*TWICE).confidence
    assert "2 of failures that are 85% like it or less" in found.because


def test_only_the_heaviest_corrections_have_a_vote() -> None:
    others = [
        said(FAILURE, Category.ENVIRONMENT_ERROR, by=f"old{n}", days_ago=9 + n / 9) for n in range(20)
    ]
    fresh = [said(FAILURE, by=f"new{n}") for n in range(5)]
    assert after(*others, *fresh).category is SPEC


@pytest.mark.parametrize("category", [each for each in Category if not is_possible(each, FAILURE)])
def test_nothing_is_learned_that_the_facts_exclude(category: Category) -> None:
    corrections = [said(FAILURE, category, by=name) for name in ("ann", "bob", "cy")]
    assert after(*corrections) is BUILT_IN


def test_what_takes_proof_is_never_learned() -> None:
    proved = unusable(confirmations=(Confirmation(where="alone", passed=False),), timed_out=False)
    for category in (
        Category.FLAKY_TEST,
        Category.SANDBOX_VIOLATION,
        Category.HYGIENE_VIOLATION,
        Category.ALLOWLIST_VIOLATION,
        Category.BUDGET_EXCEEDED,
        Category.HARNESS_ERROR,
        Category.UNKNOWN,
    ):
        assert not is_possible(category, proved)


def test_the_owner_alone_may_be_corrected() -> None:
    corrections = [said(FAILURE, None, by=name, owner=Owner.ENVIRONMENT) for name in ("ann", "bob")]
    found = after(*corrections)

    assert (found.category, found.owner, found.rule) == (BUILT_IN.category, Owner.ENVIRONMENT, RULE)
    assert found.runner_up == BUILT_IN.runner_up
    assert "TEST_REGRESSION of the environment (2 of this very failure)" in found.because


def test_of_a_corrected_category_the_owner_is_what_most_say() -> None:
    corrections = [said(FAILURE, by="ann", owner=Owner.TEST), said(FAILURE, by="bob", owner=Owner.TEST)]
    found = after(*corrections, said(FAILURE, by="cy"))
    assert (found.category, found.owner) == (SPEC, Owner.TEST)


def test_the_role_that_two_people_name_acts() -> None:
    named = [said(FAILURE, by=name, role=Role.DEBUGGER) for name in ("ann", "bob")]
    assert after(*named).target_agent is Role.DEBUGGER
    assert after(named[0], said(FAILURE, by="cy")).target_agent is None


def test_who_only_names_a_role_says_nothing_of_the_category() -> None:
    assert after(*(said(FAILURE, None, by=name) for name in ("ann", "bob", "cy"))) is BUILT_IN


def test_the_order_of_corrections_does_not_count() -> None:
    corrections = [
        *TWICE,
        said(FAILURE, Category.ENVIRONMENT_ERROR, by="cy"),
        said(unusable("test_x"), by="di"),
    ]
    assert after(*corrections) == after(*reversed(corrections))


# Likeness


def test_features_hold_no_lines_no_values_and_no_paths() -> None:
    error = replace_frames(FAILURE, line=99, path="/home/ann/project/tests/test_cart.py")
    assert features(error) == features(FAILURE) == (
        "kind:test",
        "phase:call",
        "error:builtins.TypeError",
        "raised:test",
        "side:test",
        "at:test_cart.test_total",
        "S",
        "object",
        "is",
        "not",
        "iterable",
    )  # fmt: skip
    assert features(unusable(message="'str' object is not iterable")) == features(FAILURE)


def replace_frames(evidence: Evidence, **fields: object) -> Evidence:
    (error,) = evidence.exceptions
    frames = tuple(frame.model_copy(update=fields) for frame in error.frames)
    return evidence.model_copy(update={"exceptions": (error.model_copy(update={"frames": frames}),)})


def test_features_name_tools_findings_and_ends() -> None:
    complaint = command(findings=(finding("no 'x' in y"), finding("no 'z' in y")), output_tail="make: ***")
    assert features(complaint) == ("kind:command", "tool:make", "end:2", "no", "S", "in", "y")


def test_features_are_few_whatever_the_failure() -> None:
    frames = tuple(Frame(path=f"m{n}.py", line=n, function="f" * 900, side=Side.PRODUCT) for n in range(60))
    errors = tuple(
        ExceptionFact(type="E", qualified=f"m.E{n}", message="word " * 9_000, frames=frames)
        for n in range(40)
    )
    found = features(unusable(exceptions=errors, exceptions_in_group=errors))
    assert len(found) < 60
    assert len(json.dumps(found)) < 2_000


def test_likeness_is_between_nothing_and_all() -> None:
    mine = features(FAILURE)
    assert likeness(mine, mine) == 1.0
    assert likeness(mine, ()) == likeness((), ()) == 0.0
    near, far = features(unusable("test_sum")), features(command())
    assert 1 > likeness(mine, near) > 0.5 > likeness(mine, far) >= 0.0
    assert likeness(mine, near) == likeness(near, mine)


# What the facts leave open


@pytest.mark.parametrize(
    ("category", "evidence", "expected"),
    [
        (Category.TEST_REGRESSION, FAILURE, True),
        (Category.TEST_REGRESSION, FAILURE.model_copy(update={"exceptions": ()}), False),
        (Category.TEST_REGRESSION, unusable(kind=EvidenceKind.MANUAL, exceptions=()), True),
        (Category.TEST_TIMEOUT, FAILURE, False),
        (Category.TEST_TIMEOUT, unusable(timed_out=True), True),
        (Category.TEST_TIMEOUT, unusable(swallowed_timeout=True), True),
        (Category.TEST_CRASH, FAILURE, False),
        (Category.TEST_CRASH, command(), False),
        (Category.TEST_NOT_FOUND, FAILURE, False),
        (Category.TEST_NOT_FOUND, unusable(vacuous="all_skipped"), True),
        (Category.COMPILATION_ERROR, FAILURE, False),
        (Category.COMPILATION_ERROR, command(), True),
        (Category.TYPE_ERROR, FAILURE, True),
        (Category.TYPE_ERROR, command(), False),
        (Category.LINT_ERROR, FAILURE, False),
        (Category.IMPORT_ERROR, FAILURE, False),
        (Category.IMPORT_ERROR, command(), True),
        (Category.SPEC_MISMATCH, FAILURE, True),
        (Category.SPEC_MISMATCH, unusable(exceptions=()), False),
        (Category.ARTIFACT_MISSING, FAILURE, False),
        (Category.METRIC_UNMET, FAILURE, False),
        (Category.ENVIRONMENT_ERROR, FAILURE, True),
    ],
)
def test_a_category_is_possible_where_its_facts_were_seen(
    category: Category, evidence: Evidence, expected: bool
) -> None:
    assert is_possible(category, evidence) is expected
