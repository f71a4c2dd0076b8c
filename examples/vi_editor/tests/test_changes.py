import pytest

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.editing.changes import cut_characters, join_lines, replace_characters, swap_case


def test_characters_are_cut_up_to_the_end_of_the_line():
    buffer = Buffer(["abcd", "e"])
    assert cut_characters(buffer, Position(0, 2), 9) == (Position(0, 1), "cd")
    assert buffer.lines == ["ab", "e"]


def test_lines_are_joined_with_one_blank():
    buffer = Buffer(["one ", "  two", "three"])
    assert join_lines(buffer, Position(0, 0), 3) == Position(0, 7)
    assert buffer.lines == ["one two three"]


def test_the_case_is_swapped():
    buffer = Buffer(["aBc"])
    assert swap_case(buffer, Position(0, 0), 2) == Position(0, 2)
    assert buffer.lines == ["Abc"]


def test_characters_are_replaced_where_the_line_has_as_many():
    buffer = Buffer(["abc"])
    assert replace_characters(buffer, Position(0, 1), "x", 2) == Position(0, 2)
    assert buffer.lines == ["axx"]
    with pytest.raises(ValueError, match="too short"):
        replace_characters(buffer, Position(0, 2), "y", 2)
