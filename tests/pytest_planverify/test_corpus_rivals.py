"""The rivals say what their makers say they say, and are mapped as kindly as can be."""

from __future__ import annotations

import re

import pytest
from corpus_making import THREE, C, O, failed, label, raising, recorded

from planner.model.evidence import Evidence, ProcessEnd
from planner.model.kinds import EvidenceKind
from planner.model.taxonomy import Category, Owner
from pytest_planverify.corpus.rivals import allure, plain_rules, pytest_triage, regex_ladder, rivals
from pytest_planverify.corpus.rivals.mapping import kindly_mapped, rated
from pytest_planverify.corpus.rivals.regex_rungs import RUNGS
from pytest_planverify.corpus.scoring import labelled


@pytest.mark.parametrize(
    ("evidence", "kind"),
    [
        (raising("ImportError", "cannot import name 'a'"), "missing_dependency"),
        (raising("AssertionError", "the text says ImportError"), "missing_dependency"),
        (raising("AssertionError", "expected 2 arguments in the Signature"), "spec_mismatch"),
        (raising("AssertionError", "expected 2"), "implementation_bug"),
        (raising("AssertionError", "assert 1 == 2"), "unknown"),
        (raising("KeyError", "'a'").model_copy(update={"timed_out": True}), "timeout"),
        (raising("KeyError").model_copy(update={"duration_seconds": 3.0, "limit_seconds": 2.0}), "timeout"),
        (raising("KeyError").model_copy(update={"duration_seconds": 1.0, "limit_seconds": 2.0}), "unknown"),
    ],
)
def test_the_plain_rules_are_asked_in_their_order(evidence: Evidence, kind: str) -> None:
    assert plain_rules.classify(evidence) == kind
    assert plain_rules.guess(evidence).category is plain_rules.CATEGORIES[kind][0]


@pytest.mark.parametrize(
    ("evidence", "triage", "defects"),
    [
        (raising("AssertionError"), "test_bug", "Product defects"),
        (raising("OSError"), "env", "Test defects"),
        (raising("KeyError"), "regression", "Test defects"),
        (recorded("session-segfault"), "unknown", "no category"),
    ],
)
def test_the_other_tools_go_by_the_exception(evidence: Evidence, triage: str, defects: str) -> None:
    assert pytest_triage.classify(evidence) == triage
    assert allure.classify(evidence) == defects


def test_a_class_stands_for_what_it_most_often_is() -> None:
    develop = [
        failed(label(C.TYPE_ERROR), raising("TypeError")),
        failed(label(C.SPEC_MISMATCH, also=((C.TYPE_ERROR, O.PRODUCT),)), raising("TypeError")),
        failed(label(C.SPEC_MISMATCH), raising("TypeError")),
        failed(label(C.TYPE_ERROR), raising("TypeError")),
    ]
    guess = kindly_mapped(pytest_triage.classify, develop)
    said = guess(raising("IndexError"))
    assert (said.category, said.owner, said.confidence) == (C.TYPE_ERROR, O.PRODUCT, 0.75)
    assert guess(raising("OSError")).category is C.UNKNOWN


def test_a_rung_is_as_sure_as_it_is_right_on_the_develop_part() -> None:
    mypy = recorded("command-mypy-complains")
    develop = [failed(label(C.TYPE_ERROR), mypy)] * 8
    guess = rated(regex_ladder.guess, [*develop, failed(label(C.LINT_ERROR), mypy)])
    assert guess(mypy).confidence == pytest.approx(9 / 11)
    unseen = recorded("session-segfault")
    assert guess(unseen) == regex_ladder.guess(unseen)


@pytest.mark.parametrize(
    ("name", "category", "owner"),
    [
        ("command-mypy-complains", C.TYPE_ERROR, O.PRODUCT),
        ("command-ruff-complains", C.LINT_ERROR, O.PRODUCT),
        ("session-segfault", C.TEST_CRASH, O.PRODUCT),
        ("session-option-of-absent-plugin", C.ENVIRONMENT_ERROR, O.ENVIRONMENT),
        ("session-file-not-found", C.TEST_NOT_FOUND, O.PLAN),
        ("command-make-without-target", C.TEST_NOT_FOUND, O.PLAN),
    ],
)
def test_the_ladder_reads_what_was_printed(name: str, category: Category, owner: Owner) -> None:
    said = regex_ladder.guess(recorded(name))
    assert (said.category, said.owner) == (category, owner)


def test_the_ladder_sees_how_it_ended_and_where_it_raised() -> None:
    evidence = Evidence(
        kind=EvidenceKind.TEST,
        longrepr="shop/cart.py:3: in total\n    x\nE   TypeError: no\n\ntests/test_cart.py:9: TypeError",
        process=ProcessEnd(exit_code=1, signal="SIGSEGV", timed_out=True),
    )
    assert regex_ladder.printed(evidence).splitlines()[:5] == [
        "ended by signal SIGSEGV",
        "exit status 1",
        "the time limit was passed",
        "raised at tests/test_cart.py: TypeError",
        "said: ",
    ]


def test_who_matches_no_rung_says_what_most_failures_are() -> None:
    said = regex_ladder.guess(Evidence(kind=EvidenceKind.TEST))
    assert (said.category, said.owner, said.rule) == (C.TEST_REGRESSION, O.PRODUCT, "nothing-matched")


def test_a_ladder_with_reruns_calls_flaky_what_passed_again() -> None:
    assert regex_ladder.guess_with_reruns(raising("KeyError", passed_again=True)).category is C.FLAKY_TEST
    once = raising("KeyError")
    assert regex_ladder.guess_with_reruns(once) == regex_ladder.guess(once)


def test_the_ladder_is_long_and_each_rung_is_a_pattern_of_its_own() -> None:
    assert len(RUNGS) >= 60
    assert len({rung.name for rung in RUNGS}) == len(RUNGS)
    assert all(re.compile(rung.pattern, re.MULTILINE).search("") is None for rung in RUNGS)


def test_every_rival_has_a_name_that_fits_a_column() -> None:
    names = [rival.name for rival in rivals(labelled(THREE))]
    assert len(set(names)) == 5
    assert max(map(len, names)) <= 10
