"""How memory compares texts, weighs what is long ago, and concludes a rate from counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.memory.memory import ALIKE
from planner.memory.task_kinds import words_of
from planner.memory.weighing import (
    DAILY,
    DAY_SECONDS,
    PASSED_ON,
    Belief,
    Counts,
    Experience,
    believe,
    count,
    jaccard,
    ngrams,
    surely_better,
    weight,
)

grams = st.frozensets(st.sampled_from("abcdefgh"))
moments = st.floats(0, 1e7)
experiences = st.lists(
    st.builds(Experience, at=moments, well=st.booleans(), worth=st.sampled_from((0.25, 0.5, 1.0))),
    max_size=12,
)
counts = st.builds(lambda total, share: Counts(total * share, total), st.floats(0, 50), st.floats(0, 1))


@given(grams, grams)
def test_similarity_is_mutual_and_a_share(one: frozenset[str], other: frozenset[str]) -> None:
    assert jaccard(one, other) == jaccard(other, one)
    assert 0 <= jaccard(one, other) <= 1
    assert jaccard(one, one) == 1
    assert (jaccard(one, other) == 1) == (one == other)


def test_similarity_is_the_share_of_what_is_common() -> None:
    assert jaccard({"a", "b", "c"}, {"b", "c", "d"}) == 0.5
    assert jaccard({"a"}, {"b"}) == 0


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("computeRSI of_series(12)", "compute rsi of series 0"),
        ("assert 32.1 == 28.5", "assert 0 0"),
        ("Größe PRÜFEN", "grösse prüfen"),
        ("?!", ""),
    ],
)
def test_only_the_words_of_a_text_are_compared(text: str, seen: str) -> None:
    assert " ".join(words_of(text)) == seen


def test_trigrams_stay_within_words_so_that_their_order_does_not_count() -> None:
    assert ngrams("rsi a") == {" rs", "rsi", "si ", " a "}
    assert ngrams("slow test") == ngrams("test slow")


def test_words_of_one_stem_are_alike_and_others_are_not() -> None:
    assert jaccard(ngrams("fix compute_rsi"), ngrams("fix RSI computation")) > 0.5
    assert jaccard(ngrams("fix compute_rsi"), ngrams("write the manual")) < ALIKE


@given(moments, moments, moments)
def test_what_is_longer_ago_never_weighs_more(at: float, earlier: float, later: float) -> None:
    earlier, later = sorted((earlier, later))

    assert weight(at, later) <= weight(at, earlier) <= 1
    assert weight(earlier, at) <= weight(later, at)


def test_each_day_leaves_the_same_share() -> None:
    assert weight(0, 0) == 1
    assert weight(0, DAY_SECONDS) == pytest.approx(DAILY) == 0.95
    assert weight(0, 30 * DAY_SECONDS) == pytest.approx(0.95**30)
    assert weight(DAY_SECONDS, 0) == 1, "what is later than now is as of now"
    assert weight(0, math.inf) == 0


@given(experiences, moments)
def test_experiences_are_worth_their_sum(found: list[Experience], now: float) -> None:
    worth = count(found, now)

    each = [(experience.well, experience.worth * weight(experience.at, now)) for experience in found]
    assert worth.all == pytest.approx(sum(value for _, value in each))
    assert worth.well == pytest.approx(sum(value for well, value in each if well))


@given(experiences, st.randoms(use_true_random=False))
def test_the_order_of_experiences_changes_no_bit(found: list[Experience], random: st.random.Random) -> None:
    assert count(random.sample(found, len(found)), 1e7) == count(found, 1e7)


@given(st.lists(counts, max_size=5), st.integers(0, 4), st.floats(0.01, 5))
def test_a_success_at_any_level_never_lowers_the_rate(
    levels: list[Counts], place: int, worth: float
) -> None:
    before = believe(levels)
    better = [*levels, *[Counts(0, 0)] * (place + 1 - len(levels))]
    better[place] = Counts(better[place].well + worth, better[place].all + worth)
    worse = [*levels, *[Counts(0, 0)] * (place + 1 - len(levels))]
    worse[place] = Counts(worse[place].well, worse[place].all + worth)

    assert believe(better).rate >= before.rate - 1e-12
    assert believe(worse).rate <= before.rate + 1e-12
    assert 0 < before.rate < 1


def test_before_anything_is_known_it_goes_well_as_often_as_not() -> None:
    assert believe(()) == Belief(0.5, 2)
    assert believe([Counts(0, 0)]) == Belief(0.5, 2)
    assert believe([Counts(1, 1)]).rate == pytest.approx(2 / 3)
    assert believe([Counts(9, 10)]).rate == pytest.approx(10 / 12)


def test_what_is_more_alike_overrules_what_is_less() -> None:
    many, few = Counts(900, 1000), Counts(0, 6)

    assert believe([many, few]).rate == pytest.approx(0.9 * PASSED_ON / (PASSED_ON + 6), abs=0.01)
    assert believe([few, many]).rate > 0.85
    assert believe([many, Counts(0, 0)]) == believe([many]), "nothing known there changes nothing"


def test_being_better_takes_a_distance_and_many_experiences() -> None:
    assert surely_better(Belief(0.5, 9), Belief(0.5, 2)) == 0.5
    assert surely_better(Belief(0.8, 3), Belief(0.4, 3)) < 0.9
    assert surely_better(Belief(0.8, 50), Belief(0.4, 50)) > 0.999
    assert surely_better(Belief(1, 2), Belief(1, 2)) == 0.5
