"""The page about memory says what is so: its examples run, its numbers are those of the code."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from planner import memory
from planner.memory import TaskKind
from planner.planfile.project_facts import MANIFESTS

PAGE = Path(__file__).parents[3] / "docs" / "memory.md"


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
        f"after each day {memory.DAILY:.0%} of a weight are left".replace("%", " %"),
        f"Jaccard similarity of {memory.ALIKE} or more",
        f"that they weigh {memory.ENOUGH} or more",
        f"better by {100 * memory.MARGIN:.0f} points at least",
        f"with a probability of {100 * memory.SURE:.0f} %",
        *(f"`{name}`" for name in MANIFESTS),
        *(f"`{kind}`" for kind in TaskKind),
        *(f"`{recipe}`" for rows in memory.SHOWN_BY.values() for recipe, _ in rows),
        *(
            f"`{category}`"
            for rows in memory.SHOWN_BY.values()
            for _, shown in rows
            for category in sorted(shown)
        ),
    ],
)
def test_the_page_names_what_the_code_goes_by(said: str, words: str) -> None:
    assert said in words
