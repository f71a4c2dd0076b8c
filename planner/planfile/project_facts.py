"""The files of a project as the lint and the harness ask for them: bounded, read once, never executed, and
never outside of the root."""

from __future__ import annotations

import errno
import importlib.machinery
import os
import stat
import sys
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from planner.lint import Kind
from planner.planfile.confinement import is_below
from planner.planfile.discovery import ProjectRoot, project_root

MAX_BYTES = 512 * 1024
"""The size of the largest file that is read."""

MAX_TOTAL_BYTES = 8 * 1024 * 1024
"""How much is read of all files together."""

MAX_ENTRIES = 50_000
"""How many entries of folders are looked at, of all folders together."""

MAX_DEPTH = 12
MAX_NEAR = 100
"""After so many missing paths nothing more is guessed."""

MAX_PARENTS = 3
"""So many folders above the root are tried for files that the root lacks."""

_SKIPPED = frozenset(["venv", "node_modules", "__pycache__", "site-packages", "build", "dist"])
_GONE = (errno.ENOENT, errno.ENOTDIR)
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


class ProjectFiles:
    """The project below one root, as :class:`planner.lint.Project` has it."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._kinds: dict[str, Kind] = {}
        self._texts: dict[str, str | None] = {}
        self._parents: dict[str, str | None] = {}
        self._installed: dict[str, bool] = {}
        self._bytes_left = MAX_TOTAL_BYTES
        self._entries_left = MAX_ENTRIES
        self._near_left = MAX_NEAR

    def kind(self, path: str) -> Kind:
        """Return what lies at a path."""
        known = self._kinds.get(path)
        if known is None:
            known = self._kinds[path] = self._look(path)
        return known

    def text(self, path: str) -> str | None:
        """Return the text of a file, or ``None`` where it is none, or too large to be read."""
        if path not in self._texts:
            self._texts[path] = self._read(path) if self.kind(path) is Kind.FILE else None
        return self._texts[path]

    def files(self, folder: str) -> tuple[tuple[str, ...], bool]:
        """Return the Python files of a folder and below, and whether these are all. Follows no links."""
        found: list[str] = []
        level = ["" if folder == "." else folder]
        for _ in range(MAX_DEPTH):
            deeper: list[str] = []
            for each in level:
                try:
                    with os.scandir(f"{self._root}/{each}") as entries:
                        listing = sorted(
                            (entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries
                        )
                except OSError:
                    return tuple(found), False
                self._entries_left -= len(listing)
                if self._entries_left < 0:
                    return tuple(found), False
                for name, is_folder in listing:
                    path = f"{each}/{name}".removeprefix("/")
                    if is_folder and not name.startswith(".") and name not in _SKIPPED:
                        deeper.append(path)
                    elif not is_folder and name.endswith(".py"):
                        found.append(path)
            level = deeper
        return tuple(found), not level

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

    def near(self, path: str) -> str | None:
        """Return an existing path beside a missing one that looks like it."""
        self._near_left -= 1
        folder, _, name = path.rpartition("/")
        if self._near_left < 0 or (folder and self.kind(folder) is not Kind.FOLDER):
            return None
        try:
            names = sorted(os.listdir(f"{self._root}/{folder}"))[:5_000]
        except OSError:
            return None
        found = get_close_matches(name, names, n=1, cutoff=0.75)
        return f"{folder}/{found[0]}".removeprefix("/") if found else None

    def parent_holding(self, path: str) -> str | None:
        """Return the folder above the root, as ``..``, below which a path exists that the root lacks."""
        if path not in self._parents:
            above = [("../" * up).rstrip("/") for up in range(1, MAX_PARENTS + 1)]
            missing = self.kind(path) is Kind.MISSING and path.partition("/")[0] not in ("", ".", "..")
            there = (each for each in above if missing and os.path.isfile(f"{self._root}/{each}/{path}"))
            self._parents[path] = next(there, None)
        return self._parents[path]

    def is_installed(self, module: str) -> bool:
        """Return whether a top-level module can be imported from outside of the root. Imports nothing."""
        if module not in self._installed:
            with suppress(ImportError, ValueError, AttributeError):
                spec = importlib.machinery.PathFinder.find_spec(module)
                places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
                outside = any(each and not is_below(os.path.realpath(each), self._root) for each in places)
                self._installed[module] = outside or module in sys.stdlib_module_names
        return self._installed.get(module, False)

    def _look(self, path: str) -> Kind:
        try:
            status = os.stat(f"{self._root}/{path}")
        except OSError as error:
            return Kind.MISSING if error.errno in _GONE else Kind.OUTSIDE
        except ValueError:
            return Kind.MISSING
        if not is_below(os.path.realpath(f"{self._root}/{path}"), self._root):
            return Kind.OUTSIDE
        if stat.S_ISDIR(status.st_mode):
            return Kind.FOLDER
        return Kind.FILE if stat.S_ISREG(status.st_mode) else Kind.OUTSIDE

    def _read(self, path: str) -> str | None:
        try:
            # Without O_NONBLOCK, opening what has become a pipe would wait for ever.
            handle = os.open(f"{self._root}/{path}", os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            with open(handle, "rb") as file:
                data = file.read(MAX_BYTES + 1)
            self._bytes_left -= len(data)
            if len(data) > MAX_BYTES or self._bytes_left < 0 or b"\0" in data:
                return None
            return data.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return None


def configured_tools(root: Path) -> frozenset[str]:
    """Return the catalog's names of the type checkers and linters that a project is set up for.

    Configuration that cannot be read says nothing.
    """
    import configparser
    import tomllib

    project = ProjectFiles(root)
    found = {
        tool
        for tool, names in _NAMED_CONFIGURATIONS.items()
        if any(project.kind(name) is Kind.FILE for name in names.split())
    }
    sections: list[str] = []
    with suppress(tomllib.TOMLDecodeError, RecursionError, TypeError):
        sections += tomllib.loads(project.text("pyproject.toml") or "").get("tool", {})
    for name in ("setup.cfg", "tox.ini"):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(project.text(name) or "")
        except configparser.Error:
            continue
        sections += parser.sections()
    return frozenset(found | {_SECTIONS[name] for name in sections if name in _SECTIONS})
