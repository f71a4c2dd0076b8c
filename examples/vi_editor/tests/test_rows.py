from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.navigation.rows import down, first_line, go_to_line, last_line, up

BUFFER = Buffer(["long line", "short", "  last"])


def test_shorter_lines_move_the_cursor_to_their_end():
    assert down(BUFFER, Position(0, 8)) == Position(1, 4)


def test_the_ends_of_the_text_stop_the_cursor():
    assert up(BUFFER, Position(0, 2)) == Position(0, 2)
    assert down(BUFFER, Position(2, 2)) == Position(2, 2)


def test_lines_are_counted_from_one():
    assert go_to_line(BUFFER, 2) == Position(1, 0)
    assert go_to_line(BUFFER, 99) == Position(2, 2)


def test_the_first_and_the_last_line():
    assert first_line(BUFFER, Position(1, 1)) == Position(0, 0)
    assert last_line(BUFFER, Position(0, 0)) == Position(2, 2)
