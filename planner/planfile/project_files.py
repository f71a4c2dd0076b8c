"""Files of a project: its own files, code, and bounded reading below one root."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

from planner.text.display import similar_names
from planner.text.glob_patterns import is_glob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

CACHES = frozenset(
    {".git", ".hg", ".svn", ".planverify", "__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache"}
    | {".ruff_cache", ".pyright", "node_modules", ".tox", ".nox", ".eggs", ".idea", ".vscode", "htmlcov"}
    | {".benchmarks", ".venv", "site-packages", ".ipynb_checkpoints", ".pdm-build"}
)
"""Folders without files of the project's own."""

_BUILT = frozenset(("venv", "build", "dist"))

OWN_REPORTS = "diagnostics"
"""Folder of failure reports, below the root."""

LARGEST_HASHED = 1 << 18
"""Limit in bytes; larger files are represented by size and ctime, which nobody can set."""

LARGEST_READ = 1024 * 1024
"""Limit in bytes of a file's beginning that is read; longer than handwritten sources."""

LARGEST_RECORD = 256 << 20
"""Limit in bytes of a record below ``.planverify``, which code under test may write."""

MAX_GUESSES = 100
"""Limit of missing paths that get a suggestion."""

GONE = "gone"
"""Digest value of a missing file."""

