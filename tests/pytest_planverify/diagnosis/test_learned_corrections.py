"""Corrections of the very same failure decide where people agree, and nothing that is proved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from learning_samples import said, unusable

from planner.model.taxonomy import Category, Owner, Role
from pytest_planverify.diagnosis import RULES, diagnose
from pytest_planverify.diagnosis.corrections import HARD, LEARNED, RULE, learned

if TYPE_CHECKING:
    from planner.model.outcome import Diagnosis
    from planner.model.past import Correction

FAILURE = unusable()
BUILT_IN = diagnose(FAILURE)
SPEC = Category.SPEC_MISMATCH
TWICE = (said(FAILURE, by="ann"), said(FAILURE, by="bob"))


def after(*corrections: Correction, built_in: Diagnosis = BUILT_IN) -> Diagnosis:
    return learned(built_in, corrections)


def test_two_people_who_agree_correct_what_the_rules_say() -> None:
    found = after(*TWICE)

    assert (found.category, found.owner, found.rule) == (SPEC, Owner.PRODUCT, RULE)
    assert found.runner_up is not None
    assert found.runner_up.category is BUILT_IN.category
    assert 0.85 < found.confidence < 0.9
    assert found.because == (
        "2 corrections of this failure say SPEC_MISMATCH of the product; the rule raised-in-test-alone "
        "alone would say TEST_REGRESSION of the test."
    )
    kept = ("signature", "location", "suggestion", "repeatability")
    assert {name: getattr(found, name) for name in kept} == {name: getattr(BUILT_IN, name) for name in kept}


@pytest.mark.parametrize("rule", sorted(HARD))
def test_no_correction_speaks_against_hard_evidence(rule: str) -> None:
    hard = BUILT_IN.model_copy(update={"rule": rule})
    assert after(*TWICE, built_in=hard) is hard


def test_hard_are_the_rules_of_guards_checks_selections_proofs_limits_and_ends() -> None:
    assert {rule.id for rule in RULES} > HARD
    by_category = {rule.category for rule in RULES if rule.id in HARD}
    assert by_category >= set(Category) - LEARNED - {Category.UNKNOWN}
    assert not HARD & {"contract-unresolved", "answered-no", "raised-in-test", "unknown"}


@pytest.mark.parametrize(
    "corrections",
    [
        (),
        (said(FAILURE),),
        (said(FAILURE), said(FAILURE)),
        (said(FAILURE, by=None), said(FAILURE, by=None)),
        tuple(said(unusable("test_sum"), by=name) for name in ("ann", "bob", "cy")),
        tuple(said(FAILURE, None, by=name) for name in ("ann", "bob", "cy")),
    ],
    ids=["none", "once", "twice-a-day", "nobody-twice-a-day", "another-failure", "a-role-alone"],
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
    with_the_rules = [said(FAILURE, BUILT_IN.category, by=name) for name in ("cy", "di")]
    assert after(*TWICE, *with_the_rules) is BUILT_IN


@pytest.mark.parametrize("category", sorted(set(Category) - LEARNED))
def test_what_takes_proof_is_never_learned(category: Category) -> None:
    assert after(*(said(FAILURE, category, by=name) for name in ("ann", "bob", "cy"))) is BUILT_IN


def test_the_owner_alone_may_be_corrected() -> None:
    found = after(*(said(FAILURE, None, by=name, owner=Owner.ENVIRONMENT) for name in ("ann", "bob")))

    assert (found.category, found.owner, found.rule) == (BUILT_IN.category, Owner.ENVIRONMENT, RULE)
    assert found.runner_up == BUILT_IN.runner_up


def test_of_a_corrected_category_the_owner_is_what_most_say() -> None:
    corrections = [said(FAILURE, by="ann", owner=Owner.TEST), said(FAILURE, by="bob", owner=Owner.TEST)]
    found = after(*corrections, said(FAILURE, by="cy"))
    assert (found.category, found.owner) == (SPEC, Owner.TEST)


def test_the_role_that_two_people_name_acts() -> None:
    named = [said(FAILURE, by=name, role=Role.DEBUGGER) for name in ("ann", "bob")]
    assert after(*named).target_agent is Role.DEBUGGER
    assert after(named[0], said(FAILURE, by="cy")).target_agent is None


def test_the_order_of_corrections_does_not_count() -> None:
    corrections = [*TWICE, said(FAILURE, Category.ENVIRONMENT_ERROR, by="cy")]
    assert after(*corrections) == after(*reversed(corrections))
