"""What became of each test: matched across renames and moves, and compared check by check."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.check_changes import (
    Fresh,
    Pair,
    compare_checks,
    fresh_checks,
    is_accounted_for,
)
from pytest_planverify.guards.hygiene.reading import shape
from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.guards.hygiene.stand_ins import patched_names
from pytest_planverify.guards.hygiene.suite import literals_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from pytest_planverify.guards.hygiene.suite import TestUnit

_CHOOSERS = frozenset({"filter", "islice", "takewhile", "dropwhile", "compress", "filterfalse"})
_AGAIN = ("flaky", "rerun", "retry", "retries", "tenacity")
_ALIKE = 0.55
"""So much of their words and literals two tests share that are one under another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites:
    """The tests of all changed files, before and now."""

    before: Sequence[TestUnit]
    now: Sequence[TestUnit]
    functions: Sequence[TestUnit]
    """Functions of the files as they are now that are called otherwise than tests."""
    helpers: Sequence[Pair] = ()
    """Functions of support files that tests call, before and now."""
    pool: Collection[str] = frozenset()
    """Literals of changed data files as they are now."""


_KEYS: tuple[Callable[[TestUnit], object], ...] = (
    lambda unit: (unit.module.path, unit.owner, unit.name, unit.collected),
    lambda unit: (unit.module.path, unit.owner, unit.name),
    lambda unit: (unit.owner, unit.name, unit.shape),
    lambda unit: unit.shape,
    lambda unit: (unit.owner, unit.name),
    lambda unit: unit.name,
)
"""By what a test is known again, the surest first."""


def compare_tests(suites: Suites) -> Iterator[Find]:
    """What was done to the tests that were there."""
    pairs, gone = match(suites)
    known = {pair.now for pair in pairs}
    added = [unit for unit in suites.now if unit not in known]
    fresh = fresh_checks(pairs, added, suites.pool)
    for pair in pairs:
        yield from _compare(pair, suites, fresh)
    for pair in suites.helpers:
        if pair.before.shape != pair.now.shape:
            yield from compare_checks(pair, fresh)
    for unit in gone:
        if not unit.collected:
            continue
        double = _under_another_name(unit, suites.functions)
        if double is not None:
            yield Find(
                sign="test-renamed-away",
                message=f"The test {unit.name} is now called {double.name} and is not collected",
                path=double.module.path,
                line=double.node.lineno,
                before=unit.module.line(unit.node),
                after=double.module.line(double.node),
                nodeid=unit.nodeid,
            )
        elif not _lives_on(unit, suites, fresh):
            yield Find(
                sign="test-deleted",
                message=f"The test {unit.name} is gone",
                path=unit.module.path,
                line=unit.node.lineno,
                before=unit.module.line(unit.node),
                nodeid=unit.nodeid,
            )


def match(suites: Suites) -> tuple[list[Pair], list[TestUnit]]:
    """Each test of before with what it is now, and those that are nothing any more."""
    left, right = list(suites.before), list(suites.now)
    pairs: list[Pair] = []
    for key in _KEYS:
        pairs += _matched(left, right, key)
    pairs += _alike(left, right)
    return pairs, left


def likeness(one: TestUnit, other: TestUnit) -> float:
    """How much of their names and literals two tests share, from 0 to 1."""
    first, second = one.words | one.literals, other.words | other.literals
    return len(first & second) / max(len(first | second), 1)


def _matched(
    left: list[TestUnit], right: list[TestUnit], key: Callable[[TestUnit], object]
) -> Iterator[Pair]:
    waiting: dict[object, list[TestUnit]] = {}
    for unit in right:
        waiting.setdefault(key(unit), []).append(unit)
    for unit in list(left):
        same = waiting.get(key(unit))
        if same:
            found = same.pop(0)
            left.remove(unit)
            right.remove(found)
            yield Pair(unit, found)


