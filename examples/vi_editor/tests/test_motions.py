import pytest

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.navigation.motions import INCLUSIVE, LINEWISE, MOTIONS, move

BUFFER = Buffer(["one two three", "four", "five"])


def test_every_motion_of_an_operator_is_a_motion():
    assert sorted(key for key in INCLUSIVE | LINEWISE if key not in MOTIONS) == []


def test_a_count_repeats_a_motion():
    assert move(BUFFER, Position(0, 0), "w", 2) == Position(0, 8)
    assert move(BUFFER, Position(0, 0), "l", 99) == Position(0, 12)


def test_a_count_before_a_big_g_is_a_line():
    assert move(BUFFER, Position(0, 0), "G") == Position(2, 0)
    assert move(BUFFER, Position(0, 0), "G", 2) == Position(1, 0)


def test_other_keys_are_no_motions():
    with pytest.raises(KeyError):
        move(BUFFER, Position(0, 0), "Z")
