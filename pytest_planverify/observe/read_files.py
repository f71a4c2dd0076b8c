"""Record of the project files that a worker reads, by audit events of its interpreter.

A verdict is valid as long as these files are unchanged. If the events do not suffice, that is recorded:
a started process may read anything, and native code may read data files past the interpreter. An unknown
read makes the verdict depend on all files of the project. In doubt a file or a reason is recorded: too
many only cost a repeated run, a missing one would keep a verdict that no longer holds.

The files of imported modules are added at the end, from ``sys.modules``.

All functions used here are bound when the session begins, as tests may monkeypatch those of ``os``.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from os import fsdecode, getcwd
from os.path import dirname, isdir, join, lexists, normpath
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_planverify.guards.sandbox_policy import CACHES, WRITING, temporary_folders
from pytest_planverify.guards.tamper_observer import environment_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

MOST_FILES = 5_000
"""Above this number the verdict is taken to depend on all files of the project."""

_MOST_OPENED = 50_000
"""Number of distinct opened paths, of any kind, that are remembered."""
_EMPTYING = os.O_TRUNC | os.O_EXCL
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/lib/", "/run/")
_BYTECODE = f".{sys.implementation.cache_tag}"
_STARTING = (
    *("os.system", "os.posix_spawn", "os.exec", "os.spawn", "pty.spawn", "os.fork", "os.forkpty"),
    "cpython.PyInterpreterState_New",  # a further interpreter does not call this one's hook
)
_CONNECTING = ("socket.connect", "socket.sendto", "socket.sendmsg")
_OPENING_BY_PYTHON = frozenset(
    {"_cffi_backend", "charset_normalizer", "coverage", "frozenlist", "greenlet", "hypothesis", "jiter"}
    | {"markupsafe", "msgpack", "multidict", "numpy", "orjson", "pandas", "propcache", "psutil"}
    | {"pydantic_core", "regex", "rpds", "ujson", "wrapt", "yaml", "yarl"}
)
"""Packages whose extension modules open files only through the interpreter, or not at all."""

_NATIVE = ("sqlite3.connect", "ctypes.dlopen")
"""Events after which files may be opened past the interpreter."""


class ReadFiles:
    """Records the files that this process opens."""

    def __init__(self, roots: Sequence[str]) -> None:
        """Files below ``roots`` count, even if a root lies in a temporary folder."""
        self._roots = tuple(f"{root.rstrip('/')}/" for root in roots)
        self._opened: set[str] = set()
        """Paths opened for reading, or for reading and writing, as yet unfiltered."""
        self._emptied: set[str] = set()
        """Files written before they were read, and folders made: the worker's own output."""
        self._renamed_folders: set[str] = set()
        """Folders that got another name."""
        self._unknown: str | None = None
        """Why the set of files is incomplete; ``None`` if it is complete."""
        self._native = False
        """Native code may have read further files."""

    def notes(self) -> dict[str, Callable[[tuple[Any, ...]], object]]:
        """Return the handlers by name of audit event. They may raise for invalid arguments."""
        return {
            **dict.fromkeys(_STARTING, lambda _: self._lose("it started a process")),
            **dict.fromkeys(_CONNECTING, lambda _: self._lose("it opened a connection")),
            **dict.fromkeys(_NATIVE, self._note_native),
            # The module platform runs uname, which reads no files of the project.
            "subprocess.Popen": lambda args: args[0] == "uname" or self._lose("it started a process"),
            "open": self._open,
            "os.mkdir": lambda args: lexists(args[0]) or self._emptied.add(_absolute(args[0])),
            "os.rename": self._rename,
            "os.link": lambda args: self._opened.add(_absolute(args[0])),
            "os.symlink": self._link,
        }

    def facts(self) -> dict[str, Any]:
        """Return the members of the ``files_read`` record: ``files`` and ``native``, or ``unknown``.

        ``unknown`` is the reason why the files are not known, ``native`` whether native code may have read
        further ones.
        """
        # Filtered here and not for each event: opening files must cost as little as possible.
        temporary = (f"{folder.rstrip('/')}/" for folder in temporary_folders())
        foreign = (*_SYSTEM, f"{sys.base_prefix}/", *temporary)
        modules = list(_files_of(new_modules()))
        # The set is copied, as a thread may still add entries.
        opened = (self._project_file(path, foreign) for path in tuple(self._opened))
        files = {*filter(_is_first_party, modules), *filter(None, opened)}
        if _before.has_project:
            self._unknown = self._unknown or "the project was imported before the worker began"
        if any(self._project_file(path, foreign) for path in tuple(self._renamed_folders)):
            self._unknown = self._unknown or "it gave a folder of the project another name"
        if len(files) > MOST_FILES:
            self._unknown = self._unknown or "it read too many files"
        try:
            "".join(files).encode()  # raises for lone surrogates
        except UnicodeEncodeError:
            self._unknown = self._unknown or "it read a file whose name is no text"
        if self._unknown is not None:
            return {"unknown": self._unknown}
        native = self._native or _before.has_native or any(map(_is_native, modules))
        return {"files": sorted(files), "native": native}

    def lose_track(self) -> None:
        """Record that an unknown file may have been read."""
        self._unknown = self._unknown or "it opened a file in a way that is not understood"

    def _lose(self, reason: str) -> None:
        self._unknown = reason

    def _open(self, args: tuple[Any, ...]) -> None:
        """Process an ``open`` event: note files that are read, unless the worker wrote them before."""
        path, mode, flags = args
        if isinstance(path, int):  # a descriptor: the file was noted when that was opened
            return
        if flags & _EMPTYING and flags & WRITING:
            name = _absolute(path)
            if name not in self._opened:
                self._emptied.add(name)
        elif not flags & os.O_WRONLY:
            name = path if type(path) is str and path.startswith("/") else self._resolved(path, mode)
            if name and name not in self._emptied:
                self._opened.add(name)
                if len(self._opened) > _MOST_OPENED:
                    self._unknown = "it opened too many files"
                    self._opened.clear()

    def _rename(self, args: tuple[Any, ...]) -> None:
        """Process a rename: own output stays that, another file may be read by its new name."""
        before, now = map(_absolute, args[:2])
        if args[2:] != (-1, -1):  # relative to folders that are held open
            self.lose_track()
        elif before in self._emptied or not CACHES.isdisjoint(now.split("/")):  # as pytest makes its cache
            self._emptied.add(now)
        else:
            self._name_again(before)

    def _link(self, args: tuple[Any, ...]) -> None:
        """Process a symbolic link: its target may be read by its name, perhaps in a temporary folder."""
        self._name_again(normpath(join(dirname(_absolute(args[1])), fsdecode(args[0]))))

    def _name_again(self, path: str) -> None:
        """Note what gets another name, by which its content may be read."""
        (self._renamed_folders if isdir(path) else self._opened).add(path)

    def _resolved(self, path: Any, mode: object) -> str:
        """Return the absolute path; empty if there is no file to note.

        Events of ``os.open``, which have no mode, omit ``dir_fd``, so a relative path may be relative to a
        folder that is held open instead of to the working directory.
        """
        name = _absolute(path)
        if mode is None and name != path:
            # Frame 3 is the caller of open(): past this function, _open and the audit hook.
            if sys._getframe(3).f_code.co_filename.endswith(("/shutil.py", "/os.py")):
                return ""  # shutil.rmtree and os.fwalk open folders only, by directory descriptors
            if not lexists(name):
                self._unknown = "it opened a file below a folder that is held open"
        return name

    def _note_native(self, args: tuple[Any, ...]) -> None:
        self._native = True

    def _project_file(self, path: str, foreign: tuple[str, ...]) -> str | None:
        """Return the project file behind an opened path; ``None`` for others and below ``foreign`` folders.

        Bytecode is mapped to the source instead of which it is read.
        """
        if _is_installed(path):
            return None
        path = normpath(path)
        folder, cached, name = path.rpartition("/__pycache__/")
        if cached:
            path = f"{folder}/{name.partition(_BYTECODE)[0]}.py"
        if not _is_first_party(path) or not CACHES.isdisjoint(path.split("/")):
            return None
        if path.startswith(self._roots) or f"{path}/" in self._roots:
            return path
        return None if path.startswith(foreign) else path


