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
from pytest_planverify.guards.hygiene.signals import Finding
from pytest_planverify.guards.hygiene.source import (
    FUNCTIONS,
    Function,
    dotted,
    is_always_false,
    is_always_true,
    shape,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.changes import Changes
    from pytest_planverify.guards.hygiene.source import Module

PYTHON_JUDGES = (JudgeKind.TEST, JudgeKind.CONFTEST, JudgeKind.TEST_SUPPORT)
_DATA = (JudgeKind.FIXTURE, JudgeKind.CONTRACT)
_CHECK_CALL = re.compile(
    r"(^|\.|_)(assert\w*|fail\w*|raises|warns|check\w*|verify\w*|expect\w*|deprecated_call)$"
)
_LEAVES = re.compile(r"(^|\.)(skip|skipif|skipIf|skipUnless|skipTest|SkipTest|importorskip)$")
_EXPECTS_FAILURE = re.compile(r"(^|\.)(xfail|expectedFailure)$")
_CATCHES_FAILURES = frozenset({"", "AssertionError", "Exception", "BaseException"})
_SPEAKS_TO_PYTEST = re.compile(
    r"(pytest|setup|teardown|setUp|tearDown|asyncSetUp|load_tests|collect_ignore|__test__).*"
)
_PATCHES = re.compile(r"monkeypatch|patch|setattr|setitem|\.__dict__|sys\.modules")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestUnit:
    """One test function, and what it asks for."""

    __test__ = False

    node: Function
    nodeid: str
    is_collected: bool
    skips: frozenset[str]
    xfails: frozenset[str]
    checks: Counter[str]
    void_checks: frozenset[str]
    """Those that always hold, or that nothing reaches."""
    swallowers: frozenset[str]
    """What keeps failures of its checks from being seen."""


def judge_findings(changes: Changes) -> Iterator[Finding]:
    """Yield what the changed judges lost, and those that are other ones without permission."""
    python = [path for path in changes.of_kind(*PYTHON_JUDGES) if path.endswith(".py")]
    added = _added_tests(changes)
    for path in python:
        found = [*_python_findings(changes, path, added)]
        yield from found
        permission = changes.grants.permission(path)
        if permission is not Permission.GRANTED and not found:
            yield from _difference(changes, path, permission)
    for path in changes.of_kind(*_DATA, *PYTHON_JUDGES):
        old, new = changes.before.read(path), changes.now.read(path)
        if path in changes.old and path not in changes.new:
            if not _was_moved(changes, path, added):
                yield Finding(sign="judge-removed", message=f"{path} is gone", path=path)
        elif path not in python and path in changes.old:
            yield from _data_findings(path, old, new, changes.grants.permission(path))


def read_tests(module: Module | None) -> dict[str, TestUnit]:
    """Return the test functions of a module, by their names with those of their classes."""
    found: dict[str, TestUnit] = {}
    if module is not None:
        _read_body(module, module.tree.body, "", True, _marks_of_body(module, module.tree.body), found)
    return found


def first_difference(old: bytes, new: bytes) -> tuple[int | None, str | None, str | None]:
    """Return the first line that differs: its number, what it was, what it is."""
    left, right = (text.decode("utf-8", "replace").splitlines() for text in (old, new))
    for at in range(max(len(left), len(right))):
        was = left[at] if at < len(left) else None
        is_now = right[at] if at < len(right) else None
        if was != is_now:
            return at + 1, was, is_now
    return None, None, None


def _was_moved(changes: Changes, path: str, added: frozenset[str]) -> bool:
    """Return whether a test file that is gone stands elsewhere, or all its tests do."""
    if changes.old[path] in {changes.new.get(each) for each in changes.changed - changes.old.keys()}:
        return True
    tests = read_tests(changes.module(path, now=False))
    return bool(tests) and all(
        each.node.name in added or shape(_unnamed(each.node)) in added for each in tests.values()
    )


def _added_tests(changes: Changes) -> frozenset[str]:
    """Return the names and the bodies of collected tests that were not there before."""
    found: set[str] = set()
    for path in changes.of_kind(JudgeKind.TEST):
        had = read_tests(changes.module(path, now=False))
        for name, each in read_tests(changes.module(path, now=True)).items():
            if each.is_collected and name not in had:
                found |= {each.node.name, shape(_unnamed(each.node))}
    return frozenset(found)


# -- Python ------------------------------------------------------------------------------------------


def _python_findings(changes: Changes, path: str, added: frozenset[str]) -> Iterator[Finding]:
    before, now = changes.module(path, now=False), changes.module(path, now=True)
    if now is None:
        if path in changes.new:
            yield Finding(sign="judge-unreadable", message=f"{path} can no longer be parsed", path=path)
        elif changes.kind(path) is JudgeKind.TEST:
            yield from _deleted(changes, path, added, read_tests(before), {})
        return
    old, new = read_tests(before), read_tests(now)
    yield from _deleted(changes, path, added, old, new)
    for name, unit in new.items():
        was = old.get(name)
        if was is not None and shape(was.node) != shape(unit.node):
            yield from _losses(path, was, unit, now)
        elif was is not None:
            yield from _left_out(path, was, unit)
    yield from hook_findings(before, now)
    yield from _fixture_findings(changes, path, before, now)


def _deleted(
    changes: Changes, path: str, added: frozenset[str], old: dict[str, TestUnit], new: dict[str, TestUnit]
) -> Iterator[Finding]:
    gone = [name for name, unit in old.items() if unit.is_collected and name not in new]
    is_rewritten = changes.grants.permission(path) is Permission.GRANTED and len(added) >= 2 * len(gone)
    for name, unit in old.items():
        twin = new.get(name)
        if not unit.is_collected or (twin is not None and twin.is_collected):
            continue
        is_hidden = twin is not None or any(
            shape(_unnamed(each.node)) == shape(_unnamed(unit.node)) and not each.is_collected
            for each in new.values()
        )
        if not is_hidden and (
            is_rewritten or unit.node.name in added or shape(_unnamed(unit.node)) in added
        ):
            continue
        sign = "test-deselected" if is_hidden else "test-deleted"
        said = "is no longer collected" if is_hidden else "is gone"
        yield Finding(
            sign=sign, message=f"The test {name} {said}", path=path, nodeid=unit.nodeid,
            before=f"def {unit.node.name}",
        )  # fmt: skip


def _losses(path: str, was: TestUnit, unit: TestUnit, now: Module) -> Iterator[Finding]:
    line, name = unit.node.lineno, unit.node.name
    yield from _left_out(path, was, unit)
    keep: dict[str, Any] = {"path": path, "line": line, "nodeid": was.nodeid}
    if new := unit.swallowers - was.swallowers:
        said = f"A failure of {name} is caught"
        yield Finding(sign="assertion-swallowed", message=said, after=min(new), **keep)
    void = unit.void_checks - was.void_checks
    if void or (was.checks and not unit.checks and not _calls_a_check(unit.node, now)):
        said = f"{name} asserts what always holds" if void else f"{name} asserts nothing any more"
        yield Finding(sign="assertion-void", message=said, after=min(void, default=None), **keep)
    gone, came = was.checks - unit.checks, unit.checks - was.checks
    if gone:
        is_fewer = came.total() < gone.total()
        yield Finding(
            sign="assertions-fewer" if is_fewer else "assertion-lost",
            message=f"{name} asserts {'less' if is_fewer else 'something else'}",
            before=min(gone),
            after=min(came, default=None),
            **keep,
        )


def _left_out(path: str, was: TestUnit, unit: TestUnit) -> Iterator[Finding]:
    for sign, now, before, said in (
        ("test-skipped", unit.skips, was.skips, "is skipped"),
        ("test-xfailed", unit.xfails, was.xfails, "is expected to fail"),
    ):
        if new := now - before:
            yield Finding(
                sign=sign, message=f"{unit.node.name} {said}", path=path, line=unit.node.lineno,
                nodeid=was.nodeid, after=min(new),
            )  # fmt: skip


def _read_body(
    module: Module, body: list[ast.stmt], owner: str, collected: bool,
    inherited: frozenset[str], found: dict[str, TestUnit],
) -> None:  # fmt: skip
    last = {each.name: each for each in body if isinstance(each, (*FUNCTIONS, ast.ClassDef))}
    hidden = _hidden_names(body)
    for each in _definitions(body):
        counts = collected and each.name not in hidden and last.get(each.name, each) is each
        name = f"{owner}::{each.name}" if owner else each.name
        if isinstance(each, ast.ClassDef):
            if any(isinstance(one, FUNCTIONS) and "test" in one.name for one in each.body):
                is_case = each.name.startswith("Test") or bool(each.bases)
                marks = inherited | _marks(each.decorator_list, module) | _marks_of_body(module, each.body)
                _read_body(module, each.body, name, counts and is_case, marks, found)
        elif "test" in each.name and not any(
            dotted(_called(one), module.aliases).endswith("fixture") for one in each.decorator_list
        ):
            marks = inherited | _marks(each.decorator_list, module) | _leaving_calls(each, module)
            checks = list(_checks(each, module))
            void = {text for node, text in checks if _is_void(node, each)}
            found[name] = TestUnit(
                node=each,
                nodeid=f"{module.path}::{name}",
                is_collected=counts and each.name.startswith("test"),
                skips=frozenset(text for text in marks if _LEAVES.search(text.partition("(")[0])),
                xfails=frozenset(text for text in marks if _EXPECTS_FAILURE.search(text.partition("(")[0])),
                checks=Counter(text for _, text in checks if text not in void),
                void_checks=frozenset(void),
                swallowers=frozenset(_swallowers(each, module)),
            )


def _definitions(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    for statement in body:
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            yield statement
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            if isinstance(statement, ast.If) and is_always_false(statement.test):
                continue
            yield from _definitions([*statement.body, *getattr(statement, "orelse", [])])


def _hidden_names(body: list[ast.stmt]) -> set[str]:
    """Return names that are deleted or bound anew, or whose ``__test__`` is false."""
    found: set[str] = set()
    defined: set[str] = set()
    for each in body:
        if isinstance(each, (*FUNCTIONS, ast.ClassDef)):
            defined.add(each.name)
            if isinstance(each, ast.ClassDef) and any(_says_no_test(one, "") for one in each.body):
                found.add(each.name)
        elif isinstance(each, ast.Delete):
            found |= {target.id for target in each.targets if isinstance(target, ast.Name)}
        elif isinstance(each, ast.Assign):
            found |= {one.id for one in each.targets if isinstance(one, ast.Name)} & defined
            found |= {name for name in defined if _says_no_test(each, f"{name}.")}
            if _says_no_test(each, ""):
                found |= {one.name for one in body if isinstance(one, (*FUNCTIONS, ast.ClassDef))}
    return found


def _says_no_test(node: ast.stmt, owner: str) -> bool:
    return (
        isinstance(node, ast.Assign)
        and is_always_false(node.value)
        and any(ast.unparse(target) == f"{owner}__test__" for target in node.targets)
    )


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _marks(nodes: list[ast.expr], module: Module) -> frozenset[str]:
    """Return what decorators or marks say of skipping, marks of single parameters included."""
    found: set[str] = set()
    for node in nodes:
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute | ast.Name):
                meaning = dotted(each, module.aliases)
                if _LEAVES.search(meaning) or _EXPECTS_FAILURE.search(meaning):
                    found.add(f"{meaning}({ast.unparse(node)[:200]})")
    return frozenset(found)


def _marks_of_body(module: Module, body: list[ast.stmt]) -> frozenset[str]:
    """Return the marks and the skipping calls of a module or class, which hold for all its tests."""
    found: set[str] = set()
    for node in body:
        values = [node.value] if isinstance(node, ast.Assign | ast.Expr) else []
        if isinstance(node, ast.If | ast.Try):
            inner = [each for each in ast.walk(node) if isinstance(each, ast.Call | ast.Raise)]
            values = [each.exc if isinstance(each, ast.Raise) else each for each in inner]
        if isinstance(node, ast.Raise):
            values = [node.exc]
        found |= _marks([value for value in values if value is not None], module)
    return frozenset(found)


def _leaving_calls(node: Function, module: Module) -> frozenset[str]:
    return _marks([each for each in ast.walk(node) if isinstance(each, ast.Call)], module)


def _checks(node: ast.AST, module: Module) -> Iterator[tuple[ast.AST, str]]:
    for each in ast.walk(node):
        if isinstance(each, ast.Assert):
            yield each, ast.unparse(each.test)
        elif isinstance(each, ast.Call) and _CHECK_CALL.search(dotted(each.func, module.aliases)):
            yield each, ast.unparse(each)


def _is_void(check: ast.AST, function: Function) -> bool:
    """Return whether a check always holds, or stands where nothing arrives."""
    if isinstance(check, ast.Assert) and is_always_true(check.test):
        return True
    if isinstance(check, ast.Call):
        called = ast.unparse(check.func)
        if called.endswith(("assertTrue", "assertEqual")) and len(check.args) <= 2:
            texts = [ast.unparse(each) for each in check.args]
            if (len(texts) == 1 and is_always_true(check.args[0])) or (
                len(texts) == 2 and texts[0] == texts[1]
            ):
                return True
    for each in ast.walk(function):
        never = each.body if isinstance(each, ast.If | ast.While) and is_always_false(each.test) else []
        if any(check in ast.walk(one) for one in never):
            return True
        for name in ("body", "orelse", "finalbody"):
            block: object = getattr(each, name, None)
            if isinstance(block, list) and _stands_after_the_end(check, block):  # pyright: ignore[reportUnknownArgumentType]
                return True
        if each is not function and isinstance(each, FUNCTIONS) and check in ast.walk(each):
            uses = [one for one in ast.walk(function) if getattr(one, "id", "") == each.name]
            if not uses and not each.decorator_list:
                return True
    return False


def _stands_after_the_end(check: ast.AST, block: list[ast.stmt]) -> bool:
    has_ended = False
    for statement in block:
        if has_ended and check in ast.walk(statement):
            return True
        has_ended = has_ended or isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break)
    return False


