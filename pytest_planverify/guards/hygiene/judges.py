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
from pytest_planverify.guards.hygiene.grants import Permission
from pytest_planverify.guards.hygiene.hooks import hook_findings
from pytest_planverify.guards.hygiene.signals import SignalFinding
from pytest_planverify.guards.hygiene.source import (
    FUNCTIONS,
    Function,
    dotted,
    is_always_false,
    is_always_true,
    name_of,
    shape,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_planverify.guards.hygiene.changes import TreeDifferences
    from pytest_planverify.guards.hygiene.source import Module

PYTHON_JUDGES = (JudgeKind.TEST, JudgeKind.CONFTEST, JudgeKind.TEST_SUPPORT)
_DATA = (JudgeKind.FIXTURE, JudgeKind.CONTRACT)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TestUnit:
    """One test function, and what it asks for."""

    __test__ = False

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


def judge_findings(changes: TreeDifferences) -> Iterator[SignalFinding]:
    """Yield what the changed judges lost, and those that are other ones without permission."""
    added = _added_tests(changes)
    for path in changes.of_kind(*_DATA, *PYTHON_JUDGES):
        is_python = path.endswith(".py") and changes.kind(path) in PYTHON_JUDGES
        if is_python:
            found = list(_python_findings(changes, path, added))
            if not found and changes.grants.permission(path) is not Permission.GRANTED:
                found = list(_difference(changes, path))
            yield from found
        if path not in changes.new:
            if not _was_moved(changes, path, added):
                yield SignalFinding(sign="judge-removed", message=f"{path} is gone", path=path)
        elif not is_python and path in changes.old:
            yield from _data_findings(changes, path)


def read_tests(module: Module | None) -> dict[str, TestUnit]:
    """Return the test functions of a module, by their names with those of their classes."""
    return {} if module is None else dict(_tests_of(module, module.tree.body, "", True, frozenset()))


def _added_tests(changes: TreeDifferences) -> frozenset[str]:
    """Return the names and the bodies of collected tests that were not there before."""
    return frozenset(
        text
        for path in changes.of_kind(JudgeKind.TEST)
        for name, test in read_tests(changes.module(path, now=True)).items()
        if test.is_collected and name not in read_tests(changes.module(path, now=False))
        for text in (test.node.name, test.body)
    )


def _was_moved(changes: TreeDifferences, path: str, added: frozenset[str]) -> bool:
    """Return whether a file that is gone stands elsewhere, or all its tests do."""
    if changes.old[path] in {changes.new.get(each) for each in changes.changed - changes.old.keys()}:
        return True
    tests = read_tests(changes.module(path, now=False)).values()
    return bool(tests) and all({each.node.name, each.body} & added for each in tests)


# -- what tests lost ---------------------------------------------------------------------------------


def _python_findings(changes: TreeDifferences, path: str, added: frozenset[str]) -> Iterator[SignalFinding]:
    before, now = changes.module(path, now=False), changes.module(path, now=True)
    if now is None and path in changes.new:
        yield SignalFinding(sign="judge-unreadable", message=f"{path} can no longer be parsed", path=path)
        return
    if now is not None or changes.kind(path) is JudgeKind.TEST:
        old, new = read_tests(before), read_tests(now)
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
        yield from hook_findings(before, now)
        if changes.kind(path) is JudgeKind.CONFTEST and _serves_protected_tests(changes, path):
            yield from _fixture_findings(changes, before, now)


def _losses(path: str, was: TestUnit, unit: TestUnit, now: Module | None) -> Iterator[SignalFinding]:
    name = unit.node.name

    def lost(sign: str, said: str, after: Iterable[str] = (), before: str | None = None) -> SignalFinding:
        return SignalFinding(
            sign=sign, message=f"{name} {said}", path=path, line=unit.node.lineno, nodeid=was.nodeid,
            before=before, after=min(after, default=None),
        )  # fmt: skip

    if new := unit.skips - was.skips:
        yield lost("test-skipped", "is skipped", new)
    if new := unit.xfails - was.xfails:
        yield lost("test-xfailed", "is expected to fail", new)
    if new := unit.swallowers - was.swallowers:
        yield lost("assertion-swallowed", "catches its own failure", new)
    if new := unit.void_checks - was.void_checks:
        yield lost("assertion-void", "asserts what always holds", new)
    elif was.checks and not unit.checks and not _calls_a_check(unit.node, now):
        yield lost("assertion-void", "asserts nothing any more")
    gone, came = was.checks - unit.checks, unit.checks - was.checks
    if gone and came.total() < gone.total():
        yield lost("assertions-fewer", "asserts less", came, min(gone))
    elif gone:
        yield lost("assertion-lost", "asserts something else", came, min(gone))


def _tests_of(
    module: Module, body: list[ast.stmt], owner: str, collected: bool, inherited: frozenset[str]
) -> Iterator[tuple[str, TestUnit]]:
    """Yield the tests below a module or a class; later ones of a name hide those before."""
    last = {each.name: each for each in body if isinstance(each, _DEFINITIONS)}
    hidden = _hidden_names(body)
    inherited |= _marks_of_body(module, body)
    for each in _definitions(body):
        counts = collected and last.get(each.name, each) is each and not hidden & {each.name, "__test__"}
        name = f"{owner}::{each.name}" if owner else each.name
        marks = inherited | _marks(each.decorator_list, module)
        if isinstance(each, ast.ClassDef):
            if any(isinstance(one, FUNCTIONS) and "test" in one.name for one in each.body):
                is_case = each.name.startswith("Test") or bool(each.bases)
                yield from _tests_of(module, each.body, name, counts and is_case, marks)
        elif "test" in each.name and not _fixture_decorator(each, module):
            marks |= _marks([one for one in ast.walk(each) if isinstance(one, ast.Call)], module)
            checks, dead = list(_checks(each, module)), _dead_nodes(each)
            void = {text for node, text in checks if node in dead or _always_holds(node)}
            yield (
                name,
                TestUnit(
                    node=each,
                    nodeid=f"{module.path}::{name}",
                    body=shape(ast.Module(body=each.body, type_ignores=[])),
                    is_collected=counts and each.name.startswith("test"),
                    skips=frozenset(text for text in marks if _SKIPS.search(text.partition("(")[0])),
                    xfails=frozenset(
                        text for text in marks if _EXPECTS_FAILURE.search(text.partition("(")[0])
                    ),
                    checks=Counter(text for _, text in checks if text not in void),
                    void_checks=frozenset(void),
                    swallowers=frozenset(_swallowers(each, module)),
                ),
            )


def _definitions(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    for statement in body:
        if isinstance(statement, _DEFINITIONS):
            yield statement
        elif isinstance(statement, ast.Try | ast.With) or (
            isinstance(statement, ast.If) and not is_always_false(statement.test)
        ):
            yield from _definitions([*statement.body, *getattr(statement, "orelse", [])])


def _hidden_names(body: list[ast.stmt]) -> set[str]:
    """Return names that are deleted, bound again, or told to be no test; ``__test__`` alone means all."""
    found: set[str] = set()
    defined: set[str] = set()
    for each in body:
        if isinstance(each, _DEFINITIONS):
            defined.add(each.name)
        for target in each.targets if isinstance(each, ast.Assign | ast.Delete) else ():
            text = ast.unparse(target)
            if isinstance(each, ast.Assign) and text.endswith("__test__") and is_always_false(each.value):
                found.add(text.removesuffix(".__test__"))
            elif text in defined:
                found.add(text)
    return found


def _marks(nodes: Iterable[ast.expr | None], module: Module) -> frozenset[str]:
    """Return what decorators, marks or calls say of skipping, marks of single parameters included."""
    return frozenset(
        f"{meaning}({ast.unparse(node)[:200]})"
        for node in nodes
        if node is not None
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute | ast.Name)
        and (meaning := dotted(each, module.aliases))
        and (_SKIPS.search(meaning) or _EXPECTS_FAILURE.search(meaning))
    )


def _marks_of_body(module: Module, body: list[ast.stmt]) -> frozenset[str]:
    """Return the marks and the skipping calls of a module or class, which hold for all its tests."""
    nodes: list[ast.expr | None] = []
    for node in body:
        if isinstance(node, ast.Assign | ast.Expr):
            nodes.append(node.value)
        elif isinstance(node, ast.If | ast.Try | ast.Raise):
            nodes += [each for each in ast.walk(node) if isinstance(each, ast.Call)]
            nodes += [each.exc for each in ast.walk(node) if isinstance(each, ast.Raise)]
    return _marks(nodes, module)


def _checks(node: ast.AST, module: Module) -> Iterator[tuple[ast.AST, str]]:
    for each in ast.walk(node):
        if isinstance(each, ast.Assert):
            yield each, ast.unparse(each.test)
        elif isinstance(each, ast.Call) and _CHECK_CALL.search(dotted(each.func, module.aliases)):
            yield each, ast.unparse(each)


def _always_holds(check: ast.AST) -> bool:
    if isinstance(check, ast.Assert):
        return is_always_true(check.test)
    if not isinstance(check, ast.Call) or not check.args:
        return False
    if name_of(check.func) == "assertTrue":
        return is_always_true(check.args[0])
    first, second = ast.unparse(check.args[0]), ast.unparse(check.args[-1])
    return name_of(check.func) == "assertEqual" and len(check.args) == 2 and first == second


def _dead_nodes(function: Function) -> set[ast.AST]:
    """Return what is never run: after an end, in a branch never taken, in a function never used."""
    roots: list[ast.AST] = []
    used = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}
    for each in ast.walk(function):
        if isinstance(each, ast.If | ast.While) and is_always_false(each.test):
            roots += each.body
        elif isinstance(each, FUNCTIONS) and each is not function:
            roots += [] if each.name in used or each.decorator_list else [each]
        for name in ("body", "orelse", "finalbody"):
            block: Any = getattr(each, name, None)
            if isinstance(block, list):
                statements = cast("list[ast.stmt]", block)
                ends = (ast.Return, ast.Raise, ast.Continue, ast.Break)
                end = next(
                    (at for at, one in enumerate(statements) if isinstance(one, ends)), len(statements)
                )
                roots += statements[end + 1 :]
    return {each for root in roots for each in ast.walk(root)}


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
    for node in ast.walk(function):
        if isinstance(node, ast.Try):
            for handler in node.handlers if _holds_check(node.body, module) else ():
                kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                is_raised = any(isinstance(each, ast.Raise) for each in ast.walk(handler))
                if (
                    not is_raised
                    and _CATCHES_FAILURES & {dotted(kind, module.aliases) for kind in kinds}
                    and not _holds_check(handler.body, module)
                ):
                    yield f"except {ast.unparse(handler.type) if handler.type else ''}"
            if any(isinstance(each, ast.Return) for each in node.finalbody):
                yield "finally: return"
        elif isinstance(node, ast.With) and _holds_check(node.body, module):
            for call in (item.context_expr for item in node.items):
                names = [dotted(each, module.aliases) for each in getattr(call, "args", ())]
                suppresses = name_of(getattr(call, "func", call)) in ("suppress", "raises", "assertRaises")
                if suppresses and _CATCHES_FAILURES.intersection(names):
                    yield ast.unparse(call)


