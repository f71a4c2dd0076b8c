"""Facts of a project for lint and drivers: bounded, read once, nothing executed or read outside."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from contextlib import suppress
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING

from planner.catalog import Purpose, parse_command
from planner.errors import CommandSyntaxError
from planner.model.findings import PathKind
from planner.planfile.project_files import RootedFiles, is_below, source_files, walk
from planner.policy.criteria import commands_of
from planner.text.glob_patterns import matches

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.plan import Plan

MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "Cargo.toml", "go.mod")
"""Manifest files of a project."""

MAX_FILES = 10_000
"""Limit of listed files of a folder."""

_NAMED_CONFIGURATIONS = {
    "mypy": "mypy.ini .mypy.ini",
    "pyright": "pyrightconfig.json",
    "tsc": "tsconfig.json",
    "ruff": "ruff.toml .ruff.toml",
    "flake8": ".flake8",
    "pylint": ".pylintrc pylintrc",
    "eslint": "eslint.config.js eslint.config.mjs .eslintrc.json .eslintrc.js",
}
"""Configuration files by tool."""

_SECTIONS = {
    name: name for name in ("mypy", "pyright", "ruff", "black", "isort", "pylint", "flake8", "pycodestyle")
} | {"basedpyright": "pyright"}
"""Tools by table in ``pyproject.toml`` or section in ``setup.cfg`` and ``tox.ini``."""


class ProjectFiles(RootedFiles):
    """Implementation of :class:`planner.lint.Project` for the files below one root."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        # Per object, as a cache on the method would keep every object alive.
        self.kind = cache(self._kind)
        self.files = cache(self._source_files)

    def text(self, path: str) -> str | None:
        """Return the text of a file; ``None`` if it is missing, outside, too large, binary or not UTF-8."""
        file = self.read(path)
        if file is None or not file.is_whole or file.is_binary:
            return None
        try:
            return file.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None

    def _source_files(self, folder: str) -> tuple[str, ...]:
        """Return Python files below a folder, up to a limit, without following links."""
        start = "" if folder == "." else f"{folder.rstrip('/')}/"
        return tuple(f"{start}{path}" for path in islice(source_files(f"{self._root}/{start}"), MAX_FILES))

    def glob_holds(self, pattern: str) -> bool:
        """Return whether the glob matches a file, if the project is small enough to be searched."""
        return len(self._paths) > MAX_FILES or any(matches(path, pattern) for path in self._paths)

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        return tuple(islice(walk(self._root), MAX_FILES + 1))

    def _kind(self, path: str) -> PathKind:
        """Return the kind of a path; what is neither file nor folder counts as outside."""
        try:
            mode = os.stat(f"{self._root}/{path}").st_mode
        except (OSError, ValueError) as error:
            is_gone = getattr(error, "errno", errno.ENOENT) in (errno.ENOENT, errno.ENOTDIR)
            return PathKind.MISSING if is_gone else PathKind.OUTSIDE
        if not is_below(os.path.realpath(f"{self._root}/{path}"), self._root):
            return PathKind.OUTSIDE
        if stat.S_ISDIR(mode):
            return PathKind.FOLDER
        return PathKind.FILE if stat.S_ISREG(mode) else PathKind.OUTSIDE


def configured_tools(root: Path) -> frozenset[str]:
    """Return the type checkers and linters that a project is configured for."""
    project = ProjectFiles(root)
    found = {
        tool
        for tool, names in _NAMED_CONFIGURATIONS.items()
        if any(project.kind(name) is PathKind.FILE for name in names.split())
    }
    for file, header in (("pyproject.toml", r"\[tool\."), ("setup.cfg", r"\["), ("tox.ini", r"\[")):
        sections = re.findall(rf"^{header}(\w+)", project.text(file) or "", re.MULTILINE)
        found.update(_SECTIONS[name] for name in sections if name in _SECTIONS)
    return frozenset(found)


def repository_fingerprint(root: Path, plan: Plan) -> str:
    """Return ``sha256:`` and a digest by which a repository is recognized.

    It covers the manifests in the root and the tools of the plan's test commands (without selections,
    which differ by todo; ``pytest`` if there are none). So two checkouts of one project, and the
    project after work that leaves its manifests alone, are equal. Memory of a repository with another
    fingerprint counts less. Missing, irregular and linked-out manifests count as absent; of long ones
    only the first MiB counts; line ends are normalized.
    """
    testers: set[str] = set()
    for _, spec in (each for todo in plan.items for each in commands_of(todo)):
        with suppress(CommandSyntaxError):  # reported by validation
            tool = parse_command(spec.cmd).tool
            if tool.purpose is Purpose.TEST:
                testers.add(tool.name)
    files = RootedFiles(root)
    facts: dict[str, object] = {"commands": sorted(testers) or ["pytest"]}
    for name in MANIFESTS:
        held = files.read(name)
        if held is not None:
            plain = held.data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            facts[name] = [not held.is_whole, hashlib.sha256(plain).hexdigest()]
    return "sha256:" + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
