"""Rules for names that nothing defines, where they are used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.boundaries import telling_changes
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.wording import place, quote

if TYPE_CHECKING:
    from pytest_planverify.diagnosis.reading import Case


_LOCAL = re.compile(r"variable '(?P<name>\w+)'")


def _name(case: Case) -> str | None:
    if case.error is None or case.raised_at is None or not case.is_error("builtins.NameError"):
        return None
    found = _LOCAL.search(case.error.message)
    return case.error.name or (found["name"] if found else quote(case.error.message))


def _at(case: Case) -> str:
    return place(case.raised_at) if case.raised_at else "the test"


def _lost_in_test(case: Case) -> Hit | None:
    """A test that nobody changed gets its names from somewhere: a star import, or a namespace."""
    name = _name(case)
    if name is None or not case.in_test or case.is_error("builtins.UnboundLocalError"):
        return None
    if not case.only_product_changed:
        return None
    return Hit(
        suggestion=f"{_at(case)} uses {name}, which nothing defines any more; the test was not changed, "
        "and the product was: did the name go there?"
    )


def _undefined_in_test(case: Case) -> Hit | None:
    name = _name(case)
    if name is None or not case.in_test or case.is_error("builtins.UnboundLocalError"):
        return None
    return Hit(
        suggestion=f"{_at(case)} uses {name}, which nothing defines: import it, or correct the name."
    )


def _unbound_in_test(case: Case) -> Hit | None:
    if not case.in_test or not case.is_error("builtins.UnboundLocalError"):
        return None
    return Hit(suggestion=f"{_at(case)} uses {_name(case)} before it has a value.")


def _undefined_in_product(case: Case) -> Hit | None:
    name = _name(case)
    if name is None or not case.in_product:
        return None
    if case.is_error("builtins.UnboundLocalError"):
        return Hit(suggestion=f"{_at(case)} uses {name} before it has a value.")
    return Hit(suggestion=f"{_at(case)} uses {name}, which is not defined there.")


NAME_RULES: tuple[Rule, ...] = (
    Rule(
        id="unbound-name-in-test",
        about=frozenset({"builtins.NameError"}),
        because="The test uses a local name before it has a value.",
        category=Category.TEST_REGRESSION,
        confidence=0.8,
        owner=Owner.TEST,
        read=_unbound_in_test,
    ),
    Rule(
        id="name-lost-in-test",
        about=frozenset({"builtins.NameError"}),
        because="An unchanged test uses a name that nothing defines any more.",
        category=Category.SPEC_MISMATCH,
        confidence=0.7,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=telling_changes(_lost_in_test),
    ),
    Rule(
        id="undefined-name-in-test",
        about=frozenset({"builtins.NameError"}),
        because="The test uses a name that nothing defines.",
        category=Category.TEST_REGRESSION,
        confidence=0.75,
        owner=Owner.TEST,
        runner_up=(Category.SPEC_MISMATCH, 0.25),
        read=_undefined_in_test,
    ),
    Rule(
        id="undefined-name-in-product",
        about=frozenset({"builtins.NameError"}),
        because="The product uses a name that is not defined.",
        category=Category.TEST_REGRESSION,
        confidence=0.93,
        read=_undefined_in_product,
    ),
)
