"""Signals that paths are: start-up files, modules that hide others, records of the verifier."""

from __future__ import annotations

import posixpath
import re
import sys
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from pytest_planverify.baseline.work_tree import START_UP
from pytest_planverify.guards.hygiene.signals import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from pytest_planverify.guards.hygiene.changes import Changes

_FRAMEWORK = frozenset(
    {"pytest", "_pytest", "unittest", "pluggy", "iniconfig", "pytest_planverify", "planner", "xdist",
     "pytest_timeout", "coverage", "py"}
)  # fmt: skip
_IMPORT_ROOTS = ("", "src", "lib", "tests", "test")
_SCRIPT_FOLDERS = frozenset(
    {"tools", "bin", "scripts", "script", "examples", "benchmarks", "docs", "doc", "ci"}
)
_SCRIPTS = frozenset({"setup.py", "noxfile.py", "tasks.py", "fabfile.py", "conf.py", "dodo.py"})
_OWN_FOLDER = ".planverify"
SERVES_TESTS = re.compile(r"pytest|testing|plugin|fixture|conftest|(^|/)tests?[_/]|_tests?[./]")
"""Files by which a project serves the tests of others."""


def is_script(path: str) -> bool:
    """Return whether a source file is run rather than imported."""
    *folders, name = path.split("/")
    return name in _SCRIPTS or any(folder in _SCRIPT_FOLDERS for folder in folders)


def path_findings(changes: Changes) -> Iterator[Finding]:
    """Yield what the names of new and changed files tell."""
    for path in sorted(changes.changed & changes.new.keys()):
        if _OWN_FOLDER in path.split("/")[:-1]:
            yield Finding(sign="records-touched", message=f"{path} is a record of the verifier", path=path)
        elif posixpath.basename(path) in START_UP or path.endswith((".pth", ".start")):
            yield Finding(
                sign="start-up-file", message=f"{path} runs when an interpreter starts", path=path
            )
        elif path not in changes.old and (module := _hidden_module(path, changes)) is not None:
            yield Finding(sign="shadows-module", message=f"{path} hides the module {module}", path=path)


def ignored_packages(root: Path, known: Collection[str]) -> Iterator[Finding]:
    """Yield packages that git ignores and that are imported instead of a module beside them.

    ``known`` are the files of the tree.
    """
    for path in sorted(known):
        if not path.endswith(".py") or path.startswith(("../", "/")):
            continue
        package = posixpath.join(path.removesuffix(".py"), "__init__.py")
        is_module = posixpath.basename(path) != "__init__.py"
        if is_module and package not in known and (root / package).is_file():
            said = f"{package} is ignored by git, and is imported instead of {path}"
            yield Finding(sign="shadows-module", message=said, path=package)


def _hidden_module(path: str, changes: Changes) -> str | None:
    """Return the module that a new file hides: of the framework, the standard library, or the project."""
    folder, name = posixpath.split(path)
    if name == "__init__.py":
        folder, name = posixpath.split(folder)
    elif not name.endswith((".py", ".so", ".pyd", ".pyc")):
        return None
    module = name.partition(".")[0]
    places = [each for each in changes.old if _is_module(each, module)]
    if any(posixpath.join(folder, module) == posixpath.dirname(each) for each in changes.old):
        return None  # a new file of a package that was there
    if folder in _IMPORT_ROOTS and not is_script(path) and path.endswith(".py"):
        is_standard = module in sys.stdlib_module_names and module not in ("test", "__main__", "this")
        if module in _FRAMEWORK or is_standard:
            return module
    if module not in _imported_by_tests(changes):
        return None
    if not places:  # nothing of the tree had that name: it was an installed one
        return module if folder in _IMPORT_ROOTS else None
    beside = posixpath.join(folder, f"{module}.py")
    if beside in changes.old:
        return module if not path.endswith(".py") or posixpath.basename(path) == "__init__.py" else None
    holds_tests = any(
        posixpath.dirname(each) == folder and changes.kind(each) is JudgeKind.TEST for each in changes.old
    )
    return module if folder == "" or holds_tests else None


def _imported_by_tests(changes: Changes) -> frozenset[str]:
    """Return the top-level modules that tests and their support imported before."""
    return frozenset(
        meaning.partition(".")[0]
        for path in changes.old
        if path.endswith(".py")
        and changes.kind(path) is not JudgeKind.PRODUCT
        and (module := changes.module(path, now=False)) is not None
        for meaning in module.aliases.values()
    )


def _is_module(path: str, module: str) -> bool:
    names = (f"{module}.py", f"{module}/__init__.py")
    return path in names or path.endswith(tuple(f"/{name}" for name in names))
