"""The small projects for tools: ``command_projects/NAME.yaml``, written as git repositories."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml
from edits import Edit, commit_files, write_files

from planner.model.base import Value

TOOLS = Path(__file__).parent / "command_projects"


class ProjectError(Exception):
    """A project contradicts its own files."""


class Change(Edit):
    """A fault: edits of the project, the first of which is at the place of the fault."""

    more: tuple[Edit, ...] = ()
    at: str = ""
    """Text of the line at fault; empty for the first line of the first edit."""
    vague: bool = False
    """Whether tools name other lines than the one at fault."""
    raises: bool = False
    """Whether the line at fault raises."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Return the edits in their order."""
        return self, *self.more

    def line(self, project: Path) -> int | None:
        """Return the line at fault, in the changed project."""
        if self.removes:
            return None
        wanted = self.at or next(line for line in self.after.splitlines() if line.strip())
        lines = (project / self.path).read_text(encoding="utf-8").splitlines()
        found = [number for number, line in enumerate(lines, start=1) if wanted in line]
        if len(found) != 1:
            raise ProjectError(f"{self.path}: {wanted!r} stands in {len(found)} lines")
        return found[0]


class Project(Value):
    """One small project."""

    name: str
    language: str
    files: Mapping[str, str]
    commands: Mapping[str, str]
    """Command of each use of a tool; it passes on the unchanged project."""
    wrong: Mapping[str, str] = {}
    """The same commands with a file, module, script or target that never existed."""
    changes: Mapping[str, Change]
    harmless: Mapping[str, Edit] = {}
    """Edits without effect; ``product-else`` and ``test-else`` are in another file."""
    unfit: frozenset[str] = frozenset()
    """Kinds that cannot be built here, as the tool does not detect the change."""

    @property
    def digest(self) -> str:
        """Return the digest of its files and of the harmless edits."""
        ground = self.model_dump_json(include={"files", "harmless"})
        return hashlib.sha256(ground.encode()).hexdigest()

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
    """Return every project, sorted by name. Raises ``pydantic.ValidationError`` for an invalid file."""
    return tuple(
        Project(name=file.stem, **yaml.safe_load(file.read_text(encoding="utf-8")))
        for file in sorted(folder.glob("*.yaml"))
    )
