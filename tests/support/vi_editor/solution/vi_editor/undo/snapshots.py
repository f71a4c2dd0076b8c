"""Snapshots of a text, to which it can be put back."""

from __future__ import annotations

from dataclasses import dataclass

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A text and its cursor at one time."""

    lines: tuple[str, ...]
    cursor: Position


def take_snapshot(buffer: Buffer, cursor: Position) -> Snapshot:
    """Return the text as it is now; later changes do not touch it."""
    return Snapshot(tuple(buffer.lines), cursor)


def restore(buffer: Buffer, snapshot: Snapshot) -> Position:
    """Put a text back; return its cursor."""
    buffer.lines[:] = snapshot.lines
    return snapshot.cursor
