"""Ownership of files: product, tests, libraries, standard library, or test framework.

The diagnosis rests on it: who has to act depends on whose code raised an error. The map is built from
names of files and folders, without importing or executing anything, and is bounded, as a root can be any
folder of the machine.
"""

from __future__ import annotations

import fnmatch
import os
import sys
import sysconfig
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from planner.model.verdicts import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PYTHON_FILES = ("test_*.py", "*_test.py")
"""pytest's default patterns of test files."""

_FRAMEWORK = frozenset(
    {"pytest", "_pytest", "pluggy", "xdist", "execnet", "pytest_planverify", "planner", "py", "iniconfig"}
)
_TEST_FOLDERS = frozenset({"tests", "test"})
_LIBRARIES = ("site-packages", "dist-packages")
_NOT_CODE = frozenset({"build", "dist", "docs", "node_modules", "venv", "env", "htmlcov"})
"""Folders that are no packages, though Python files lie in them."""
_MOST_ENTRIES = 2_000
"""Number of names of a folder that are considered."""
_OWN_FOLDER = str(Path(__file__).resolve().parents[1])
# Both as configured and resolved, as the interpreter may be installed behind a symbolic link.
_STDLIB = tuple(
    each + os.sep
    for key in ("stdlib", "platstdlib")
    for each in (sysconfig.get_path(key), os.path.realpath(sysconfig.get_path(key)))
)


@dataclass(frozen=True, kw_only=True)
class ProjectMap:
    """Names and files that decide the side of a file.

    Immutable but for its caches, which are filled on demand.
    """

    root: Path
    """Absolute, resolved root; paths below it are shown relative to it."""
    first_party: frozenset[str] = frozenset()
    """Top-level names of the project's own packages and modules."""
    test_packages: frozenset[str] = frozenset()
    """Top-level names that only tests provide."""
    test_files: frozenset[str] = frozenset()
    """Absolute paths of files with collected tests, whatever their names."""
    _sides: dict[tuple[str, str], Side] = field(
        default_factory=dict[tuple[str, str], Side], compare=False, repr=False
    )
    _shown: dict[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)

    @classmethod
    def discover(cls, root: Path | str, *, planned: Iterable[str] = ()) -> ProjectMap:
        """Inspect the root, its ``src`` and ``lib``, and its test folders, no deeper.

        ``planned`` are expected paths below the root; their top-level names count before they exist.
        """
        top = Path(os.path.realpath(root))
        found = [each for folder in (top, top / "src", top / "lib") for each in _modules(folder)]
        found += map(_planned_name, planned)
        product = {name for name, is_folder in found if name and not _is_test_name(name, is_folder)}
        tests = {name for name, is_folder in found if name and _is_test_name(name, is_folder)}
        tests.update(name for folder in _TEST_FOLDERS for name in _importable_beside_tests(top / folder))
        product.update(_declared(top / "pyproject.toml"))
        # A name that both the product and the tests provide belongs to the product.
        return cls(root=top, first_party=frozenset(product), test_packages=frozenset(tests - product))

    def with_tests(self, files: Iterable[str | os.PathLike[str]]) -> ProjectMap:
        """Return a copy in which these files count as tests; the map itself if they already do."""
        known = self.test_files | {os.path.realpath(file) for file in files}
        return self if known == self.test_files else replace(self, test_files=known, _sides={})

    def side(self, filename: str, module: str | None = None) -> Side:
        """Return the side of a file; ``filename`` is as in a code object.

        ``module`` decides for code without a file, whose name is in angle brackets, and for files whose
        folder does not decide.
        """
        key = (filename, module or "")
        side = self._sides.get(key)
        if side is None:
            side = self._sides[key] = self._decide(filename, module or "")
        return side

    def relative(self, filename: str) -> str:
        """Return the path relative to the root if it lies below, else unchanged."""
        shown = self._shown.get(filename)
        if shown is None:
            real = filename if filename.startswith("<") else os.path.realpath(filename)
            prefix = f"{self.root}{os.sep}"
            below = real.startswith(prefix)
            shown = real.removeprefix(prefix).replace(os.sep, "/") if below else filename
            self._shown[filename] = shown
        return shown

    def locate(self, module: str) -> str | None:
        """Return the path of a project module relative to the root, whether or not it can be imported.

        ``None`` if there is no such module.
        """
        tail = module.replace(".", os.sep)
        for folder in ("", "src", "lib", "tests", "test"):
            path = self.root / folder / tail
            for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py", path):
                if os.path.exists(candidate):  # unlike Path.exists() for a name of any length
                    return self.relative(str(candidate))
        return None

    def is_test(self, real: str) -> bool:
        """Return whether a file below the root belongs to the tests; ``real`` is its resolved path."""
        if real in self.test_files:
            return True
        folders, name = Path(real.removeprefix(f"{self.root}{os.sep}")).parts[:-1], Path(real).name
        return _is_test_file(name) or not _TEST_FOLDERS.isdisjoint(folders)

    def _decide(self, filename: str, module: str) -> Side:
        """Return the side without the cache.

        The order is essential: installed packages may lie below the root, in a virtual environment, and the
        project itself may be installed as a library.
        """
        if filename.startswith("<"):
            return self._decide_without_file(filename, module)
        real = os.path.realpath(filename)
        library = _library_package(real)
        # A project may have the name of a framework, such as planner; the installed package is then ours.
        is_own_library = library in self.first_party and library not in _FRAMEWORK
        if is_own_library or (library is None and real.startswith(f"{self.root}{os.sep}")):
            return Side.TEST if self.is_test(real) else Side.PRODUCT
        if library is not None:
            return Side.FRAMEWORK if _is_framework(library) else Side.THIRD_PARTY
        if real in self.test_files:
            return Side.TEST
        if real.startswith(_OWN_FOLDER) or (module and _is_framework(_top(module))):
            return Side.FRAMEWORK
        if real.startswith(_STDLIB):
            return Side.STDLIB
        return self._by_module(module) or Side.THIRD_PARTY

    def _decide_without_file(self, filename: str, module: str) -> Side:
        """Return the side of generated code: that of the module in whose namespace it runs."""
        if filename.startswith("<frozen "):
            return Side.STDLIB
        if filename.startswith("<doctest "):
            return Side.TEST
        by_file = getattr(sys.modules.get(module), "__file__", None)
        if isinstance(by_file, str) and not by_file.startswith("<"):
            return self.side(by_file, module)
        return self._by_module(module) or (
            Side.STDLIB if _top(module) in sys.stdlib_module_names else Side.THIRD_PARTY
        )

    def _by_module(self, module: str) -> Side | None:
        top = _top(module)
        if top in self.first_party:
            return Side.PRODUCT
        return Side.TEST if top in self.test_packages else None


