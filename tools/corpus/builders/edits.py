"""Edits of the small projects, faults or honest changes; and their files as a git repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from planner.model.base import Value

Files = dict[str, str]
"""Texts by path."""

GIT_VARIABLES = {
    name: value
    for person in ("AUTHOR", "COMMITTER")
    for name, value in (
        (f"GIT_{person}_NAME", "corpus"),
        (f"GIT_{person}_EMAIL", "corpus@example.org"),
        (f"GIT_{person}_DATE", "2026-01-05T12:00:00Z"),
    )
} | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


class EditError(ValueError):
    """An edit does not fit its file."""


def _replaced(said: object) -> object:
    if not isinstance(said, Mapping):
        return said
    text = said["text"]
    for old, new in said["replace"].items():
        text = Edit(path="replace", before=old, after=new).applied(text)
    return text


Text = Annotated[str, BeforeValidator(_replaced)]
"""A text, in YAML also as ``{text: ..., replace: {old: new}}`` if it resembles another one."""


class Edit(Value):
    """One change of one file.

    ``before`` is replaced by ``after``. Without ``before``, ``after`` is added at the end of the file,
    which is created if it is missing. Without both, the file is removed.
    """

    path: str
    before: Text = ""
    after: Text = ""

    @property
    def removes(self) -> bool:
        """Return whether the edit removes the file."""
        return not self.before and not self.after

    def applied(self, text: str | None) -> str | None:
        """Return the text of the file after the edit; ``None`` for no file.

        Raises ``EditError`` unless the file has the text to be replaced exactly once.
        """
        if self.removes:
            if text is None:
                raise EditError(f"{self.path}: no such file, so it cannot be removed")
            return None
        if not self.before:
            return (text or "") + self.after
        if text is None or text.count(self.before) != 1:
            found = "no such file" if text is None else f"{text.count(self.before)} places"
            raise EditError(
                f"{self.path}: the text to be replaced has {found}, it needs one: {self.before!r}"
            )
        return text.replace(self.before, self.after)


def changed_files(files: Mapping[str, str], edits: Iterable[Edit]) -> Files:
    """Return the files after the edits. Raises ``EditError`` if one does not fit."""
    result = dict(files)
    for edit in edits:
        if (text := edit.applied(result.get(edit.path))) is None:
            del result[edit.path]
        else:
            result[edit.path] = text
    return result


def write_files(folder: Path, files: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
    """Write the files that differ from those before, and remove the missing ones."""
    known = before or {}
    for path, text in sorted(files.items()):
        if known.get(path) != text:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    for path in sorted(set(known) - set(files)):
        (folder / path).unlink()


def commit_files(folder: Path, message: str) -> None:
    """Create a repository in a folder, with all its files in one commit."""
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", message)):
        subprocess.run(
            ("git", *words), cwd=folder, check=True, env=os.environ | GIT_VARIABLES, capture_output=True
        )
