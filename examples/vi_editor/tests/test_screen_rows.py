from vi_editor.buffer.text import Buffer
from vi_editor.display.rows import render_rows, show_characters
from vi_editor.display.window import Window


def test_tabs_reach_the_next_stop():
    assert show_characters("ab\tc\x01", tab_stop=4) == "ab  c^A"


def test_rows_below_the_text_are_marked():
    assert render_rows(Buffer(["one"]), Window(height=3, width=10)) == ["one", "~", "~"]


def test_long_lines_are_cut_and_scrolled():
    window = Window(height=1, width=4, left=2)
    assert render_rows(Buffer(["abcdefgh"]), window) == ["cdef"]


def test_lines_may_be_numbered():
    rows = render_rows(Buffer(["a"] * 10), Window(height=2, width=10, top=8), numbers=True)
    assert rows == [" 9 a", "10 a"]
