from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.editing.typing import BACKSPACE, type_key


def typed(buffer: Buffer, cursor: Position, keys: str, *, autoindent: bool = False) -> Position:
    for key in keys:
        cursor = type_key(buffer, cursor, key, autoindent=autoindent)
    return cursor


def test_keys_become_text():
    buffer = Buffer(["ad"])
    assert typed(buffer, Position(0, 1), "b\nc") == Position(1, 1)
    assert buffer.lines == ["ab", "cd"]


def test_a_backspace_takes_a_character_back():
    buffer = Buffer(["abc"])
    assert typed(buffer, Position(0, 2), BACKSPACE) == Position(0, 1)
    assert buffer.lines == ["ac"]


def test_a_backspace_joins_lines_and_stops_at_the_start():
    buffer = Buffer(["ab", "c"])
    assert typed(buffer, Position(1, 0), BACKSPACE) == Position(0, 2)
    assert typed(buffer, Position(0, 0), BACKSPACE) == Position(0, 0)
    assert buffer.lines == ["abc"]


def test_a_new_line_may_be_indented_like_the_one_above():
    buffer = Buffer(["  one"])
    assert typed(buffer, Position(0, 5), "\ntwo", autoindent=True) == Position(1, 5)
    assert buffer.lines == ["  one", "  two"]
