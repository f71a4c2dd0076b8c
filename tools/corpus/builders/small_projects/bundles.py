"""Reads the descriptions of small projects: their files, the faults that become decoys, the honest changes.

A project is one file. Below ``===== files`` stand its files, each under ``=== path``; below
``===== decoys`` and ``===== controls`` changes: each begins with ``=== kind``, then ``key: value`` lines,
then edits. An edit is ``--- path``, the text that is there, a line ``~~~`` and the text that takes its
place; nothing above the line appends to the file or makes it, and ``--- path (gone)`` removes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of one file."""

    path: str
    old: str = ""
    new: str = ""
    gone: bool = False

    def applied(self, text: str | None) -> str | None:
        """The file's text after the edit; ``None`` where there is no file. Raises ``ValueError``."""
        if self.gone:
            return None
        if not self.old:
            return (text or "") + self.new
        if text is None or text.count(self.old) != 1:
            found = "no such file" if text is None else f"{text.count(self.old)} places"
            raise ValueError(
                f"{self.path}: the text to be replaced has {found}, it needs one: {self.old!r}"
            )
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A fault, or an honest change, with what is said about it."""

    kind: str
    said: tuple[tuple[str, str], ...]
    edits: tuple[Edit, ...]

    def one(self, key: str, default: str = "") -> str:
        """The value of a key that stands at most once."""
        return next(iter(self.all(key)), default)

    def all(self, key: str) -> tuple[str, ...]:
        """Every value of a key."""
        return tuple(value for name, value in self.said if name == key)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallProject:
    """A small project and what may be done to it."""

    name: str
    files: dict[str, str]
    suite: str
    """The command that runs all of its tests."""
    plugins: tuple[str, ...]
    """The plugins of pytest that its tests need."""
    product: tuple[str, ...]
    """Globs of its product files."""
    tests: tuple[str, ...]
    """Globs of its test files."""
    decoys: tuple[Change, ...]
    controls: tuple[Change, ...]


@cache
def small_projects() -> tuple[SmallProject, ...]:
    """Every small project, in the order of names. Raises ``ValueError`` where a description is broken."""
    return tuple(_project(file) for file in sorted(FOLDER.glob("*.txt")))


def changed_files(files: dict[str, str], edits: tuple[Edit, ...]) -> dict[str, str]:
    """The files after the edits."""
    result = dict(files)
    for edit in edits:
        if (text := edit.applied(result.get(edit.path))) is None:
            del result[edit.path]
        else:
            result[edit.path] = text
    return result


def _project(file: Path) -> SmallProject:
    _, *parts = re.split(r"^===== (\w+)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    part = dict(zip(parts[::2], parts[1::2], strict=True))
    head, *sections = _sections(part["files"])
    said = dict(_said(head[1]))
    return SmallProject(
        name=file.stem,
        files={name: body.strip("\n") + "\n" if body.strip() else "" for name, body in sections},
        suite=said["suite"],
        plugins=tuple(said.get("plugins", "").split()),
        product=tuple(said["product"].split()),
        tests=tuple(said["tests"].split()),
        decoys=tuple(_change(kind, body) for kind, body in _sections(part["decoys"])),
        controls=tuple(_change(kind, body) for kind, body in _sections(part["controls"])),
    )


def _change(kind: str, body: str) -> Change:
    head, *edits = re.split(r"^--- ", body, flags=re.MULTILINE)
    return Change(kind=kind, said=tuple(_said(head)), edits=tuple(_edit(each) for each in edits))


def _edit(text: str) -> Edit:
    path, _, body = text.partition("\n")
    if path.endswith(" (gone)"):
        return Edit(path=path.removesuffix(" (gone)"), gone=True)
    old, separator, new = ("\n" + body).partition("\n~~~\n")
    if not separator:
        raise ValueError(f"{path}: an edit has no line ~~~ between what was and what is")
    new = new.rstrip("\n")
    return Edit(path=path, old=old.removeprefix("\n"), new=new if old.strip("\n") else new + "\n")


def _said(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip()]
    return [(key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in lines)]


def _sections(text: str) -> list[tuple[str, str]]:
    parts = re.split(r"^=== (.+)\n", text, flags=re.MULTILINE)
    if parts[0].strip():
        raise ValueError(f"'{parts[0].strip()[:80]}': text stands before the first section")
    return list(zip(parts[1::2], parts[2::2], strict=True))
