"""Which pytest commands may share a session: those that would have run under the same conditions alone.

Two commands share one when they have the same working directory, ini file and rootdir, environment,
session options and way of being started, would load the same conftests, and would offer their tests
the same importable modules beside them. What a command merely displays does not count.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _pytest.config.findpaths import determine_setup

from pytest_planverify.observing.import_paths import import_path
from pytest_planverify.supervision.conftest_habits import reads_company, reads_selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.catalog import PytestInvocation

_SKIPPED_FOLDERS = (
    "*.egg",
    ".*",
    "_darcs",
    "build",
    "CVS",
    "dist",
    "node_modules",
    "venv",
    "{arch}",
    "__pycache__",
)
_MAX_FOLDERS = 5_000
_NAMES_PLUGINS = re.compile(r"^\s*pytest_plugins\b", re.MULTILINE)
_MODULE_NAME = re.compile(r"[\"']([A-Za-z_][\w.]*)[\"']")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldKey:
    """The conditions under which a command's tests run; equal keys share a session."""

    root: str
    env: tuple[tuple[str, str], ...]
    session_options: tuple[str, ...]
    as_module: bool
    rootdir: str
    inifile: str | None
    names_paths: bool
    """Whether the command names what to collect, rather than leaving it to the ini file."""
    conftests: frozenset[str]
    import_paths: frozenset[str]
    """Folders that pytest would put on ``sys.path`` and that other commands must not see."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What lies around the tests that a command names."""

    conftests: frozenset[str] = frozenset()
    import_paths: frozenset[str] = frozenset()
    test_files: frozenset[tuple[str, str]] = frozenset()
    """Pairs of import path and file name."""


@dataclass(slots=True)
class Folding:
    """Works out keys for the commands of one plan's root; remembers what it has seen of the tree."""

    root: Path
    _surroundings: dict[str, Surroundings] = field(default_factory=dict[str, Surroundings])

    def __post_init__(self) -> None:
        # A process may verify plans more than once, and the tree may have changed since.
        for cached in (_folder_of, _determine_setup, _in_package, _offers_modules, _text_of, import_path):
            cached.cache_clear()

    def keys(
        self, commands: Iterable[tuple[PytestInvocation, tuple[tuple[str, str], ...]]]
    ) -> list[FoldKey]:
        """A key for each command, in their order."""
        entries = list(commands)
        around = [self._around(invocation) for invocation, _ in entries]
        names = Counter(name for _, name in {pair for each in around for pair in each.test_files})
        ambiguous = {name for name, count in names.items() if count > 1}
        return [
            self._key(invocation, env, each, ambiguous)
            for (invocation, env), each in zip(entries, around, strict=True)
        ]

    def reads_selection(self, invocation: PytestInvocation) -> bool:
        """Whether a conftest of the command, or a plugin file that it names, looks at ``-k`` or ``-m``."""
        return any(map(reads_selection, self._conftest_texts(invocation)))

    def reads_company(self, invocation: PytestInvocation) -> bool:
        """Whether what such a file does to one test may depend on which others the session has."""
        return any(map(reads_company, self._conftest_texts(invocation)))

    def _conftest_texts(self, invocation: PytestInvocation) -> list[str]:
        conftests = self._around(invocation).conftests
        plugins = {file for conftest in conftests for file in self._plugin_files(conftest)}
        return [_text_of(file) for file in (*conftests, *plugins)]

    def _plugin_files(self, conftest: str) -> Iterator[str]:
        text = _text_of(conftest)
        if not _NAMES_PLUGINS.search(text):
            return
        for name in _MODULE_NAME.findall(text):
            for folder in (str(self.root), os.path.dirname(conftest)):
                yield os.path.join(folder, *name.split(".")) + ".py"

    def _key(
        self,
        invocation: PytestInvocation,
        env: tuple[tuple[str, str], ...],
        around: Surroundings,
        ambiguous: set[str],
    ) -> FoldKey:
        rootdir, inifile = self._setup(invocation)
        clashing = {path for path, name in around.test_files if name in ambiguous}
        return FoldKey(
            root=str(self.root),
            env=env,
            session_options=invocation.session_options,
            as_module=invocation.as_module,
            rootdir=rootdir,
            inifile=inifile,
            names_paths=bool(invocation.selections),
            conftests=around.conftests,
            import_paths=frozenset(
                path for path in around.import_paths if path in clashing or _offers_modules(path)
            ),
        )

    def _setup(self, invocation: PytestInvocation) -> tuple[str, str | None]:
        """The rootdir and ini file that pytest itself would choose."""
        folders = {_folder_of(self.root, _file_part(text)) for text in invocation.selections}
        paths = tuple(sorted(folder for folder in folders if folder is not None))
        return _determine_setup(str(self.root), paths, invocation.session_options)

    def _around(self, invocation: PytestInvocation) -> Surroundings:
        parts = [self._around_path(_file_part(text)) for text in invocation.selections] or [
            self._around_path(".")
        ]
        return Surroundings(
            frozenset[str]().union(*(part.conftests for part in parts)),
            frozenset[str]().union(*(part.import_paths for part in parts)),
            frozenset[tuple[str, str]]().union(*(part.test_files for part in parts)),
        )

    def _around_path(self, text: str) -> Surroundings:
        known = self._surroundings.get(text)
        if known is None:
            known = self._surroundings[text] = self._look_around(Path(os.path.abspath(self.root / text)))
        return known

    def _look_around(self, path: Path) -> Surroundings:
        folder = path if path.is_dir() else path.parent
        conftests = set(_conftests_above(folder, self.root))
        import_paths = {import_path(conftest) for conftest in conftests}
        test_files: set[tuple[str, str]] = set()
        found = _python_files(path) if path.is_dir() else iter([str(path)])
        for file in found:
            name = os.path.basename(file)
            if name == "conftest.py":
                conftests.add(file)
                import_paths.add(import_path(file))
            elif path.is_file() or _is_test_file(name):
                entry = import_path(file)
                import_paths.add(entry)
                if not _in_package(file):
                    test_files.add((entry, name))
        return Surroundings(frozenset(conftests), frozenset(import_paths), frozenset(test_files))