def _calls_a_check(node: Function, module: Module) -> bool:
    helpers = {
        each.name
        for each in ast.walk(module.tree)
        if isinstance(each, FUNCTIONS) and any(True for _ in _checks(each, module))
    }
    return any(
        isinstance(each, ast.Call)
        and (dotted(each.func, {}).rpartition(".")[2] in helpers or _is_foreign(each, module))
        for each in ast.walk(node)
    )


def _is_foreign(call: ast.Call, module: Module) -> bool:
    """Return whether a helper of another test module is called, which may assert."""
    meaning = dotted(call.func, module.aliases)
    return meaning.startswith((".", "tests", "test_", "conftest", "helpers"))


def _swallowers(function: Function, module: Module) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Try) and _holds_check(node.body, module):
            for handler in node.handlers:
                kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                names = {dotted(kind, module.aliases) if kind else "" for kind in kinds}
                if (
                    names & _CATCHES_FAILURES
                    and not _holds_check(handler.body, module)
                    and not any(isinstance(each, ast.Raise) for each in ast.walk(handler))
                ):
                    yield f"except {ast.unparse(handler.type) if handler.type else ''}"
            if any(isinstance(each, ast.Return) for each in node.finalbody):
                yield "finally: return"
        elif isinstance(node, ast.With) and _holds_check(node.body, module):
            for item in node.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and call.args:
                    called = dotted(call.func, module.aliases).rpartition(".")[2]
                    names = {dotted(each, module.aliases) for each in call.args}
                    if called in ("suppress", "raises", "assertRaises") and names & _CATCHES_FAILURES:
                        yield ast.unparse(call)