def _alike(left: list[TestUnit], right: list[TestUnit]) -> Iterator[Pair]:
    if len(left) * len(right) > 40_000:
        return
    scored = sorted(
        ((likeness(one, other), at, to) for at, one in enumerate(left) for to, other in enumerate(right)),
        reverse=True,
    )
    taken: set[TestUnit] = set()
    before, now = list(left), list(right)
    for score, at, to in scored:
        if score < _ALIKE:
            return
        one, other = before[at], now[to]
        if one in taken or other in taken:
            continue
        taken |= {one, other}
        left.remove(one)
        right.remove(other)
        yield Pair(one, other)


def _under_another_name(unit: TestUnit, functions: Sequence[TestUnit]) -> TestUnit | None:
    """The function that does what the test did, and that nothing calls."""
    for other in functions:
        if other.shape == unit.shape or (
            likeness(unit, other) > 0.8 and unit.name.strip("_") in other.name.replace("tset", "test")
        ):
            return other
    return None


def _lives_on(unit: TestUnit, suites: Suites, fresh: Fresh) -> bool:
    """Whether other tests make the same checks."""
    counting = [check for check in unit.all_checks if check.counts]
    if not counting:
        # A test that only calls: its calls must be made by others.
        return any(unit.literals <= other.literals and unit.words <= other.words for other in suites.now)
    return all(is_accounted_for(check, fresh) for check in counting)


def _compare(pair: Pair, suites: Suites, fresh: Fresh) -> Iterator[Find]:
    before, now = pair.before, pair.now
    if before.collected and not now.collected:
        yield pair.find("test-renamed-away", f"The test {before.name} is not collected any more", now.node)
        return
    yield from _marks(pair)
    if before.text == now.text or before.shape == now.shape:
        return
    yield from compare_checks(pair, fresh)
    yield from _cases(pair, suites)
    yield from _chosen_cases(pair)
    yield from _retried(pair)
    yield from _returns(pair)
    new = patched_names(now.node, now.module.aliases) - patched_names(before.node, before.module.aliases)
    for name in sorted(new & before.words):
        yield pair.find("product-mocked", f"The test {now.name} replaces {name}, which it tests", now.node)


def _marks(pair: Pair) -> Iterator[Find]:
    had = Counter((mark.kind, mark.conditional) for mark in pair.before.marks)
    for mark in pair.now.marks:
        if had[mark.kind, mark.conditional] > 0 or had[mark.kind, False] > 0:
            had[mark.kind, mark.conditional] -= 1
            continue
        word = "skipped" if mark.kind == "skip" else "expected to fail"
        sign = "test-skipped" if mark.kind == "skip" else "test-xfailed"
        when = " under a condition" if mark.conditional else ""
        found = pair.find(sign, f"The test {pair.now.name} is {word}{when}", pair.now.node, after=mark.text)
        yield found.softer() if mark.conditional else found


def _cases(pair: Pair, suites: Suites) -> Iterator[Find]:
    left = Counter(pair.before.cases) - Counter(pair.now.cases)
    if not left:
        return
    more = Counter(pair.now.cases) - Counter(pair.before.cases)
    held = pair.now.literals | set(suites.pool) | _neighbours(pair, suites)
    lost = [
        node
        for node, spelled in zip(pair.before.case_nodes, pair.before.cases, strict=True)
        if spelled in left and not set(literals_in([node])) <= held
    ]
    if not lost:
        return
    fewer = left.total() > more.total()
    said = f"{len(lost)} case{'s' * (len(lost) > 1)} of the test {pair.before.name}"
    yield pair.find(
        "cases-removed" if fewer else "expected-changed",
        f"{said} {'are gone' if len(lost) > 1 else 'is gone'}"
        if fewer
        else f"Of {said} the values are others",
        pair.now.node,
        before=ast.unparse(lost[0]),
    )


