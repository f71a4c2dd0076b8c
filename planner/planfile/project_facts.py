"""Facts of a project for lint and drivers: bounded, read once, never executed, never outside."""

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
from pathlib import Path
from typing import TYPE_CHECKING

from planner.catalog import Purpose, parse_command
from planner.errors import CommandSyntaxError
from planner.lint import PathKind
from planner.planfile.discovery import ProjectRoot, project_root
from planner.planfile.project_files import RootedFiles, is_below, source_files
from planner.policy.criteria import commands_of

if TYPE_CHECKING:
    from planner.model.plan import Plan

MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "Cargo.toml", "go.mod")
"""Files in which a project says what it is and what it is made of."""

MAX_FILES = 10_000
"""So many Python files of a folder are listed."""

_NAMED_CONFIGURATIONS = {
    "mypy": "mypy.ini .mypy.ini",
    "pyright": "pyrightconfig.json",
    "tsc": "tsconfig.json",
    "ruff": "ruff.toml .ruff.toml",
    "flake8": ".flake8",
    "pylint": ".pylintrc pylintrc",
    "eslint": "eslint.config.js eslint.config.mjs .eslintrc.json .eslintrc.js",
}
"""By tool of the catalog, the files that only it reads."""

_SECTIONS = {
    name: name for name in ("mypy", "pyright", "ruff", "black", "isort", "pylint", "flake8", "pycodestyle")
} | {"basedpyright": "pyright"}
"""Tables below ``[tool]`` of ``pyproject.toml``, and sections of ``setup.cfg`` and ``tox.ini``."""


class ProjectFiles(RootedFiles):
    """The project below one root, as :class:`planner.lint.Project` has it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.kind = cache(self._kind)
        self.files = cache(self._source_files)

    def text(self, path: str) -> str | None:
        """Return the text of a file, or ``None`` where it is none, or too large to be read."""
        file = self.read(path)
        if file is None or not file.is_whole or file.is_binary:
            return None
        try:
            return file.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None

    def _source_files(self, folder: str) -> tuple[str, ...]:
        """Return the Python files of a folder and below, the first of very many. Follows no links."""
        start = "" if folder == "." else f"{folder.rstrip('/')}/"
        return tuple(f"{start}{path}" for path in islice(source_files(f"{self._root}/{start}"), MAX_FILES))

    def pytest_setting(self, name: str) -> tuple[str, ...]:
        """Return the words of a setting of pytest in the root; none where it is not set."""
        found = self._pytest
        return found.words(name) if found.folder == Path(self._root) else ()

    @cached_property
    def _pytest(self) -> ProjectRoot:
        return project_root(Path(self._root))

    def glob_holds(self, pattern: str) -> bool:
        """Return whether a file of that glob exists."""
        try:
            return next(Path(self._root).glob(pattern), None) is not None
        except (OSError, ValueError, NotImplementedError):
            return False

    def _kind(self, path: str) -> PathKind:
        """Return what lies at a path."""
        try:
            mode = os.stat(f"{self._root}/{path}").st_mode
        except (OSError, ValueError) as error:
            is_gone = getattr(error, "errno", errno.ENOENT) in (errno.ENOENT, errno.ENOTDIR)
            return PathKind.MISSING if is_gone else PathKind.OUTSIDE
        if not is_below(os.path.realpath(f"{self._root}/{path}"), self._root):
            return PathKind.OUTSIDE
        return (
            PathKind.FOLDER
            if stat.S_ISDIR(mode)
            else PathKind.FILE
            if stat.S_ISREG(mode)
            else PathKind.OUTSIDE
        )


def configured_tools(root: Path) -> frozenset[str]:
    """Return the catalog's names of the type checkers and linters that a project is set up for."""
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
    """``sha256:`` and 64 hexadecimal digits, by which a repository is known again.

    They are of the manifests in the root and the plan's test commands: two checkouts of one project have
    the same, and so has the project after any work that leaves its manifests as they are. What is
    remembered of a repository with another fingerprint counts less. A manifest that is missing, no ordinary
    file, or led out of the root by a link counts as absent; of a long one only the first MiB counts. Ends
    of lines are all alike. Of a test command its tool counts, not what it selects: every todo selects other
    tests of one repository. Without any command it is ``pytest``.
    """
    testers: set[str] = set()
    for _, spec in (each for todo in plan.items for each in commands_of(todo)):
        with suppress(CommandSyntaxError):  # validation speaks of it, and nothing is run by it
            tool = parse_command(spec.cmd).tool
            if tool.purpose is Purpose.TEST:
                testers.add(tool.name)
    files = RootedFiles(root)
    told: dict[str, object] = {"commands": sorted(testers) or ["pytest"]}
    for name in MANIFESTS:
        held = files.read(name)
        if held is not None:
            plain = held.data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            told[name] = [not held.is_whole, hashlib.sha256(plain).hexdigest()]
    return "sha256:" + hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
