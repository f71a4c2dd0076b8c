"""Searches that lead from a source to the data of the tests, by folders, patterns and endings."""

from __future__ import annotations

import ast
import posixpath
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.reading import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_planverify.guards.hygiene.reading import Module, Site

_READS = frozenset(
    {"glob", "rglob", "iglob", "iterdir", "listdir", "scandir", "walk", "open", "read_text", "read_bytes"}
)
_SEARCHES = frozenset({"glob", "rglob", "iglob", "iterdir", "listdir", "scandir", "walk"})
_HERE = frozenset({"cwd", "getcwd", "curdir", "getcwdb"})
_OF_TESTS = re.compile(r"tests?|testing|test_\w+|\w+_tests?|specs?")
_COMMON = frozenset(
    {"data", "files", "resources", "static", "templates", "config", "examples", "samples", "docs", "assets"}
    | {"input", "inputs", "output", "outputs", "src", "lib", "json", "csv", "reports", "schemas", "cache"}
)
"""Names of folders that a product has as well."""
_SOURCES = frozenset({"", ".py", ".pyi", ".pyc"})
_STARTS = frozenset(
    {"Path", "PurePath", "pathlib.Path", "pathlib.PurePath", "os.path.join", "open", "io.open"}
    | {"glob.glob", "glob.iglob", "os.listdir", "os.walk", "os.scandir"}
)
"""Calls whose first text is where a path begins."""
_DEEPEST = 4


@dataclass
class _Search:
    """What is known of a path that is read."""

    texts: list[str] = field(default_factory=list[str])
    climbs: int = 0
    from_file: bool = False
    from_here: bool = False
    relative: bool = False
    upwards: bool = False
    from_package: bool = False
    recursive: bool = False


def finds_test_data(node: ast.Call, site: Site, module: Module, data: Iterable[str]) -> str:
    """What of the data of tests a call leads to, in words; empty where it leads to none."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name not in _READS or _writes(node, name):
        return ""
    below = [path for path in data if any(map(_OF_TESTS.fullmatch, path.split("/")[:-1]))]
    if not below:
        return ""
    search = _Search()
    _follow(node, site.function or module.tree, module, search, 0)
    outside = _is_outside(search, module.path)
    if search.from_package or (search.from_file and not outside):
        return ""
    folders = {part for path in below for part in path.split("/")[:-1]}
    texts = [text.replace("\\", "/") for text in search.texts if "://" not in text]
    for text in texts:
        parts = set(text.split("/"))
        if outside and (named := sorted((parts & folders) - _COMMON)):
            return named[0]
        if "*" in text and "/" in text.strip("/*") and not parts & folders & _COMMON and _fits(text, below):
            return text
    if _is_wide(search, name, outside, texts):
        endings = {posixpath.splitext(path)[1] for path in below} - _SOURCES
        texts += _compared(site.function or module.tree)
        return next((text for text in texts if _ending(text) in endings), "")
    return ""


def _follow(node: ast.AST, scope: ast.AST, module: Module, search: _Search, depth: int) -> None:
    """Takes in an expression, and what its names are bound to."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant | ast.JoinedStr | ast.BinOp):
            value = fold(each, module.constants)
            if isinstance(value, str) and len(value) < 300:
                search.texts.append(value)
                search.climbs += value.replace("\\", "/").split("/").count("..")
                search.recursive |= "**" in value
                search.from_here |= value in (".", "./")
        elif isinstance(each, ast.Attribute):
            _take_part(each.attr, search)
        elif isinstance(each, ast.Call):
            meaning = dotted(each.func, module.aliases)
            _take_part(meaning, search)
            first = fold(each.args[0], module.constants) if each.args else None
            if meaning in _STARTS and isinstance(first, str):
                search.relative |= not first.startswith(("/", "~"))
            search.from_package |= meaning in ("importlib.resources.files", "pkgutil.get_data")
        elif isinstance(each, ast.Name):
            search.from_file |= each.id == "__file__"
            if depth < _DEEPEST:
                for value in _meanings(each.id, scope, module):
                    _follow(value, scope, module, search, depth + 1)


def _take_part(name: str, search: _Search) -> None:
    last = name.rpartition(".")[2]
    search.climbs += last in ("parent", "dirname")
    search.upwards |= last == "parents"
    search.from_here |= last in _HERE
    search.recursive |= last in ("rglob", "walk")


def _meanings(name: str, scope: ast.AST, module: Module) -> list[ast.expr]:
    found: list[ast.expr] = []
    for each in ast.walk(scope):
        if isinstance(each, ast.Assign) and any(getattr(one, "id", "") == name for one in each.targets):
            found.append(each.value)
        elif isinstance(each, ast.For | ast.comprehension) and name in {
            one.id for one in ast.walk(each.target) if isinstance(one, ast.Name)
        }:
            found.append(each.iter)
    if not found and name in module.constants:
        found.append(module.constants[name])
    return found


def _is_outside(search: _Search, path: str) -> bool:
    """Whether a path leaves the package that the source belongs to."""
    if search.from_here:
        return True
    if not search.from_file:
        # A path that is written down starts where the process was started.
        return search.relative
    parts = path.split("/")
    depth = len(parts) - 1 - (parts[0] in ("src", "lib"))
    return search.upwards or search.climbs > max(depth, 0)


def _is_wide(search: _Search, name: str, outside: bool, texts: Iterable[str]) -> bool:
    """Whether all is searched that lies below or above some place, and no folder is named."""
    begins = search.from_here or search.from_file
    far = search.recursive or search.climbs > 0 or search.upwards
    named = any(re.fullmatch(r"[\w-]+", part) for text in texts for part in text.split("/"))
    return outside and begins and far and not named and name in _SEARCHES


def _writes(node: ast.Call, name: str) -> bool:
    """``open(path, "w")`` and ``path.open("w")``."""
    given = [*node.args, *(each.value for each in node.keywords if each.arg == "mode")]
    modes = [each.value for each in given if isinstance(each, ast.Constant)]
    return name == "open" and any(re.fullmatch(r"[wax]b?t?", str(mode)) for mode in modes)


def _fits(pattern: str, paths: Iterable[str]) -> bool:
    """Whether a pattern fits the end of a path, folder by folder."""
    wanted = [part for part in pattern.strip("/").split("/") if part not in (".", "..", "**")]
    literal = [part for part in wanted[:-1] if "*" not in part]
    if not literal:
        return False
    return any(
        len(parts := path.split("/")) >= len(wanted)
        and all(map(fnmatchcase, parts[-len(wanted) :], wanted))
        for path in paths
    )


def _compared(scope: ast.AST) -> list[str]:
    """Endings that names of files are compared with."""
    found: list[str] = []
    for each in ast.walk(scope):
        if isinstance(each, ast.Compare) or (
            isinstance(each, ast.Call)
            and getattr(each.func, "attr", "") in ("endswith", "fnmatch", "filter")
        ):
            found += [
                one.value
                for one in ast.walk(each)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
    return found


def _ending(text: str) -> str:
    """``.txt`` of ``*.txt`` and of ``.txt``."""
    last = text.rpartition("/")[2]
    return last.lstrip("*") if re.fullmatch(r"\*?\.\w+", last) else ""
