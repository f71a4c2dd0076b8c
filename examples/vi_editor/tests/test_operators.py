import pytest

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.editing.operators import operate
from vi_editor.editing.registers import Piece


@pytest.mark.parametrize(
    ("operator", "key", "count", "left", "taken"),
    [
        ("d", "w", None, "two three", "one "),
        ("d", "w", 2, "three", "one two "),
        ("d", "w", 3, "", "one two three"),
        ("d", "e", None, " two three", "one"),
        ("d", "$", None, "", "one two three"),
        ("c", "w", None, "two three", "one "),
        ("y", "e", 2, "one two three", "one two"),
    ],
)
def test_an_operator_takes_what_a_motion_passes(
    operator: str, key: str, count: int | None, left: str, taken: str
):
    buffer = Buffer(["one two three"])
    _, piece = operate(buffer, Position(0, 0), operator, key, count)
    assert (buffer.lines, piece) == ([left], Piece(taken))


def test_motions_between_lines_take_whole_lines():
    buffer = Buffer(["one", "two", "three"])
    cursor, piece = operate(buffer, Position(1, 2), "d", "j")
    assert (buffer.lines, piece, cursor) == (["one"], Piece("two\nthree", linewise=True), Position(0, 0))


def test_an_operator_twice_takes_lines():
    buffer = Buffer(["one", "two", "three"])
    assert operate(buffer, Position(0, 1), "y", "y", 2)[1] == Piece("one\ntwo", linewise=True)
    assert operate(buffer, Position(1, 1), "c", "c") == (Position(1, 0), Piece("two", linewise=True))
    assert buffer.lines == ["one", "", "three"]


def test_a_word_at_the_end_of_a_line_leaves_the_next_line_alone():
    buffer = Buffer(["one two", "three"])
    assert operate(buffer, Position(0, 4), "d", "w")[1] == Piece("two")
    assert buffer.lines == ["one ", "three"]