def _file_part(selection: str) -> str:
    return selection.partition("[")[0].split("::")[0] or "."


@cache
def _folder_of(root: Path, path: str) -> str | None:
    """The folder that a command's path lies in, which is all that pytest looks at, if it is there."""
    full = os.path.join(root, path)
    if os.path.isdir(full):
        return full
    return os.path.dirname(full) if os.path.exists(full) else None


@cache
def _determine_setup(
    root: str, paths: tuple[str, ...], session_options: tuple[str, ...]
) -> tuple[str, str | None]:
    options: dict[str, Any] = {"inifile": None, "override_ini": None, "rootdir_cmd_arg": None}
    for option in session_options:
        name, _, value = option.partition("=")
        if name in ("-c", "--config-file"):
            options["inifile"] = os.path.join(root, value)
        elif name == "--rootdir":
            options["rootdir_cmd_arg"] = os.path.join(root, value)
    try:
        found: Any = determine_setup(args=paths, invocation_dir=Path(root), **options)
    except Exception as error:  # whatever pytest says of a broken ini file, it will say in the session
        return root, f"unusable: {type(error).__name__}"
    return str(found[0]), None if found[1] is None else str(found[1])


def _conftests_above(folder: Path, root: Path) -> Iterator[str]:
    for parent in (folder, *folder.parents):
        conftest = parent / "conftest.py"
        if conftest.is_file():
            yield str(conftest)
        if parent == root:
            return


def _python_files(folder: Path) -> Iterator[str]:
    for seen, (parent, folders, files) in enumerate(os.walk(folder)):
        if seen > _MAX_FOLDERS:
            return
        folders[:] = sorted(
            name
            for name in folders
            if not any(fnmatch(name, pattern) for pattern in _SKIPPED_FOLDERS)
            and not os.path.exists(os.path.join(parent, name, "pyvenv.cfg"))
        )
        yield from (os.path.join(parent, name) for name in files if name.endswith(".py"))


def _is_test_file(name: str) -> bool:
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


@cache
def _in_package(file: str) -> bool:
    return os.path.exists(os.path.join(os.path.dirname(file), "__init__.py"))


@cache
def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@cache
def _offers_modules(folder: str) -> bool:
    """Whether something beside the tests could be imported from there."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return False
    for entry in entries:
        if entry.name.startswith((".", "__")):
            continue
        if os.path.isdir(entry.path):  # which a link that leads to itself cannot break
            if any(name.endswith(".py") for name in _names(entry.path)):
                return True
        elif entry.name.endswith(".py") and entry.name != "conftest.py" and not _is_test_file(entry.name):
            return True
    return False


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