def _holds_check(body: list[ast.stmt], module: Module) -> bool:
    return any(True for _ in _checks(ast.Module(body=body, type_ignores=[]), module))


def _unnamed(node: Function) -> ast.AST:
    return ast.Module(body=node.body, type_ignores=[])


# -- fixtures ----------------------------------------------------------------------------------------


def _fixture_findings(changes: Changes, path: str, before: Module | None, now: Module) -> Iterator[Finding]:
    """Yield fixtures that change what tests get that nobody may change."""
    if changes.kind(path) is not JudgeKind.CONFTEST:
        return
    had = {shape(node) for node, _ in _fixtures(before)} if before is not None else set[str]()
    if not _serves_protected_tests(changes, path):
        return
    folder = posixpath.dirname(path)
    above = {
        name
        for other in changes.old
        if posixpath.basename(other) == "conftest.py" and other != path
        and f"{folder}/".startswith(f"{posixpath.dirname(other)}/".lstrip("/"))
        for node, _ in _fixtures(changes.module(other, now=False))
        if (name := node.name)
    }  # fmt: skip
    own = {node.name for node, _ in _fixtures(before)}
    for node, decorator in _fixtures(now):
        if shape(node) in had:
            continue
        if node.name in above | own:
            said = f"The fixture {node.name} is another one for tests that may not be changed"
        elif "autouse=True" in decorator and _PATCHES.search(ast.unparse(node)):
            said = f"The fixture {node.name}, which every test gets, patches something"
        else:
            continue
        yield Finding(
            sign="fixture-overridden", message=said, path=path, line=node.lineno, after=now.line(node)
        )