def _chosen_cases(pair: Pair) -> Iterator[Find]:
    """Cases that are taken out of the list, or expected to fail one by one."""
    had, has = ([*_narrowing(unit)] for unit in (pair.before, pair.now))
    if len(has) > len(had):
        said = f"Only some cases of the test {pair.now.name} are taken"
        yield pair.find("cases-removed", said, has[0], after=ast.unparse(has[0])[:200])
    marked = [[*_marked_cases(unit)] for unit in (pair.before, pair.now)]
    known = {shape(each) for each, _ in marked[0]}
    for each, sign in marked[1]:
        if shape(each) not in known:
            said = f"A case of the test {pair.now.name} is skipped or expected to fail"
            found = pair.find(sign, said, each, after=ast.unparse(each))
            yield found.softer() if _is_new_case(each, pair) or "skipif" in ast.unparse(each) else found


def _narrowing(unit: TestUnit) -> Iterator[ast.expr]:
    for decorator in unit.node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "attr", "") == "parametrize":
            for arg in (
                *decorator.args[1:2],
                *(k.value for k in decorator.keywords if k.arg == "argvalues"),
            ):
                if (
                    (isinstance(arg, ast.Subscript) and isinstance(arg.slice, ast.Slice))
                    or (
                        isinstance(arg, ast.ListComp | ast.GeneratorExp | ast.SetComp)
                        and any(loop.ifs for loop in arg.generators)
                    )
                    or (
                        isinstance(arg, ast.Call)
                        and any(
                            getattr(each, "id", getattr(each, "attr", "")) in _CHOOSERS
                            for each in ast.walk(arg)
                        )
                    )
                ):
                    yield arg


def _marked_cases(unit: TestUnit) -> Iterator[tuple[ast.Call, str]]:
    """``pytest.param(…, marks=pytest.mark.xfail)``."""
    for case in unit.case_nodes:
        if isinstance(case, ast.Call):
            said = " ".join(ast.unparse(each.value) for each in case.keywords if each.arg == "marks")
            if "xfail" in said:
                yield case, "test-xfailed"
            elif "skip" in said:
                yield case, "test-skipped"


def _is_new_case(case: ast.Call, pair: Pair) -> bool:
    """Whether no case of before was made of the same."""
    values = [shape(arg) for arg in case.args]
    for each in pair.before.case_nodes:
        parts = (
            each.args
            if isinstance(each, ast.Call)
            else each.elts
            if isinstance(each, ast.Tuple)
            else [each]
        )
        if [shape(part) for part in parts] == values:
            return False
    return True


def _retried(pair: Pair) -> Iterator[Find]:
    """Decorators that run a test again, or more of it than before."""
    had, has = ([*_retries(unit)] for unit in (pair.before, pair.now))
    known = {shape(each) for each in had}
    for each in has:
        if shape(each) not in known:
            said = f"The test {pair.now.name} is run again until it passes"
            yield pair.find("test-retried", said, each, after=ast.unparse(each))


def _retries(unit: TestUnit) -> Iterator[ast.expr]:
    for decorator in unit.node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = getattr(called, "attr", getattr(called, "id", "")).lower()
        if name.startswith(_AGAIN):
            yield decorator


def _neighbours(pair: Pair, suites: Suites) -> set[str]:
    """Literals of tests that are new: cases may have become tests."""
    known = {unit.name for unit in suites.before}
    return {text for unit in suites.now if unit.name not in known for text in unit.literals}


def _returns(pair: Pair) -> Iterator[Find]:
    """A test that leaves early under a condition, which it did not."""
    had, has = _early_returns(pair.before), _early_returns(pair.now)
    if len(has) > len(had) and any(check.counts for check in pair.now.checks):
        found = pair.find(
            "assertion-unreachable", f"The test {pair.now.name} can return before its end", has[0]
        )
        yield found


def _early_returns(unit: TestUnit) -> list[ast.AST]:
    found: list[ast.AST] = []
    for at, statement in enumerate(unit.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        last = at == len(unit.body) - 1
        found += [
            each
            for each in ast.walk(statement)
            if isinstance(each, ast.Return) and not (last and each is statement)
        ]
    return found
