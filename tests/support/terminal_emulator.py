"""A terminal for tests: a pseudo-terminal whose output is shown on a screen of a given size."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import tty
from typing import TextIO

CONTROL = re.compile(r"\x1b\[(\d*)([A-Za-z])|[\r\n]|[^\x1b\r\n]")


class Terminal:
    """The lines that a person sees, as text without styles. Long lines are wrapped, as terminals do."""

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.rows = [""]
        self._row = self._column = 0
        self.written = ""
        """Everything that was written, as it came."""
        self.resize(columns, lines)

    def resize(self, columns: int, lines: int = 24) -> None:
        """Change the size; a narrower terminal wraps what it shows, and keeps the cursor in its text."""
        self.read()
        self.columns = columns
        wrapped = [[row[i : i + columns] for i in range(0, len(row), columns)] or [""] for row in self.rows]
        self._row = sum(map(len, wrapped[: self._row])) + self._column // columns
        self._column %= columns
        self.rows = [part for parts in wrapped for part in parts]
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def open(self) -> TextIO:
        """Return a stream that writes to the terminal."""
        return open(os.dup(self._slave), "w", encoding="utf-8")

    def read(self) -> list[str]:
        """Take in what was written since, and return the lines on the screen."""
        data = b""
        while select.select([self._master], [], [], 0)[0]:
            data += os.read(self._master, 65536)
        text = data.decode()
        self.written += text
        for match in CONTROL.finditer(text):
            self._take(match[0], int(match[1] or 0), match[2])
        return [row.rstrip() for row in self.rows]

    def _take(self, char: str, count: int, command: str | None) -> None:
        if command == "A":
            self._row = max(self._row - count, 0)
        elif command == "J":
            self.rows[self._row] = self.rows[self._row][: self._column]
            del self.rows[self._row + 1 :]
        elif command is not None:
            assert command == "m", command  # colour; nothing else is written
        elif char == "\r":
            self._column = 0
        elif char == "\n":
            self._next_row()
        else:
            if self._column == self.columns:
                self._next_row()
            row = self.rows[self._row].ljust(self._column)
            self.rows[self._row] = row[: self._column] + char + row[self._column + 1 :]
            self._column += 1

    def _next_row(self) -> None:
        self._row, self._column = self._row + 1, 0
        if self._row == len(self.rows):
            self.rows.append("")

    def close(self) -> None:
        """Give the pseudo-terminal back."""
        for end in (self._master, self._slave):
            with contextlib.suppress(OSError):
                os.close(end)
