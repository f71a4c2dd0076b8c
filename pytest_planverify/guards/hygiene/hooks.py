"""Hooks of pytest in files of the project: those that can make another verdict of a failing test."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.reading import dotted, shape
from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_planverify.guards.hygiene.reading import Function, Module

_COLLECTING = frozenset(
    [
        "pytest_collection_modifyitems",
        "pytest_ignore_collect",
        "pytest_collect_file",
        "pytest_pycollect_makeitem",
        "pytest_pycollect_makemodule",
        "pytest_collect_directory",
        "pytest_itemcollected",
        "pytest_collection",
        "pytest_collection_finish",
        "pytest_make_collect_report",
        "pytest_generate_tests",
        "pytest_deselected",
        "pytest_collectstart",
        "pytest_collectreport",
    ]
)
_JUDGING = frozenset(
    [
        "pytest_runtest_makereport",
        "pytest_runtest_logreport",
        "pytest_runtest_protocol",
        "pytest_runtest_call",
        "pytest_runtest_setup",
        "pytest_runtest_teardown",
        "pytest_pyfunc_call",
        "pytest_runtestloop",
        "pytest_sessionfinish",
        "pytest_report_teststatus",
        "pytest_unconfigure",
        "pytest_exception_interact",
        "pytest_cmdline_main",
        "pytest_report_from_serializable",
        "pytest_report_to_serializable",
        "pytest_runtest_logfinish",
        "pytest_terminal_summary",
        "pytest_load_initial_conftests",
        "pytest_cmdline_preparse",
        "pytest_cmdline_parse",
        "pytest_configure",
        "pytest_sessionstart",
        "pytest_fixture_setup",
        "pytest_fixture_post_finalizer",
        "pytest_internalerror",
        "pytest_keyboard_interrupt",
        "pytest_plugin_registered",
    ]
)
_QUIET = frozenset(
    {"pytest_configure", "pytest_sessionstart", "pytest_terminal_summary", "pytest_generate_tests"}
)
"""Every second project has them, for good reasons: only what they do is a sign."""

_NAMES = ("collect_ignore", "collect_ignore_glob")
_FATES = frozenset(
    {"outcome", "longrepr", "wasxfail", "excinfo", "exitstatus", "testsfailed", "testscollected"}
)
_OF_ITEMS = frozenset({"obj", "_obj", "runtest", "function"})
_SELECTS = frozenset(
    {"keyword", "markexpr", "deselect", "ignore", "ignore_glob", "collectonly", "lf", "last_failed", "args",
     "file_or_dir", "stepwise", "maxfail", "reruns", "runxfail", "pyargs"}
)  # fmt: skip
"""Options that say which tests are run."""
_GOOD = ("passed", "", "skipped", "xfailed")
_ENDS = frozenset({"os._exit", "sys.exit", "pytest.exit", "os.kill", "os.abort", "exit", "quit"})
_DROPS = frozenset({"remove", "clear", "pop"})


def compare_hooks(before: Module | None, now: Module) -> Iterator[Find]:
    """The hooks and lists of what is ignored that came or changed."""
    old = {name: shape(node) for name, node, _ in _hooks(before)} if before is not None else {}
    for name, node, owner in _hooks(now):
        if old.get(name) == shape(node):
            continue
        yield from _judged(name, node, owner, now)
    yield from _lists(before, now)


def _hooks(module: Module) -> Iterator[tuple[str, Function, str]]:
    for node, owner in module.members:
        if not isinstance(node, ast.ClassDef):
            name = _hook_name(node)
            if name in _COLLECTING | _JUDGING:
                yield name, node, owner.name if owner else ""


def _hook_name(node: Function) -> str:
    """``@hookimpl(specname=…)`` gives a hook another name."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            for each in decorator.keywords:
                if each.arg == "specname" and isinstance(fold(each.value), str):
                    return fold(each.value)
    return node.name


def _judged(name: str, node: Function, owner: str, module: Module) -> Iterator[Find]:
    for trick in _TRICKS:
        place = trick.applies(name, node, module)
        if place is not None:
            yield _find(trick.sign, f"The hook {name} {trick.said}", place, module)
            return
    if name not in _QUIET and name != "pytest_runtest_setup":
        yield _find("hook-added", f"The hook {name} was added or changed", node, module)
    elif name == "pytest_runtest_setup" and not owner:
        # Marks that need a service skip here; whether existing tests bear them only a run can tell.
        skips = _call_of(node, module, {"pytest.skip", "pytest.xfail"})
        if skips is not None:
            yield _find("hook-added", f"The hook {name} skips tests", skips, module)