_CODE_SUFFIXES = frozenset(
    {".py", ".pyi", ".pyx", ".pxd", ".pth", ".so", ".pyd", ".dll", ".dylib", ".zip", ".egg", ".whl"}
    | {".ini", ".toml", ".cfg", ".env", ".c", ".cc", ".cpp", ".h", ".hpp", ".rs", ".go", ".java", ".kt"}
    | {".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".rb", ".php", ".sh", ".mk", ".cmake", ".sql"}
)
_CODE_NAMES = frozenset({"Makefile", "makefile", "GNUmakefile", "Dockerfile", ".env", ".coveragerc"})


# -- the files of a folder -----------------------------------------------------------------------------


def walk(root: Path | str, is_left_out: Callable[[str], bool] | None = None) -> Iterator[str]:
    """Yield files below a folder, without caches, virtual environments and our own records.

    Shallow files come first, by name; links are not followed. ``is_left_out`` excludes further files,
    and folders (given with a trailing slash).
    """
    is_left_out = is_left_out or is_cache_or_report
    level = [""]
    while level:
        deeper: list[str] = []
        for below in level:
            try:
                with os.scandir(os.path.join(root, below)) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                path = f"{below}{entry.name}"
                if not entry.is_dir(follow_symlinks=False):
                    if not is_left_out(path):
                        yield path
                # Virtual environments may have any name; pyvenv.cfg marks them.
                elif not is_left_out(f"{path}/") and not os.path.exists(f"{entry.path}/pyvenv.cfg"):
                    deeper.append(f"{path}/")
        level = deeper


def source_files(root: Path | str) -> Iterator[str]:
    """Yield Python files like :func:`walk`, without hidden and built ones."""

    def is_left_out(path: str) -> bool:
        name = path.removesuffix("/").rpartition("/")[2]
        return is_cache_or_report(path) or (path.endswith("/") and (name.startswith(".") or name in _BUILT))

    return (path for path in walk(root, is_left_out) if path.endswith(".py"))


def is_cache_or_report(path: str) -> bool:
    """Return whether a file, or a folder given with a trailing slash, is not part of the project."""
    folder, _, name = path.rpartition("/")
    # .coveragerc, or .coveragerc.toml, is the configuration of coverage.py.
    is_data = name.startswith(".coverage") and not name.startswith(".coveragerc")
    if is_data or name.endswith((".pyc", ".pyo", "pyvenv.cfg")):
        return True
    parts = folder.split("/")
    return parts[0] == OWN_REPORTS or path == OWN_REPORTS or not CACHES.isdisjoint(parts)


def is_code(name: str) -> bool:
    """Return whether a file is code or configuration, by name."""
    last = name.rpartition("/")[2]
    return last in _CODE_NAMES or os.path.splitext(last)[1].lower() in _CODE_SUFFIXES


def open_regular(path: Path | str, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading; never blocks on pipes. Raises ``OSError``, also for anything else.

    With ``follow=False`` a symbolic link is an error, where the platform supports that.
    """
    # Without O_NONBLOCK, opening a pipe would wait for a writer; without O_NOCTTY, a terminal could become
    # the one that controls this process.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    handle = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    # Tested on the open handle: the path could be replaced between a test and the opening.
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return open(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    raise OSError(errno.EINVAL, "it is a pipe, a socket or a device")


def read_regular(path: Path | str, most: int = LARGEST_RECORD) -> bytes:
    """Return the content of a regular file. Raises ``OSError``, also if it has more than ``most`` bytes."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most // 2**20} MiB")
    return data


def digest_of(path: Path, *, follow: bool = False, largest: int = LARGEST_HASHED) -> str:
    """Return the digest of a file; links are followed with ``follow``, else represented by their target.

    A file of more than ``largest`` bytes is represented by its size and ctime.
    """
    try:
        facts = path.stat() if follow else path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            return f"link:{os.readlink(path)}"
        if not stat.S_ISREG(facts.st_mode):
            return f"no file:{stat.S_IFMT(facts.st_mode)}"
        if facts.st_size > largest:
            return f"size:{facts.st_size}:{facts.st_ctime_ns}"
        return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    # ValueError: no file can have such a name.
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return GONE
    except OSError as error:
        return f"unreadable:{error.errno}"


# -- below one root ------------------------------------------------------------------------------------

_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def is_below(path: str, folder: str) -> bool:
    """Return whether a resolved path is, or lies below, a resolved folder."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def unusual_fault(path: str, start: str) -> str | None:
    """Return why a text is no relative path, or ``None``; ``start`` is its base, for the message."""
    if path.startswith(("/", "\\", "~")) or _DRIVE.match(path):
        return f"'{path}' is an absolute path; write it relative to {start}"
    if _CONTROL.search(path):
        return f"'{path}' contains a control character; rename the file"
    return None


def _lexical_fault(path: str) -> str | None:
    """Return why a path cannot lie below the root regardless of the file system, or ``None``."""
    if ".." in path and os.path.normpath(path).split("/")[0] == "..":
        return f"'{path}' leaves the plan's root; name a file under the root"
    return unusual_fault(path, "the plan's root")


class Confinement:
    """Checks that paths stay below one root, symbolic links included."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        # Cached, as most paths of a plan share few folders.
        self._is_inside = cache(self._resolves_inside)

    def fault(self, path: str) -> str | None:
        """Return why a path is refused, or ``None``; a missing path may be accepted."""
        if (fault := _lexical_fault(path)) is not None:
            return fault
        # Every later use of the path would raise this error, without the name and the remedy.
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            return (
                f"'{path}' has a character that this locale cannot encode ({sys.getfilesystemencoding()}); "
                "run with LC_ALL=C.UTF-8 or PYTHONUTF8=1"
            )
        # With a checked folder, only the last component can still be a link out of the root.
        is_plain = ".." not in path and not os.path.islink(f"{self._root}/{path}")
        if not self._is_inside(path.rpartition("/")[0] if is_plain else path):
            return f"'{path}' leaves the plan's root through a symbolic link; name a file under the root"
        return None

    def glob_fault(self, pattern: str) -> str | None:
        """Return why a glob is refused, or ``None``, judged by its part before the first wildcard."""
        if not is_glob(pattern):
            return self.fault(pattern)
        if (fault := _lexical_fault(pattern)) is None and ".." in pattern.split("/"):
            return f"'{pattern}' mixes wildcards with '..'; name the folder itself"
        fixed = takewhile(lambda part: not is_glob(part), pattern.split("/"))
        return fault or self.fault("/".join(fixed))

    def _resolves_inside(self, path: str) -> bool:
        return is_below(os.path.realpath(f"{self._root}/{path}"), self._root)


@dataclass(frozen=True)
class ReadFile:
    """Content read of a file."""

    data: bytes
    is_whole: bool
    """Whether the file was read completely, and not cut at the limit."""

    @cached_property
    def text(self) -> str:
        """Content as text: no byte order mark, ``\\n`` as line end, invalid bytes replaced."""
        return self.data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Lines as Python counts them; form feeds do not end a line."""
        return tuple(self.text.removesuffix("\n").split("\n"))

    @property
    def is_binary(self) -> bool:
        return b"\0" in self.data[:8192]


class RootedFiles(Confinement):
    """Reads regular files below one root, each once and up to a limit."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._read = cache(self.read_once)
        self._guesses_left = MAX_GUESSES

    def read(self, path: str) -> ReadFile | None:
        """Return the file; ``None`` if it may not be read."""
        return self._read(os.path.normpath(path))

    def read_once(self, path: str, *, limit: int = LARGEST_READ) -> ReadFile | None:
        """Like :meth:`read`, without caching."""
        if not path or self.fault(path) is not None:
            return None
        try:
            with open_regular(f"{self._root}/{path}") as stream:
                data = stream.read(limit + 1)
        except (OSError, ValueError):
            return None  # unreadable files are left out; the outcome names them in any case
        return ReadFile(data[:limit], len(data) <= limit)

    def near(self, path: str) -> str | None:
        """Return an existing path in the same folder that is similar to a missing one, or ``None``."""
        self._guesses_left -= 1
        folder, _, name = path.rpartition("/")
        if self._guesses_left < 0 or self.fault(path) is not None:
            return None
        try:
            # Limited, as each name is compared with the missing one.
            names = sorted(os.listdir(f"{self._root}/{folder}"))[:5_000]
        except OSError:
            return None
        # A link to a missing file is listed, but missing itself.
        found = similar_names(name, (each for each in names if each != name))
        return f"{folder}/{found[0]}".removeprefix("/") if found else None
