"""How memory compares texts, and concludes a rate from weighted experiences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.memory.memory import ALIKE, Belief, believe, jaccard, ngrams, surely_better
from planner.memory.task_kinds import words_of

grams = st.frozensets(st.sampled_from("abcdefgh"))
experiences = st.lists(st.tuples(st.booleans(), st.floats(0.01, 4)), max_size=12)


@given(grams, grams)
def test_similarity_is_mutual_and_a_share(one: frozenset[str], other: frozenset[str]) -> None:
    assert jaccard(one, other) == jaccard(other, one)
    assert 0 <= jaccard(one, other) <= 1
    assert (jaccard(one, other) == 1) == (one == other)


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


def test_words_of_one_stem_are_alike_in_any_order() -> None:
    assert ngrams("rsi a") == {" rs", "rsi", "si ", " a "}
    assert ngrams("slow test") == ngrams("test slow")
    assert jaccard(ngrams("fix compute_rsi"), ngrams("fix RSI computation")) > 0.5
    assert jaccard(ngrams("fix compute_rsi"), ngrams("write the manual")) < ALIKE


@given(experiences, st.floats(0.01, 4), st.randoms(use_true_random=False))
def test_a_success_raises_the_rate_whatever_the_order(
    found: list[tuple[bool, float]], weight: float, random: st.random.Random
) -> None:
    before = believe(found)

    assert believe(random.sample(found, len(found))) == before
    assert believe([*found, (False, weight)]).rate < before.rate < believe([*found, (True, weight)]).rate
    assert 0 < before.rate < 1


def test_few_experiences_prove_little() -> None:
    assert believe(()) == Belief(0.5, 0)
    assert believe([(True, 1.0)]).rate == pytest.approx(2 / 3)
    assert surely_better(Belief(0.5, 7), Belief(0.5, 0)) == 0.5
    assert surely_better(Belief(0.8, 1), Belief(0.4, 1)) < 0.9
    assert surely_better(Belief(0.8, 48), Belief(0.4, 48)) > 0.999