# -- modules ------------------------------------------------------------------------------------------


class _Before(NamedTuple):
    """The modules that were loaded when the worker was prepared.

    ``has_project`` is whether files of the project are among them, ``has_native`` whether extension modules
    are that may read files past the interpreter.
    """

    names: frozenset[str] = frozenset()
    has_project: bool = False
    has_native: bool = False


_before = _Before()


def note_modules() -> None:
    """Remember the loaded modules, before those of the project are imported."""
    global _before
    modules = list(_files_of(sys.modules.items()))
    _before = _Before(
        frozenset(sys.modules), any(map(_is_first_party, modules)), any(map(_is_native, modules))
    )


def new_modules() -> list[tuple[str, ModuleType]]:
    """Return modules loaded since :func:`note_modules`, in order of import.

    Only the tail of ``sys.modules`` is visited: touching the server's modules would copy their memory
    pages.
    """
    # sys.modules is in order of insertion, so the walk backwards ends once all new names are found. Old
    # names that were loaded again stand among them, and are passed over.
    found: list[tuple[str, ModuleType]] = []
    least = len(sys.modules) - len(_before.names)
    for name, module in reversed(sys.modules.items()):
        if name not in _before.names:
            found.append((name, module))
        elif len(found) >= least:
            break
    return found[::-1]


def _files_of(modules: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Yield the files of modules, except for the started program."""
    program = vars(sys.modules["__main__"]).get("__file__")
    for _, module in list(modules):
        file: object = vars(module).get("__file__") if isinstance(module, ModuleType) else None  # pyright: ignore
        if isinstance(file, str) and file.startswith("/") and file != program:
            yield file if _is_installed(file) else normpath(file)


def _is_installed(file: str) -> bool:
    """Return whether the path, as written, lies in a folder of the interpreter or of installed packages.

    A path with ``..`` may lead out of that folder again, so it does not count.
    """
    return environment_files()(file) and "/../" not in file


def _is_first_party(file: str) -> bool:
    return not environment_files()(file)


_STANDARD = os.path.dirname(os.__file__) + "/"


def _is_native(file: str) -> bool:
    """Return whether a file is an extension module that may open files past the interpreter."""
    if not file.endswith(tuple(EXTENSION_SUFFIXES)):
        return False
    _, installed, path = file.rpartition("-packages/")
    if not installed:
        return not file.startswith(_STANDARD)
    return path.partition("/")[0].partition(".")[0] not in _OPENING_BY_PYTHON


def _absolute(path: Any) -> str:
    name = fsdecode(path)
    return name if name.startswith("/") else f"{getcwd()}/{name}"
