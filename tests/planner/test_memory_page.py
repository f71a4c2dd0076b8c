"""The page about memory says what is so: its examples run, its numbers are those of the code."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from planner.edges.fingerprint import MANIFESTS
from planner.memory import repairs, routing, similarity, tallies, todos
from planner.rules.task_kinds import TaskKind

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"


@pytest.fixture(scope="module")
def words() -> str:
    return " ".join(PAGE.read_text(encoding="utf-8").split())


def test_every_example_of_the_page_gives_what_is_shown() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)

    assert found.attempted > 30
    assert found.failed == 0


@pytest.mark.parametrize(
    "said",
    [
        f"after each day {tallies.DAILY:.0%} of a weight are left".replace("%", " %"),
        f"Jaccard similarity of {similarity.ALIKE} or more",
        f"that they weigh {routing.ENOUGH} or more",
        f"better by {100 * routing.MARGIN:.0f} points at least",
        f"with a probability of {100 * routing.SURE:.0f} %",
        *(f"`{name}`" for name in MANIFESTS),
        *(f"`{kind}`" for kind in TaskKind),
        *(f"`{recipe}`" for rows in todos.SHOWN_BY.values() for recipe, _ in rows),
        *(
            f"`{category}`"
            for rows in todos.SHOWN_BY.values()
            for _, shown in rows
            for category in sorted(shown)
        ),
    ],
)
def test_the_page_names_what_the_code_goes_by(said: str, words: str) -> None:
    assert said in words


def test_numbers_that_the_page_writes_in_words() -> None:
    assert repairs.ELSEWHERE == 0.5
    assert repairs.CORRECTED == 2
    assert tallies.PASSED_ON == 3
    assert tallies.UNKNOWN == (1, 2)
    assert todos.WORTH_A_RECIPE == 0.25
