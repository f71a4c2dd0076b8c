"""Product code that reads the tests, or what they expect."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.reading import dotted
from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.guards.hygiene.tricks.test_data import finds_test_data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Module, Site
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_TEST_SOURCE = re.compile(r"(^|[/\\])(test_[\w*]*|[\w*]*_test|conftest)(\.py|\.\*)?$|(^|[/\\])test_\*")
_TEST_FOLDER = re.compile(r"(^|[/\\])tests?([/\\]|$)")
_RECORDS = re.compile(r"\.planverify|planverify\.ya?ml|\.pytest_cache|cache/lastfailed|cache/nodeids")
_OF_TESTS = re.compile(r"\bassert(\\s[*+]|\s+|\[)\S*\\?\(|def\s+test_|\btest_\w+\\?\(|self\.assert[A-Z]")
"""Texts that are looked for in the source of tests."""
_SOURCE_CALLS = frozenset(
    {"endswith", "glob", "rglob", "iglob", "fnmatch", "filter", "match", "with_suffix"}
)
_CHECKS_PLACE = frozenset(
    {"exists", "isdir", "isfile", "is_dir", "is_file", "lexists", "listdir", "access"}
)
_HISTORY = frozenset({"show", "grep", "diff", "log", "blame", "cat-file", "stash", "checkout", "ls-files"})
_SOURCES = frozenset(
    {"inspect.getsource", "inspect.getsourcelines", "linecache.getline", "linecache.getlines"}
)
_PATH_CALLS = frozenset(
    [
        "Path",
        "PurePath",
        "open",
        "join",
        "joinpath",
        "glob",
        "rglob",
        "iglob",
        "listdir",
        "walk",
        "scandir",
        "exists",
        "isdir",
        "isfile",
        "files",
    ]
)
_LEAST_NAME = 8


def reading_tests(module: Module, around: Surroundings) -> Iterator[Find]:
    """Paths of tests, of their data and of the verifier's records; imports of test modules."""
    quiet = _quiet(module)
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imported(node, site, module, around)
        elif (
            isinstance(node, ast.Constant | ast.BinOp | ast.JoinedStr | ast.Call) and id(node) not in quiet
        ):
            value = fold(node, module.constants)
            if isinstance(value, str) and 2 < len(value) < 300 and "\n" not in value:
                yield from _named(value, node, site, module, around)
            if isinstance(node, ast.Call):
                yield from _looked_for(node, site, module, around)
            if isinstance(node, ast.Call) and dotted(node.func, module.aliases) in _SOURCES:
                yield _find(
                    "names-tests", "The source of something is read", "getsource", node, site, module
                )


def _imported(
    node: ast.Import | ast.ImportFrom, site: Site, module: Module, around: Surroundings
) -> Iterator[Find]:
    names = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    if isinstance(node, ast.ImportFrom) and node.level:
        return
    for name in names:
        top, _, rest = name.partition(".")
        last = name.rpartition(".")[2]
        if top in around.own_packages - {"tests", "test"} and "tests" not in rest.split("."):
            continue
        is_test = (
            top == "tests" or last == "conftest" or last.startswith("test_") or "tests" in rest.split(".")
        )
        if is_test and not around.is_script:
            yield _find("reads-tests", f"Product code imports {name}", name, node, site, module)


def _named(value: str, node: ast.AST, site: Site, module: Module, around: Surroundings) -> Iterator[Find]:
    text = value.replace("\\", "/")
    if (_RECORDS.search(text) or text.removeprefix("./") in around.plans) and not around.is_script:
        yield _find("reads-tests", f"Product code names {value!r}", value, node, site, module)
    elif _TEST_SOURCE.search(text) and (text.endswith((".py", "*")) or text in around.test_files):
        yield _find("reads-tests", f"Product code names the tests {value!r}", value, node, site, module)
    elif around.is_script:
        return
    elif _OF_TESTS.search(value) and isinstance(node, ast.Constant | ast.BinOp | ast.JoinedStr):
        yield _find("reads-tests", "Product code looks for what tests say", "source", node, site, module)
    elif _is_data(text, around):
        yield _find(
            "reads-tests", f"Product code names what tests expect, {value!r}", value, node, site, module
        )
    elif _TEST_FOLDER.search(text) and " " not in text and ("/" in text or id(node) in _paths(module)):
        yield _find("names-tests", f"Product code names {value!r}", value, node, site, module)


def _looked_for(node: ast.Call, site: Site, module: Module, around: Surroundings) -> Iterator[Find]:
    """Sources that are searched, tests that are asked whether they are there, the history of the tree."""
    if around.is_script:
        return
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    words = [value for arg in node.args if isinstance(value := fold(arg, module.constants), str)]
    if name in _CHECKS_PLACE and any(re.fullmatch(r"(\./)?tests?/?", word) for word in words):
        yield _find("reads-tests", "Product code asks whether tests are there", name, node, site, module)
    elif name in _SOURCE_CALLS and any(word.endswith(".py") for word in words):
        yield _find("names-tests", "Sources are searched", name, node, site, module)
    elif led := finds_test_data(node, site, module, around.data_files):
        said = f"Product code looks for data of the tests by {led!r}"
        yield _find("reads-tests", said, "data", node, site, module)
    elif name in ("run", "check_output", "Popen", "call", "check_call", "getoutput", "popen") and node.args:
        given = _words(node.args[0], module)
        if given[:1] == ["git"] and _HISTORY & set(given):
            yield _find(
                "reads-tests", "Product code reads the history of the tree", "git", node, site, module
            )


def _words(node: ast.expr, module: Module) -> list[str]:
    """The words of a command, as far as they are written down."""
    if isinstance(node, ast.List | ast.Tuple):
        values = [fold(each, module.constants) for each in node.elts]
    else:
        value = fold(node, module.constants)
        values = value.split() if isinstance(value, str) else []
    return [each for each in values if isinstance(each, str)]


def _is_data(text: str, around: Surroundings) -> bool:
    """A data file of the tests, by its path or, where that says enough, by its name."""
    if "/" in text.strip("/"):
        return any(
            path == text.removeprefix("./") or path.endswith("/" + text.lstrip("./"))
            for path in around.data_files
        )
    return (
        len(text) >= _LEAST_NAME
        and "." in text
        and any(path.rpartition("/")[2] == text for path in around.data_files)
    )


def _paths(module: Module) -> frozenset[int]:
    """Expressions that are parts of paths."""
    found: set[int] = set()
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            found |= {id(node.left), id(node.right)}
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _PATH_CALLS:
                found |= {id(arg) for arg in node.args}
    return frozenset(found)


def _quiet(module: Module) -> frozenset[int]:
    """Docstrings, messages of exceptions, and parts of larger expressions that are looked at as a whole."""
    found: set[int] = set()
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.add(id(node.value))
        elif isinstance(node, ast.Raise) and node.exc is not None:
            found |= {id(each) for each in ast.walk(node.exc)}
        elif isinstance(node, ast.BinOp | ast.JoinedStr) and isinstance(fold(node, module.constants), str):
            found |= {id(each) for each in ast.walk(node) if each is not node}
    return frozenset(found)


def _find(sign: str, said: str, subject: str, node: ast.AST, site: Site, module: Module) -> Find:
    return Find(
        sign=sign,
        message=said,
        path=module.path,
        line=getattr(node, "lineno", None),
        subject=subject,
        place=site.place,
        after=module.line(node),
    )
