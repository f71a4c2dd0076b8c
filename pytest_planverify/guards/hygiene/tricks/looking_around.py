"""Code that asks whether tests are running: the environment, loaded modules, the command line."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.reading import dotted
from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Module, Site
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_VARIABLE = re.compile(
    r"_?(PYTEST|PLANVERIFY)(_[A-Z0-9_]*)?|PY_TEST|_called_from_(py)?test|TOX_ENV_NAME|UNITTEST"
)
_FRAMEWORK = re.compile(
    r"(pytest_)?planverify|_?py\.?test(\.\w+)*|unittest(\.\w+)*|_pytest(\.\w+)*|conftest|pluggy|xdist|pytest_\w+|nose2?|hypothesis"
)
_TEST_MODULE = re.compile(r"(^|\.)(tests?|test_\w+|\w+_test)(\.|$)")
_PLACES = frozenset(
    [
        "sys.modules",
        "sys.argv",
        "sys.orig_argv",
        "os.environ",
        "os.environb",
        "sys.path",
        "os.getenv",
        "sys.meta_path",
    ]
)
_FINDERS = frozenset(
    [
        "importlib.util.find_spec",
        "importlib.find_loader",
        "pkgutil.find_loader",
        "importlib.metadata.version",
        "importlib.metadata.distribution",
        "hasattr",
        "getattr",
        "os.getenv",
        "os.environ.get",
        "sys.modules.get",
        "__import__",
        "importlib.import_module",
        "sys.modules.__contains__",
        "os.environ.__contains__",
    ]
)
_TRACERS = frozenset({"sys.gettrace", "sys.getprofile", "sys.flags.debug"})
_LEAST_FRAGMENT = 4
_OF_THE_FRAMEWORK = frozenset(
    {
        "LogCaptureHandler", "LogCaptureFixture", "EncodedFile", "CaptureIO", "DontReadFromInput",
        "TeeCaptureIO", "AssertionRewritingHook", "FDCapture", "SysCapture", "PytestPluginManager",
        "FixtureManager",
        "FixtureRequest", "CaptureManager", "TestCaseFunction", "UnitTestCase",
    }
)  # fmt: skip
"""Classes of pytest that can be met from within a test."""
_PARTS_OF_MODULES = frozenset({"__file__", "__dict__", "__spec__", "__loader__"})


def looking_around(module: Module, around: Surroundings) -> Iterator[Find]:
    """Questions about the surroundings that only tests would answer otherwise."""
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.expr):
            yield from _asked(node, site, module, around)
        elif isinstance(node, ast.For):
            if any(dotted(each, module.aliases) == "sys.modules" for each in ast.walk(node.iter)):
                yield _searched(node, site, module)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imported(node, site, module)


def _asked(node: ast.expr, site: Site, module: Module, around: Surroundings) -> Iterator[Find]:
    if isinstance(node, ast.Compare):
        yield from _compared(node, site, module)
    elif isinstance(node, ast.Call):
        yield from _called(node, site, module, around)
    elif isinstance(node, ast.Subscript):
        owner = dotted(node.value, module.aliases)
        if owner in _PLACES and _names_tests(node.slice, owner, module):
            yield _find("asks-for-tests", f"{owner} is asked for tests", owner, node, site, module)
        elif owner == "sys.modules" and fold(node.slice, module.constants) == "__main__":
            yield _find("asks-for-surroundings", "__main__ is looked at", owner, node, site, module)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        yield from _iterated(node, node.generators[0].iter, site, module)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in _OF_THE_FRAMEWORK:
        said = f"Product code names {node.value}, a class of pytest"
        yield _find("asks-for-tests", said, node.value, node, site, module)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        meaning = dotted(node, module.aliases)
        if meaning == "sys.orig_argv":
            yield _find(
                "asks-for-surroundings", "The command line of Python is read", meaning, node, site, module
            )
        elif meaning == "sys.argv" and not _is_command_line(site, around, module):
            yield _find("asks-for-surroundings", "The command line is read", meaning, node, site, module)


def _compared(node: ast.Compare, site: Site, module: Module) -> Iterator[Find]:
    sides = [node.left, *node.comparators]
    for side in sides:
        others = [dotted(each, module.aliases) for each in _inner(sides) if each is not side]
        place = next((each for each in others if _place(each)), None)
        if place and _names_tests(side, place, module):
            yield _find("asks-for-tests", f"{place} is searched for tests", place, node, site, module)
            return
        if isinstance(side, ast.Constant | ast.BinOp | ast.Call | ast.Subscript | ast.JoinedStr):
            value = fold(side, module.constants)
            if isinstance(value, str) and _is_test_word(value) and not _is_docstring_like(value):
                yield _find(
                    "asks-for-tests", f"Something is compared with {value!r}", value, node, site, module
                )
                return


def _called(node: ast.Call, site: Site, module: Module, around: Surroundings) -> Iterator[Find]:
    meaning = dotted(node.func, module.aliases)
    words = [value for arg in node.args if isinstance(value := fold(arg, module.constants), str)]
    if meaning in _FINDERS or meaning.rpartition(".")[0] in _PLACES:
        for word in words:
            of_tests = meaning.startswith("sys.modules") and _TEST_MODULE.search(word)
            if of_tests or _is_test_word(word):
                yield _find("asks-for-tests", f"{meaning} is asked for {word}", word, node, site, module)
                return
    if isinstance(node.func, ast.Attribute) and node.func.attr in (
        "startswith", "endswith", "find", "index", "count", "__contains__", "intersection", "isdisjoint",
    ):  # fmt: skip
        said = _said_by(node, site, module)
        for arg in node.args:
            for word in _words(fold(arg, module.constants)):
                if _is_test_word(word) or (said and _is_fragment(word, said)):
                    yield _find(
                        "asks-for-tests", f"Something is searched for {word!r}", word, node, site, module
                    )
                    return
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr
        in (
            "search",
            "match",
            "fullmatch",
            "findall",
        )
        and any("pytest" in word or "unittest" in word for word in words)
    ):
        yield _find("asks-for-tests", "Something is searched for tests", "regex", node, site, module)
    if meaning in _TRACERS:
        yield _find("asks-for-surroundings", f"{meaning} is asked", meaning, node, site, module)


def _iterated(node: ast.expr, iterated: ast.expr, site: Site, module: Module) -> Iterator[Find]:
    place = next((p for e in ast.walk(iterated) if (p := dotted(e, module.aliases)) in _PLACES), None)
    if place not in ("sys.modules", "os.environ", "sys.argv", "sys.orig_argv"):
        return
    for each in ast.walk(node):
        value = fold(each, module.constants) if isinstance(each, ast.expr) else None
        if any(_is_fragment(word, place) for word in _words(value)):
            yield _find("asks-for-tests", f"{place} is searched for tests", place, node, site, module)
            return
    if place == "sys.modules":
        yield _searched(node, site, module)


def _searched(node: ast.AST, site: Site, module: Module) -> Find:
    """All the loaded modules are gone through; what they hold is nobody's business."""
    scope: ast.AST = site.function or module.tree
    looks_inside = any(
        (isinstance(each, ast.Name) and each.id in ("hasattr", "getattr", "vars", "dir"))
        or (isinstance(each, ast.Attribute) and each.attr in _PARTS_OF_MODULES)
        for each in ast.walk(scope)
    )
    said = "The loaded modules are searched"
    if looks_inside:
        return _find("asks-for-tests", f"{said} for what they hold", "sys.modules", node, site, module)
    return _find("asks-for-surroundings", said, "sys.modules", node, site, module)


