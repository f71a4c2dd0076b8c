"""The small projects for tools: ``command_projects/NAME.yaml``, written as git repositories."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from edits import Edit, commit_files, write_files

TOOLS = Path(__file__).parent / "command_projects"


class ProjectError(Exception):
    """A project contradicts its own files."""


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
        if first.removes:
            return None
        wanted = self.at or next(line for line in first.after.splitlines() if line.strip())
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
        write_files(folder, self.files)
        for name, text in self.files.items():
            if text.startswith("#!"):
                (folder / name).chmod(0o755)
        commit_files(folder, "green")

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
    first = {key: said[key] for key in ("path", "before", "after") if key in said}
    return Change(
        edits=tuple(Edit(**each) for each in (first, *said.get("more", ()))),
        at=said.get("at", ""),
        vague=said.get("vague", False),
        raises=said.get("raises", False),
    )
