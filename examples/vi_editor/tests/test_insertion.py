import pytest

from vi_editor.buffer.insertion import insert, insert_lines
from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer


def test_text_is_inserted_within_a_line():
    buffer = Buffer(["helld"])
    assert insert(buffer, Position(0, 3), "lo wor") == Position(0, 9)
    assert buffer.lines == ["hello world"]


def test_line_breaks_split_the_line():
    buffer = Buffer(["onetwo"])
    assert insert(buffer, Position(0, 3), "\nand\n") == Position(2, 0)
    assert buffer.lines == ["one", "and", "two"]


def test_lines_are_inserted_before_a_line():
    buffer = Buffer(["one", "four"])
    insert_lines(buffer, 1, ["two", "three"])
    assert buffer.lines == ["one", "two", "three", "four"]


def test_nothing_is_inserted_outside_the_text():
    with pytest.raises(IndexError):
        insert(Buffer(["one"]), Position(1, 0), "two")
