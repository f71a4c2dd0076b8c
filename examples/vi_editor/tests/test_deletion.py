import pytest

from vi_editor.buffer.deletion import delete, delete_lines, text_between
from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer


def test_text_between_two_places_may_span_lines():
    buffer = Buffer(["one", "two", "three"])
    assert text_between(buffer, Position(0, 1), Position(2, 2)) == "ne\ntwo\nth"


def test_what_is_deleted_is_returned_and_the_rest_is_joined():
    buffer = Buffer(["one", "two", "three"])
    assert delete(buffer, Position(2, 2), Position(0, 1)) == "ne\ntwo\nth"
    assert buffer.lines == ["oree"]


def test_a_text_keeps_one_line():
    buffer = Buffer(["one", "two"])
    assert delete_lines(buffer, 0, 1) == ["one", "two"]
    assert buffer.lines == [""]


def test_lines_that_are_not_there_are_not_deleted():
    with pytest.raises(IndexError):
        delete_lines(Buffer(["one"]), 0, 1)