def _lists(before: Module | None, now: Module) -> Iterator[Find]:
    had = {name: shape(value) for name, value in before.constants.items()} if before is not None else {}
    for site in now.sites:
        node = site.node
        if site.function is not None or not isinstance(
            node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr
        ):
            continue
        name = _list_name(node)
        if name == "pytest_plugins" and (node.value is None or had.get(name) != shape(node.value)):
            yield _find("plugin-added", "The list pytest_plugins was changed", node, now)
        elif (
            name in _NAMES
            and (node.value is None or had.get(name) != shape(node.value))
            and fold(node.value or ast.Constant(None)) not in ([], ())
        ):
            said = f"The list {name} keeps files from being collected"
            yield _find("test-deselected", said, node, now)


def _list_name(node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr) -> str:
    if isinstance(node, ast.Expr):
        call = node.value
        owner = (
            call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        )
        return owner.id if isinstance(owner, ast.Name) else ""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return next((each.id for each in targets if isinstance(each, ast.Name)), "")


def _changes_fate(name: str, node: Function, module: Module) -> ast.AST | None:
    """Assigns to an outcome, or forces a result."""
    for each in ast.walk(node):
        targets: list[ast.expr] = []
        if isinstance(each, ast.Assign):
            targets = each.targets
        elif isinstance(each, ast.AugAssign | ast.AnnAssign):
            targets = [each.target]
        elif isinstance(each, ast.Delete):
            targets = each.targets
        if any(isinstance(target, ast.Attribute) and target.attr in _FATES for target in targets):
            return each
        if any(_is_of_an_item(target) for target in targets):
            return each
        if isinstance(each, ast.Call):
            called = dotted(each.func, module.aliases)
            if called.rpartition(".")[2] in ("force_result", "force_exception", "from_result"):
                return each
            if called.rpartition(".")[2] in ("setattr", "__setattr__", "_replace", "replace"):
                values = [fold(arg) for arg in each.args]
                if any(isinstance(value, str) and value in _FATES for value in values) or any(
                    keyword.arg in _FATES for keyword in each.keywords
                ):
                    return each
    return None


def _is_of_an_item(target: ast.expr) -> bool:
    """``item.obj = …``: another function is run than the test."""
    return (
        isinstance(target, ast.Attribute)
        and target.attr in _OF_ITEMS
        and isinstance(target.value, ast.Name)
        and target.value.id not in ("self", "cls")
    )


def _selects(name: str, node: Function, module: Module) -> ast.AST | None:
    """Sets the options by which tests are chosen."""
    for each in ast.walk(node):
        targets = each.targets if isinstance(each, ast.Assign) else []
        if isinstance(each, ast.AugAssign):
            targets = [each.target]
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr in _SELECTS:
                owner = ast.unparse(target.value)
                if owner.endswith(("option", "config", "known_args_namespace", "early_config", "args")):
                    return each
        if (
            isinstance(each, ast.Call)
            and dotted(each.func, module.aliases) == "setattr"
            and len(each.args) > 1
        ) and fold(each.args[1]) in _SELECTS:
            return each
    return None


def _ends_process(name: str, node: Function, module: Module) -> ast.AST | None:
    return _call_of(node, module, _ENDS)


def _swallows(name: str, node: Function, module: Module) -> ast.AST | None:
    """A wrapper of the test's run that catches what it raises, or runs it itself."""
    if name not in (
        "pytest_runtest_call",
        "pytest_pyfunc_call",
        "pytest_runtest_protocol",
        "pytest_runtest_makereport",
    ):
        return None
    for each in ast.walk(node):
        if isinstance(each, ast.Try) and each.handlers:
            return each
        if isinstance(each, ast.With) and any("suppress" in ast.unparse(item) for item in each.items):
            return each
        if isinstance(each, ast.Return) and each.value is not None and name != "pytest_runtest_makereport":
            value = fold(each.value)
            if value in (True, 1):
                return each
    return None


