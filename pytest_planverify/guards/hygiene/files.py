"""Signals that paths are: start-up files, modules that hide others, records of the verifier."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_planverify.baseline.work_tree import START_UP
from pytest_planverify.guards.hygiene.signals import SignalFinding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from pytest_planverify.guards.hygiene.changes import TreeDifferences

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


def path_findings(changes: TreeDifferences) -> Iterator[SignalFinding]:
    """Yield what the names of new and changed files tell."""
    for path in sorted(changes.changed & changes.new.keys()):
        if _OWN_FOLDER in path.split("/")[:-1]:
            yield SignalFinding(
                sign="records-touched", message=f"{path} is a record of the verifier", path=path
            )
        elif posixpath.basename(path) in START_UP or path.endswith((".pth", ".start")):
            yield SignalFinding(
                sign="start-up-file", message=f"{path} runs when an interpreter starts", path=path
            )
        elif path not in changes.old and (module := _hidden_module(path, changes)) is not None:
            yield SignalFinding(
                sign="shadows-module", message=f"{path} hides the module {module}", path=path
            )


def ignored_packages(root: Path, known: Collection[str]) -> Iterator[SignalFinding]:
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
            yield SignalFinding(sign="shadows-module", message=said, path=package)


def remove_young_caches(root: Path, sources: Iterable[str], since: float) -> None:
    """Remove the caches of bytecode beside the sources that were written since a moment.

    Python and pytest run a cached file instead of its source, so that one that is forged would be judged in
    the place of the source. Who imports the source next makes an honest one.
    """
    for folder in {posixpath.dirname(path) for path in sources if path.endswith(".py")}:
        with suppress(OSError), os.scandir(root / folder / "__pycache__") as entries:
            for entry in entries:
                # Its times can be set to anything but the one of the last change of the entry itself.
                if entry.name.endswith(".pyc") and entry.stat(follow_symlinks=False).st_ctime >= since:
                    os.unlink(entry)


def _hidden_module(path: str, changes: TreeDifferences) -> str | None:
    """Return the module of the framework or of the standard library that a new file hides."""
    if is_script(path) or not path.endswith((".py", ".so", ".pyd", ".pyc")):
        return None
    folder, name = posixpath.split(path.removesuffix("/__init__.py"))
    module = name.partition(".")[0]
    package = f"{posixpath.join(folder, module)}/"
    is_standard = module in sys.stdlib_module_names and module not in ("test", "__main__", "this")
    if folder not in _IMPORT_ROOTS or not (module in _FRAMEWORK or is_standard):
        return None
    return None if any(each.startswith(package) for each in changes.old) else module
