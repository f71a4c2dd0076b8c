"""Changes of judging files (tests, conftests, test support and data) that weaken them.

Tests are compared one by one: each collected test has a multiset of checks, and a set of reasons why it
cannot fail (skipped, expected to fail, failures caught, checks that always hold). A test that loses checks
or gains such a reason is a finding. Conftests and support files are searched for hooks and fixtures that
decide verdicts. If no specific loss is found, a change of a file that no todo may change is still reported
as a mere difference. Whether a permission covers a finding is decided in
:mod:`pytest_planverify.guards.hygiene.compare`.
"""

from __future__ import annotations

import ast
import builtins
import io
import itertools
import json
import posixpath
import re
import sys
import unittest
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.model.baseline import JudgeKind
from pytest_planverify.baseline.work_tree import words_of_setting
from pytest_planverify.guards.hygiene.changes import PYTHON_JUDGES, file_signal
from pytest_planverify.guards.hygiene.grants import Permission
from pytest_planverify.guards.hygiene.source import (
    FUNCTIONS,
    UNKNOWN,
    Function,
    dotted,
    fold,
    name_of,
    parameters_of,
    shape,
    truth,
    usual_depth,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from planner.model.evidence import HygieneSignal
    from pytest_planverify.guards.hygiene.changes import TreeDifferences
    from pytest_planverify.guards.hygiene.source import Module

_CHECK_CALL = re.compile(
    r"(^|\.|_)(assert\w*|fail\w*|raises|warns|check\w*|verify\w*|expect\w*|deprecated_call)$"
)
_LONGEST_NAME = 200
"""Number of last characters of a name that are searched for a check, in quadratic time."""
_MARK_PATTERNS = {
    "test-skipped": re.compile(r"(^|\.)(skip|skipif|skipIf|skipUnless|skipTest|SkipTest|importorskip)$"),
    "test-xfailed": re.compile(r"(^|\.)(xfail|expectedFailure)$"),
}
_DISARMED = {
    "test-skipped": "is skipped",
    "test-xfailed": "is expected to fail",
    "assertion-swallowed": "catches its own failure",
    "assertion-void": "asserts what is always true",
}
"""Signs of a test that cannot fail, with their messages."""
_CATCHES_FAILURES = frozenset({"", "AssertionError", "Exception", "BaseException"})
# Names that pytest or unittest call or read: a new definition of one changes how other tests run.
_READ_BY_PYTEST = re.compile(
    r"(pytest|setup|teardown|setUp|tearDown|asyncSetUp|load_tests|collect_ignore|__test__).*"
)
_DECLARING_HOOK = re.compile(r"pytest_(addoption|configure|report_header|terminal_summary)")
_DECLARING_CALL = re.compile(
    # An option with ``dest`` could replace the default of one of pytest's own, such as -k.
    r"\w+\.(addoption|addini|getgroup|write_line)\((?!.*\bdest=).*|\w+\.addinivalue_line\('markers'.*",
    re.DOTALL,
)
_PATCHES = re.compile(r"monkeypatch|patch|setattr|setitem|\.__dict__|sys\.modules")
_HELPERS = (".", "tests", "test_", "conftest", "helpers")
"""Prefixes of modules whose functions may contain assertions; ``.`` is a relative import."""
_NARROWS = frozenset({"islice", "filter", "filterfalse", "takewhile", "dropwhile", "compress"})
_COMPARES = frozenset({"__eq__", "__ne__", "__contains__"})
_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


def judge_findings(changes: TreeDifferences) -> Iterator[HygieneSignal]:
    """Yield what changed judges lost, and judges that were changed or removed without permission."""
    tests = {
        path: (_read_tests(changes.module(path, now=False)), _read_tests(changes.module(path, now=True)))
        for path in changes.of_kind(*PYTHON_JUDGES)
        if path.endswith(".py")
    }
    # Names and bodies of new tests: a test that disappeared from one file may have moved to another, also
    # to a class there from which test classes inherit it.
    judges = (path for path in changes.new if path.endswith(".py") and changes.kind(path) in PYTHON_JUDGES)
    modules = (changes.module(path, now=True) for path in (judges if tests else ()))
    bases = frozenset[str]().union(*(module.bases for module in modules if module is not None))
    added = frozenset(
        text
        for path, (old, new) in tests.items()
        for name, test in new.items()
        if name not in old
        and (
            (changes.kind(path) is JudgeKind.TEST and not test.is_helper)
            or (test.node.name.startswith("test") and name.partition("::")[0] in bases)
        )
        for text in (test.node.name, test.body)
    )
    for path in changes.of_kind(JudgeKind.FIXTURE, JudgeKind.CONTRACT, *PYTHON_JUDGES):
        old, new = tests.get(path, ({}, {}))
        if path in tests:
            found = list(_python_findings(changes, path, old, new, added))
            if not found and changes.grants.permission(path) is not Permission.GRANTED:
                found = list(_difference(changes, path))
            yield from found
        if path not in changes.new:
            # If a new file has the same content, this one was renamed; if all its tests reappear, it was
            # split up.
            contents = {changes.new.get(each) for each in changes.changed - changes.old.keys()}
            is_elsewhere = old and all({each.node.name, each.body} & added for each in old.values())
            if changes.old[path] not in contents and not is_elsewhere:
                yield file_signal("judge-removed", f"{path} is gone", path)
        elif path not in tests and path in changes.old:
            yield from _data_findings(changes, path)


# -- what tests lost ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TestUnit:
    """One collected test with its checks."""

    node: Function
    body: str
    """Shape of its code without the name."""
    checks: Counter[str]
    """Assertions and calls that check something, as source; those that always hold are excluded."""
    burdens: dict[str, frozenset[str]]
    """Code that keeps it from failing, by sign (see ``_DISARMED``)."""
    cases: int
    """Number of cases that are listed for its parameters; 0 if it is not known."""
    is_helper: bool
    """Whether it is no test itself, but checks something for those that call it."""


def _python_findings(
    changes: TreeDifferences,
    path: str,
    old: dict[str, _TestUnit],
    new: dict[str, _TestUnit],
    added: frozenset[str],
) -> Iterator[HygieneSignal]:
    """Yield the findings in one Python file; ``added`` are names and bodies of new tests in all files."""
    before, now = changes.module(path, now=False), changes.module(path, now=True)
    if now is None and path in changes.new:
        yield file_signal("judge-unreadable", f"{path} can no longer be parsed", path)
        return
    # A todo that may write tests may replace them by at least as many others, or by one with as many cases.
    # Each new test has two entries in ``added``, its name and its body.
    is_granted = changes.grants.permission(path) is Permission.GRANTED
    more_cases = sum(max(new[name].cases - 1, 0) for name in new.keys() - old.keys())
    tests = {name for name, test in new.items() if not test.is_helper}
    gone = {name for name in old.keys() - tests if not old[name].is_helper}
    is_rewritten = is_granted and len(added) + 2 * more_cases >= 2 * len(gone)
    imported = before.aliases.keys() - before.functions.keys() if before is not None else set[str]()
    # What moved to a helper that no test calls is lost.
    fresh = [
        (each, _table(each.node, each.checks, now))
        for name, each in new.items()
        if now is not None and name not in old and not each.is_helper
    ]
    for name, test in old.items() if now is not None or changes.kind(path) is JudgeKind.TEST else ():
        nodeid = f"{path}::{name}"
        if now is not None and name in new and name not in gone:
            yield from _losses(nodeid, test, new[name], now, changes, fresh, imported)
        elif name in gone and not (is_rewritten or {test.node.name, test.body} & added):
            message = f"The test {name} is gone, or no longer collected"
            yield file_signal("test-deleted", message, path, nodeid=nodeid)
    if now is not None:
        yield from _hook_findings(changes, before, now)
        yield from _replaced_subjects(changes, before, now)
        if changes.kind(path) is JudgeKind.CONFTEST:
            yield from _fixture_findings(changes, before, now)


def _losses(
    nodeid: str,
    was: _TestUnit,
    unit: _TestUnit,
    now: Module,
    changes: TreeDifferences,
    fresh: list[tuple[_TestUnit, frozenset[str]]],
    imported: Collection[str],
) -> Iterator[HygieneSignal]:
    """Yield what one test lost: new reasons why it cannot fail, and missing or changed checks.

    ``fresh`` are the new tests with their tables (see :func:`_table`), ``imported`` the names that its
    module imported before.
    """

    def finding(
        sign: str, problem: str, after: Iterable[str] = (), before: str | None = None
    ) -> HygieneSignal:
        return file_signal(sign, f"{unit.node.name} {problem}", now.path, line=unit.node.lineno,
            nodeid=nodeid, before=before, after=min(after, default=None),
        )  # fmt: skip

    void = unit.burdens["assertion-void"]
    guarded = void & _conditional_checks(was.node, unit.node, now) if void else void
    kept = unit.checks + Counter(guarded)
    missing, extra = was.checks - kept, kept - was.checks
    if missing:  # they may have moved to a new test, or to a helper
        # What moved to a test that has further reasons why it cannot fail is lost.
        fresh = [each for each in fresh if _can_fail_like(each[0], was)]
        for each, _ in fresh:
            missing -= Counter({text: each.checks[text] for text in missing})
        extra += _checks_of_helpers(was.node, unit.node, changes)
    # A test that calls a function of its own module instead of an imported one tests itself.
    # So does one that defines the function again below the import.
    defined = {each.name for each in now.tree.body if isinstance(each, FUNCTIONS)}
    replaced = [name for name in imported if name in (defined | now.functions.keys() - now.aliases.keys())]
    for name in replaced if missing or replaced else ():
        if re.search(rf"\b{name}\(", "\n".join(unit.checks)):
            yield finding("assertion-void", f"asks {name} of its own file instead of the imported one")
    for sign, problem in _DISARMED.items():
        new = unit.burdens[sign] - was.burdens[sign] - guarded
        # A check that always holds is a loss only if it took the place of another one: a new comparison of
        # a value with itself may test reflexivity.
        if new and (missing or sign != "assertion-void"):
            yield finding(sign, problem, new)
    before = changes.module(now.path, now=False) or now
    if problem := _void_values(was.node, unit.node, before, now):
        yield finding(*problem)
    checks_nothing = was.checks and not kept and not unit.burdens["assertion-void"]
    if checks_nothing and not extra and not _calls_a_check(unit.node, now):
        yield finding("assertion-void", "no longer asserts anything")
    if 0 < unit.cases < was.cases:
        yield finding("assertions-fewer", f"has {unit.cases} instead of {was.cases} cases")
    is_less = extra.total() < missing.total() and not (
        _compares_whole(missing, extra)
        or _has_values(_table(unit.node, extra, now), missing)
        or any(_has_values(table, missing) for _, table in fresh)
        # Of equal checks of several values, one in a loop over these may remain.
        or (kept.keys() >= missing.keys() and set() < _constants(was.node) <= _table(unit.node, kept, now))
        # A helper gets what it compares as arguments, so that one equality may replace several checks.
        or (unit.is_helper and any(_EXACT.search(text) for text in extra))
    )
    if is_less or _is_looser(missing, extra):
        yield finding("assertions-fewer", "asserts less", extra, min(missing))
    elif missing:
        yield finding("assertion-lost", "asserts something else", extra, min(missing))


def _void_values(was: Function, test: Function, before: Module, now: Module) -> tuple[str, str] | None:
    """Return the sign and problem of a check that checks less than before.

    It may expect what is made from the result, or a value of a new class, or be left out for some cases.
    """
    old, new = _Flow(was, before), _Flow(test, now)
    lenient = {
        each.name
        for each in now.tree.body
        if isinstance(each, ast.ClassDef) and shape(each) not in before.statements and _is_lenient(each)
    }
    kept = old.checks.keys() & new.checks.keys()
    sign = "assertion-void" if kept else "assertions-fewer"
    for text in kept or new.checks:
        if kept and new.guards[text] - old.guards[text]:
            return "assertions-fewer", f"asserts {text} for fewer cases"
        shared, used = new.origins(text)
        if shared.difference(*(old.origins(each)[0] for each in ({text} & kept or old.checks))):
            return sign, f"makes what {text} expects from the result"
        if lenient & used:
            return sign, f"compares with {min(lenient & used)}, which decides what is equal"
    return None


def _is_lenient(node: ast.ClassDef) -> bool:
    """Return whether a class replaces the equality of a built-in one, or ignores the other value."""
    compares = [each for each in node.body if isinstance(each, FUNCTIONS) and each.name in _COMPARES]
    is_value = any(name_of(each) in dir(builtins) for each in node.bases)
    others = [({of.arg for of in each.args.args[1:]}, _names_in(each)) for each in compares]
    return any(is_value or other.isdisjoint(names) for other, names in others)


class _Flow:
    """Origins of the values that a test compares, and the conditions under which it does."""

    def __init__(self, test: Function, module: Module) -> None:
        """Read the checks, assignments and loops of a test."""
        self._aliases = module.aliases
        self._imported = {each.partition(".")[0] for each in module.aliases.values()}
        self._imported -= sys.stdlib_module_names | {"", "pytest"}
        self._sources: dict[str, list[ast.expr]] = {}
        self.checks = {text: node for node, text in _checks(test, module)}
        self.guards: dict[str, set[str]] = {text: set() for text in self.checks}
        nodes: list[Any] = list(ast.walk(test))
        for node in (*module.tree.body, *nodes):
            value = getattr(node, "iter", getattr(node, "value", None))
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                for name in _names_in(target) - {"self", "cls"} if target and value else ():
                    self._sources.setdefault(name, []).append(cast("ast.expr", value))
        loops = [each for each in nodes if isinstance(each, ast.For)]
        for scope, given in ((test, test.decorator_list), *((each, [each.iter]) for each in loops)):
            made = [self._sources.get(name, []) for each in given for name in _names_in(each)]
            narrowed = [each for each in (*given, *itertools.chain(*made)) if _is_narrowed(each)]
            self._guard(scope, narrowed, module)
        for loop in loops:
            for block in (each for each in loop.body if isinstance(each, ast.If) and not each.orelse):
                skips = isinstance(block.body[-1], ast.Continue | ast.Break)
                scope = loop if skips and not _holds_check(block.body, module) else block
                self._guard(scope, [block.test], module)

    def _guard(self, scope: ast.AST, conditions: list[ast.expr], module: Module) -> None:
        for _, text in _checks(scope, module):
            self.guards[text] |= set(map(ast.unparse, conditions))

    def origins(self, text: str) -> tuple[set[str], set[str]]:
        """Return what is one value of a check and makes the other one, and all that both are made from."""
        check = self.checks[text]
        compared = check.test if isinstance(check, ast.Assert) else check
        sides = cast("list[ast.expr]", [*getattr(compared, "args", ()), *[ast.Constant(None)] * 2][:2])
        if isinstance(compared, ast.Compare):
            sides = [compared.left, compared.comparators[0]]
        asked, used = set[str](), (set[str](), set[str]())
        for side, found in zip(sides, used, strict=True):
            pending = [side]
            tops = [side, *self._sources.get(getattr(side, "id", ""), ())]
            for each in (part for one in pending for part in ast.walk(one)):
                call = dotted(getattr(each, "func", None), self._aliases)
                # Constructors make expected values, too.
                if call.partition(".")[0] in self._imported and call.rpartition(".")[2][:1].islower():
                    found.add(f"{call}()")
                    asked |= {f"{call}()"} if each in tops else set()
                elif isinstance(each, ast.Name) and each.id not in found:
                    pending += self._sources.get(each.id, ())  # read by the loop
                    found.add(each.id)
        left, right = (self._sources.keys() & {getattr(side, "id", "")} for side in sides)
        return asked & used[0] & used[1] | left & used[1] | right & used[0], used[0] | used[1]


def _is_narrowed(cases: ast.expr) -> bool:
    """Return whether an expression selects a part of some values."""
    names = {name_of(getattr(each, "func", each)) for each in ast.walk(cases)}
    parts = any(isinstance(each, ast.Slice) or getattr(each, "ifs", ()) for each in ast.walk(cases))
    return parts or not names.isdisjoint(_NARROWS)


_CONTRARY: dict[tuple[type[ast.cmpop], ...], type[ast.cmpop]] = {
    (ast.NotEq,): ast.Eq, (ast.IsNot,): ast.Is, (ast.NotIn,): ast.In,
    (ast.GtE,): ast.Lt, (ast.LtE,): ast.Gt,
}  # fmt: skip


def _conditional_checks(was: Function, test: Function, module: Module) -> set[str]:
    """Return the checks that were made on a condition, and now follow a return on its contrary."""
    blocks = [(each, *_affirmed(each.test)) for each in ast.walk(was) if isinstance(each, ast.If)]
    found: list[set[str]] = []
    for guard in (each for each in test.body if isinstance(each, ast.If)):
        text, is_true = _affirmed(guard.test)
        under = [
            part for each, of, holds in blocks if (of, not holds) == (text, is_true) for part in each.body
        ]
        if isinstance(guard.body[0], ast.Return):
            found.append({check for part in under for _, check in _checks(part, module)})
    return found[0].intersection(*found) if found else set()


def _affirmed(condition: ast.expr) -> tuple[str, bool]:
    """Return the source of a condition without its negation, and whether it had none."""
    holds = True
    while isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        condition, holds = condition.operand, not holds
    ops = tuple(map(type, condition.ops)) if isinstance(condition, ast.Compare) else ()
    if isinstance(condition, ast.Compare) and ops in _CONTRARY:
        condition, holds = ast.Compare(condition.left, [_CONTRARY[ops]()], condition.comparators), not holds
    return ast.unparse(condition), holds


def _can_fail_like(test: _TestUnit, was: _TestUnit) -> bool:
    """Return whether a test has no reason why it cannot fail that an earlier one did not have."""
    # Its checks are without those that always hold.
    return all(test.burdens[sign] <= was.burdens[sign] for sign in _DISARMED.keys() - {"assertion-void"})


_LOOSE = re.compile(
    r" (>=?|<=?|is not|!=) | in [\[({]|\bisinstance\(|\.__class__ "
    r"|\b(raises|assertRaises)\(\(?([\w.]+, )*(Base)?Exception\b(?![^(]*match=)"
    r"|^(len|type|bool|set|round)\(.* == (len|type|bool|set|round)\("
    r"|\bassertAlmostEqual\(.*\b(delta=(?!\d[\d.]*e-|0?\.0)|places=-?[0-3]\b)"
    r"|\.(?P<way>lower|upper|casefold|strip|split)\(\) == .*\.(?P=way)\(\)$"
    r"|^[^=]*(//|%|>>|&) (?P<by>\d+) == .*(//|%|>>|&) (?P=by)$"
    r"|\bassert(Not\w+|Greater\w*|Less\w*|In|IsNotNone|IsInstance|\w*Regex)\("
    # A part or a property of a result that was compared as a whole.
    r"|^(?!.* == )(?!\w*assert\w*\().*( in |\.(startswith|endswith|search|match|issubset|is[a-z]+)\()"
)
"""Checks that many wrong results pass, too; see also :func:`_is_loose`."""
_ROUGH = re.compile(r"\b(rel|abs)=(0?\.[1-9]|[1-9](?![\d.]*e-))")
"""A large tolerance of ``approx``."""
_PROPERTY = re.compile(r"^(?:len|type|bool)\((.*)\) (?:==|is) ")
"""Comparison of a property, for which many values are equal; its group is the value."""
_SLICE = re.compile(r"\[[\w-]*:[\w-]*\]$")
_CLOSE = re.compile(r"^abs\((.*)\) <=? (\d[\d.]*e-\d+|0?\.0\d*)$")
"""Equality of floating-point numbers."""
_EXACT = re.compile(
    r" == |\b(raises|assertRaises|assert(\w*Equals?|True|False|Is|IsNone))\(|^(not )?[\w.]+\([^()]*\)$"
)


def _is_looser(missing: Counter[str], extra: Counter[str]) -> bool:
    """Return whether equalities gave way to checks that many wrong results of the same calls pass."""

    def called(texts: Iterable[str]) -> set[str]:
        return {name for text in texts for name in re.findall(r"\b(?!len\b|type\b|bool\b)(\w+)\(", text)}

    # Any message is looser than a certain one.
    raised = [[text for text in texts if "raises(" in text.lower()] for texts in (missing, extra)]
    if all(raised) and any("match=" in text for text in raised[0]) and "match=" not in str(raised[1]):
        return True
    exact = [text for text in missing if _EXACT.search(text) and not _is_loose(text)]
    equal = [text.partition(" == ") for text in exact if not _PROPERTY.match(text)]
    wholes = {left for left, _, _ in equal}
    with_value = {left for left, sign, right in equal if sign and right != "True"}
    compared = called(wholes)
    loose = [
        text
        for text in extra
        if text in with_value  # the mere truth of what was compared
        or _is_loose(_CLOSE.sub("found == wanted", text))
        or ((of := _PROPERTY.match(text)) and (of[1] in wholes or called(of.groups()) & compared))
    ]
    kept = [text for text in extra if text not in loose]
    return bool(called(exact) & called(loose) - called(kept) or (exact and loose and not kept))


def _is_loose(text: str) -> bool:
    """Return whether a check accepts several values, of which the test may expect one."""
    # In parts, as patterns for what may stand far apart would take quadratic time.
    return (
        _LOOSE.search(text) is not None
        or _ROUGH.search(text.partition("approx(")[2]) is not None
        or (_SLICE.search(text.partition("] == ")[0] + "]") is not None and _SLICE.search(text) is not None)
        or sum(" == " in part for part in text.split(" or ")) > 1
        or _is_alternative(text)
    )


def _is_alternative(text: str) -> bool:
    """Return whether a check is an ``or`` as a whole."""
    with suppress(RecursionError), usual_depth():
        return " or " in text and isinstance(getattr(ast.parse(text, mode="eval").body, "op", None), ast.Or)
    return False


def _compares_whole(missing: Counter[str], extra: Counter[str]) -> bool:
    """Return whether equalities with a whole took the place of checks of its parts."""
    exact = [text for text in extra.elements() if " == " in text and not _is_loose(text)]
    whole = "\n".join(each for text in exact for each in _literals(text))
    by_check = [_literals(text) for text in missing.elements()]
    parts = [each for literals in by_check for each in literals]
    return all(by_check) and all(each in whole for each in parts) and len("".join(parts)) <= len(whole)


def _has_values(table: frozenset[str], missing: Counter[str]) -> bool:
    """Return whether a table has all values of several equalities."""
    values = {each for text in missing for each in _literals(text)} if table else set[str]()
    return bool(values) and values <= table


def _table(test: Function, checks: Iterable[str], module: Module) -> frozenset[str]:
    """Return the constants in a test that compares them in a loop, by one equality of ``checks``."""
    is_loop = any(
        isinstance(each, ast.For | ast.comprehension) or getattr(each, "attr", "") == "parametrize"
        for each in ast.walk(test)
    )
    if not is_loop or not any(_EXACT.search(text) and not _is_loose(text) for text in checks):
        return frozenset()
    tables = [test, *(module.constants[name] for name in _names_in(test) & module.constants.keys())]
    return frozenset[str]().union(*map(_constants, tables))


def _constants(node: ast.AST) -> frozenset[str]:
    nodes = list(ast.walk(node))
    docstrings = {each.value for each in nodes if isinstance(each, ast.Expr)}
    values = (each for each in nodes if isinstance(each, ast.Constant) and each not in docstrings)
    return frozenset(_literal(each.value) for each in values)


def _literal(value: object) -> str:
    """Return a text, or another constant between blanks."""
    return value if isinstance(value, str) else f" {value} "


def _literals(check: str) -> list[str]:
    """Return the texts in a check, and its numbers between blanks, except indexes."""
    nodes = list(ast.walk(ast.parse(check, mode="eval")))
    indexes = {part for each in nodes if isinstance(each, ast.Subscript) for part in ast.walk(each.slice)}
    values = [each.value for each in nodes if isinstance(each, ast.Constant) and each not in indexes]
    return [_literal(each) for each in values]


def _read_tests(module: Module | None) -> dict[str, _TestUnit]:
    """Return the collected tests of a module by qualified name, as in node ids: ``Class::test_name``."""
    return {} if module is None else dict(_tests_of(module, module.tree.body))


def _tests_of(
    module: Module,
    body: list[ast.stmt],
    owner: str = "",
    inherited: frozenset[str] = frozenset(),
    *,
    is_collected: bool = True,
) -> Iterator[tuple[str, _TestUnit]]:
    """Yield the tests and helpers in a module or class.

    ``inherited`` are the skip and xfail marks around it. What is not collected contains helpers only.
    """
    targets = [
        ast.unparse(target)
        for each in body
        if isinstance(each, ast.Assign | ast.Delete)
        for target in each.targets
    ]
    # Skip statements at the level of a module or class, such as ``pytestmark``, apply to all of its tests.
    inherited |= _marks([each for each in body if not isinstance(each, (*_DEFINITIONS, *_IMPORTS))], module)
    # As in Python, later definitions replace earlier ones of the same name.
    for each in {each.name: each for each in _definitions(body)}.values():
        if {each.name, f"{each.name}.__test__", "__test__"}.intersection(targets):
            continue  # deleted, rebound, or marked with __test__ = False
        marks = inherited | _marks(each.decorator_list, module)
        if isinstance(each, ast.ClassDef):
            # A class with a base may be a unittest.TestCase, which is collected under any name, and with it
            # what it inherits.
            of_unittest = {*map(ast.unparse, each.bases)} - {"object"} or each.name in module.bases
            members = {member.name for member in _definitions(each.body)}
            is_named = each.name.startswith("Test")
            if not (of_unittest or is_named or any(name.startswith("test") for name in members)):
                continue  # a stand-in or another helper, with methods of its own such as ``check``
            plain = is_named and "__init__" not in members
            yield from _tests_of(
                module, each.body, f"{owner}{each.name}::", marks,
                is_collected=is_collected and bool(of_unittest or plain),
            )  # fmt: skip
        elif not _fixture_decorator(each, module):
            is_helper = not (is_collected and each.name.startswith("test"))
            checks = list(_checks(each, module))
            if is_helper and not checks:
                continue
            marks |= _marks(each.body, module)
            idle = [*_unreached(each.body), *_uncalled(each)]
            unreached = {node for statement in idle for node in ast.walk(statement)}
            local = {node.name for node in ast.walk(each) if isinstance(node, FUNCTIONS)}
            assigned = [
                (target.id, node.value)
                for node in ast.walk(each)
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            ]
            lambdas = {name for name, value in assigned if isinstance(value, ast.Lambda)}
            void = frozenset(
                text
                for node, text in checks
                if node in unreached
                or _always_holds(node, local | lambdas, module)
                or _asks_stand_in(node, each)
                or lambdas & module.aliases.keys() & _names_in(node)
            )
            # A test of nothing but that equal calls have equal results tests no result.
            called = {name: ast.unparse(value) for name, value in assigned if isinstance(value, ast.Call)}
            mirrored = frozenset(text for node, text in checks if _has_equal_sides(node, called))
            if {text for _, text in checks} - void <= mirrored:
                void |= mirrored
            if _has_no_cases(each, module):
                marks |= {"skip(no cases)"}
            burdens = {
                sign: frozenset(text for text in marks if pattern.search(text.partition("(")[0]))
                for sign, pattern in _MARK_PATTERNS.items()
            }
            burdens |= {"assertion-swallowed": frozenset(_swallowers(each, module)), "assertion-void": void}
            effective = Counter(text for _, text in checks if text not in void)
            shaped = shape(ast.Module(body=each.body, type_ignores=[]))
            cases = _cases(each, module)
            yield owner + each.name, _TestUnit(each, shaped, effective, burdens, cases, is_helper)


def _cases(function: Function, module: Module) -> int:
    """Return the number of cases that ``parametrize`` lists for a test, 1 without; 0 if it is not known."""
    count = 1
    for each in function.decorator_list:
        if isinstance(each, ast.Call) and name_of(each.func) == "parametrize":
            values = each.args[1] if len(each.args) > 1 else None
            if isinstance(values, ast.Name):
                values = module.constants.get(values.id)
            items = getattr(values, "elts", ())
            count *= 0 if any(isinstance(item, ast.Starred) for item in items) else len(items)
    return count


def _has_no_cases(function: Function, module: Module) -> bool:
    """Return whether a decorator lists no parameters for a test, which pytest then skips."""
    values = [
        each.args[1]
        for each in function.decorator_list
        if isinstance(each, ast.Call) and name_of(each.func) == "parametrize" and len(each.args) > 1
    ]
    # Other code that names an empty list may fill it.
    return any(
        fold(each, module.constants) in ([], (), {}, "")
        and all(module.uses[name] == 1 for name in _names_in(each))
        for each in values
    )


def _names_in(node: ast.AST) -> frozenset[str]:
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _definitions(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    """Yield functions and classes of a body, also in try, with and if, unless a condition never holds."""
    for statement in body:
        if isinstance(statement, _DEFINITIONS):
            yield statement
        elif isinstance(statement, ast.Try | ast.With) or (
            isinstance(statement, ast.If) and truth(statement.test) is not False
        ):
            yield from _definitions([*statement.body, *getattr(statement, "orelse", [])])


def _unreached(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body that are never executed, or not if a condition ends the test before.

    These follow a return or raise, or stand under a constant condition or in a loop over nothing.
    """
    for at, each in enumerate(body):
        if isinstance(each, ast.Return | ast.Raise):
            yield from body[at + 1 :]
            return
        # A block that checks something else before it returns is a case of its own.
        if isinstance(each, ast.If) and isinstance(each.body[0], ast.Return):
            yield from body[at + 1 :]
            return
        if isinstance(each, ast.If | ast.While):
            holds = truth(each.test)
            # An assertion of what the block is executed for cannot fail, unless a name was bound, or a
            # method of its object called.
            changed: set[str] = set()
            for part in each.body:
                is_same = isinstance(part, ast.Assert) and shape(part.test) == shape(each.test)
                if is_same and changed.isdisjoint(_names_in(each.test)):
                    yield part
                for node in ast.walk(part):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        changed.add(node.id)
                    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                        changed |= _names_in(node.func.value)
            yield from each.body if holds is False else _unreached(each.body)
            yield from each.orelse if holds is True else _unreached(each.orelse)
        elif isinstance(each, ast.For | ast.AsyncFor):
            values = fold(each.iter)
            is_empty = isinstance(values, list | tuple | dict | str | range) and not values
            yield from each.body if is_empty else _unreached(each.body)
        elif isinstance(each, ast.With | ast.AsyncWith | ast.Try):
            yield from _unreached(each.body)


def _uncalled(test: Function) -> Iterator[Function]:
    """Yield the functions in a test that it never names, and that are no methods."""
    classes = [each for each in ast.walk(test) if isinstance(each, ast.ClassDef)]
    methods = {member for each in classes for member in each.body}
    apart, named = {test, *methods}, _names_in(test)
    functions = (each for each in ast.walk(test) if isinstance(each, FUNCTIONS) and each not in apart)
    yield from (each for each in functions if not each.decorator_list and each.name not in named)


def _marks(nodes: Iterable[ast.AST], module: Module) -> frozenset[str]:
    """Return the skip and xfail marks in decorators or statements, including those of parameters."""
    return frozenset(
        f"{meaning}({ast.unparse(node)[:200]})"
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute | ast.Name)
        and (meaning := dotted(each, module.aliases))
        and any(pattern.search(meaning) for pattern in _MARK_PATTERNS.values())
    )


def _checks(node: ast.AST, module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield assert statements and calls of checking functions, with their source."""
    asserted: set[ast.AST] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Assert):
            # What an assertion asks of a function of the file is no check by itself.
            asserted.update(
                part for part in ast.walk(each) if name_of(getattr(part, "func", part)) in module.functions
            )
            yield each, ast.unparse(each.test)
        elif each in asserted:
            continue
        elif isinstance(each, ast.Call) and _CHECK_CALL.search(
            dotted(each.func, module.aliases)[-_LONGEST_NAME:]
        ):
            if name_of(each.func) == "assertEqual" and len(each.args) > 1:  # as in an assert statement
                yield each, ast.unparse(ast.Compare(each.args[0], [ast.Eq()], [each.args[1]]))
            elif name_of(each.func) == "assertTrue" and each.args:
                yield each, ast.unparse(each.args[0])
            else:
                yield each, ast.unparse(each)


def _always_holds(check: ast.AST, functions: Collection[str], module: Module) -> bool:
    """Return whether a check cannot fail, whatever the code under test does.

    ``functions`` are names of local functions, which are true unless they are called. A function of the
    same file that neither asserts nor raises anything is no check, whatever it is called.
    """
    if isinstance(check, ast.Assert):
        test = check.test
        sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
        is_function = isinstance(test, ast.Name) and test.id in functions
        is_any = any(dotted(each, module.aliases) in ("unittest.mock.ANY", "mock.ANY") for each in sides)
        return is_function or is_any or truth(test) is True
    name, arguments = name_of(getattr(check, "func", check)), getattr(check, "args", [])
    holder = name_of(getattr(getattr(check, "func", None), "value", ast.Name("self")))
    # The method of another object, such as a stand-in, is not meant to check anything.
    if holder in ("self", "cls") and (helper := module.functions.get(name)):
        raises = any(isinstance(each, ast.Raise) for each in ast.walk(helper))
        return not (raises or _calls_super(helper) or _holds_check(helper.body, module))
    if name == "assertEqual" and len(arguments) > 1:
        return ast.unparse(arguments[0]) == ast.unparse(arguments[1])
    return name == "assertTrue" and bool(arguments) and truth(arguments[0]) is True


def _has_equal_sides(check: ast.AST, called: Mapping[str, str]) -> bool:
    """Return whether an assert statement compares a call, or what was assigned from it, with itself."""
    test = check.test if isinstance(check, ast.Assert) else None
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = map(ast.unparse, (test.left, *test.comparators))
    return len({called.get(side, side) for side in sides}) == 1


def _asks_stand_in(check: ast.AST, test: Function) -> bool:
    """Return whether a check compares what a mock returns with what the test told the mock to return."""
    compared = check.test if isinstance(check, ast.Assert) else None
    if not isinstance(compared, ast.Compare) or not isinstance(compared.left, ast.Call):
        return False
    name, answer = name_of(compared.left.func), ast.unparse(compared.comparators[0])
    for node in ast.walk(test):
        is_told = isinstance(node, ast.Assign) or name_of(getattr(node, "func", node)) in (
            "patch",
            "object",
        )
        text = ast.unparse(node) if is_told else ""
        mock, *rest = re.split(r"\b(?:return_value|side_effect)\b| = ", text, maxsplit=1)
        tells = re.search("return_value|side_effect", text) and re.search(rf"\b{name}\b", mock)
        if tells and answer in rest[0]:
            return True
    return False


def _calls_a_check(node: Function, module: Module) -> bool:
    """Return whether a test calls a helper with assertions, or a function of another test module."""
    helpers = {name for name, each in module.functions.items() if _holds_check([each], module)}
    return any(
        name_of(each.func) in helpers or dotted(each.func, module.aliases).startswith(_HELPERS)
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
    )


def _checks_of_helpers(was: Function, node: Function, changes: TreeDifferences) -> Counter[str]:
    """Return the checks in helpers and fixtures that a test calls now and did not call before."""
    tests = (ast.walk(was), ast.walk(node))
    before, called = ({name_of(each.func) for each in test if isinstance(each, ast.Call)} for test in tests)
    paths = (path for path in changes.new if path.endswith(".py") and changes.kind(path) in PYTHON_JUDGES)
    modules = [module for path in paths if (module := changes.module(path, now=True)) is not None]
    return Counter(
        text
        for module in modules
        for name in (called - before) & module.functions.keys()
        for check, text in _checks(module.functions[name], module)
        if not _always_holds(check, (), module)
    )


def _holds_check(nodes: Iterable[ast.AST], module: Module) -> bool:
    return any(True for each in nodes for _ in _checks(each, module))


def _swallowers(function: Function, module: Module) -> Iterator[str]:
    """Yield the exception handlers and context managers in a test that swallow a failing check."""
    # A decorator or context manager of the file runs the test, so that it catches what the test raises.
    blocks = [node for node in ast.walk(function) if isinstance(node, ast.With | ast.AsyncWith)]
    checked = [node for node in blocks if _holds_check(node.body, module)]

    def names_of(decorators: Iterable[ast.expr], blocks: Iterable[ast.With | ast.AsyncWith]) -> set[str]:
        users = [*decorators, *(item.context_expr for node in blocks for item in node.items)]
        return {name_of(getattr(each, "func", each)) for each in users}

    names = names_of(function.decorator_list, blocks) & module.functions.keys()
    around = [module.functions[name] for name in names]
    run_checks = names_of(function.decorator_list, checked)
    for of, node in ((each, part) for each in (function, *around) for part in ast.walk(each)):
        if not isinstance(node, ast.Try | ast.With):
            continue
        is_checked = _holds_check(node.body, module)
        if not (is_checked or _runs_test(node, around)):
            continue
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                fails = any(isinstance(each, ast.Raise) for each in handler.body)
                is_wide = _CATCHES_FAILURES & {dotted(kind, module.aliases) for kind in kinds}
                if is_wide and not fails and not _holds_check([handler], module):
                    yield f"except {ast.unparse(handler.type) if handler.type else ''}"
        else:
            for call in (item.context_expr for item in node.items):
                names = {dotted(each, module.aliases) for each in getattr(call, "args", ())}
                # What a manager of the file expects to be raised around other code is no check's failure.
                has_checks = is_checked or of.name in run_checks
                catching = ("suppress", "raises", "assertRaises") if has_checks else ("suppress",)
                suppresses = name_of(getattr(call, "func", call)) in catching
                if suppresses and _CATCHES_FAILURES & names:
                    yield ast.unparse(call)


def _runs_test(node: ast.Try | ast.With, around: list[ast.FunctionDef]) -> bool:
    """Return whether the body of a statement yields, or calls an argument of one of the functions."""
    given = {name for each in around for name in parameters_of(each)}
    parts = [part for each in node.body for part in ast.walk(each)]
    called = {name_of(each.func) for each in parts if isinstance(each, ast.Call)}
    return any(isinstance(each, ast.Yield) for each in parts) or not given.isdisjoint(called)


# -- hooks and fixtures ------------------------------------------------------------------------------

_ATTRS = (
    r"(outcome|longrepr|wasxfail|excinfo|exitstatus|testsfailed|_?obj|runtest|keyword|markexpr"
    r"|__code__|failureException|assert[A-Z]\w*)"
)
"""Attributes of reports, calls, sessions, items and options that decide verdicts."""
_DECIDES = re.compile(
    rf"(?<!self)\.{_ATTRS} = |setattr\(.*'{_ATTRS}'|\b_?replace\(.*\b{_ATTRS}=|force_(result|exception)"
    r"|from_result|pytest_deselected|pytest\.exit|os\._exit"
    r"|\bdel items\b|\bitems\.(remove|clear|pop)\(|\bitems\[.*\] = (?!sorted|reversed)"
)
_COMPARISON = re.compile(
    "|".join(each for each in dir(unittest.TestCase) if re.match("assert|failureE", each))
)
_TEST_OBJECT = re.compile(r"self|cls|type\(self\)|self\.__class__|request\.\w+|item(\.\w+)*|\w*Test\w*")
_OF_TEST_CASE = re.compile(rf"run\(self, result=None\)|({_COMPARISON.pattern})\(self\b")
_RUNS_TESTS = frozenset({"pytest_runtest_call", "pytest_pyfunc_call", "pytest_runtest_protocol"})
_DECIDE_BY_RETURN = _RUNS_TESTS | {
    "pytest_ignore_collect", "pytest_runtestloop", "pytest_cmdline_main", "pytest_report_teststatus",
    "pytest_pycollect_makeitem", "pytest_pycollect_makemodule", "pytest_collect_file",
}  # fmt: skip
"""Hooks that decide a verdict, or what is collected, by returning a constant."""
_LISTS = {
    "collect_ignore": ("test-deselected", "A list keeps files from being collected"),
    "pytest_plugins": ("plugin-added", "The list pytest_plugins was changed"),
}


def _hook_findings(changes: TreeDifferences, before: Module | None, now: Module) -> Iterator[HygieneSignal]:
    """Yield new or changed hooks that decide verdicts, and lists that exclude files or load plugins."""
    known = before.statements if before is not None else frozenset[str]()
    for node in ast.walk(now.tree):
        if not isinstance(node, FUNCTIONS) or shape(node) in known:
            continue
        specified = re.search(r"specname='(\w+)'", " ".join(map(ast.unparse, node.decorator_list)))
        name = specified[1] if specified else node.name
        # The methods with which unittest runs a test of a class, records its result, and compares.
        method = f"{name}({ast.unparse(node.args)})"
        if _OF_TEST_CASE.match(method) and not _calls_super(node):
            message = f"The method {name} decides itself how tests are run"
            yield file_signal("outcome-hook", message, now.path, line=node.lineno, after=now.line(node))
        parts = ast.walk(node) if name.startswith("pytest_") else ()
        place = next((each for each in parts if _decides(name, each, node)), None)
        if place is not None:
            message = f"The hook {name} changes outcomes, or which tests are run"
            line, after = getattr(place, "lineno", node.lineno), ast.unparse(place)
            yield file_signal("outcome-hook", message, now.path, line=line, after=after)
    earlier = set(map(shape, _rebindings(before, changes)))
    for node in _rebindings(now, changes):
        if shape(node) not in earlier:
            message = "A method that checks is replaced for its tests"
            yield file_signal("outcome-hook", message, now.path, line=node.lineno, after=now.line(node))
    for node in now.tree.body:
        text = ast.unparse(node)
        for start, (sign, message) in _LISTS.items():
            if text.startswith(start) and not text.endswith(("= []", "= ()")) and shape(node) not in known:
                yield file_signal(sign, message, now.path, line=node.lineno, after=text)


def _calls_super(method: Function) -> bool:
    """Return whether a method calls the one that it overrides, on no condition."""
    nodes = list(ast.walk(method))
    calls = {ast.unparse(each.func) for each in nodes if isinstance(each, ast.Call)}
    depends = any(isinstance(each, ast.If | ast.IfExp | ast.Try | ast.BoolOp) for each in nodes)
    return f"super().{method.name}" in calls and not depends


def _rebindings(module: Module | None, changes: TreeDifferences) -> Iterator[ast.Assign | ast.Call]:
    """Yield assignments to, and patches of, methods that check: unittest's, and those of the tests."""
    for node in ast.walk(module.tree) if module is not None else ():
        places: list[tuple[ast.expr, str]] = []
        if isinstance(node, ast.Assign):
            is_function = isinstance(node.value, ast.Lambda)
            targets = [each for each in node.targets if is_function or isinstance(each, ast.Attribute)]
            places = [(getattr(each, "value", each), name_of(each)) for each in targets]
        elif isinstance(node, ast.Call) and name_of(node.func) in ("setattr", "object"):
            places = [(node.args[0], str(fold(each))) for each in node.args[1:2]]
        for owner, name in places:
            is_test = _TEST_OBJECT.fullmatch(ast.unparse(owner))
            files = (path for path in changes.new if is_test and changes.kind(path) in PYTHON_JUDGES)
            modules = (changes.module(path, now=True) for path in files if path.endswith(".py"))
            helpers = ((one, one.functions.get(name)) for one in modules if one is not None)
            holds_check = any(of and _holds_check([of], one) for one, of in helpers)
            if _COMPARISON.fullmatch(name) or (holds_check and not name.startswith("__")):
                yield cast("ast.Assign | ast.Call", node)


def _decides(name: str, node: ast.AST, hook: Function) -> bool:
    """Return whether a statement of the hook ``name`` decides a verdict.

    Statements that observe, order or configure do not.
    """
    if isinstance(node, ast.Try | ast.With):
        # Only around the execution of a test can a handler swallow its failure: in the hooks that run it,
        # and in wrappers of the hook that creates the report. Other hooks may catch exceptions.
        text = ast.unparse(node)
        wraps_report = name == "pytest_runtest_makereport" and "yield" in text
        catches = bool(node.handlers) if isinstance(node, ast.Try) else "suppress" in text
        return catches and (wraps_report or name in _RUNS_TESTS)
    if isinstance(node, ast.Return):
        return name in _DECIDE_BY_RETURN and fold(node.value) not in (None, False, UNKNOWN)
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete | ast.Expr):
        return False
    text, around = ast.unparse(node), ast.unparse(hook)
    # If the hook reads an option, such as --runslow, the user excludes the tests, not the hook.
    leaves_out = "add_marker(" in text and re.search(r"\b(skip|xfail)\b", around)
    return bool(_DECIDES.search(text) or (leaves_out and "getoption" not in around))


def _fixture_findings(
    changes: TreeDifferences, before: Module | None, now: Module
) -> Iterator[HygieneSignal]:
    """Yield new or changed conftest fixtures that change what protected tests receive.

    A fixture does so if it hides one of the same name, here or in a conftest above, or if it applies to
    all tests (autouse, or usefixtures of the configuration) and patches something. Tests are protected if
    no todo may change them, or only todos that may not change this conftest.
    """
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
    overridable = {node.name for module in (before, *above) for node in _fixtures(module)}
    known = {shape(node) for node in _fixtures(before)}
    used_by_all = frozenset(words_of_setting(changes.now, "usefixtures"))
    for node in _fixtures(now) if serves_protected else ():
        is_for_all = node.name in used_by_all or "autouse=True" in _fixture_decorator(node, now)
        is_patch = is_for_all and _patches(node, now)
        if shape(node) not in known and (node.name in overridable or is_patch):
            text = f"The fixture {node.name} is overridden for tests that may not be changed"
            line, after = node.lineno, now.line(node)
            yield file_signal("fixture-overridden", text, now.path, line=line, after=after)


def _patches(fixture: Function, module: Module) -> bool:
    """Return whether a fixture replaces something outside of itself, by a patch or an assignment."""
    assigned = (each.targets for each in ast.walk(fixture) if isinstance(each, ast.Assign))
    attributes = (each for targets in assigned for each in targets if isinstance(each, ast.Attribute))
    names = (dotted(each, {}).partition(".")[0] for each in attributes)
    if not module.aliases.keys().isdisjoint(names):
        return True
    text = ast.unparse(fixture)
    return bool(_PATCHES.search(text) or _DECIDES.search(text))


def _replaced_subjects(
    changes: TreeDifferences, before: Module | None, now: Module
) -> Iterator[HygieneSignal]:
    """Yield new code that replaces a function of the product for all tests, or for those that call it."""
    known = before.statements if before is not None else frozenset[str]()
    for node in now.tree.body:
        is_new = isinstance(node, ast.Assign | ast.Expr) and shape(node) not in known
        # A patch that is assigned to a name is not in effect yet.
        statement = ast.Assign(node.targets, ast.Constant(None)) if isinstance(node, ast.Assign) else node
        for name in _replaced(statement, changes, now) if is_new else ():
            message = f"{name} is replaced for its tests"
            yield file_signal("subject-replaced", message, now.path, line=node.lineno, after=now.line(node))
    is_shared = changes.kind(now.path) is JudgeKind.CONFTEST
    top = posixpath.join(posixpath.dirname(now.path), "") if is_shared else now.path
    tests = [path for path in changes.old if path.startswith(top) and changes.kind(path) is JudgeKind.TEST]
    for node, holder, is_late in _set_ups(now):
        replaced = set[str](() if shape(node) in known else _replaced(node, changes, now))
        if replaced and before is not None:
            earlier = (each for each, of, _ in _set_ups(before) if of == holder)
            replaced -= {name for each in earlier for name in _replaced(each, changes, before)}
        names = [each.rpartition(".")[2] for each in replaced]
        modules = filter(None, (changes.module(path, now=True) for path in tests if replaced))
        asking = (module for module in modules if any(f"{name}(" in module.text for name in names))
        versions = ((one, _read_tests(changes.module(one.path, now=False))) for one in asking)
        known_tests = (
            (one, *unit) for one, was in versions for unit in _read_tests(one).items() if unit[0] in was
        )
        for each, place, test in known_tests:
            owners = set(place.split("::")[:-1])
            if holder and holder not in owners and each.bases.isdisjoint({holder, *owners}):
                continue  # the set-up of another class
            parts = list(ast.walk(test.node))
            functions = [part.func for part in parts if isinstance(part, ast.Call)]
            # A name that the module has imported before keeps its meaning.
            if is_late and not any(isinstance(part, _IMPORTS) for part in parts):
                functions = [function for function in functions if not isinstance(function, ast.Name)]
            calls = {dotted(function, each.aliases) for function in functions}
            if found := [name for name in replaced for call in calls if _may_call(call, name, each)]:
                message = f"{place} calls {min(found)}, which {node.name} replaces"
                nodeid = f"{each.path}::{place}"
                yield file_signal("assertions-fewer", message, now.path, line=node.lineno, nodeid=nodeid)


def _set_ups(module: Module) -> Iterator[tuple[Function, str, bool]]:
    """Yield the functions that run before tests, each with its class, and whether after all imports.

    What a function restores after the tests is not read.
    """
    nodes = list(ast.walk(module.tree))
    classes = {part: each.name for each in nodes if isinstance(each, ast.ClassDef) for part in each.body}
    run = {ast.unparse(each) for each in module.tree.body if isinstance(each, ast.Expr)}
    for node in (each for each in nodes if isinstance(each, FUNCTIONS)):
        is_early = f"{node.name}()" in run or node.name.startswith("pytest_")
        is_fixture = "autouse=True" in _fixture_decorator(node, module)
        is_called = _READ_BY_PYTEST.fullmatch(node.name) and not node.name.lower().startswith("teardown")
        if is_early or is_fixture or is_called:
            yield node, classes.get(node, ""), not is_early


def _may_call(call: str, function: str, module: Module) -> bool:
    """Return whether a dotted name may be that of a function of the product, or of a method.

    The class of a method has to be named in the module, as other classes may have a method of that name.
    """
    top, name, last = call.partition(".")[0], call.rpartition(".")[2], function.rpartition(".")[2]
    imported = {each.partition(".")[0] for each in module.aliases.values()}
    usual = (str, bytes, list, dict, set, io.StringIO, Path)  # whose methods may have the same name
    owner = function.split(".")[-2]
    is_class = owner[:1].isupper() and re.search(rf"\b{owner}\b", module.text) is not None
    is_object = top not in {call, *imported} and not any(hasattr(each, last) for each in usual)
    return name == last and (top == function.partition(".")[0] or (is_class and is_object))


def _replaced(node: ast.AST, changes: TreeDifferences, module: Module) -> Iterator[str]:
    """Yield the functions of the product that code replaces, by an assignment or a patch."""
    for each in ast.walk(node):
        names: list[str] = []
        if isinstance(each, ast.Assign):  # a name that is bound is only another name of the function
            names = [dotted(one, module.aliases) for one in each.targets if isinstance(one, ast.Attribute)]
        elif isinstance(each, ast.Call) and name_of(each.func) in ("setattr", "patch", "object"):
            path, attribute = (fold(one) for one in [*each.args, None, None][:2])
            owner = dotted(each.args[0], module.aliases) if each.args else ""
            names = [path if isinstance(path, str) else f"{owner}.{attribute}"]
            wrapped = {one.arg: dotted(one.value, module.aliases) for one in each.keywords}
            if wrapped == {"wraps": names[0]}:  # a spy, which calls the function
                continue
        for owner, _, name in (each.rpartition(".") for each in names):
            folder = owner.replace(".", "/")  # of a module, or the class of a method
            files = {folder, posixpath.dirname(folder) or folder}
            ends = tuple(f"/{file}{end}" for file in files for end in (".py", "/__init__.py"))
            if owner and any(
                f"/{path}".endswith(ends)
                and changes.kind(path) is JudgeKind.PRODUCT
                and (product := changes.module(path, now=True)) is not None
                and name in {*product.functions, *product.aliases}
                for path in changes.new
            ):
                yield f"{owner}.{name}"


def _fixtures(module: Module | None) -> list[Function]:
    """Return the fixtures at module level."""
    body = module.tree.body if module is not None else []
    return [
        each for each in body if module and isinstance(each, FUNCTIONS) and _fixture_decorator(each, module)
    ]


def _fixture_decorator(node: Function, module: Module) -> str:
    """Return the source of the decorator that makes a function a fixture; empty if there is none."""
    for each in node.decorator_list:
        called = each.func if isinstance(each, ast.Call) else each
        if dotted(called, module.aliases).endswith("fixture"):
            return ast.unparse(each)
    return ""


# -- mere differences --------------------------------------------------------------------------------


def _difference(changes: TreeDifferences, path: str) -> Iterator[HygieneSignal]:
    """Yield a change of a judge that no todo may change, for files without a more specific finding."""
    before, now = changes.module(path, now=False), changes.module(path, now=True)
    if now is None:
        return
    if path not in changes.old:
        is_default = changes.grants.permission(path) is Permission.DEFAULT
        if not is_default and changes.kind(path) is not JudgeKind.TEST:  # new tests weaken nothing
            message = f"{path} was added without permission"
            yield file_signal("judge-changed", message, path)
    elif (
        before is None
        or not _only_adds(before.tree.body, now.tree.body)
        or not _contains_all(_docstring_cases(before), _docstring_cases(now))
    ):
        yield _changed(changes, path, "judge-changed", "was changed without permission")


def _docstring_cases(module: Module) -> list[str]:
    """Return the lines of a module's docstrings that tests may use.

    These are the examples of doctests, and all lines if the module reads a docstring of its own.
    """
    nodes = list(ast.walk(module.tree))
    is_read = any(
        name_of(each) == "__doc__"
        and dotted(getattr(each, "value", each), {}).partition(".")[0] not in module.aliases
        for each in nodes
    )
    lines: list[str] = []
    for each in nodes:
        is_case = False
        text = ast.get_docstring(each) if isinstance(each, (*_DEFINITIONS, ast.Module)) else None
        for line in (text or "").splitlines():
            # An example ends with an empty line.
            is_case = is_read or line.lstrip().startswith(">>>") or (is_case and bool(line.strip()))
            lines += [line] if is_case else []
    return lines


def _changed(changes: TreeDifferences, path: str, sign: str, what: str) -> HygieneSignal:
    """Return a finding at the first differing line, with that line before and now."""
    old, new = (
        [*(text.read(path) or b"").decode("utf-8", "replace").splitlines(), ""]
        for text in (changes.before, changes.now)
    )
    shared = min(len(old), len(new)) - 1  # both end with an empty line, for files that only grew or shrank
    at = next((at for at in range(shared) if old[at] != new[at]), shared)
    message, line = f"{path} {what}", at + 1
    return file_signal(sign, message, path, line=line, before=old[at], after=new[at])


def _only_adds(before: list[ast.stmt], now: list[ast.stmt]) -> bool:
    """Return whether all earlier statements remain in order, and new ones only bind new names.

    New names that pytest or unittest use, autouse fixtures, and imports that rebind a name are changes.
    """
    then = {name: source for each in before for name, source in _names_bound(each)}
    remaining = [each for each in before if not _is_quiet(each)]
    for node in now:
        names = dict(_names_bound(node))
        if remaining and (shape(remaining[0]) == shape(node) or _extends(remaining[0], node)):
            remaining.pop(0)
        elif isinstance(node, _IMPORTS):
            if any(then.get(name, source) != source for name, source in names.items()):
                return False
        elif not _is_quiet(node):
            is_read_by_pytest = any(map(_READ_BY_PYTEST.fullmatch, names)) and not _only_declares(node)
            is_read_by_pytest |= "autouse" in ast.unparse(node)
            if is_read_by_pytest or not names or not names.keys().isdisjoint(then):
                return False
    return not remaining


def _only_declares(node: ast.stmt) -> bool:
    """Return whether a statement is a hook that only adds options or marks, or shows something."""
    if not isinstance(node, ast.FunctionDef) or not _DECLARING_HOOK.fullmatch(node.name):
        return False
    simple = all(isinstance(each, ast.Expr | ast.Return | ast.Assign) for each in node.body)
    calls = [ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Call)]
    # Attributes and items of pytest's objects could be changed without a call.
    stores = [each for each in ast.walk(node) if isinstance(getattr(each, "ctx", None), ast.Store)]
    return (
        simple
        and all(map(_DECLARING_CALL.fullmatch, calls))
        and all(isinstance(each, ast.Name) for each in stores)
    )


