"""What to fix first, as the terminal and the failure reports say it."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING, Any

import outcome_samples as samples
import pytest
from _pytest._io.wcwidth import wcswidth
from outcome_samples import PLAN, RSI_FAILURE, momentum_plan, screen_text

from planner.model.outcome import Cause, CauseTodo, FailureReport, Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.reports.failure_report import failure_report
from pytest_planverify.reports.terminal import render_summary

if TYPE_CHECKING:
    from pathlib import Path

SIGNATURE = str(RSI_FAILURE.signature)


def cause(rank: int, *todos: str, **more: Any) -> Cause:
    fields: dict[str, Any] = {
        "rank": rank,
        "signatures": (f"{rank:012x}",),
        "category": Category.TEST_REGRESSION,
        "owner": Owner.PRODUCT,
        "headline": "KeyError: 'price'",
        "location": Location(path="shop/prices.py", line=12, function="price"),
        "todos": tuple(CauseTodo(todo_id=todo, plan=PLAN, tests=5) for todo in todos),
        "tests": 5 * len(todos),
        "because": "nothing else is hidden behind it",
    }
    return Cause(**(fields | more))


SYNTAX = cause(
    1,
    *(f"t{number}" for number in range(12)),
    category=Category.COMPILATION_ERROR,
    headline="SyntaxError: expected ':'",
    location=Location(path="shop/tax.py", line=3),
    tests=1_700,
    because="what rests on it could not be loaded, which hides whatever else is wrong there",
)


def shown(*causes: Cause, width: int = 80, **how: Any) -> str:
    document = samples.red_document().model_copy(update={"causes": causes})
    text = screen_text(lambda tw: render_summary(tw, document, **how), width=width, color=False)
    start = text.find("fix first")
    block = text[start : text.rindex("\n=")] if start >= 0 else ""
    assert all(wcswidth(line) <= max(width, 60) for line in block.splitlines())
    return block


def test_one_broken_module_is_one_cause_with_1700_consequences() -> None:
    assert shown(SYNTAX, cause(2, "t3")) == dedent("""\
        fix first 1  COMPILATION_ERROR  shop/tax.py:3  1700 tests in 12 todos
                     SyntaxError: expected ':'
                     what rests on it could not be loaded, which hides whatever else is
                     wrong there
        then      2  TEST_REGRESSION  shop/prices.py:12  5 tests in 't3'
                     KeyError: 'price'
                     nothing else is hidden behind it
    """)


@pytest.mark.parametrize("causes", [(), (cause(1, "t3"),)])
def test_what_the_todos_show_themselves_is_not_told_again(causes: tuple[Cause, ...]) -> None:
    assert shown(*causes) == ""


def test_many_causes_are_told_only_when_asked_for() -> None:
    many = [cause(rank, "t3") for rank in range(1, 13)]
    text = shown(*many)
    assert "and 8 causes more; -v shows them" in text
    assert text.count("then") == 3
    text = shown(*many, verbosity=1)
    assert text.count("then") == 11
    assert "\nthen      12  " in text
    assert "and 1 cause more; -v shows it" in shown(*many[:5])


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_cuts_no_path(width: int) -> None:
    long = Location(path="shop/of/things/that/people/buy.py", line=3)
    text = shown(cause(1, "a", "b", location=long, tests=2), width=width)
    assert "\n             shop/of/things/that/people/buy.py:3\n" in text


def test_a_cause_may_have_no_place_and_no_words() -> None:
    text = shown(cause(1, "a", "b", location=None, headline="", because="", tests=0))
    assert text == "fix first 1  TEST_REGRESSION  in 2 todos\n"


def test_nothing_that_a_test_says_can_move_the_cursor() -> None:
    text = shown(cause(1, "a", "b", headline="bad\x1b[2J\nline"))
    assert "\x1b" not in text


def test_a_report_names_the_causes_of_its_failures_and_those_to_fix_before(tmp_path: Path) -> None:
    own = cause(2, "t2_indicators", signatures=("0" * 12, SIGNATURE))
    early = cause(1, "t1_data_integration", explains=(SIGNATURE,))
    other = cause(3, "other")
    data = failure_report(
        samples.indicator_todo(), [], plan=momentum_plan(tmp_path), causes=(early, own, other)
    )
    assert FailureReport.model_validate(data).causes == (early, own)
