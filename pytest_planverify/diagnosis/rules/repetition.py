"""Rules for failures that repeated runs of the same code contradicted, or bore out."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner, Repeatability
from pytest_planverify.diagnosis.reading import Case, raises_by_hand
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.wording import place, quote

_SHOWN = 3
_PROOF_AT = 3
"""So many runs with both answers leave no doubt."""
_AGAIN = 2
"""So many red runs, none of them green, are no accident of one moment."""


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
    evidence = case.evidence
    if case.repeatability is not Repeatability.ORDER_DEPENDENT:
        return None
    polluters = evidence.polluters
    if not polluters:
        return Hit(
            suggestion=f"{_name(case)} passes alone and fails beside others: look for what they share, "
            "such as a port, a file, a database or the memory of the machine.",
            owner=_owner_by_change(case),
        )
    after = f"after {_listed(polluters)}"
    who = "that test leaves" if len(polluters) == 1 else "they leave"
    return Hit(
        suggestion=f"{_name(case)} passes alone and fails {after}: find what {who} behind (module state, "
        "environment, files) and undo it in a fixture.",
        owner=_owner_by_change(case),
    )


def _owner_by_change(case: Case) -> Owner | None:
    """The product's, where it was changed and no test was: it brought the chance or the state."""
    return Owner.PRODUCT if case.product_changed and not case.tests_changed else None


def _listed(nodeids: tuple[str, ...]) -> str:
    more = f" and {len(nodeids) - _SHOWN} more" if len(nodeids) > _SHOWN else ""
    return ", ".join(map(quote, nodeids[:_SHOWN])) + more


def _hash_order(case: Case) -> Hit | None:
    if case.repeatability is not Repeatability.HASH_ORDER:
        return None
    seeded = [run for run in case.evidence.confirmations if run.where == "hash_seed"]
    said = "passes" if seeded[0].passed else "fails"
    by_product = case.in_product and not case.is_error("builtins.AssertionError")
    return Hit(
        suggestion=f"{_name(case)} {said} with PYTHONHASHSEED={seeded[0].hash_seed} and not with the seed "
        "of this run: the order of a set, or a hash, shows in the result. Sort it there.",
        owner=Owner.PRODUCT if by_product else _owner_by_change(case),
    )


def _both_answers(case: Case) -> Hit | None:
    if case.repeatability is not Repeatability.FLAKY:
        return None
    clear = len(case.evidence.confirmations) >= _PROOF_AT
    by_product = case.in_product and not case.is_error("builtins.AssertionError")
    said = quote(case.evidence.headline, 100)
    by_chance = f"; when it fails it says {said}" if said else ""
    return Hit(
        suggestion=f"{_name(case)} {_counts(case)}{by_chance}. Look for time, randomness, order of sets, "
        "threads or the network in it.",
        owner=Owner.PRODUCT
        if by_product and not raises_by_hand(case.raised_at)
        else _owner_by_change(case),
        weight=1.0 if clear else 0.9,
    )


def _memory_again(case: Case) -> Hit | None:
    """Seen once, the machine may have been short of memory; each time, it is asked for too much."""
    if not case.is_error("builtins.MemoryError") or raises_by_hand(case.innermost):
        return None
    told = case.evidence.confirmations
    if len(told) < _AGAIN or any(run.passed for run in told):
        return None
    if case.in_product and case.raised_in_changed:
        return None
    frame = case.raised_at
    where = f" in {place(frame)}" if frame else ""
    return Hit(
        suggestion=f"Memory ran out{where} each time that {_name(case)} was run: it asks for more than "
        "there is, or sets itself a limit.",
        owner=Owner.TEST if case.in_test else None,
    )


def _memory_of_change(case: Case) -> Hit | None:
    if not case.is_error("builtins.MemoryError") or raises_by_hand(case.innermost):
        return None
    if not case.in_product or not case.raised_in_changed or case.raised_at is None:
        return None
    return Hit(
        suggestion=f"{place(case.raised_at)}, in a file that was changed, asks for more memory than "
        "there is."
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
        id="hash-order",
        because="Red with one hash seed and green with another, each time that it was run.",
        category=Category.FLAKY_TEST,
        confidence=0.93,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_hash_order,
    ),
    Rule(
        id="both-answers",
        because="The same code gave both answers.",
        category=Category.FLAKY_TEST,
        confidence=0.95,
        runner_up=(Category.TEST_REGRESSION, 0.1),
        read=_both_answers,
    ),
    Rule(
        id="memory-asked-for-by-change",
        because="Memory ran out in product code that was changed, each time that it was run.",
        category=Category.TEST_REGRESSION,
        confidence=0.75,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.25),
        read=_memory_of_change,
    ),
    Rule(
        id="memory-each-time",
        because="Memory ran out each time that it was run, alone as well.",
        category=Category.TEST_REGRESSION,
        confidence=0.7,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.25),
        read=_memory_again,
    ),
)