def _imported(node: ast.Import | ast.ImportFrom, site: Site, module: Module) -> Iterator[Find]:
    names = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for name in names:
        if getattr(node, "level", 0) == 0 and name.partition(".")[0] in (
            "pytest",
            "_pytest",
            "unittest",
            "nose",
        ):
            yield _find("imports-framework", f"Product code imports {name}", name, node, site, module)
        elif name == "__main__":
            yield _find("asks-for-surroundings", "__main__ is imported", name, node, site, module)


def _inner(sides: list[ast.expr]) -> Iterator[ast.expr]:
    """The sides, and what ``list(…)``, ``str(…)`` and ``.keys()`` are made of."""
    for side in sides:
        yield side
        if isinstance(side, ast.Call):
            yield from _inner(side.args)
            if isinstance(side.func, ast.Attribute):
                yield from _inner([side.func.value])
        elif isinstance(side, ast.Subscript):
            yield side.value


def _place(meaning: str) -> bool:
    return meaning in _PLACES or any(meaning.startswith(f"{place}.") for place in _PLACES)


def _names_tests(node: ast.expr, place: str, module: Module) -> bool:
    return any(_is_fragment(word, place) for word in _words(fold(node, module.constants)))


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, str))  # pyright: ignore[reportUnknownVariableType]


def _is_test_word(word: str) -> bool:
    return bool(_FRAMEWORK.fullmatch(word) or _VARIABLE.fullmatch(word)) and word not in (
        "hypothesis",
        "xdist",
    )


def _is_fragment(word: str, place: str) -> bool:
    """Whether it stands for tests where modules, variables or arguments are searched."""
    if _FRAMEWORK.fullmatch(word) or _VARIABLE.fullmatch(word):
        return True
    if place.startswith("sys.") and _TEST_MODULE.search(word):
        return True
    if len(word) < _LEAST_FRAGMENT - (place == "os.environ"):
        return False
    wholes = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER") if place.startswith("os.") else (
        "pytest", "_pytest", "unittest", "conftest", "py.test", "pluggy",
    )  # fmt: skip
    return any(word in whole for whole in wholes) or (not place.startswith("os.") and "pytest" in word)


def _said_by(node: ast.Call, site: Site, module: Module) -> str:
    """The place whose entries are looked at, where the function iterates over one."""
    scope: ast.AST = site.function or module.tree
    for each in ast.walk(scope):
        iterated = each.iter if isinstance(each, ast.For | ast.comprehension) else None
        if iterated is not None:
            for inner in ast.walk(iterated):
                if dotted(inner, module.aliases) in _PLACES:
                    return dotted(inner, module.aliases)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else node
    found = {dotted(each, module.aliases) for each in ast.walk(owner)} & _PLACES
    return next(iter(found), "")


def _is_docstring_like(value: str) -> bool:
    return " " in value


def _is_command_line(site: Site, around: Surroundings, module: Module) -> bool:
    name = site.place
    return (
        around.is_script
        or site.in_main
        or module.path.endswith(("__main__.py", "cli.py"))
        or "main" in name
        or "argv" in name
        or "arg" in name
        or "cli" in name
    )


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
