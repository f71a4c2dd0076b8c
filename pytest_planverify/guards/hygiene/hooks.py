"""Hooks of pytest that make another verdict of a failing test, or choose which tests are run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.signals import SignalFinding
from pytest_planverify.guards.hygiene.source import FUNCTIONS, Function, dotted, fold, name_of, shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.source import Module

_FATES = frozenset(
    {"outcome", "longrepr", "wasxfail", "excinfo", "exitstatus", "testsfailed", "testscollected", "obj",
     "_obj", "runtest", "function", "items"}
)  # fmt: skip
"""Attributes of reports, calls, sessions and items that decide a verdict."""
_CHOICES = frozenset(
    {"keyword", "markexpr", "deselect", "ignore", "ignore_glob", "collectonly", "lf", "args", "file_or_dir",
     "stepwise", "maxfail", "reruns", "runxfail"}
)  # fmt: skip
"""Options by which tests are chosen."""
_DECIDING_CALLS = frozenset(
    {"os._exit", "sys.exit", "pytest.exit", "os.kill", "os.abort", "exit", "quit",
     "force_result", "force_exception", "from_result", "pytest_deselected"}
)  # fmt: skip
_RUNS_TESTS = frozenset({"pytest_runtest_call", "pytest_pyfunc_call", "pytest_runtest_protocol"})
_ANSWERS = frozenset(
    {"pytest_ignore_collect", "pytest_runtestloop", "pytest_cmdline_main", "pytest_report_teststatus"}
)
"""Hooks whose answer, where there is one, decides."""
_MAKES_ITEMS = frozenset(
    {"pytest_pycollect_makeitem", "pytest_pycollect_makemodule", "pytest_collect_file",
     "pytest_make_collect_report"}
)  # fmt: skip
_LISTS = {
    "collect_ignore": ("test-deselected", "A list keeps files from being collected"),
    "pytest_plugins": ("plugin-added", "The list pytest_plugins was changed"),
}


def hook_findings(before: Module | None, now: Module) -> Iterator[SignalFinding]:
    """Yield the hooks and the lists of ignored files that came or changed, where they decide verdicts."""
    had = before.statements if before is not None else frozenset[str]()
    for node in ast.walk(now.tree):
        name = _hook_name(node) if isinstance(node, FUNCTIONS) else ""
        if not isinstance(node, FUNCTIONS) or not name.startswith("pytest_") or shape(node) in had:
            continue
        place = next((each for each in ast.walk(node) if _decides(name, each, node, now)), None)
        if place is not None:
            said = f"The hook {name} changes outcomes, or which tests are run"
            line, after = getattr(place, "lineno", node.lineno), ast.unparse(place)
            yield SignalFinding(sign="outcome-hook", message=said, path=now.path, line=line, after=after)
    for node in now.tree.body:
        text = ast.unparse(node)
        for start, (sign, said) in _LISTS.items():
            if text.startswith(start) and not text.endswith(("= []", "= ()")) and shape(node) not in had:
                yield SignalFinding(sign=sign, message=said, path=now.path, line=node.lineno, after=text)


def _hook_name(node: Function) -> str:
    """Return the name of a hook, which ``@hookimpl(specname=…)`` may give."""
    for decorator in node.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "specname":
                return str(fold(keyword.value))
    return node.name


def _decides(name: str, node: ast.AST, hook: Function, module: Module) -> bool:
    """Return whether a node of a hook decides something; others listen, order or configure."""
    if isinstance(node, ast.Assign | ast.Delete):
        return any(_is_fate(target, node) for target in node.targets)
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return _is_fate(node.target, node)
    if isinstance(node, ast.Call):
        called = name_of(node.func)
        if called in _DECIDING_CALLS or dotted(node.func, module.aliases) in _DECIDING_CALLS:
            return True
        if called in ("setattr", "__setattr__", "_replace", "replace"):
            words = {fold(arg) for arg in node.args if isinstance(arg, ast.Constant)}
            return bool((words | {keyword.arg for keyword in node.keywords}) & (_FATES | _CHOICES))
        if called in ("remove", "clear", "pop"):
            return "items" in ast.unparse(node.func)
        return called == "add_marker" and _leaves_out(node, hook)
    if isinstance(node, ast.Try | ast.With) and name in _RUNS_TESTS | {"pytest_runtest_makereport"}:
        # What a test raises is caught by whoever waits for it, or runs it.
        runs_it = name in _RUNS_TESTS or any(isinstance(each, ast.Yield) for each in ast.walk(node))
        catches = node.handlers if isinstance(node, ast.Try) else "suppress" in ast.unparse(node)
        return runs_it and bool(catches)
    if isinstance(node, ast.Return) and node.value is not None:
        value = fold(node.value)
        return (
            (name in _RUNS_TESTS and value in (True, 1))
            or (name in _ANSWERS and value is not None and value is not False)
            or (name in _MAKES_ITEMS and value in ([], ()))
        )
    return False


def _is_fate(target: ast.expr, statement: ast.stmt) -> bool:
    text = ast.unparse(target)
    if isinstance(target, ast.Attribute):
        is_option = target.attr in _CHOICES and ("option" in text or "config" in text)
        return (target.attr in _FATES or is_option) and ast.unparse(target.value) not in ("self", "cls")
    value = getattr(statement, "value", None)
    only_orders = isinstance(value, ast.Call) and name_of(value.func) in ("sorted", "reversed")
    return isinstance(target, ast.Subscript) and "items" in text and not only_orders


def _leaves_out(call: ast.Call, hook: Function) -> bool:
    """Return whether a mark that is added keeps a test from being judged, whatever is asked for."""
    if "getoption" in ast.unparse(hook):
        return False
    names = {each.id for arg in call.args for each in ast.walk(arg) if isinstance(each, ast.Name)}
    values = [
        each.value
        for each in ast.walk(hook)
        if isinstance(each, ast.Assign) and names & {ast.unparse(target) for target in each.targets}
    ]
    texts = [ast.unparse(each) for each in (*call.args, *values)]
    return any("skip" in text or "xfail" in text for text in texts)
