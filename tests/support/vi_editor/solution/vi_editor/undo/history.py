"""The history of a text: ``u`` and ``Ctrl-R``."""

from __future__ import annotations

from dataclasses import dataclass, field

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.undo.snapshots import Snapshot, restore, take_snapshot


class HistoryError(Exception):
    """There is nothing to undo or redo."""


@dataclass(slots=True)
class History:
    """What can be undone and redone, the latest last."""

    done: list[Snapshot] = field(default_factory=list[Snapshot])
    undone: list[Snapshot] = field(default_factory=list[Snapshot])
    most: int = 1000

    def record(self, before: Snapshot) -> None:
        """Keep how the text was before a change; what was undone cannot be redone any more."""
        self.done.append(before)
        self.undone.clear()
        del self.done[: -self.most]

    def undo(self, buffer: Buffer, cursor: Position) -> Position:
        """Take the last change back; return the cursor. Raises :class:`HistoryError`."""
        if not self.done:
            raise HistoryError("already at the oldest change")
        self.undone.append(take_snapshot(buffer, cursor))
        return restore(buffer, self.done.pop())

    def redo(self, buffer: Buffer, cursor: Position) -> Position:
        """Make the change that was undone last again; return the cursor. Raises :class:`HistoryError`."""
        if not self.undone:
            raise HistoryError("already at the newest change")
        self.done.append(take_snapshot(buffer, cursor))
        return restore(buffer, self.undone.pop())