def _extends(was: ast.stmt, node: ast.stmt) -> bool:
    """Return whether a class differs from its earlier version by new members only."""
    if not (isinstance(was, ast.ClassDef) and isinstance(node, ast.ClassDef) and was.name == node.name):
        return False
    heads = [[*map(shape, (*each.bases, *each.keywords, *each.decorator_list))] for each in (was, node)]
    return heads[0] == heads[1] and _only_adds(was.body, node.body)


def _is_quiet(node: ast.stmt) -> bool:
    """Return whether a statement is an import, or a bare constant such as a docstring."""
    return isinstance(node, _IMPORTS) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _names_bound(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the names that a statement binds, each with the import that it comes from (empty if none)."""
    if isinstance(node, _IMPORTS):
        source = ast.unparse(node).partition("import")[0]
        for name in node.names:
            origin = name.name if source or name.asname else name.name.partition(".")[0]
            yield name.asname or origin, f"{source}{origin}"  # "import a.b" binds a
    elif isinstance(node, _DEFINITIONS):
        yield node.name, ""
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from ((each.id, "") for each in targets if isinstance(each, ast.Name))


# -- data --------------------------------------------------------------------------------------------


def _data_findings(changes: TreeDifferences, path: str) -> Iterator[HygieneSignal]:
    """Yield a changed data file, unless only its formatting changed, or the plan lets it gain entries."""
    old, new = changes.before.read(path), changes.now.read(path)
    if old is not None and new is not None:
        before, now = _parsed(path, old), _parsed(path, new)
        permission = changes.grants.permission(path)
        if before == now or (permission is Permission.DEFAULT and _contains_all(before, now)):
            return
        if permission is Permission.GRANTED and _count(now) < _count(before):
            yield from _lost_cases(changes, path)
    yield _changed(changes, path, "data-changed", "has different content")


def _lost_cases(changes: TreeDifferences, path: str) -> Iterator[HygieneSignal]:
    """Yield a finding for each test that may read a data file, which has fewer entries than before."""
    stem = posixpath.splitext(posixpath.basename(path))[0]
    files = [each for each in changes.new if changes.kind(each) is JudgeKind.TEST]
    for module in filter(None, (changes.module(each, now=True) for each in files)):
        # In the definition of the test, or outside of all.
        named = {getattr(each, "name", "") for each in module.tree.body if stem in ast.unparse(each)}
        for name, test in _read_tests(module).items() if named else ():
            if not test.is_helper and named & {"", name.partition("::")[0]}:
                message, nodeid = f"{path} has fewer entries for its tests", f"{module.path}::{name}"
                yield file_signal("assertions-fewer", message, path, nodeid=nodeid)


def _parsed(path: str, content: bytes) -> Any:
    """Return JSON or YAML as values, other text as lines, and what cannot be parsed as bytes."""
    import yaml

    try:
        text = content.decode("utf-8-sig")
        with usual_depth():
            if path.endswith(".json"):
                return json.loads(text)
            if path.endswith((".yaml", ".yml")):
                value = yaml.safe_load(text)
                return content if _count(value) > 1_000_000 else value
    # PyYAML raises the last three for values that do not fit their tags, as in !!int "".
    except (ValueError, RecursionError, yaml.YAMLError, LookupError, AttributeError, ArithmeticError):
        return content
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")


def _count(value: Any) -> int:
    """Return the number of values in data, with aliases expanded; at most about a million."""
    pending, count = [value], 0
    while pending and count <= 1_000_000:
        each, count = pending.pop(), count + 1
        pending += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
    return count


def _contains_all(old: Any, new: Any) -> bool:
    """Return whether new data contains all of the old: each key, and each list item in its order."""
    if isinstance(old, dict) and isinstance(new, dict):
        was, now = cast("dict[Any, Any]", old), cast("dict[Any, Any]", new)
        return all(key in now and _contains_all(value, now[key]) for key, value in was.items())
    if isinstance(old, list) and isinstance(new, list):
        rest = iter(cast("list[Any]", new))
        return all(any(each == one for one in rest) for each in cast("list[Any]", old))
    return bool(old == new)