def _top(module: str) -> str:
    return module.partition(".")[0]


def _is_framework(package: str) -> bool:
    # By convention, plugins of pytest have this prefix.
    return package in _FRAMEWORK or package.startswith("pytest_")


def _library_package(real: str) -> str | None:
    """Return the top-level name of the installed distribution that a file belongs to, or ``None``."""
    parts = Path(real).parts
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] in _LIBRARIES:
            return parts[at + 1].partition(".")[0]
    return None


def _is_test_name(name: str, is_folder: bool) -> bool:
    return name in _TEST_FOLDERS if is_folder else _is_test_file(f"{name}.py")


def _is_test_file(name: str) -> bool:
    return name == "conftest.py" or any(fnmatch.fnmatch(name, pattern) for pattern in PYTHON_FILES)


def _modules(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield importable names in a folder, each with whether it is one itself; no virtual environments."""
    for name in _entries(folder):
        if name.endswith(".py") and name[:-3].isidentifier() and name != "setup.py":
            yield name[:-3], False
        elif name.isidentifier() and name not in _NOT_CODE:
            inside = _entries(folder / name)
            # From one Python file on, as a namespace package has no __init__.py.
            if "pyvenv.cfg" not in inside and any(each.endswith(".py") for each in inside):
                yield name, True


def _entries(folder: Path) -> list[str]:
    """Return the names in a folder; empty if it is none."""
    try:
        return os.listdir(folder)[:_MOST_ENTRIES]
    except OSError:
        return []


def _importable_beside_tests(folder: Path) -> Iterator[str]:
    """Yield the names of helper modules in a test folder, and of packages if the folder is none itself."""
    is_package = (folder / "__init__.py").exists()
    for name, is_folder in _modules(folder):
        if not is_folder or (not is_package and (folder / name / "__init__.py").exists()):
            yield name


def _planned_name(path: str) -> tuple[str, bool]:
    """Return the top-level name of a planned path, and whether it is a folder; empty if it is no module."""
    parts = path.replace("\\", "/").removeprefix("./").split("/")
    if parts[0] in ("src", "lib") and len(parts) > 1:
        parts = parts[1:]
    if not parts[-1].endswith(".py"):
        return "", False
    name = parts[0].removesuffix(".py")
    return (name if name.isidentifier() else ""), len(parts) > 1


def _declared(pyproject: Path) -> tuple[str, ...]:
    """Return the import name that the project's distribution name suggests."""
    try:
        # A named pipe would block.
        text = pyproject.read_text("utf-8") if pyproject.is_file() else ""
        project: object = tomllib.loads(text).get("project")
    except (OSError, ValueError, RecursionError):
        return ()
    name = cast("dict[str, object]", project).get("name") if isinstance(project, dict) else None
    import_name = name.replace("-", "_").replace(".", "_").lower() if isinstance(name, str) else ""
    return (import_name,) if import_name.isidentifier() else ()