def _fixtures(module: Module | None) -> Iterator[tuple[Function, str]]:
    for node in module.tree.body if module is not None else ():
        if isinstance(node, FUNCTIONS):
            for each in node.decorator_list:
                if dotted(_called(each), module.aliases if module else {}).endswith("fixture"):
                    yield node, ast.unparse(each)


def _serves_protected_tests(changes: Changes, path: str) -> bool:
    folder = posixpath.dirname(path)
    owners = set(changes.grants.owners(path))
    return any(
        changes.grants.permission(other) is not Permission.GRANTED
        or not owners & set(changes.grants.owners(other))
        for other in changes.old
        if changes.kind(other) is JudgeKind.TEST and (not folder or other.startswith(f"{folder}/"))
    )


# -- mere differences --------------------------------------------------------------------------------


def _difference(changes: Changes, path: str, permission: Permission) -> Iterator[Finding]:
    """Yield a judge that does something else without permission, where nothing says what it lost."""
    before, now = changes.module(path, now=False), changes.module(path, now=True)
    if now is None:
        return
    if path not in changes.old:
        if permission is Permission.DEFAULT or changes.kind(path) is JudgeKind.TEST:
            return  # new tests take nothing from those that were there
        said = f"{path} was added without permission"
        yield Finding(sign="judge-changed", message=said, path=path)
        return
    if before is not None and (
        shape(before.tree) == shape(now.tree)
        or (_without_imports(before) == _without_imports(now) and _imports(before) == _imports(now))
        or _only_adds(before.tree.body, now.tree.body)
    ):
        return
    old, new = changes.before.read(path) or b"", changes.now.read(path) or b""
    line, was, is_now = first_difference(old, new)
    said = f"{path} was changed without permission"
    yield Finding(sign="judge-changed", message=said, path=path, line=line, before=was, after=is_now)