def _holds_check(body: list[ast.stmt], module: Module) -> bool:
    return any(True for each in body for _ in _checks(each, module))


# -- fixtures ----------------------------------------------------------------------------------------


def _fixture_findings(
    changes: TreeDifferences, before: Module | None, now: Module
) -> Iterator[SignalFinding]:
    """Yield fixtures of a conftest that change what tests get that nobody may change."""
    folder = f"{posixpath.dirname(now.path)}/"
    above = [
        changes.module(path, now=False)
        for path in changes.old
        if posixpath.basename(path) == "conftest.py"
        and folder.startswith(f"{posixpath.dirname(path)}/".lstrip("/"))
    ]
    hidden = {node.name for module in (before, *above) for node in _fixtures(module)}
    had = {shape(node) for node in _fixtures(before)}
    for node in _fixtures(now):
        is_for_all = "autouse=True" in _fixture_decorator(node, now) and _PATCHES.search(ast.unparse(node))
        if shape(node) in had or not (node.name in hidden or is_for_all):
            continue
        how = "is another one for tests that may not be changed"
        said = (
            f"The fixture {node.name} {how if node.name in hidden else ', which every test gets, patches'}"
        )
        yield SignalFinding(
            sign="fixture-overridden", message=said, path=now.path, line=node.lineno, after=now.line(node)
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


def _serves_protected_tests(changes: TreeDifferences, path: str) -> bool:
    folder = posixpath.dirname(path)
    owners = set(changes.grants.owners(path))
    return any(
        changes.grants.permission(other) is not Permission.GRANTED
        or not owners & set(changes.grants.owners(other))
        for other in changes.old
        if changes.kind(other) is JudgeKind.TEST and (not folder or other.startswith(f"{folder}/"))
    )


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
    if new is None:
        return
    if old is not None:
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
