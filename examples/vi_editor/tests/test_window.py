import pytest

from vi_editor.buffer.position import Position
from vi_editor.display.window import Window


def test_a_window_scrolls_as_little_as_it_can():
    window = Window(height=3, width=10)
    tops = []
    for line in (2, 3, 9, 8, 0):
        window.follow(Position(line, 0))
        tops.append(window.top)
    assert tops == [0, 1, 7, 7, 0]


def test_a_window_scrolls_sideways():
    window = Window(height=3, width=10)
    window.follow(Position(0, 14))
    assert window.left == 5


def test_the_text_may_end_before_the_window():
    assert list(Window(height=3, width=10).visible(last_line=1)) == [0, 1]


def test_a_window_shows_something():
    with pytest.raises(ValueError, match="shows nothing"):
        Window(height=0, width=10)