def _without_imports(module: Module) -> list[str]:
    return [shape(each) for each in module.tree.body if not _is_quiet(each)]


def _imports(module: Module) -> set[str]:
    return {
        f"{ast.unparse(node).partition('import')[0]} {name.name} {name.asname}"
        for node in module.tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }


def _is_quiet(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Import | ast.ImportFrom)


def _only_adds(before: list[ast.stmt], now: list[ast.stmt]) -> bool:
    """Return whether all that was there is there in its order, and what came binds new names only."""
    waiting = [each for each in before if not isinstance(each, ast.Expr) or not _is_quiet(each)]
    bound = {name for each in before for name in _names_bound(each)}
    known = {shape(each) for each in before if isinstance(each, ast.Import | ast.ImportFrom)}
    for node in now:
        if (waiting and shape(waiting[0]) == shape(node)) or (
            isinstance(node, ast.ClassDef)
            and waiting
            and isinstance(first := waiting[0], ast.ClassDef)
            and (
                first.name == node.name
                and [*map(shape, (*first.bases, *first.keywords, *first.decorator_list))]
                == [*map(shape, (*node.bases, *node.keywords, *node.decorator_list))]
                and _only_adds(first.body, node.body)
            )
        ):
            waiting.pop(0)
        elif shape(node) in known or (_is_quiet(node) and isinstance(node, ast.Expr)):
            continue
        else:
            names = set(_names_bound(node))
            speaks = any(_SPEAKS_TO_PYTEST.fullmatch(name) for name in names)
            is_definition = isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Assign, ast.AnnAssign))
            is_import = isinstance(node, ast.Import | ast.ImportFrom)
            if not names or names & bound or (speaks and not is_import) or not (is_definition or is_import):
                return False
            if not is_import and "autouse" in ast.unparse(node):
                return False
    return all(isinstance(each, ast.Import | ast.ImportFrom) for each in waiting)


def _names_bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((name.asname or name.name).partition(".")[0] for name in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (each.id for each in targets if isinstance(each, ast.Name))


# -- data --------------------------------------------------------------------------------------------


def _data_findings(
    path: str, old: bytes | None, new: bytes | None, permission: Permission
) -> Iterator[Finding]:
    if new is None:
        return
    line, was, is_now = (None, None, None) if old is None else first_difference(old, new)
    if old is not None:
        before, now = _parsed(path, old), _parsed(path, new)
        if before == now or (permission is Permission.DEFAULT and _says_more(before, now)):
            return
    said = f"{path} says something else"
    yield Finding(sign="data-changed", message=said, path=path, line=line, before=was, after=is_now)


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
