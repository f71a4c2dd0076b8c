"""Groups of changes that are undone as one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.undo.history import History
from vi_editor.undo.snapshots import restore, take_snapshot


@contextmanager
def as_one_change(history: History, buffer: Buffer, cursor: Position) -> Iterator[None]:
    """Record all that happens within as one change; nothing where the text stays as it was.

    After an exception the text is as it was before.
    """
    before = take_snapshot(buffer, cursor)
    try:
        yield
    except BaseException:
        restore(buffer, before)
        raise
    if tuple(buffer.lines) != before.lines:
        history.record(before)
