"""The last row of the screen."""

from __future__ import annotations

from vi_editor.buffer.position import Position
from vi_editor.files.document import Document


def describe_place(cursor: Position, lines: int) -> str:
    """Return how far down the text a cursor is: ``Top``, ``Bot``, ``All`` or a percentage."""
    if lines == 1:
        return "All"
    if cursor.line == 0:
        return "Top"
    if cursor.line == lines - 1:
        return "Bot"
    return f"{cursor.line * 100 // (lines - 1)}%"


def render_status(
    document: Document, cursor: Position, *, mode: str = "normal", message: str = "", width: int = 80
) -> str:
    """Return the row: a message or the mode and the file on the left, the place on the right."""
    name = document.path.name if document.path is not None else "[No Name]"
    changed = " [+]" if document.modified else ""
    shown_mode = "" if mode == "normal" else f"-- {mode.upper()} -- "
    left = message or f"{shown_mode}{name}{changed}"
    right = f"{cursor} {describe_place(cursor, len(document.buffer.lines))}"
    if len(left) + len(right) + 1 > width:
        left = left[: max(0, width - len(right) - 2)] + "…"
    return f"{left}{' ' * (width - len(left) - len(right))}{right}"
