"""Reading of files."""

from __future__ import annotations

from pathlib import Path

from vi_editor.buffer.text import Buffer


class FileError(Exception):
    """A file that cannot be read or written; ``str()`` says which, and why."""


def read_file(path: Path) -> Buffer:
    """Return the text of a file; a file that is not there is empty. Raises :class:`FileError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Buffer()
    except UnicodeDecodeError:
        raise FileError(f"{path.name}: not a text in UTF-8") from None
    except OSError as error:
        raise FileError(f"{path.name}: {error.strerror}") from None
    return Buffer.from_text(text)
