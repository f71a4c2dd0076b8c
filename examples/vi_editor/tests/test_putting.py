from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.editing.putting import put
from vi_editor.editing.registers import Piece


def test_text_is_put_behind_or_before_the_cursor():
    buffer = Buffer(["ad"])
    assert put(buffer, Position(0, 0), Piece("bc")) == Position(0, 2)
    assert put(buffer, Position(0, 0), Piece("-"), before=True, count=2) == Position(0, 1)
    assert buffer.lines == ["--abcd"]


def test_lines_are_put_below_or_above():
    buffer = Buffer(["one"])
    piece = Piece("two", linewise=True)
    assert put(buffer, Position(0, 2), piece) == Position(1, 0)
    assert put(buffer, Position(0, 2), piece, before=True) == Position(0, 0)
    assert buffer.lines == ["two", "one", "two"]


def test_text_is_put_into_an_empty_line():
    buffer = Buffer()
    put(buffer, Position(0, 0), Piece("one"))
    assert buffer.lines == ["one"]
