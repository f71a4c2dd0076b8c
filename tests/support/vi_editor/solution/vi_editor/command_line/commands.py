"""The commands of the command line: ``:w :q :wq :x :e :s :d :set`` and line numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vi_editor.buffer.deletion import delete_lines
from vi_editor.buffer.position import Position
from vi_editor.command_line.parsing import Command, CommandError, parse_command
from vi_editor.files.document import Document
from vi_editor.navigation.rows import go_to_line
from vi_editor.search.substitution import parse_substitution, substitute


@dataclass(slots=True)
class Session:
    """What commands work on."""

    document: Document = field(default_factory=Document)
    cursor: Position = field(default_factory=Position)
    options: dict[str, bool] = field(default_factory=lambda: {"number": False, "autoindent": False})
    finished: bool = False


def execute(session: Session, text: str) -> str:
    """Carry out a line; return what is told. Raises :class:`CommandError`, and what its parts raise."""
    buffer = session.document.buffer
    command = parse_command(text, current=session.cursor.line, last=buffer.last_line)
    if command.name not in COMMANDS:
        raise CommandError(f"not a command: {command.name}")
    told = COMMANDS[command.name](session, command)
    session.cursor = session.document.buffer.clamp(session.cursor)
    return told


def _go(session: Session, command: Command) -> str:
    if command.lines is not None:
        session.cursor = go_to_line(session.document.buffer, command.lines[1] + 1)
    return ""


def _write(session: Session, command: Command) -> str:
    return session.document.save(Path(command.argument) if command.argument else None)


def _quit(session: Session, command: Command) -> str:
    if session.document.modified and not command.force:
        raise CommandError("not saved (add ! to quit all the same)")
    session.finished = True
    return ""


def _write_and_quit(session: Session, command: Command) -> str:
    told = _write(session, command)
    _quit(session, command)
    return told


def _save_and_quit(session: Session, command: Command) -> str:
    """Write only where there is something to write."""
    return _write_and_quit(session, command) if session.document.modified else _quit(session, command)


def _edit(session: Session, command: Command) -> str:
    if session.document.modified and not command.force:
        raise CommandError("not saved (add ! to open another file all the same)")
    path = Path(command.argument) if command.argument else session.document.path
    if path is None:
        raise CommandError("no file name")
    session.document, session.cursor = Document.open(path), Position()
    return f'"{path.name}" {len(session.document.buffer.lines)}L'


def _substitute(session: Session, command: Command) -> str:
    first, last = command.lines or (session.cursor.line, session.cursor.line)
    count = substitute(session.document.buffer, first, last, parse_substitution(command.argument))
    session.cursor = Position(last, 0)
    return f"{count} substitution{'' if count == 1 else 's'}"


def _delete(session: Session, command: Command) -> str:
    first, last = command.lines or (session.cursor.line, session.cursor.line)
    deleted = delete_lines(session.document.buffer, first, last)
    session.cursor = Position(first, 0)
    return f"{len(deleted)} fewer line{'' if len(deleted) == 1 else 's'}"


def _set(session: Session, command: Command) -> str:
    name = command.argument.removeprefix("no")
    if name not in session.options:
        raise CommandError(f"there is no option {command.argument}")
    session.options[name] = not command.argument.startswith("no")
    return ""


COMMANDS: dict[str, Callable[[Session, Command], str]] = {
    "": _go,
    "d": _delete,
    "e": _edit,
    "q": _quit,
    "s": _substitute,
    "set": _set,
    "w": _write,
    "wq": _write_and_quit,
    "x": _save_and_quit,
}
