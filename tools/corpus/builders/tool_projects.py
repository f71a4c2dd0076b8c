"""The small projects for tools: ``command_projects/NAME.yaml``, written as git repositories."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

TOOLS = Path(__file__).parent / "command_projects"

_GIT = {
    "GIT_AUTHOR_NAME": "corpus",
    "GIT_AUTHOR_EMAIL": "corpus@example.invalid",
    "GIT_COMMITTER_NAME": "corpus",
    "GIT_COMMITTER_EMAIL": "corpus@example.invalid",
    "GIT_AUTHOR_DATE": "2026-01-05T12:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-05T12:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


class ProjectError(Exception):
    """A project contradicts its own files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One edit of a file: a replacement, an addition at its end, or its removal."""

    path: str
    before: str = ""
    after: str = ""
    append: str = ""
    gone: bool = False

    def apply(self, project: Path) -> None:
        """Raises :class:`ProjectError` when the file does not hold the text to be replaced exactly once."""
        file = project / self.path
        if self.gone:
            file.unlink()
            return
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if self.append:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + self.append, encoding="utf-8")
            return
        if text.count(self.before) != 1:
            raise ProjectError(f"{self.path}: {self.before!r} stands there {text.count(self.before)} times")
        file.write_text(text.replace(self.before, self.after), encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A fault: edits of the project, and its place."""

    edits: tuple[Edit, ...]
    at: str
    """Text of the line at fault; empty for the first line of the first edit."""
    vague: bool
    """Whether tools name other lines than the one at fault."""
    raises: bool
    """Whether the line at fault raises."""

    @property
    def path(self) -> str:
        """Return the file at fault."""
        return self.edits[0].path

    def line(self, project: Path) -> int | None:
        """Return the line at fault, in the changed project."""
        first = self.edits[0]
        if first.gone:
            return None
        wanted = self.at or next(
            line for line in (first.after or first.append).splitlines() if line.strip()
        )
        lines = (project / first.path).read_text(encoding="utf-8").splitlines()
        found = [number for number, line in enumerate(lines, start=1) if wanted in line]
        if len(found) != 1:
            raise ProjectError(f"{first.path}: {wanted!r} stands in {len(found)} lines")
        return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One small project."""

    name: str
    language: str
    digest: str
    """Digest of its files and of the harmless edits."""
    files: Mapping[str, str]
    commands: Mapping[str, str]
    """Command of each use of a tool; it passes on the unchanged project."""
    wrong: Mapping[str, str]
    """The same commands with a file, module, script or target that never existed."""
    changes: Mapping[str, Change]
    harmless: Mapping[str, Edit]
    """Edits without effect; ``product-else`` and ``test-else`` are in another file."""

    unfit: frozenset[str]
    """Kinds that cannot be built here, as the tool does not detect the change."""

    def lay_out(self, folder: Path) -> None:
        """Write the files and commit them."""
        shutil.rmtree(folder, ignore_errors=True)
        for name, text in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            if text.startswith("#!"):
                file.chmod(0o755)
        for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "green")):
            subprocess.run(("git", *words), cwd=folder, check=True, env={**os.environ, **_GIT})

    def harmless_beside(self, change: Change | None, side: str) -> Edit | None:
        """Return a harmless edit in a file that the fault does not change."""
        touched = {edit.path for edit in change.edits} if change else set[str]()
        for name in (side, f"{side}-else"):
            edit = self.harmless.get(name)
            if edit and edit.path not in touched:
                return edit
        return None


def read_projects(folder: Path = TOOLS) -> tuple[Project, ...]:
    """Return every project, sorted by name."""
    return tuple(_project(file) for file in sorted(folder.glob("*.yaml")))


def _project(file: Path) -> Project:
    said = yaml.safe_load(file.read_text(encoding="utf-8"))
    ground = json.dumps([said["files"], said.get("harmless", {})])
    return Project(
        name=file.stem,
        language=said["language"],
        digest=hashlib.sha256(ground.encode()).hexdigest(),
        files=said["files"],
        commands=said["commands"],
        wrong=said.get("wrong", {}),
        changes={name: _change(each) for name, each in said["changes"].items()},
        unfit=frozenset(said.get("unfit", ())),
        harmless={name: Edit(**each) for name, each in said.get("harmless", {}).items()},
    )


def _change(said: dict[str, Any]) -> Change:
    if "gone" in said:
        edits = [Edit(path=said["gone"], gone=True)]
    else:
        edits = [Edit(**{key: said[key] for key in ("path", "before", "after", "append") if key in said})]
    edits += [Edit(**each) for each in said.get("more", ())]
    return Change(
        edits=tuple(edits),
        at=said.get("at", ""),
        vague=said.get("vague", False),
        raises=said.get("raises", False),
    )
