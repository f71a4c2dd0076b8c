"""The rows of the screen that show text."""

from __future__ import annotations

from vi_editor.buffer.text import Buffer
from vi_editor.display.window import Window

TAB_STOP = 8


def show_characters(line: str, tab_stop: int = TAB_STOP) -> str:
    """Return a line as it looks: tabs as blanks, control characters as ``^A``."""
    shown = ""
    for character in line:
        if character == "\t":
            shown += " " * (tab_stop - len(shown) % tab_stop)
        elif ord(character) < 32:
            shown += f"^{chr(ord(character) + 64)}"
        else:
            shown += character
    return shown


def render_rows(buffer: Buffer, window: Window, *, numbers: bool = False) -> list[str]:
    """Return the rows of a window; ``~`` stands below the text."""
    gutter = len(str(len(buffer.lines))) + 1 if numbers else 0
    rows: list[str] = []
    for number in window.visible(buffer.last_line):
        label = f"{number + 1:>{gutter - 1}} " if numbers else ""
        shown = show_characters(buffer.lines[number])[window.left :]
        rows.append(f"{label}{shown}"[: window.width].rstrip())
    rows += ["~"] * (window.height - len(rows))
    return rows
