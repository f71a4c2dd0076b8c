"""The interval of macro-F1 is drawn by whole packages, and is the same each time."""

from __future__ import annotations

from corpus_making import C, judged, label

from pytest_planverify.corpus.figures import figures
from pytest_planverify.corpus.resampling import macro_f1_draws, margin, middle
from pytest_planverify.corpus.scoring import Judged

RIGHT = (C.TYPE_ERROR, C.TYPE_ERROR)
WRONG = (C.LINT_ERROR, C.TYPE_ERROR)


def cases(*verdicts: bool, copies: int = 1) -> list[Judged]:
    """One package a verdict; in each as many cases as copies, of two categories."""
    return [
        judged(label(truth), truth if right else C.UNKNOWN, package=f"p{number}")
        for number, right in enumerate(verdicts)
        for truth in (C.TYPE_ERROR, C.LINT_ERROR)
        for _ in range(copies)
    ]


def test_the_draws_are_the_same_each_time() -> None:
    systems = {"ours": cases(True, False, True)}
    assert macro_f1_draws(systems, 50) == macro_f1_draws(systems, 50)


def test_who_is_right_everywhere_has_no_spread() -> None:
    found = middle(macro_f1_draws({"ours": cases(True, True, True)}, 50)["ours"])
    assert (found.low, found.high) == (1.0, 1.0)


def test_more_cases_of_the_same_packages_do_not_narrow_the_interval() -> None:
    few, many = cases(True, False, True, True), cases(True, False, True, True, copies=20)
    draws = macro_f1_draws({"few": few, "many": many}, 200)
    assert draws["few"] == draws["many"]
    assert middle(draws["few"]).low < figures(few).macro_f1 < middle(draws["few"]).high


def test_two_systems_are_compared_on_the_same_draws() -> None:
    better, worse = cases(True, False, True, True), cases(True, False, False, True)
    draws = macro_f1_draws({"better": better, "worse": worse}, 200)
    assert margin(draws, "better", "worse").low >= 0
    assert margin(draws, "better", "better") == middle([0.0])


def test_a_draw_that_takes_each_package_once_says_what_all_cases_say() -> None:
    one = [judged(label(truth), said) for truth, said in (RIGHT, WRONG, RIGHT)]
    assert set(macro_f1_draws({"ours": one}, 3)["ours"]) == {figures(one).macro_f1}


def test_nothing_is_drawn_from_nothing() -> None:
    assert macro_f1_draws({"ours": []}, 2) == {"ours": [0.0, 0.0]}
