"""Confidence as it was earned: total, never falling, and fitted to what the corpus shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpus_making import THREE, C, O, case, failed, label, recorded, write_part
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_planverify.corpus import fitting
from pytest_planverify.corpus.files import CorpusError
from pytest_planverify.corpus.fitting import (
    FIRST_LOOK,
    Seen,
    fit_to,
    keep_first_looks,
    line_through,
    main,
    shift_of,
    sums_of,
    write,
)
from pytest_planverify.diagnosis import RULES
from pytest_planverify.diagnosis.confidence import FILE, calibrated, earned, fit_of, on_curve

CORPUS = Path(__file__).parents[2] / "fixtures" / "corpus"
IDS = [rule.id for rule in RULES]
RAW = st.floats(-0.5, 1.5)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([*IDS, "a-rule-of-a-plugin"]), RAW, RAW)
def test_more_of_its_own_confidence_is_never_less_of_the_earned(
    rule: str, left: float, right: float
) -> None:
    low, high = sorted((left, right))
    assert 0 <= calibrated(rule, low) <= calibrated(rule, high) + 1e-12 <= 1 + 1e-12


def test_a_rule_that_the_corpus_does_not_know_keeps_half_of_its_own_word() -> None:
    curve = fit_of(json.loads(FILE.read_text()))[0]
    assert calibrated("a-rule-of-a-plugin", 0.8) == pytest.approx((0.8 + on_curve(curve, 0.8)) / 2)


def test_nothing_lies_beyond_the_ends_of_the_line() -> None:
    curve = ((0.2, 0.6), (0.1, 0.9))
    assert [on_curve(curve, score) for score in (0.0, 0.2, 0.4, 0.6, 1.0)] == pytest.approx(
        [0.1, 0.1, 0.5, 0.9, 0.9]
    )


def seen(rule: str, right: bool, *, package: str = "a", kind: str = "k", raw: float = 0.9) -> Seen:
    return Seen(package, kind, rule, raw, right)


def test_a_rule_that_errs_is_believed_less_the_more_often_it_was_seen_to_err() -> None:
    few = shift_of("assertion-in-test", 0.9, sums_of([seen("assertion-in-test", False)] * 2))
    many = shift_of("assertion-in-test", 0.9, sums_of([seen("assertion-in-test", False)] * 40))
    assert many < few < 0


def test_a_rule_without_cases_goes_with_its_family() -> None:
    sums = sums_of([seen("assertion-in-test", False)] * 40)
    assert shift_of("did-not-raise", 0.9, sums) < -1
    assert shift_of("dependency-missing", 0.9, sums) == pytest.approx(0)


def test_the_line_is_drawn_by_cases_whose_package_and_kind_were_not_seen() -> None:
    """Of one package alone nothing is known beforehand, so its rule is scored as it was written."""
    scores, values = line_through([seen("assertion-in-test", False)] * 10)
    assert scores == pytest.approx((0.0, 0.9))
    assert values == pytest.approx((0.0, 4 * 0.9 / 14))
    wrong = [seen("assertion-in-test", False, package="a", kind="k")] * 10
    same_package = [seen("assertion-in-test", True, package="a", kind="m")] * 10
    stranger = [seen("assertion-in-test", True, package="b", kind="m")] * 10
    assert line_through([*wrong, *same_package])[0] == pytest.approx((0.0, 0.9))
    assert line_through([*wrong, *stranger])[0] != pytest.approx((0.0, 0.9))


def test_the_file_says_what_it_was_fitted_to_and_is_the_same_each_time(tmp_path: Path) -> None:
    corpus = write_part(tmp_path / "corpus", "develop", *THREE, case("control", None))
    write(corpus, tmp_path / "one.json")
    write(corpus, tmp_path / "two.json")
    text = (tmp_path / "one.json").read_text()
    assert text == (tmp_path / "two.json").read_text()
    content = json.loads(text)
    assert content["fitted_on"] | {"corpus": ""} == {
        "part": "develop",
        "corpus": "",
        "cases": 3,
        "first_looks": 0,
        "packages": 3,
        "kinds": 3,
    }
    assert content["fitted_on"]["corpus"].startswith("sha256:")
    assert list(content["rules"]) == IDS
    assert content["rules"]["crash-signal"]["cases"] == 1
    assert fit_of(content).shifts.keys() == set(IDS)


def test_what_is_always_right_is_believed_more_and_what_errs_less(tmp_path: Path) -> None:
    mypy, crash = recorded("command-mypy-complains"), recorded("session-segfault")
    wrong = [case(f"w{number}", label(C.LINT_ERROR), mypy, package=f"p{number}") for number in range(9)]
    right = [case(f"r{number}", label(C.TEST_CRASH), crash, package=f"p{number}") for number in range(9)]
    fitted = fit_of(fit_to(write_part(tmp_path, "develop", *wrong, *right)))
    assert fitted.shifts["type-checker-complained"] < -1
    assert fitted.shifts["crash-signal"] > 0


def test_what_was_said_at_first_counts_as_much_as_what_is_said_now(tmp_path: Path) -> None:
    crash = recorded("session-segfault")
    cases = [case(f"r{number}", label(C.TEST_CRASH), crash, package=f"p{number}") for number in range(9)]
    write_part(tmp_path, "develop", *cases)
    alone = fit_to(tmp_path)
    looks = {each.id: ["killed", 0.65, False] for each in cases} | {
        "gone": ["killed", 0.65, True],
        "r0": ["a-rule-that-is-no-more", 0.9, True],
    }
    (tmp_path / FIRST_LOOK).write_text(json.dumps({"cases": looks}))
    found = fit_to(tmp_path)
    assert (alone["fitted_on"]["first_looks"], found["fitted_on"]["first_looks"]) == (0, 8)
    assert found["rules"]["killed"] | {"shift": 0} == {"cases": 8, "right": 0, "shift": 0}
    assert found["rules"]["killed"]["shift"] < alone["rules"]["killed"]["shift"]


def test_a_first_look_is_kept_once(tmp_path: Path) -> None:
    write_part(tmp_path, "develop", *THREE[:2])
    main(["--first-look", str(tmp_path)])
    write_part(tmp_path, "develop", case("crash", label(C.LINT_ERROR), THREE[1].evidence), THREE[2])
    assert keep_first_looks(tmp_path) == 1
    kept = json.loads((tmp_path / FIRST_LOOK).read_text())["cases"]
    assert {name: right for name, (_, _, right) in kept.items()} == {
        "crash": True,
        "mypy": True,
        "option": True,
    }


@pytest.mark.parametrize("text", ["", "[]", '{"cases": {"a": ["rule"]}}'])
def test_a_broken_record_of_first_looks_is_refused(tmp_path: Path, text: str) -> None:
    write_part(tmp_path, "develop", *THREE)
    (tmp_path / FIRST_LOOK).write_text(text)
    with pytest.raises(CorpusError, match=f"{FIRST_LOOK}: it holds no first looks: .*; restore it"):
        fit_to(tmp_path)


def test_the_module_fits_as_its_words_say(tmp_path: Path) -> None:
    corpus = write_part(tmp_path / "corpus", "develop", *THREE)
    main([str(corpus)], tmp_path / "confidence.json")
    assert json.loads((tmp_path / "confidence.json").read_text())["fitted_on"]["cases"] == 3


def test_there_is_nothing_to_fit_to_in_an_empty_part(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="holds no failure to fit to; build the corpus first"):
        fit_to(write_part(tmp_path, "develop", case("control", None)))
    with pytest.raises(CorpusError, match="there is no corpus"):
        fit_to(tmp_path / "nowhere")


def test_owner_and_category_have_both_to_be_right() -> None:
    truth = label(C.TEST_CRASH, O.ENVIRONMENT)
    assert not fitting.seen_in(failed(truth, recorded("session-segfault"))).right


def test_what_is_shipped_was_fitted_to_the_rules_and_cases_as_they_are() -> None:
    """After a change of either: python -m pytest_planverify.corpus.fitting"""
    shipped, anew = json.loads(FILE.read_text()), fit_to(CORPUS)
    assert shipped["fitted_on"] == anew["fitted_on"]
    assert list(shipped["rules"]) == list(anew["rules"]) == IDS
    for rule in RULES:
        was, now = (earned(fit_of(each), rule.id, rule.confidence) for each in (shipped, anew))
        assert was == pytest.approx(now, abs=0.05), rule.id
    scores, right = fit_of(shipped).curve
    assert list(scores) == sorted(set(scores))
    assert list(right) == sorted(right)
    assert right[0] >= 0
    assert right[-1] <= 1
