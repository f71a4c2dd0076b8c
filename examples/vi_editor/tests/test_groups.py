import pytest

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.undo.groups import as_one_change
from vi_editor.undo.history import History

START = Position(0, 0)


def change_and_fail(buffer: Buffer) -> None:
    buffer.lines[0] = "half"
    raise IndexError


def test_several_changes_are_undone_at_once():
    history, buffer = History(), Buffer(["zero"])
    with as_one_change(history, buffer, START):
        buffer.lines[0] = "one"
        buffer.lines.append("two")
    history.undo(buffer, START)
    assert buffer.lines == ["zero"]


def test_no_change_is_not_recorded():
    history, buffer = History(), Buffer(["zero"])
    with as_one_change(history, buffer, START):
        pass
    assert history.done == []


def test_a_change_that_fails_leaves_the_text_as_it_was():
    history, buffer = History(), Buffer(["zero"])
    with pytest.raises(IndexError), as_one_change(history, buffer, START):
        change_and_fail(buffer)
    assert (buffer.lines, history.done) == (["zero"], [])
