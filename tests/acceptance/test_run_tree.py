"""The tree that ``planverify run`` draws below its lines on a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

import pytest

from planner.model.verdicts import TodoLife
from planner.text.display import UNICODE
from pytest_planverify.harness.progress import RunProgress, tree_lines

if TYPE_CHECKING:
    from collections.abc import Sequence


class Standing(NamedTuple):
    """What the tree reads of a todo's record."""

    id: str
    within: str
    life: TodoLife
    turns: int = 0


def phases(*lives: TodoLife) -> list[Standing]:
    """Return eight todos, one for each life, with four todos within each."""
    found: list[Standing] = []
    for number, life in enumerate(lives, 1):
        name = f"phase-{number}"
        found.append(Standing(name, "", life))
        found += [Standing(f"{name}/{inner}", name, life, 1) for inner in "abcd"]
    return found


def drawn(todos: Sequence[Standing], room: int) -> list[str]:
    return tree_lines(todos, UNICODE, room)  # pyright: ignore[reportArgumentType]


def test_a_phase_that_is_done_or_not_begun_is_one_line_and_the_current_one_shows_its_todos():
    lines = drawn(phases(TodoLife.DONE, TodoLife.ACTIVE, TodoLife.PENDING), 12)
    assert lines[0].split() == ["✓", "phase-1", "done", "4/4"]
    assert [line.split()[1].rstrip(",") for line in lines[1:6]] == [
        "phase-2",
        *(f"phase-2/{inner}" for inner in "abcd"),
    ]
    assert lines[6].split() == ["·", "phase-3", "pending", "0/4"]


@pytest.mark.parametrize("room", [0, 1, 3, 12])
def test_a_tree_is_never_higher_than_its_room_and_keeps_what_is_worked_on(room: int):
    lines = drawn(phases(*[TodoLife.PENDING] * 14, TodoLife.ACTIVE), room)
    assert len(lines) <= room
    if room > 1:
        assert any("phase-15" in line for line in lines)


def test_without_a_terminal_nothing_is_drawn():
    stream = io.StringIO()
    progress = RunProgress(stream)
    progress.line("said")
    progress.close()
    assert stream.getvalue() == "  said\n"
