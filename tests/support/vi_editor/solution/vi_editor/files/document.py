"""A buffer and the file that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from vi_editor.buffer.text import Buffer
from vi_editor.files.reading import FileError, read_file
from vi_editor.files.writing import write_file


@dataclass(slots=True)
class Document:
    """A text that was opened, and as what it was saved last."""

    buffer: Buffer = field(default_factory=Buffer)
    path: Path | None = None
    saved: str = "\n"

    @classmethod
    def open(cls, path: Path) -> Document:
        """Open a file. Raises :class:`FileError`."""
        buffer = read_file(path)
        return cls(buffer, path, buffer.text)

    @property
    def modified(self) -> bool:
        """Whether the text is another than the one that was saved."""
        return self.buffer.text != self.saved

    def save(self, path: Path | None = None) -> str:
        """Write the text; return what is told about it. Raises :class:`FileError`.

        A copy under another name does not make the text a saved one.
        """
        target = path or self.path
        if target is None:
            raise FileError("no file name")
        told = write_file(target, self.buffer)
        if self.path is None:
            self.path = target
        if target == self.path:
            self.saved = self.buffer.text
        return told
