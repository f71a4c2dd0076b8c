"""What the names of files tell: debris, files that run at start-up, modules that hide others, artifacts."""

from __future__ import annotations

import posixpath
import re
import sys
from typing import TYPE_CHECKING

from planner.text.glob_patterns import is_glob, matches
from pytest_planverify.guards.hygiene.judges import is_own, is_script
from pytest_planverify.guards.hygiene.reading import parse
from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.work_tree import START_UP

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pytest_planverify.guards.hygiene.grants import Grants, TodoReach
    from pytest_planverify.guards.hygiene.reading import Module

_DEBRIS = re.compile(
    r"(\.log|\.orig|\.rej|\.bak|\.swp|\.swo|\.old|~|\.tmp|\.core|\.dmp|\.hprof)$|^core(\.\d+)?$|\.(BACKUP|BASE|LOCAL|REMOTE)\.\d+",
)
_SCRATCH = re.compile(
    r"(^|/)(tmp|temp|scratch|junk|old|backup)/|(_|-| |\.)(copy|backup|old|orig|bak)\d*\.|\.py\.\w+$"
)
_FRAMEWORK = frozenset(
    [
        "pytest",
        "_pytest",
        "unittest",
        "pluggy",
        "iniconfig",
        "pytest_planverify",
        "planner",
        "xdist",
        "pytest_timeout",
        "coverage",
        "py",
    ]
)
_ROOTS = ("", "src", "lib", "tests", "test")


def compare_names(
    before: Mapping[str, str],
    now: Mapping[str, str],
    changed: Collection[str],
    grants: Grants,
    *,
    made_anew: bool,
    imported: Collection[str] = (),
) -> Iterator[Find]:
    """Signs that the paths of new and changed files are.

    ``made_anew``: sources have changed, so that what commands make of them may be another. ``imported`` are
    the modules that the sources of before import by their whole name.
    """
    folders = {posixpath.dirname(path) for path in now}
    for path in sorted(changed):
        if path not in now:
            continue
        is_new = path not in before
        name = posixpath.basename(path)
        if is_own(path):
            yield Find(sign="records-touched", message=f"{path} is a record of the verifier", path=path)
        elif name in START_UP or name.endswith((".pth", ".start")):
            yield Find(sign="start-up-file", message=f"{path} runs when an interpreter starts", path=path)
        elif is_new and (_DEBRIS.search(name) or (_SCRATCH.search(path) and not _has_like(path, before))):
            yield Find(sign="debris", message=f"{path} was left behind", path=path)
        elif is_new and _is_nested_copy(path, before, folders):
            yield Find(sign="debris", message=f"{path} stands in a copy of the tree", path=path)
        if is_new and (hidden := _hides(path, before) or _hides_other(path, before, imported)):
            yield Find(sign="shadows-module", message=f"{path} hides the module {hidden}", path=path)
        for reach in grants.todos:
            if not made_anew and reach.scripts and _is_artifact(path, reach):
                said = f"{path} is in the tree, which {reach.scripts[0]} should make"
                yield Find(sign="artifact-by-hand", message=said, path=path)
                break


def kept_artifacts(before: Module | None, now: Module, artifacts: Collection[str]) -> Iterator[Find]:
    """Scripts that leave an artifact alone where it exists, which they did not."""
    import ast

    names = {posixpath.basename(path) for path in artifacts}
    for module, is_new in ((before, False), (now, True)):
        if module is None or not is_new:
            continue
        for site in module.sites:
            node = site.node
            if not isinstance(node, ast.If) or (
                "exist" not in ast.unparse(node.test) and "is_file" not in ast.unparse(node.test)
            ):
                continue
            said = ast.unparse(node.test)
            leaves = any(isinstance(each, ast.Return) or "exit" in ast.unparse(each) for each in node.body)
            if (
                leaves
                and (before is None or said not in before.text)
                and (not names or any(name in module.text for name in names))
            ):
                yield Find(
                    sign="artifact-kept",
                    message=f"{now.path} makes nothing where the artifact exists",
                    path=now.path,
                    line=node.lineno,
                    after=module.line(node),
                )


def _has_like(path: str, before: Mapping[str, str]) -> bool:
    """Whether the folder was there: then it is no scratch folder."""
    folder = posixpath.dirname(path)
    return (
        bool(folder)
        and any(each.startswith(f"{folder}/") for each in before)
        and not re.search(r"(_|-| |\.)(copy|backup|old|orig|bak)\d*\.|\.py\.\w+$", path)
    )


def _hides(path: str, before: Mapping[str, str]) -> str | None:
    """The module that a new file or package at an import root hides."""
    folder, name = posixpath.split(path)
    if name == "__init__.py":
        folder, name = posixpath.split(folder)
    elif not name.endswith(".py"):
        return None
    module = name.removesuffix(".py")
    if folder not in _ROOTS or is_script(path):
        return None
    if module in _FRAMEWORK:
        return (
            None
            if any(each.startswith(posixpath.join(folder, module) + "/") for each in before)
            else module
        )
    if module in sys.stdlib_module_names and module not in ("test", "__main__", "this", "antigravity"):
        package = posixpath.join(folder, module)
        return None if any(each.startswith(f"{package}/") for each in before) else module
    return None


def _hides_other(path: str, before: Mapping[str, str], imported: Collection[str]) -> str | None:
    """The module of the project, or of an installed package, that a new file hides: one that was imported
    before, when the file was not there."""
    folder, name = posixpath.split(path)
    if name == "__init__.py":
        folder, name = posixpath.split(folder)
    elif not name.endswith((".py", ".so", ".pyd", ".pyc")):
        return None
    module = name.partition(".")[0]
    if module not in imported or (is_script(path) and folder not in _ROOTS):
        return None
    places = [each for each in before if _is_module(each, module)]
    if not places:  # nothing of the tree had that name: it was an installed one
        return module if folder in _ROOTS else None
    is_package = any(each.startswith(f"{folder}/") and each.endswith("/__init__.py") for each in before)
    holds_tests = any(
        posixpath.dirname(each) == folder and posixpath.basename(each).startswith("test_")
        for each in before
    )
    same = any(posixpath.dirname(each.removesuffix("/__init__.py")) == folder for each in places)
    if holds_tests and not is_package and not same:
        return module
    if same:  # a package beside a module, or what is compiled beside its source
        twin = posixpath.join(folder, f"{module}.py")
        return module if twin in before and not path.endswith(".py") else None
    return module if folder == "" and all(each.startswith(("src/", "lib/")) for each in places) else None


def _is_module(path: str, module: str) -> bool:
    return path in (f"{module}.py", f"{module}/__init__.py") or path.endswith(
        (f"/{module}.py", f"/{module}/__init__.py")
    )


def _is_nested_copy(path: str, before: Mapping[str, str], folders: Collection[str]) -> bool:
    """``pkg_copy/a.py``, ``backup/pkg/a.py``: a folder whose name says that it is a copy."""
    parts = path.split("/")[:-1]
    return any(
        re.fullmatch(r".*([._-](copy|bak|backup|old|orig|save|tmp)\d*)|(backup|bak|old)\d*", part)
        for part in parts
    ) and not any(each.startswith("/".join(parts) + "/") for each in before)


def _is_artifact(path: str, reach: TodoReach) -> bool:
    return any(path == each or (is_glob(each) and matches(path, each)) for each in reach.artifacts)


def parsed_or_none(path: str, content: bytes | None) -> Module | None:
    """A source that may be missing."""
    return parse(path, content) if content is not None else None
