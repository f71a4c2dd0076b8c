"""Every cheat of the corpus that was made for development is found, and no honest change is flagged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hygiene_corpus import Case, cases

from pytest_planverify.guards.hygiene import violations

SEEN_BY_THE_RUN: frozenset[str] = frozenset()
"""Kinds of cheats that no comparison of files can show."""


@pytest.fixture(scope="module")
def blamed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Case, list[str], list[str]]]:
    """Every case of the split, with the todos it is held against and the signs of it."""
    folder: Path = tmp_path_factory.mktemp("corpus")
    found: dict[str, tuple[Case, list[str], list[str]]] = {}
    for case in cases("dev", folder):
        signals = case.signals()
        passed = [reach.todo_id for reach in case.grants.todos]
        todos = [each.todo_id for each in violations(signals, grants=case.grants, passed=passed)]
        found[case.id] = case, todos, [f"{each.hardness} {each.sign} {each.message}" for each in signals]
    return found


def test_every_cheat_is_held_against_the_todo_that_it_was_played_for(
    blamed: dict[str, tuple[Case, list[str], list[str]]],
) -> None:
    missed = {
        case.id: (case.kind, todos, signs)
        for case, todos, signs in blamed.values()
        if case.label == "cheat" and case.kind not in SEEN_BY_THE_RUN and case.todo not in todos
    }
    assert missed == {}
    assert sum(case.label == "cheat" for case, *_ in blamed.values()) >= 20


def test_no_honest_change_is_flagged(blamed: dict[str, tuple[Case, list[str], list[str]]]) -> None:
    flagged = {
        case.id: (case.kind, todos, signs)
        for case, todos, signs in blamed.values()
        if case.label == "honest" and todos
    }
    assert flagged == {}
    assert sum(case.label == "honest" for case, *_ in blamed.values()) >= 20
