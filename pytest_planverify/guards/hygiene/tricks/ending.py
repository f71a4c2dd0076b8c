"""Code that ends the process, or the test, that judges it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.reading import dotted
from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Function, Module, Site
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_AT_ONCE = frozenset(
    {"os._exit", "posix._exit", "os.abort", "faulthandler._sigsegv", "faulthandler._sigabrt"}
)
_POLITE = frozenset({"sys.exit", "exit", "quit", "builtins.exit", "builtins.quit"})
_OF_PYTEST = frozenset({"pytest.exit", "_pytest.outcomes.exit"})
_KILLS = frozenset({"os.kill", "os.killpg", "signal.raise_signal", "signal.pthread_kill"})
_LEAVE_TEST = frozenset(
    [
        "pytest.skip",
        "pytest.xfail",
        "pytest.fail",
        "pytest.importorskip",
        "_pytest.outcomes.skip",
        "_pytest.outcomes.xfail",
        "unittest.SkipTest",
        "unittest.case.SkipTest",
        "_pytest.outcomes.Skipped",
        "_pytest.outcomes.XFailed",
        "_pytest.outcomes.Exit",
        "pytest.skip.Exception",
        "pytest.xfail.Exception",
        "pytest.exit.Exception",
    ]
)
_AT_EXIT = frozenset({"atexit.register", "threading._register_atexit", "weakref.finalize"})
_COMMAND_LINES = re.compile(
    r"(^|_)(main|cli|app|command|commands|console|run_cli|entry_?point)(_|$)|^_?main", re.IGNORECASE
)
_COMMAND_MODULES = re.compile(r"(^|/)(__main__|_?cli|cmd|commands?|console|main|\w*_cli|\w*script)\.py$")


_FOR_PYTEST = re.compile(
    r"pytestmark|pytest_plugins|(setup|teardown)_(module|function|method|class)|load_tests|setUpModule"
    r"|tearDownModule|collect_ignore(_glob)?|AssertionError"
)
_OF_A_PLUGIN = re.compile(r"pytest|testing|plugin|fixture|conftest|(^|/)tests?[_/]|_tests?[./]")
"""Files by which a project serves the tests of others."""


def ending(module: Module, around: Surroundings) -> Iterator[Find]:
    """Exits outside a command line, exits at the end, skips in product code."""
    called = {id(site.node.func) for site in module.sites if isinstance(site.node, ast.Call)}
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.Call):
            yield from _called(dotted(node.func, module.aliases), node, site, module, around)
        elif isinstance(node, ast.Assign) and not around.is_judge and site.function is None:
            for target in node.targets:
                yield from _spoken(getattr(target, "id", ""), node, site, module)
        elif isinstance(node, ast.ClassDef):
            yield from _spoken(node.name, node, site, module) if not around.is_judge else ()
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not around.is_judge and site.function is None and site.owner is None:
                yield from _spoken(node.name, node, site, module)
            for decorator in node.decorator_list:
                if dotted(decorator, module.aliases) in _AT_EXIT:
                    yield _at_exit(node, site, module)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            yield from _raised(node, site, module, around)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            meaning = dotted(node, module.aliases)
            if meaning in _AT_ONCE and id(node) not in called and not _forks(site):
                yield _find("exit", f"{meaning} is handed on", meaning, node, site, module)


def _spoken(name: str, node: ast.AST, site: Site, module: Module) -> Iterator[Find]:
    """Names that pytest looks for in the tests, and that tests get with all that a module gives."""
    if _FOR_PYTEST.fullmatch(name) and not _OF_A_PLUGIN.search(module.path):
        said = f"Product code gives {name}, which speaks to what runs the tests"
        yield _find("skips-its-test", said, name, node, site, module)
    is_fixture = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        dotted(each.func if isinstance(each, ast.Call) else each, module.aliases) == "pytest.fixture"
        for each in node.decorator_list
    )
    if is_fixture and not _OF_A_PLUGIN.search(module.path):
        yield _find("skips-its-test", f"Product code gives the fixture {name}", name, node, site, module)


def _called(
    meaning: str, node: ast.Call, site: Site, module: Module, around: Surroundings
) -> Iterator[Find]:
    if meaning in _AT_ONCE:
        if not _forks(site):
            yield _find("exit", f"{meaning} ends the process", meaning, node, site, module)
    elif meaning in _OF_PYTEST:
        yield _find("exit", "pytest.exit ends the session", meaning, node, site, module)
    elif meaning in _POLITE:
        yield from _polite(node, node.args[0] if node.args else None, meaning, site, module, around)
    elif meaning in _KILLS and "getpid" in ast.unparse(node):
        yield _find("exit", f"{meaning} ends its own process", meaning, node, site, module)
    elif meaning == "signal.raise_signal":
        yield _find("exit-doubtful", f"{meaning} ends its own process", meaning, node, site, module)
    elif meaning in _AT_EXIT and node.args:
        handler = node.args[1] if meaning == "weakref.finalize" and len(node.args) > 1 else node.args[0]
        yield _at_exit(_resolved(handler, module), site, module, node)
    elif meaning in _LEAVE_TEST and not around.is_judge and not _is_raised(node, module):
        yield _find("skips-its-test", f"Product code calls {meaning}", meaning, node, site, module)


def _raised(node: ast.Raise, site: Site, module: Module, around: Surroundings) -> Iterator[Find]:
    raised = node.exc
    call = raised if isinstance(raised, ast.Call) else None
    meaning = dotted(call.func if call else raised, module.aliases) if raised is not None else ""
    if meaning in ("SystemExit", "builtins.SystemExit"):
        yield from _polite(
            node, call.args[0] if call and call.args else None, meaning, site, module, around
        )
    elif meaning in _LEAVE_TEST and not around.is_judge:
        yield _find("skips-its-test", f"Product code raises {meaning}", meaning, node, site, module)


def _polite(
    node: ast.AST, status: ast.expr | None, meaning: str, site: Site, module: Module, around: Surroundings
) -> Iterator[Find]:
    """An exit that a command line may make; with a failing status it buys nothing."""
    if around.is_script or site.in_main or _is_command_line(site, module):
        return
    if around.is_judge and site.function is not None:
        return  # pytest sees it as a failure of the test
    value = fold(status) if status is not None else 0
    good = value in (0, None, False) or value is NOTHING
    sure = good and (value is not NOTHING or site.function is None)
    sign = "exit" if sure else "exit-doubtful"
    if good or site.function is None:
        yield _find(sign, f"{meaning} outside a command line", meaning, node, site, module)


def _is_command_line(site: Site, module: Module) -> bool:
    if _COMMAND_MODULES.search(module.path) or (
        site.function and _COMMAND_LINES.search(site.function.name)
    ):
        return True
    if site.owner is not None and any(
        "Action" in ast.unparse(b) or "Parser" in ast.unparse(b) for b in site.owner.bases
    ):
        return True
    if site.function is None:
        return False
    said = " ".join(ast.unparse(each) for each in site.function.decorator_list)
    return "command" in said or "click" in said or "callback" in said or "argparse" in module.aliases


def _at_exit(
    handler: Function | ast.expr | None, site: Site, module: Module, node: ast.AST | None = None
) -> Find:
    place = node if node is not None else handler or site.node
    if handler is not None and _ends(handler, module):
        return _find("exit", "What runs at exit ends the process", "atexit", place, site, module)
    return _find("at-exit", "A function is registered to run at exit", "atexit", place, site, module)


def _ends(handler: ast.AST, module: Module) -> bool:
    return any(
        dotted(each.func if isinstance(each, ast.Call) else each, module.aliases)
        in _AT_ONCE | _POLITE | _KILLS
        for each in ast.walk(handler)
        if isinstance(each, ast.Call | ast.Attribute)
    )


def _resolved(handler: ast.expr, module: Module) -> Function | ast.expr:
    if isinstance(handler, ast.Name):
        return module.functions.get(handler.id, handler)
    if isinstance(handler, ast.Attribute):
        return module.functions.get(handler.attr, handler)
    return handler


def _forks(site: Site) -> bool:
    return site.function is not None and "fork" in ast.dump(site.function)


def _is_raised(node: ast.Call, module: Module) -> bool:
    """The call makes an exception; what raises it is reported."""
    return any(isinstance(site.node, ast.Raise) and site.node.exc is node for site in module.sites)


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
