"""Hooks of pytest that make another verdict of a failing test, or choose which tests are run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.signals import Finding
from pytest_planverify.guards.hygiene.source import FUNCTIONS, Function, dotted, fold, shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.source import Module

_FATES = frozenset(
    {"outcome", "longrepr", "wasxfail", "excinfo", "exitstatus", "testsfailed", "testscollected", "obj",
     "_obj", "runtest", "function"}
)  # fmt: skip
"""Attributes of reports, calls, sessions and items that decide a verdict."""
_CHOICES = frozenset(
    {"keyword", "markexpr", "deselect", "ignore", "ignore_glob", "collectonly", "lf", "args", "file_or_dir",
     "stepwise", "maxfail", "reruns", "runxfail"}
)  # fmt: skip
"""Options by which tests are chosen."""
_FORCING = frozenset({"force_result", "force_exception", "from_result", "pytest_deselected"})
_ENDS = frozenset({"os._exit", "sys.exit", "pytest.exit", "os.kill", "os.abort", "exit", "quit"})
_RUNS_TESTS = frozenset({"pytest_runtest_call", "pytest_pyfunc_call", "pytest_runtest_protocol"})
_AROUND_TESTS = _RUNS_TESTS | {"pytest_runtest_makereport"}
_SAYS_SOMETHING = frozenset(
    {"pytest_ignore_collect", "pytest_runtestloop", "pytest_cmdline_main", "pytest_report_teststatus"}
)
"""Hooks whose answer, where there is one, decides."""
_MAKES_ITEMS = frozenset(
    {"pytest_pycollect_makeitem", "pytest_pycollect_makemodule", "pytest_collect_file",
     "pytest_make_collect_report"}
)  # fmt: skip
_IGNORED = ("collect_ignore", "collect_ignore_glob")


def hook_findings(before: Module | None, now: Module) -> Iterator[Finding]:
    """Yield the hooks and the lists of ignored files that came or changed, where they decide verdicts."""
    had = before.statements if before is not None else frozenset[str]()
    for node in ast.walk(now.tree):
        if isinstance(node, FUNCTIONS) and shape(node) not in had:
            name = _hook_name(node)
            place = _decision(name, node, now) if name.startswith("pytest_") else None
            if place is not None:
                said = f"The hook {name} changes outcomes, or which tests are run"
                line = getattr(place, "lineno", node.lineno)
                after = ast.unparse(place)
                yield Finding(sign="outcome-hook", message=said, path=now.path, line=line, after=after)
    for node in now.tree.body:
        if (
            isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr)
            and shape(node) not in had
        ):
            text = ast.unparse(node)
            if text.startswith(_IGNORED) and not text.endswith(("= []", "= ()")):
                sign, said = "test-deselected", "A list keeps files from being collected"
            elif text.startswith("pytest_plugins"):
                sign, said = "plugin-added", "The list pytest_plugins was changed"
            else:
                continue
            yield Finding(sign=sign, message=said, path=now.path, line=node.lineno, after=text)


def _hook_name(node: Function) -> str:
    """Return the name of a hook, which ``@hookimpl(specname=…)`` may give."""
    for decorator in node.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "specname":
                return str(fold(keyword.value))
    return node.name


def _decision(name: str, node: Function, module: Module) -> ast.AST | None:
    """Return the node of a hook that decides something; ``None`` where it only listens or configures."""
    for each in ast.walk(node):
        if isinstance(each, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = each.targets if isinstance(each, ast.Assign | ast.Delete) else [each.target]
            if any(_is_fate(target, each) for target in targets):
                return each
        elif isinstance(each, ast.Call):
            called = dotted(each.func, module.aliases)
            last = getattr(each.func, "attr", called)
            if called in _ENDS or last in _FORCING:
                return each
            words = {fold(arg) for arg in each.args if isinstance(arg, ast.Constant)}
            if last in ("setattr", "__setattr__", "_replace", "replace") and (
                words | {keyword.arg for keyword in each.keywords}
            ) & (_FATES | _CHOICES):
                return each
            if last in ("remove", "clear", "pop") and "items" in ast.unparse(each.func):
                return each
            if last == "add_marker" and _leaves(each, node) and "getoption" not in ast.unparse(node):
                return each
        elif (isinstance(each, ast.Try | ast.With) and name in _AROUND_TESTS and _catches(each, name)) or (
            name in _RUNS_TESTS and isinstance(each, ast.Return) and fold(each.value) in (True, 1)
        ):
            return each
        elif isinstance(each, ast.Return) and each.value is not None:
            value = fold(each.value)
            if name in _SAYS_SOMETHING and value is not None and value is not False:
                return each
            if name in _MAKES_ITEMS and value in ([], ()):
                return each
    return None


def _catches(node: ast.Try | ast.With, name: str) -> bool:
    """Return whether what a test raises is caught: by whoever waits for it, or runs it."""
    runs_it = any(isinstance(each, ast.Yield) for each in ast.walk(node)) or name in _RUNS_TESTS
    return runs_it and (
        bool(node.handlers) if isinstance(node, ast.Try) else "suppress" in ast.unparse(node)
    )


def _is_fate(target: ast.expr, statement: ast.stmt) -> bool:
    text = ast.unparse(target)
    if isinstance(target, ast.Attribute):
        is_option = "option" in text or "config" in text
        owner = ast.unparse(target.value)
        return owner not in ("self", "cls") and (
            target.attr in _FATES or target.attr == "items" or (is_option and target.attr in _CHOICES)
        )
    if isinstance(target, ast.Subscript) and "items" in text:
        value = getattr(statement, "value", None)
        only_orders = isinstance(value, ast.Call) and getattr(value.func, "id", "") in (
            "sorted",
            "reversed",
        )
        return not only_orders
    return False


def _leaves(call: ast.Call, node: Function) -> bool:
    """Return whether a mark that is added keeps a test from being judged."""
    names = {each.id for arg in call.args for each in ast.walk(arg) if isinstance(each, ast.Name)}
    texts = [ast.unparse(arg) for arg in call.args]
    texts += [
        ast.unparse(each.value)
        for each in ast.walk(node)
        if isinstance(each, ast.Assign) and names & {ast.unparse(target) for target in each.targets}
    ]
    return any("skip" in text or "xfail" in text for text in texts)
