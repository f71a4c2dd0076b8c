"""Rules for failures that a repeated run of the same code contradicted."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner, Repeatability
from pytest_planverify.diagnosis.reading import Case, raises_by_hand
from pytest_planverify.diagnosis.repeating import repeatability
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.wording import quote

_PROOF_AT = 3
"""So many runs with both answers leave no doubt."""


def _name(case: Case) -> str:
    evidence = case.evidence
    return quote(
        evidence.nodeid or (evidence.tests[0] if evidence.tests else "") or evidence.check_id or "the check"
    )


def _counts(case: Case) -> str:
    runs = case.evidence.confirmations
    passed = sum(run.passed for run in runs)
    return f"passed {passed} of {len(runs)} times on the same code"


def _order(case: Case) -> Hit | None:
    if repeatability(case.evidence.confirmations) is not Repeatability.ORDER_DEPENDENT:
        return None
    return Hit(
        suggestion=f"{_name(case)} passes alone and fails after the tests that run before it: find "
        f"what they "
        "leave behind (module state, environment, files) and undo it in a fixture."
    )


def _both_answers(case: Case) -> Hit | None:
    if repeatability(case.evidence.confirmations) is not Repeatability.FLAKY:
        return None
    clear = len(case.evidence.confirmations) >= _PROOF_AT
    by_product = case.in_product and not case.is_error("builtins.AssertionError")
    said = quote(case.evidence.headline, 100)
    by_chance = f"; when it fails it says {said}" if said else ""
    order = "" if clear else " It may also depend on the tests before it."
    return Hit(
        suggestion=f"{_name(case)} {_counts(case)}{by_chance}. Look for time, randomness, order of "
        f"sets, threads "
        f"or the network in it.{order}",
        owner=None if not by_product or raises_by_hand(case.raised_at) else Owner.PRODUCT,
        weight=1.0 if clear else 0.9,
    )


REPETITION_RULES: tuple[Rule, ...] = (
    Rule(
        id="order-dependent",
        because="Red in the company of other tests every time, green alone every time.",
        category=Category.FLAKY_TEST,
        confidence=0.93,
        read=_order,
    ),
    Rule(
        id="both-answers",
        because="The same code gave both answers.",
        category=Category.FLAKY_TEST,
        confidence=0.95,
        runner_up=(Category.TEST_REGRESSION, 0.1),
        read=_both_answers,
    ),
)
