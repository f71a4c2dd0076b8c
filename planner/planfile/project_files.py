"""The files of a project on the disk: which of them are its own, which are code, and what they contain."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

CACHES = frozenset(
    {".git", ".hg", ".svn", ".planverify", "__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache"}
    | {".ruff_cache", ".pyright", "node_modules", ".tox", ".nox", ".eggs", ".idea", ".vscode", "htmlcov"}
    | {".benchmarks", ".venv", "site-packages", ".ipynb_checkpoints"}
)
"""Folders that hold nothing of a project's own."""

_BUILT = frozenset(("venv", "build", "dist"))

OWN_REPORTS = "diagnostics"
"""Where failure reports are written, below the root."""

LARGEST_HASHED = 1 << 18
"""Bytes; of a larger file its size, and the time of change that nobody can set, stand for its contents."""

GONE = "gone"
"""Stands for the contents of a file that is not there."""

_CODE_SUFFIXES = frozenset(
    {".py", ".pyi", ".pyx", ".pxd", ".pth", ".so", ".pyd", ".dll", ".dylib", ".zip", ".egg", ".whl"}
    | {".ini", ".toml", ".cfg", ".env", ".c", ".cc", ".cpp", ".h", ".hpp", ".rs", ".go", ".java", ".kt"}
    | {".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".rb", ".php", ".sh", ".mk", ".cmake", ".sql"}
)
_CODE_NAMES = frozenset({"Makefile", "makefile", "GNUmakefile", "Dockerfile", ".env", ".coveragerc"})


def walk(root: Path | str, is_left_out: Callable[[str], bool] | None = None) -> Iterator[str]:
    """Yield every file below a folder but those of caches, virtual environments and our own records.

    The shallow ones come first, by name; links are not followed. ``is_left_out`` says which others are left
    out, of files and, by paths that end with a slash, of folders.
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
                if entry.is_dir(follow_symlinks=False):
                    if not is_left_out(f"{path}/") and not _is_venv(entry.path):
                        deeper.append(f"{path}/")
                elif not is_left_out(path):
                    yield path
        level = deeper


def source_files(root: Path | str) -> Iterator[str]:
    """Yield the Python files below a folder as :func:`walk` does, but none that is hidden or built."""

    def is_left_out(path: str) -> bool:
        name = path.removesuffix("/").rpartition("/")[2]
        return is_cache_or_report(path) or (path.endswith("/") and (name.startswith(".") or name in _BUILT))

    return (path for path in walk(root, is_left_out) if path.endswith(".py"))


def is_cache_or_report(path: str) -> bool:
    """Tell of a file, or of a folder whose path ends with a slash, whether it is no part of the project."""
    folder, _, name = path.rpartition("/")
    if name.endswith((".pyc", ".pyo")) or (name.startswith(".coverage") and name != ".coveragerc"):
        return True
    parts = folder.split("/")
    return parts[0] == OWN_REPORTS or path == OWN_REPORTS or not CACHES.isdisjoint(parts)


def is_code(name: str) -> bool:
    """Tell by its name whether a file is code or configuration."""
    last = name.rpartition("/")[2]
    return last in _CODE_NAMES or os.path.splitext(last)[1].lower() in _CODE_SUFFIXES


def open_regular(path: Path | str, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading. Raises ``OSError``; a pipe or device of that name blocks nothing."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    handle = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return open(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    raise OSError(errno.EINVAL, "it is a pipe, a socket or a device")


def digest_of(path: Path, *, follow: bool = False) -> str:
    """Return what stands for the contents of a file; ``follow`` a link, or let its target stand for it."""
    try:
        facts = path.stat() if follow else path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            return f"link:{os.readlink(path)}"
        if not stat.S_ISREG(facts.st_mode):
            return f"no file:{stat.S_IFMT(facts.st_mode)}"
        if facts.st_size > LARGEST_HASHED:
            return f"size:{facts.st_size}:{facts.st_ctime_ns}"
        return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return GONE
    except OSError as error:
        return f"unreadable:{error.errno}"


def _is_venv(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))
