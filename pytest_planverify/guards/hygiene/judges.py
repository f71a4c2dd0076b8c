"""The files that judge: what a change of tests, conftests, test support and test data takes from them."""

from __future__ import annotations

import ast
import json
import posixpath
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from planner.model.baseline import JudgeKind
from pytest_planverify.guards.hygiene.changes import PYTHON_JUDGES, SignalFinding
from pytest_planverify.guards.hygiene.grants import Permission
from pytest_planverify.guards.hygiene.source import (
    FUNCTIONS,
    UNKNOWN,
    Function,
    dotted,
    fold,
    name_of,
    shape,
    truth,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_planverify.guards.hygiene.changes import TreeDifferences
    from pytest_planverify.guards.hygiene.source import Module

_CHECK_CALL = re.compile(
    r"(^|\.|_)(assert\w*|fail\w*|raises|warns|check\w*|verify\w*|expect\w*|deprecated_call)$"
)
_SKIPS = re.compile(r"(^|\.)(skip|skipif|skipIf|skipUnless|skipTest|SkipTest|importorskip)$")
_EXPECTS_FAILURE = re.compile(r"(^|\.)(xfail|expectedFailure)$")
_CATCHES_FAILURES = frozenset({"", "AssertionError", "Exception", "BaseException"})
_SPEAKS_TO_PYTEST = re.compile(
    r"(pytest|setup|teardown|setUp|tearDown|asyncSetUp|load_tests|collect_ignore|__test__).*"
)
_PATCHES = re.compile(r"monkeypatch|patch|setattr|setitem|\.__dict__|sys\.modules")
_HELPERS = (".", "tests", "test_", "conftest", "helpers")
"""What the modules of helpers begin with, which may assert."""
_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


def judge_findings(changes: TreeDifferences) -> Iterator[SignalFinding]:
    """Yield what the changed judges lost, and those that are other ones without permission."""
    tests = {
        path: (_read_tests(changes.module(path, now=False)), _read_tests(changes.module(path, now=True)))
        for path in changes.of_kind(*PYTHON_JUDGES)
        if path.endswith(".py")
    }
    added = frozenset(
        text
        for path, (old, new) in tests.items()
        for name, test in new.items()
        if test.is_collected and name not in old and changes.kind(path) is JudgeKind.TEST
        for text in (test.node.name, test.body)
    )
    for path in changes.of_kind(JudgeKind.FIXTURE, JudgeKind.CONTRACT, *PYTHON_JUDGES):
        if path in tests:
            found = list(_python_findings(changes, path, *tests[path], added))
            if not found and changes.grants.permission(path) is not Permission.GRANTED:
                found = list(_difference(changes, path))
            yield from found
        if path not in changes.new:
            contents = {changes.new.get(each) for each in changes.changed - changes.old.keys()}
            held = tests[path][0].values() if path in tests else ()
            is_elsewhere = held and all({each.node.name, each.body} & added for each in held)
            if changes.old[path] not in contents and not is_elsewhere:
                yield SignalFinding(sign="judge-removed", message=f"{path} is gone", path=path)
        elif path not in tests and path in changes.old:
            yield from _data_findings(changes, path)


# -- what tests lost ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _TestUnit:
    """One test function, and what it asks for."""

    node: Function
    nodeid: str
    body: str
    """Its shape without its name."""
    is_collected: bool
    skips: frozenset[str]
    xfails: frozenset[str]
    checks: Counter[str]
    void_checks: frozenset[str]
    """Those that always hold, or that nothing reaches."""
    swallowers: frozenset[str]
    """What keeps failures of its checks from being seen."""


def _python_findings(
    changes: TreeDifferences,
    path: str,
    old: dict[str, _TestUnit],
    new: dict[str, _TestUnit],
    added: frozenset[str],
) -> Iterator[SignalFinding]:
    before, now = changes.module(path, now=False), changes.module(path, now=True)
    if now is None and path in changes.new:
        yield SignalFinding(sign="judge-unreadable", message=f"{path} can no longer be parsed", path=path)
        return
    if now is not None or changes.kind(path) is JudgeKind.TEST:
        gone = {name for name, test in old.items() if test.is_collected and name not in new}
        is_rewritten = changes.grants.permission(path) is Permission.GRANTED and len(added) >= 2 * len(gone)
        hidden = {test.body for test in new.values() if not test.is_collected}
        for name, test in old.items():
            twin = new.get(name)
            if twin is not None and (twin.is_collected or not test.is_collected):
                yield from _losses(path, test, twin, now)
            elif test.is_collected and (twin is not None or test.body in hidden):
                said = f"The test {name} is no longer collected"
                yield SignalFinding(sign="test-deselected", message=said, path=path, nodeid=test.nodeid)
            elif test.is_collected and not (is_rewritten or {test.node.name, test.body} & added):
                said = f"The test {name} is gone"
                yield SignalFinding(sign="test-deleted", message=said, path=path, nodeid=test.nodeid)
    if now is not None:
        yield from _hook_findings(before, now)
        if changes.kind(path) is JudgeKind.CONFTEST:
            yield from _fixture_findings(changes, before, now)


def _losses(path: str, was: _TestUnit, unit: _TestUnit, now: Module | None) -> Iterator[SignalFinding]:
    skips, xfails = unit.skips - was.skips, unit.xfails - was.xfails
    swallowers, void = unit.swallowers - was.swallowers, unit.void_checks - was.void_checks
    gone, came = was.checks - unit.checks, unit.checks - was.checks
    asks_nothing = bool(was.checks) and not unit.checks and not _calls_a_check(unit.node, now)
    losses: tuple[tuple[str, str, Iterable[str], bool], ...] = (
        ("test-skipped", "is skipped", skips, bool(skips)),
        ("test-xfailed", "is expected to fail", xfails, bool(xfails)),
        ("assertion-swallowed", "catches its own failure", swallowers, bool(swallowers)),
        ("assertion-void", "asserts what always holds", void, bool(void)),
        ("assertion-void", "asserts nothing any more", (), asks_nothing and not void),
        ("assertions-fewer", "asserts less", came, came.total() < gone.total()),
        ("assertion-lost", "asserts something else", came, 0 < gone.total() <= came.total()),
    )
    for sign, said, after, is_lost in losses:
        if is_lost:
            before = min(gone) if sign in ("assertions-fewer", "assertion-lost") else None
            yield SignalFinding(
                sign=sign, message=f"{unit.node.name} {said}", path=path, line=unit.node.lineno,
                nodeid=was.nodeid, before=before, after=min(after, default=None),
            )  # fmt: skip


def _read_tests(module: Module | None) -> dict[str, _TestUnit]:
    """Return the test functions of a module, by their names with those of their classes."""
    return {} if module is None else dict(_tests_of(module, module.tree.body, "", True, frozenset()))


def _tests_of(
    module: Module, body: list[ast.stmt], owner: str, collected: bool, inherited: frozenset[str]
) -> Iterator[tuple[str, _TestUnit]]:
    """Yield the tests below a module or a class; later ones of a name hide those before."""
    last = {each.name: each for each in body if isinstance(each, _DEFINITIONS)}
    hidden = _hidden_names(body)
    # What a module or a class says of skipping outside of its definitions holds for all its tests.
    inherited |= _marks([each for each in body if not isinstance(each, (*_DEFINITIONS, *_IMPORTS))], module)
    for each in _definitions(body):
        counts = collected and last.get(each.name, each) is each and not hidden & {each.name, "__test__"}
        name = f"{owner}::{each.name}" if owner else each.name
        marks = inherited | _marks(each.decorator_list, module)
        if isinstance(each, ast.ClassDef):
            if any(isinstance(one, FUNCTIONS) and "test" in one.name for one in each.body):
                is_case = each.name.startswith("Test") or bool(each.bases)
                yield from _tests_of(module, each.body, name, counts and is_case, marks)
        elif "test" in each.name and not _fixture_decorator(each, module):
            marks |= _marks(each.body, module)
            checks, unreached = list(_checks(each, module)), _unreached(each)
            void = {text for node, text in checks if node in unreached or _always_holds(node)}
            unit = _TestUnit(
                node=each,
                nodeid=f"{module.path}::{name}",
                body=shape(ast.Module(body=each.body, type_ignores=[])),
                is_collected=counts and each.name.startswith("test"),
                skips=frozenset(text for text in marks if _SKIPS.search(text.partition("(")[0])),
                xfails=frozenset(text for text in marks if _EXPECTS_FAILURE.search(text.partition("(")[0])),
                checks=Counter(text for _, text in checks if text not in void),
                void_checks=frozenset(void),
                swallowers=frozenset(_swallowers(each, module)),
            )
            yield name, unit


def _definitions(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    for statement in body:
        if isinstance(statement, _DEFINITIONS):
            yield statement
        elif isinstance(statement, ast.Try | ast.With) or (
            isinstance(statement, ast.If) and truth(statement.test) is not False
        ):
            yield from _definitions([*statement.body, *getattr(statement, "orelse", [])])


def _hidden_names(body: list[ast.stmt]) -> set[str]:
    """Return names that are deleted, bound again, or told to be no test; ``__test__`` alone means all."""
    defined = {each.name for each in body if isinstance(each, _DEFINITIONS)}
    targets = {
        ast.unparse(target)
        for each in body
        if isinstance(each, ast.Assign | ast.Delete)
        for target in each.targets
        if isinstance(each, ast.Delete)
        or not ast.unparse(target).endswith("__test__")
        or not fold(each.value)
    }
    return {
        text.removesuffix(".__test__") for text in targets if text in defined or text.endswith("__test__")
    }


def _marks(nodes: Iterable[ast.AST], module: Module) -> frozenset[str]:
    """Return what decorators and statements say of skipping and failing, marks of parameters included."""
    return frozenset(
        f"{meaning}({ast.unparse(node)[:200]})"
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute | ast.Name)
        and (meaning := dotted(each, module.aliases))
        and (_SKIPS.search(meaning) or _EXPECTS_FAILURE.search(meaning))
    )


def _checks(node: ast.AST, module: Module) -> Iterator[tuple[ast.AST, str]]:
    for each in ast.walk(node):
        if isinstance(each, ast.Assert):
            yield each, ast.unparse(each.test)
        elif isinstance(each, ast.Call) and _CHECK_CALL.search(dotted(each.func, module.aliases)):
            yield each, ast.unparse(each)


def _always_holds(check: ast.AST) -> bool:
    if isinstance(check, ast.Assert):
        return truth(check.test) is True
    if not isinstance(check, ast.Call) or not check.args:
        return False
    first, *others = (ast.unparse(each) for each in check.args)
    return (name_of(check.func) == "assertTrue" and truth(check.args[0]) is True) or (
        name_of(check.func) == "assertEqual" and others[:1] == [first]
    )


def _unreached(function: Function) -> set[ast.AST]:
    """Return what follows an end of the function."""
    ends = [at for at, each in enumerate(function.body) if isinstance(each, ast.Return | ast.Raise)]
    after = function.body[ends[0] + 1 :] if ends else []
    return {each for statement in after for each in ast.walk(statement)}


def _calls_a_check(node: Function, module: Module | None) -> bool:
    """Return whether it calls a helper that asserts, or one of another test module."""
    if module is None:
        return False
    functions = (each for each in ast.walk(module.tree) if isinstance(each, FUNCTIONS))
    helpers = {each.name for each in functions if any(True for _ in _checks(each, module))}
    return any(
        name_of(each.func) in helpers or dotted(each.func, module.aliases).startswith(_HELPERS)
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
    )


def _swallowers(function: Function, module: Module) -> Iterator[str]:
    """Yield the handlers and context managers that catch a failing check and raise nothing for it."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Try | ast.With):
            continue
        holds_check = any(True for each in node.body for _ in _checks(each, module))
        for handler in node.handlers if holds_check and isinstance(node, ast.Try) else ():
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            fails = any(isinstance(each, ast.Raise) for each in ast.walk(handler))
            fails = fails or any(True for _ in _checks(handler, module))
            if not fails and _CATCHES_FAILURES & {dotted(kind, module.aliases) for kind in kinds}:
                yield f"except {ast.unparse(handler.type) if handler.type else ''}"
        for item in node.items if holds_check and isinstance(node, ast.With) else ():
            call = item.context_expr
            names = {dotted(each, module.aliases) for each in getattr(call, "args", ())}
            suppresses = name_of(getattr(call, "func", call)) in ("suppress", "raises", "assertRaises")
            if suppresses and _CATCHES_FAILURES & names:
                yield ast.unparse(call)


# -- hooks and fixtures ------------------------------------------------------------------------------

_FATES = (
    "outcome|longrepr|wasxfail|excinfo|exitstatus|testsfailed|testscollected|_?obj|runtest|function|items"
)
"""Attributes of reports, calls, sessions and items that decide a verdict."""
_CHOICES = "keyword|markexpr|deselect|ignore|ignore_glob|collectonly|lf|args|file_or_dir|maxfail|runxfail"
"""Options by which tests are chosen."""
_DECIDES = re.compile(
    rf"(?<!self)(?<!cls)\.({_FATES}) = |\b(option|config)\.({_CHOICES}) = "
    rf"|(setattr|__setattr__)\(.*'({_FATES}|{_CHOICES})'|\b_?replace\(.*\b({_FATES})="
    r"|force_result|force_exception|from_result|pytest_deselected|pytest\.exit|os\.(_exit|kill|abort)"
    r"|\bdel items\b|\bitems\.(remove|clear|pop)\(|\bitems\[.*\] = (?!sorted|reversed)"
)
_LEAVES_OUT = re.compile(r"add_marker\(.*|\w+ = .*mark\.(skip|xfail)")
_RUNS_TESTS = ("pytest_runtest_call", "pytest_pyfunc_call", "pytest_runtest_protocol")
_ANSWERS = frozenset(
    {*_RUNS_TESTS, "pytest_ignore_collect", "pytest_runtestloop", "pytest_cmdline_main",
     "pytest_report_teststatus", "pytest_pycollect_makeitem", "pytest_pycollect_makemodule",
     "pytest_collect_file"}
)  # fmt: skip
"""Hooks whose constant answer, where there is one, decides."""
_LISTS = {
    "collect_ignore": ("test-deselected", "A list keeps files from being collected"),
    "pytest_plugins": ("plugin-added", "The list pytest_plugins was changed"),
}


def _hook_findings(before: Module | None, now: Module) -> Iterator[SignalFinding]:
    """Yield the hooks and the lists of ignored files that came or changed, where they decide verdicts."""
    had = before.statements if before is not None else frozenset[str]()
    for node in ast.walk(now.tree):
        if not isinstance(node, FUNCTIONS) or shape(node) in had:
            continue
        specified = re.search(r"specname='(\w+)'", " ".join(map(ast.unparse, node.decorator_list)))
        name = specified[1] if specified else node.name
        place = _deciding_statement(name, node) if name.startswith("pytest_") else None
        if place is not None:
            said = f"The hook {name} changes outcomes, or which tests are run"
            line, after = getattr(place, "lineno", node.lineno), ast.unparse(place)
            yield SignalFinding(sign="outcome-hook", message=said, path=now.path, line=line, after=after)
    for node in now.tree.body:
        text = ast.unparse(node)
        for start, (sign, said) in _LISTS.items():
            if text.startswith(start) and not text.endswith(("= []", "= ()")) and shape(node) not in had:
                yield SignalFinding(sign=sign, message=said, path=now.path, line=node.lineno, after=text)


def _deciding_statement(name: str, hook: Function) -> ast.stmt | None:
    """Return the statement of a hook that decides something; other hooks listen, order or configure."""
    by_option = "getoption" in ast.unparse(hook)  # whoever runs the tests decides
    for node in ast.walk(hook):
        if not isinstance(node, ast.stmt) or node is hook:
            continue
        if isinstance(node, ast.Try | ast.With):
            # What a test raises is caught by whoever waits for it, or runs it.
            waits = name in _RUNS_TESTS or any(isinstance(each, ast.Yield) for each in ast.walk(node))
            catches = node.handlers if isinstance(node, ast.Try) else "suppress" in ast.unparse(node)
            if waits and catches and name in (*_RUNS_TESTS, "pytest_runtest_makereport"):
                return node
        elif (
            isinstance(node, ast.Return)
            and name in _ANSWERS
            and fold(node.value) not in (None, False, UNKNOWN)
        ):
            return node
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete | ast.Expr):
            text = ast.unparse(node)
            adds_skip = "add_marker(" in text and re.search(r"\b(skip|xfail)\b", ast.unparse(hook))
            if _DECIDES.search(text) or (adds_skip and not by_option):
                return node
    return None


def _fixture_findings(
    changes: TreeDifferences, before: Module | None, now: Module
) -> Iterator[SignalFinding]:
    """Yield fixtures of a conftest that change what tests get that nobody may change."""
    folder = posixpath.dirname(now.path)
    owners = set(changes.grants.owners(now.path))
    serves_protected = any(
        changes.grants.permission(path) is not Permission.GRANTED
        or not owners & set(changes.grants.owners(path))
        for path in changes.old
        if changes.kind(path) is JudgeKind.TEST and (not folder or path.startswith(f"{folder}/"))
    )
    above = [
        changes.module(path, now=False)
        for path in changes.old
        if posixpath.basename(path) == "conftest.py"
        and f"{folder}/".startswith(f"{posixpath.dirname(path)}/".lstrip("/"))
    ]
    hidden = {node.name for module in (before, *above) for node in _fixtures(module)}
    had = {shape(node) for node in _fixtures(before)}
    for node in _fixtures(now) if serves_protected else ():
        is_for_all = "autouse=True" in _fixture_decorator(node, now) and _PATCHES.search(ast.unparse(node))
        if shape(node) not in had and (node.name in hidden or is_for_all):
            how = "is another one for tests that may not be changed"
            how = how if node.name in hidden else "patches, and every test gets it"
            said = f"The fixture {node.name} {how}"
            yield SignalFinding(
                sign="fixture-overridden",
                message=said,
                path=now.path,
                line=node.lineno,
                after=now.line(node),
            )


def _fixtures(module: Module | None) -> Iterator[Function]:
    for node in module.tree.body if module is not None else ():
        if isinstance(node, FUNCTIONS) and module is not None and _fixture_decorator(node, module):
            yield node


def _fixture_decorator(node: Function, module: Module) -> str:
    """Return the decorator that makes a function a fixture; empty where none does."""
    for each in node.decorator_list:
        called = each.func if isinstance(each, ast.Call) else each
        if dotted(called, module.aliases).endswith("fixture"):
            return ast.unparse(each)
    return ""


# -- mere differences --------------------------------------------------------------------------------


def _difference(changes: TreeDifferences, path: str) -> Iterator[SignalFinding]:
    """Yield a judge that does something else without permission, where nothing says what it lost."""
    before, now = changes.module(path, now=False), changes.module(path, now=True)
    if now is None:
        return
    if path not in changes.old:
        is_default = changes.grants.permission(path) is Permission.DEFAULT
        if not is_default and changes.kind(path) is not JudgeKind.TEST:  # new tests take nothing away
            said = f"{path} was added without permission"
            yield SignalFinding(sign="judge-changed", message=said, path=path)
    elif before is None or not _only_adds(before.tree.body, now.tree.body):
        yield _changed(changes, path, "judge-changed", "was changed without permission")


def _changed(changes: TreeDifferences, path: str, sign: str, said: str) -> SignalFinding:
    """Return a finding with the first line that differs: what it was, what it is."""
    old, new = (
        (text.read(path) or b"").decode("utf-8", "replace").splitlines()
        for text in (changes.before, changes.now)
    )
    shared = min(len(old), len(new))
    at = next((at for at in range(shared) if old[at] != new[at]), shared)
    before, after = "".join(old[at : at + 1]), "".join(new[at : at + 1])
    return SignalFinding(
        sign=sign, message=f"{path} {said}", path=path, line=at + 1, before=before, after=after
    )  # fmt: skip


def _only_adds(before: list[ast.stmt], now: list[ast.stmt]) -> bool:
    """Return whether all that was there is there in its order, and what came binds new names only."""
    then, imported = _imported(before), _imported(now)
    bound = {name for each in before for name in _names_bound(each)}
    if any(name in bound or then.get(name, source) != source for name, source in imported.items()):
        return False
    waiting = [each for each in before if not _is_quiet(each)]
    for node in now:
        if _is_quiet(node):
            continue
        if waiting and (shape(waiting[0]) == shape(node) or _extends(waiting[0], node)):
            waiting.pop(0)
            continue
        names = set(_names_bound(node))
        if not names or names & (bound | then.keys()) or any(map(_SPEAKS_TO_PYTEST.fullmatch, names)):
            return False
        if "autouse" in ast.unparse(node):
            return False
    return not waiting


def _extends(was: ast.stmt, node: ast.stmt) -> bool:
    """Return whether a class is the same but for what was added to it."""
    if not (isinstance(was, ast.ClassDef) and isinstance(node, ast.ClassDef) and was.name == node.name):
        return False
    heads = [[*map(shape, (*each.bases, *each.keywords, *each.decorator_list))] for each in (was, node)]
    return heads[0] == heads[1] and _only_adds(was.body, node.body)


def _imported(body: list[ast.stmt]) -> dict[str, str]:
    """Return the names that statements import, with what each stands for."""
    found: dict[str, str] = {}
    for node in body:
        if isinstance(node, _IMPORTS):
            source = ast.unparse(node).partition("import")[0]
            for name in node.names:
                bound = (name.asname or name.name).partition(".")[0]
                found[bound if name.asname or source else name.name] = f"{source} {name.name}"
    return found


def _is_quiet(node: ast.stmt) -> bool:
    """Return whether a statement is an import or a docstring."""
    return isinstance(node, _IMPORTS) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _names_bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, _DEFINITIONS):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (each.id for each in targets if isinstance(each, ast.Name))


# -- data --------------------------------------------------------------------------------------------


def _data_findings(changes: TreeDifferences, path: str) -> Iterator[SignalFinding]:
    old, new = changes.before.read(path), changes.now.read(path)
    if old is not None and new is not None:
        before, now = _parsed(path, old), _parsed(path, new)
        is_default = changes.grants.permission(path) is Permission.DEFAULT
        if before == now or (is_default and _says_more(before, now)):
            return
    yield _changed(changes, path, "data-changed", "says something else")


def _parsed(path: str, content: bytes) -> Any:
    import yaml

    try:
        text = content.decode("utf-8-sig")
        if path.endswith(".json"):
            return json.loads(text)
        if path.endswith((".yaml", ".yml")):
            return yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError):
        return content
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")


def _says_more(old: Any, new: Any) -> bool:
    """Return whether all that was said is said still."""
    if isinstance(old, dict) and isinstance(new, dict):
        was, now = cast("dict[Any, Any]", old), cast("dict[Any, Any]", new)
        return all(key in now and _says_more(value, now[key]) for key, value in was.items())
    if isinstance(old, list) and isinstance(new, list):
        rest = iter(cast("list[Any]", new))
        return all(any(each == one for one in rest) for each in cast("list[Any]", old))
    return bool(old == new)
