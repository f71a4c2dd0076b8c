"""The current files of a plan's root on disk, as a snapshot that is comparable with a baseline."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from planner.planfile.project_files import is_cache_or_report, walk
from pytest_planverify.baseline.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MOST_FILES = 50_000
"""Limit of files; protected files (tests, conftests, configuration) are included first."""

LARGEST_BYTES = 64 << 20
"""Limit in bytes; larger files are treated as unreadable."""

CONFIGURATIONS = frozenset(
    {"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg"}
)
"""pytest's configuration files."""

START_UP = frozenset({"sitecustomize.py", "usercustomize.py"})
"""Modules that every interpreter imports at start, so that they can change any test run."""

_JUDGING_NAME = re.compile(r"conftest\.py$|test_.*\.py$|.*_test\.py$|.*\.pth$")


class Snapshot(Protocol):
    """The files of a tree at one time, by path relative to the plan's root."""

    def digests(self) -> Mapping[str, str]:
        """Return the SHA-256 of every file by path, in hexadecimal."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; ``None`` if missing or unreadable."""
        ...


class WorkTree:
    """Snapshot of the files on disk. Paths and digests are determined on first use and then cached.

    Under git: tracked and non-ignored files, also of submodules; protected files such as conftests are
    included even if ignored. Elsewhere: all files outside of caches and virtual environments. Configuration
    files and conftests of folders above, up to the repository's top or pytest's rootdir, appear as
    ``../conftest.py``. The content of a symbolic link is its target; links are not followed.
    """

    def __init__(self, root: Path, repository: Repository | None = None) -> None:
        """Create a snapshot; ``repository`` is the one around the root, if it is known already."""
        self._root = root
        self._repository = repository
        self._nested: list[str] = []

    def paths(self) -> tuple[str, ...]:
        """Return all paths, sorted."""
        return self._paths

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        # Beyond the limit a product file is rather left out than a file that may decide verdicts.
        found = sorted(set(self._listed()), key=lambda path: (not may_judge(path), path))
        return tuple(sorted(found[:MOST_FILES]))

    def is_nested(self, path: str) -> bool:
        """Return whether a file belongs to a nested repository, such as a submodule."""
        self.paths()  # determines the nested repositories
        return path.startswith(tuple(self._nested))

    def digests(self) -> Mapping[str, str]:
        """Return the SHA-256 of every readable file by path, in hexadecimal."""
        return self._digests

    @cached_property
    def _digests(self) -> Mapping[str, str]:
        contents = ((path, self.read(path)) for path in self._paths)
        return {path: hashlib.sha256(each).hexdigest() for path, each in contents if each is not None}

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, for a link its target; ``None`` if missing or unreadable."""
        # Outside of the root only the listed configuration may be read.
        if os.path.isabs(path) or ("../" in path and path not in self.paths()):
            return None
        return _content(os.path.join(self._root, path))

    def _listed(self) -> Iterator[str]:
        """Yield the paths, some of them twice."""
        yield from above(self._root)
        repository = self._repository or Repository.around(self._root)
        tracked = () if repository is None else tuple(self._known_to(repository))
        for path in tracked:
            if not is_cache_or_report(path):
                yield path
        # Under git only for protected files that are ignored.
        for path in walk(self._root):
            if not tracked or may_judge(path):
                yield path

    def _known_to(self, repository: Repository) -> Iterator[str]:
        """Yield tracked and non-ignored files, including those of nested repositories."""
        for path in repository.files("--cached", "--others", "--exclude-standard"):
            name = path.rstrip("/")
            place = repository.folder / name
            if path == name and not _is_folder(place):
                yield path
                continue
            # A folder is listed for a submodule, or with a trailing slash for an untracked repository.
            inner = Repository.around(place)
            if inner is None or inner.prefix:
                continue  # a submodule that is not fetched: the repository found is the outer one
            self._nested.append(f"{os.path.relpath(place, self._root)}/")
            yield from (f"{name}/{each}" for each in self._known_to(inner))


def above(root: Path) -> Iterator[str]:
    """Yield configuration files and conftests of the folders above, such as ``../conftest.py``.

    Up to the top of the repository; without one, up to the folder of the nearest configuration file.
    """
    if (root / ".git").exists():
        return
    found: list[str] = []
    prefix = ""
    # pytest searches the folders above for its configuration, and loads their conftests.
    for folder in root.parents:
        prefix += "../"
        names = [name for name in (*CONFIGURATIONS, "conftest.py") if (folder / name).is_file()]
        found += [f"{prefix}{name}" for name in sorted(names)]
        if (folder / ".git").exists():
            yield from found
            return
    # Without a repository, stop at pytest's rootdir, the folder of the nearest configuration.
    nearest = next((path for path in found if not path.endswith("conftest.py")), None)
    if nearest is not None:
        depth = nearest.count("../")
        yield from (path for path in found if path.count("../") <= depth)


def may_judge(path: str) -> bool:
    """Return whether a file may influence verdicts, by its name alone."""
    name = path.rpartition("/")[2]
    return name in CONFIGURATIONS or name in START_UP or _JUDGING_NAME.match(name) is not None


def _is_folder(place: Path) -> bool:
    """Return whether a path is a folder and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(place).st_mode)
    except OSError:
        return False


def _content(path: str) -> bytes | None:
    """Return the content of a regular file or the target of a link; ``None`` for anything else."""
    try:
        facts = os.lstat(path)  # which does not follow a link, perhaps out of the root
        if stat.S_ISLNK(facts.st_mode):
            return os.fsencode(os.readlink(path))
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_BYTES:
            return None
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return None
