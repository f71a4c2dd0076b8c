import pytest

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer


def test_a_text_comes_back_as_it_was():
    assert Buffer.from_text("one\ntwo\n").text == "one\ntwo\n"


def test_the_last_line_break_makes_no_line():
    assert Buffer.from_text("one\ntwo\n").lines == Buffer.from_text("one\ntwo").lines == ["one", "two"]


def test_an_empty_text_has_one_line():
    assert Buffer().lines == Buffer.from_text("").lines == [""]


def test_a_cursor_rests_on_characters():
    buffer = Buffer(["one", ""])
    assert buffer.clamp(Position(0, 9)) == Position(0, 2)
    assert buffer.clamp(Position(7, 9)) == Position(1, 0)


def test_a_place_outside_is_refused():
    with pytest.raises(IndexError):
        Buffer(["one"]).check(Position(0, 4))