def _decides_status(name: str, node: Function, module: Module) -> ast.AST | None:
    """Words for a report that are not those of its outcome."""
    if name == "pytest_report_teststatus":
        for each in ast.walk(node):
            value = each.value if isinstance(each, ast.Return) else None
            if isinstance(value, ast.Tuple) and value.elts and fold(value.elts[0]) in _GOOD:
                guard = ast.unparse(node)
                if "passed" not in guard.replace(ast.unparse(each), ""):
                    return each
    if name == "pytest_runtestloop" or name == "pytest_cmdline_main":
        return next(
            (each for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None),
            None,
        )
    return None


def _drops_tests(name: str, node: Function, module: Module) -> ast.AST | None:
    """Takes items out, or says that a file is to be ignored."""
    if name == "pytest_ignore_collect":
        return next(
            (
                each
                for each in ast.walk(node)
                if isinstance(each, ast.Return)
                and each.value is not None
                and fold(each.value) not in (None, False)
            ),
            None,
        )
    if name not in ("pytest_collection_modifyitems", "pytest_collection_finish", "pytest_itemcollected"):
        return None
    for each in ast.walk(node):
        if isinstance(each, ast.Delete):
            return each
        if isinstance(each, ast.Assign) and not _only_orders(each.value):
            if any(_is_slice_of_items(target) for target in each.targets):
                return each
            continue
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            owner = ast.unparse(each.func.value)
            if each.func.attr in _DROPS and "items" in owner:
                return each
            if each.func.attr == "pytest_deselected":
                return each
            if (
                each.func.attr == "add_marker"
                and _is_leaving(each, node)
                and not _asks_option(node, module)
            ):
                return each
    return None


def _makes_other_items(name: str, node: Function, module: Module) -> ast.AST | None:
    """Collects nothing where there is something."""
    if name not in (
        "pytest_pycollect_makeitem",
        "pytest_pycollect_makemodule",
        "pytest_collect_file",
        "pytest_make_collect_report",
    ):
        return None
    for each in ast.walk(node):
        if isinstance(each, ast.Return) and each.value is not None and fold(each.value) in ([], ()):
            return each
    return None


def _is_slice_of_items(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return "items" in ast.unparse(target.value)
    return isinstance(target, ast.Attribute) and target.attr == "items"


def _only_orders(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("sorted", "list", "reversed")


def _is_leaving(call: ast.Call, node: Function) -> bool:
    """Whether a mark that is added keeps a test from being judged."""
    said = " ".join(ast.unparse(arg) for arg in call.args)
    if any(word in said for word in ("skip", "xfail")):
        return True
    names = {each.id for arg in call.args for each in ast.walk(arg) if isinstance(each, ast.Name)}
    for each in ast.walk(node):
        if (
            isinstance(each, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id in names for t in each.targets)
            and any(word in ast.unparse(each.value) for word in ("skip", "xfail"))
        ):
            return True
    return False


def _asks_option(node: Function, module: Module) -> bool:
    """``--runslow`` and its like: an option that somebody declared, and a mark that tests bear."""
    said = ast.unparse(node)
    return ("getoption" in said or "config.option" in said) and (
        "keywords" in said or "get_closest_marker" in said
    )


def _call_of(node: ast.AST, module: Module, names: set[str] | frozenset[str]) -> ast.AST | None:
    return next(
        (
            each
            for each in ast.walk(node)
            if isinstance(each, ast.Call) and dotted(each.func, module.aliases) in names
        ),
        None,
    )


def _find(sign: str, said: str, node: ast.AST, module: Module) -> Find:
    return Find(
        sign=sign,
        message=said,
        path=module.path,
        line=getattr(node, "lineno", None),
        after=ast.unparse(node),
    )


@dataclass(frozen=True, slots=True)
class _Trick:
    sign: str
    said: str
    applies: Callable[[str, Function, Module], ast.AST | None]


_TRICKS = (
    _Trick("outcome-hook", "changes an outcome", _changes_fate),
    _Trick("outcome-hook", "ends the process", _ends_process),
    _Trick("test-deselected", "says which tests are run", _selects),
    _Trick("outcome-hook", "swallows what tests raise", _swallows),
    _Trick("outcome-hook", "decides what is reported", _decides_status),
    _Trick("test-deselected", "keeps tests from running", _drops_tests),
    _Trick("test-deselected", "collects nothing where there are tests", _makes_other_items),
)
