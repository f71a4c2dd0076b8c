"""The editor: what each key does in each mode."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from vi_editor.buffer.insertion import insert_lines
from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.command_line.commands import Session, execute
from vi_editor.command_line.parsing import CommandError
from vi_editor.display.rows import render_rows
from vi_editor.display.status import render_status
from vi_editor.display.window import Window
from vi_editor.editing.changes import cut_characters, join_lines, replace_characters, swap_case
from vi_editor.editing.operators import operate
from vi_editor.editing.putting import put
from vi_editor.editing.registers import Piece, Registers
from vi_editor.editing.typing import indent_of, type_key
from vi_editor.files.document import Document
from vi_editor.files.reading import FileError
from vi_editor.navigation.columns import first_word
from vi_editor.navigation.motions import MOTIONS, move
from vi_editor.search.patterns import PatternError
from vi_editor.search.repetition import Search
from vi_editor.undo.groups import as_one_change
from vi_editor.undo.history import History, HistoryError
from vi_editor.undo.snapshots import Snapshot, take_snapshot

ESCAPE, REDO = "\x1b", "\x12"
MISTAKES = (CommandError, FileError, HistoryError, KeyError, PatternError, ValueError)
"""What a user does wrong; it is told in the last row."""


@dataclass(slots=True)
class Editor:
    """A document on a screen, and keys that are typed."""

    session: Session = field(default_factory=Session)
    window: Window = field(default_factory=lambda: Window(height=23, width=80))
    mode: str = "normal"
    message: str = ""
    registers: Registers = field(default_factory=Registers)
    history: History = field(default_factory=History)
    search: Search = field(default_factory=Search)
    _keys: str = ""
    _line: str = ""
    _before: Snapshot | None = None

    @classmethod
    def open(cls, path: Path, *, height: int = 24, width: int = 80) -> Editor:
        """Open a file on a screen of that size; its last row is the status."""
        return cls(Session(Document.open(path)), Window(height=height - 1, width=width))

    @property
    def buffer(self) -> Buffer:
        """The text."""
        return self.session.document.buffer

    @property
    def cursor(self) -> Position:
        """The place of the cursor."""
        return self.session.cursor

    def screen(self) -> list[str]:
        """Return the rows of the screen."""
        self.window.follow(self.cursor)
        rows = render_rows(self.buffer, self.window, numbers=self.session.options["number"])
        typed = self._line if self.mode == "command" else self.message
        mode = "insert" if self.mode == "insert" else "normal"
        return [
            *rows,
            render_status(
                self.session.document, self.cursor, mode=mode, message=typed, width=self.window.width
            ),
        ]

    def type(self, keys: str) -> None:
        """Take keys one after the other."""
        for key in keys:
            self.message = ""
            try:
                {"normal": self._normal, "insert": self._insert, "command": self._command}[self.mode](key)
            except MISTAKES as error:
                self._keys = ""
                self.message = str(error.args[0]) if error.args else "not possible"

    def _normal(self, key: str) -> None:
        if key == ESCAPE:
            self._keys = ""
            return
        self._keys += key
        rest = self._keys.lstrip("123456789")
        digits = self._keys[: len(self._keys) - len(rest)]
        while digits and rest[:1].isdigit():
            digits, rest = digits + rest[0], rest[1:]
        if not rest or rest in ("g", "r", "d", "y", "c", "dg", "yg", "cg"):
            return
        self._keys = ""
        self._perform(rest, int(digits) if digits else None)

    def _perform(self, keys: str, count: int | None) -> None:
        if keys in MOTIONS:
            self.session.cursor = move(self.buffer, self.cursor, keys, count)
        elif keys in ("n", "N"):
            self.session.cursor = self.search.repeat(self.buffer, self.cursor, reverse=keys == "N")
        elif keys in (":", "/", "?"):
            self.mode, self._line = "command", keys
        elif keys in ("u", REDO):
            step = self.history.undo if keys == "u" else self.history.redo
            self.session.cursor = self.buffer.clamp(step(self.buffer, self.cursor))
        elif keys in ("i", "I", "a", "A", "o", "O") or keys[0] == "c":
            self._start_insert(keys, count)
        else:
            with as_one_change(self.history, self.buffer, self.cursor):
                self._change(keys, count)

    def _change(self, keys: str, count: int | None) -> None:
        buffer, cursor = self.buffer, self.cursor
        if keys[0] in "dy":
            self.session.cursor, piece = operate(buffer, cursor, keys[0], keys[1:], count)
            self.registers.store(piece)
        elif keys == "x":
            self.session.cursor, text = cut_characters(buffer, cursor, count or 1)
            self.registers.store(Piece(text))
        elif keys in ("p", "P"):
            piece = self.registers.fetch()
            self.session.cursor = put(buffer, cursor, piece, before=keys == "P", count=count or 1)
        elif keys == "J":
            self.session.cursor = join_lines(buffer, cursor, count or 2)
        elif keys == "~":
            self.session.cursor = swap_case(buffer, cursor, count or 1)
        elif keys[0] == "r":
            self.session.cursor = replace_characters(buffer, cursor, keys[1], count or 1)
        else:
            raise CommandError(f"not a command: {keys}")

    def _start_insert(self, keys: str, count: int | None) -> None:
        buffer, cursor = self.buffer, self.cursor
        before = take_snapshot(buffer, cursor)
        length = len(buffer.lines[cursor.line])
        if keys[0] == "c":
            self.session.cursor, piece = operate(buffer, cursor, "c", keys[1:], count)
            self.registers.store(piece)
        elif keys == "I":
            self.session.cursor = first_word(buffer, cursor)
        elif keys == "a":
            self.session.cursor = Position(cursor.line, min(cursor.column + 1, length))
        elif keys == "A":
            self.session.cursor = Position(cursor.line, length)
        elif keys in ("o", "O"):
            line = cursor.line + (keys == "o")
            indent = indent_of(buffer.lines[cursor.line]) if self.session.options["autoindent"] else ""
            insert_lines(buffer, line, [indent])
            self.session.cursor = Position(line, len(indent))
        self.mode, self._before = "insert", before

    def _insert(self, key: str) -> None:
        if key != ESCAPE:
            autoindent = self.session.options["autoindent"]
            self.session.cursor = type_key(self.buffer, self.cursor, key, autoindent=autoindent)
            return
        self.mode = "normal"
        self.session.cursor = self.buffer.clamp(self.cursor.moved(columns=-1))
        if self._before is not None and self._before.lines != tuple(self.buffer.lines):
            self.history.record(self._before)

    def _command(self, key: str) -> None:
        if key not in ("\n", ESCAPE):
            self._line += key
            return
        line, self.mode = self._line, "normal"
        if key == ESCAPE:
            return
        if line[0] != ":":
            backward = line[0] == "?"
            self.session.cursor = self.search.start(self.buffer, self.cursor, line[1:], backward=backward)
            return
        document = self.session.document
        with as_one_change(self.history, self.buffer, self.cursor):
            self.message = execute(self.session, line[1:])
        if self.session.document is not document:  # another text has another history
            self.history = History()
