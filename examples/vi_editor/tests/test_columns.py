from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.navigation.columns import first_word, left, line_end, line_start, right

BUFFER = Buffer(["  one", ""])


def test_left_and_right_stay_in_the_line():
    assert left(BUFFER, Position(0, 0)) == Position(0, 0)
    assert right(BUFFER, Position(0, 3)) == right(BUFFER, Position(0, 4)) == Position(0, 4)


def test_the_ends_of_a_line():
    assert line_start(BUFFER, Position(0, 3)) == Position(0, 0)
    assert first_word(BUFFER, Position(0, 0)) == Position(0, 2)
    assert line_end(BUFFER, Position(0, 0)) == Position(0, 4)


def test_an_empty_line_has_one_place():
    assert line_end(BUFFER, Position(1, 0)) == right(BUFFER, Position(1, 0)) == Position(1, 0)
