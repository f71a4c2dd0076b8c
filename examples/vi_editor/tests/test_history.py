import pytest

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.undo.history import History, HistoryError
from vi_editor.undo.snapshots import take_snapshot

START = Position(0, 0)


def changed(history: History, buffer: Buffer, text: str) -> None:
    history.record(take_snapshot(buffer, START))
    buffer.lines[0] = text


def test_changes_are_undone_and_redone_in_order():
    history, buffer = History(), Buffer(["zero"])
    changed(history, buffer, "one")
    changed(history, buffer, "two")
    seen = []
    for step in (history.undo, history.undo, history.redo, history.redo):
        step(buffer, START)
        seen.append(buffer.lines[0])
    assert seen == ["one", "zero", "one", "two"]


def test_a_new_change_ends_what_can_be_redone():
    history, buffer = History(), Buffer(["zero"])
    changed(history, buffer, "one")
    history.undo(buffer, START)
    changed(history, buffer, "two")
    with pytest.raises(HistoryError, match="newest"):
        history.redo(buffer, START)


def test_the_first_text_has_nothing_before_it():
    with pytest.raises(HistoryError, match="oldest"):
        History().undo(Buffer(), START)


def test_old_changes_are_forgotten():
    history, buffer = History(most=2), Buffer(["zero"])
    for text in ("one", "two", "three"):
        changed(history, buffer, text)
    assert len(history.done) == 2
