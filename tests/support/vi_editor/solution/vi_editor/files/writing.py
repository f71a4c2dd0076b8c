"""Writing of files."""

from __future__ import annotations

import os
from pathlib import Path

from vi_editor.buffer.text import Buffer
from vi_editor.files.reading import FileError


def write_file(path: Path, buffer: Buffer) -> str:
    """Write a text, whole or not at all; return what is told about it. Raises :class:`FileError`."""
    text = buffer.text
    beside = path.with_name(f".{path.name}.swp")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise FileError(f"{path.name}: {error.strerror}") from None
    return f'"{path.name}" {len(buffer.lines)}L, {len(text.encode())}B written'
