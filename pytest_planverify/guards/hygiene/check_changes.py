"""What became of the checks of one test."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.checks import Strength
from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.reading import shape
from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.guards.hygiene.suite import literals_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_planverify.guards.hygiene.checks import Check
    from pytest_planverify.guards.hygiene.suite import TestUnit

_ASKS_FOR_LESS = {
    ("==", "in"),
    ("==", "!="),
    ("==", ">="),
    ("==", "<="),
    ("==", ">"),
    ("==", "<"),
    ("==", "isinstance"),
    ("==", "hasattr"),
    ("is", "=="),
    ("and", "or"),
}
_CONVERSIONS = frozenset(
    {"list", "tuple", "dict", "fspath", "Path", "Decimal", "array", "dumps", "loads", "resolve"}
)
"""Functions that leave all of what they are given."""
_ORDERS = frozenset({"sorted", "set", "frozenset", "Counter", "normalize"})


@dataclass(frozen=True, slots=True)
class Pair:
    """One test before and now."""

    before: TestUnit
    now: TestUnit

    def find(
        self,
        sign: str,
        message: str,
        node: ast.AST,
        *,
        before: str | None = None,
        after: str | None = None,
    ) -> Find:
        """A find at a node of the test as it is now."""
        return Find(
            sign=sign,
            message=message,
            path=self.now.module.path,
            line=getattr(node, "lineno", None),
            place=self.now.name,
            before=before,
            after=after if after is not None else self.now.module.line(node) or None,
            nodeid=self.now.nodeid,
            was=self.before.nodeid,
        )


@dataclass(frozen=True, slots=True)
class Fresh:
    """What the tests make now that they did not make before."""

    checks: tuple[tuple[Check, TestUnit], ...]
    pool: frozenset[str]
    """Literals of changed data files, and of modules that are new."""


def fresh_checks(pairs: Sequence[Pair], added: Sequence[TestUnit], pool: Collection[str]) -> Fresh:
    """The checks of tests that are new, and the new checks of those that are not."""
    found = [(check, unit) for unit in added if unit.collected for check in unit.all_checks if check.counts]
    for pair in pairs:
        if pair.now.collected and pair.before.text != pair.now.text:
            found += [(check, pair.now) for check in difference(pair)[1]]
    return Fresh(tuple(found), frozenset(pool))


def compare_checks(pair: Pair, fresh: Fresh) -> Iterator[Find]:
    """Checks that are gone, ask for less, or cannot fail any more."""
    lost, added = difference(pair)
    counting = [check for check in pair.now.all_checks if check.counts]
    if any(check.counts for check in pair.before.all_checks) and not counting:
        if not all(is_accounted_for(check, fresh) for check in lost):
            yield _without_checks(pair, lost)
        return
    yield from _guarded(pair)
    for check in lost:
        found = _judged(check, added, pair, fresh)
        if found is not None:
            yield found
    if not lost and not added:
        yield from _other_inputs(pair, fresh)


def is_accounted_for(check: Check, fresh: Fresh) -> bool:
    """Whether some new check of a test asks for the same, with the same values, under other names."""
    called, values = _called(check), set(literals_in(check.parts)) | set(check.match_values)
    for candidate, unit in fresh.checks:
        if candidate.operator != check.operator or candidate.strength < check.strength:
            continue
        if check.matched and not candidate.matched:
            continue
        if not called <= _called(candidate) | unit.words:
            continue
        held = set(literals_in(candidate.parts)) | set(candidate.match_values)
        if _is_open(candidate):
            held |= unit.literals | fresh.pool | _constants(unit)
        if values <= held:
            return True
    return False


def _is_open(check: Check) -> bool:
    """Whether it compares with something that is called by a name, such as a parameter."""
    return check.operator in ("raises", "warns") or any(
        isinstance(each, ast.Name) for part in check.parts[1:] or check.parts for each in ast.walk(part)
    )


def _other_inputs(pair: Pair, fresh: Fresh) -> Iterator[Find]:
    """The same checks, of other things."""
    gone = pair.before.literals - pair.now.literals - fresh.pool - _constants(pair.now)
    if gone and len(pair.before.cases) == len(pair.now.cases) == 0:
        said = f"The test {pair.now.name} is made with other values: {', '.join(sorted(gone)[:3])} is gone"
        yield pair.find("expected-changed", said, pair.now.node).softer()


def difference(pair: Pair) -> tuple[list[Check], list[Check]]:
    """The checks that are there no more, and those that are new."""
    masked_before, masked_now = _locals(pair.before), _locals(pair.now)
    now = [(check.text(masked_now), check) for check in pair.now.all_checks if check.counts]
    left = Counter(text for text, _ in now)
    lost: list[Check] = []
    for check in pair.before.all_checks:
        text = check.text(masked_before)
        if left[text] > 0:
            left[text] -= 1
        elif check.counts:
            lost.append(check)
    added: list[Check] = []
    for text, check in now:
        if left[text] > 0:
            left[text] -= 1
            added.append(check)
    return lost, added


def _without_checks(pair: Pair, lost: list[Check]) -> Find:
    """Nothing of the test can fail it: for the first reason that shows."""
    for check in pair.now.all_checks:
        for sign, applies, said in (
            ("assertion-swallowed", check.swallowed, "catches what its assertions raise"),
            ("assertion-unreachable", not check.reached, "never comes to its assertions"),
            ("assertion-always-true", check.strength is Strength.NOTHING, "asserts what is always true"),
        ):
            if applies:
                return pair.find(
                    sign, f"The test {pair.now.name} {said}", check.node, before=_spelled(lost)
                )
    return pair.find(
        "test-emptied",
        f"The test {pair.now.name} asserts nothing any more",
        pair.now.node,
        before=_spelled(lost),
    )


def _judged(check: Check, added: list[Check], pair: Pair, fresh: Fresh) -> Find | None:
    before_names, now_names = _locals(pair.before), _locals(pair.now)
    text = check.text(before_names)
    for other in pair.now.all_checks:
        if (other.swallowed or not other.reached) and other.text(now_names) == text:
            sign = "assertion-swallowed" if other.swallowed else "assertion-unreachable"
            said = "is caught" if other.swallowed else "is never reached"
            return _about(pair, sign, f"An assertion of {pair.now.name} {said}", check, other)
    twin = _twin(check, added, before_names, now_names)
    if twin is not None:
        added.remove(twin)
        return _compared(check, twin, pair, fresh)
    if is_accounted_for(check, fresh) or _is_of_a_helper(check, pair):
        return None
    hollow = next((c for c in pair.now.checks if c.strength is Strength.NOTHING), None)
    if hollow is not None and not any(c.strength is Strength.NOTHING for c in pair.before.checks):
        said = f"An assertion of {pair.now.name} is always true"
        return _about(pair, "assertion-always-true", said, check, hollow)
    return pair.find(
        "assertion-removed",
        f"An assertion of {pair.now.name} is gone",
        pair.now.node,
        before=ast.unparse(check.node),
        after="",
    )


def _is_of_a_helper(check: Check, pair: Pair) -> bool:
    """What a helper compares, with values of the test: the test itself compares something so now."""
    if check in pair.before.checks or _called(check) or set(literals_in(check.parts)):
        return False
    return any(each.counts and each.operator == check.operator for each in pair.now.checks)


def _compared(check: Check, twin: Check, pair: Pair, fresh: Fresh) -> Find | None:
    name = pair.now.name
    if _counts_what_is_compared(check, twin, pair):
        return None
    other = _other_value(check, twin, pair, fresh) or _less_of_both(check, twin, pair)
    if other is not None:
        return other
    weaker = twin.strength < check.strength or (check.operator, twin.operator) in _ASKS_FOR_LESS
    if weaker and not is_accounted_for(check, fresh):
        return _about(pair, "assertion-weakened", f"An assertion of {name} asks for less", check, twin)
    if (twin.tolerance or 0) > (check.tolerance or 0) * 1.001 and check.operator == twin.operator:
        return _about(pair, "assertion-weakened", f"An assertion of {name} allows more", check, twin)
    is_asked = _message_is_asked(check, pair)
    if check.matched and not twin.matched and not is_asked:
        return _about(pair, "assertion-weakened", f"{name} accepts any message", check, twin)
    values = set(literals_in(check.parts)) | set(() if is_asked else check.match_values)
    kept = set(literals_in(twin.parts)) | set(twin.match_values)
    if _is_open(twin):
        kept |= pair.now.literals | fresh.pool | _constants(pair.now)
    if weaker or values <= kept or is_accounted_for(check, fresh):
        return None
    return _about(pair, "expected-changed", f"An expected value of {name} is another one", check, twin)


def _counts_what_is_compared(check: Check, twin: Check, pair: Pair) -> bool:
    """``len(parts) == 2`` became ``len(parts) == len(expected)``, beside ``parts == expected``."""
    if not (check.operator == twin.operator == "==" and len(check.parts) == len(twin.parts) == 2):
        return False
    made, whole = ([ast.unparse(each) for each in _given_to_len(part)] for part in twin.parts)
    if not (made and whole) or made == whole or not _given_to_len(check.parts[0]):
        return False
    return any(
        each.operator == "==" and [ast.unparse(part) for part in each.parts] == [*made, *whole]
        for each in pair.now.all_checks
    )


def _given_to_len(node: ast.AST) -> list[ast.expr]:
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "len":
        return []
    return [each for each in node.args if isinstance(each, ast.Name)]


def _message_is_asked(check: Check, pair: Pair) -> bool:
    """``match="empty"`` became ``assert "empty" in str(caught.value)``."""
    values = set(check.match_values)
    return bool(values) and any(
        each.counts
        and each.operator in ("in", "==")
        and values <= {f"Constant({said})" for said in literals_in(each.parts)}
        for each in pair.now.all_checks
    )


def _other_value(check: Check, twin: Check, pair: Pair, fresh: Fresh) -> Find | None:
    """The same is looked at, and what it should be is another constant, or asks the product itself."""
    if not (check.operator == twin.operator == "==" and len(check.parts) == len(twin.parts) == 2):
        return None
    left, right = check.parts
    if shape(left, _locals(pair.before)) != shape(twin.parts[0], _locals(pair.now)):
        return None
    was, now = (
        fold(each, unit.module.constants) if isinstance(each, ast.expr) else NOTHING
        for each, unit in ((right, pair.before), (twin.parts[1], pair.now))
    )
    if was is NOTHING or shape(right) == shape(twin.parts[1]):
        return None
    if any(
        unit is not pair.now
        and [shape(part) for part in each.parts] == [shape(part) for part in check.parts]
        for each, unit in fresh.checks
    ):
        return None
    if now is not NOTHING and now != was:
        said = f"An expected value of {pair.now.name} is another one"
        return _about(pair, "expected-changed", said, check, twin)
    if now is NOTHING and _called(twin, 0) & _called(twin, 1):
        said = f"{pair.now.name} expects what the product says"
        return _about(pair, "assertion-weakened", said, check, twin)
    return None


def _less_of_both(check: Check, twin: Check, pair: Pair) -> Find | None:
    """Both sides go through the same function before they are compared, which they did not."""
    if not (check.operator == twin.operator and len(check.parts) == len(twin.parts) == 2):
        return None
    before_names, now_names = _locals(pair.before), _locals(pair.now)
    outer = [_outermost(part) for part in twin.parts]
    if not outer[0] or outer[0] != outer[1] or outer[0] in _CONVERSIONS:
        return None
    if any(_outermost(part) == outer[0] for part in check.parts):
        return None
    inside = all(
        any(shape(each, now_names) == shape(part, before_names) for each in ast.walk(twin.parts[at]))
        for at, part in enumerate(check.parts)
    )
    if not inside:
        return None
    said = f"An assertion of {pair.now.name} compares less, what {outer[0]} leaves of both sides"
    found = _about(pair, "assertion-weakened", said, check, twin)
    return found.softer() if outer[0] in _ORDERS else found


def _outermost(node: ast.AST) -> str:
    """The function or method that an expression is a call of; of an attribute its name."""
    if isinstance(node, ast.Call):
        return getattr(node.func, "attr", getattr(node.func, "id", ""))
    if isinstance(node, ast.Subscript):
        return "a part"
    return ""


def _guarded(pair: Pair) -> Iterator[Find]:
    """Checks that are made under a condition now."""
    before_names, now_names = _locals(pair.before), _locals(pair.now)
    free = {check.text(before_names) for check in pair.before.checks if not check.guarded and check.counts}
    still = {check.text(now_names) for check in pair.now.checks if not check.guarded and check.counts}
    for check in pair.now.checks:
        text = check.text(now_names)
        if check.guarded and check.counts and text in free and text not in still:
            said = f"An assertion of {pair.now.name} is made under a condition only"
            yield pair.find("assertion-weakened", said, check.node)


def _twin(check: Check, added: list[Check], before: frozenset[str], now: frozenset[str]) -> Check | None:
    """The new check that stands where this one stood: it looks at the same."""
    subject = _subject(check, before)
    same = [other for other in added if _subject(other, now) == subject]
    if same:
        return max(same, key=lambda other: (other.operator == check.operator, other.strength))
    called = _called(check)
    related = [other for other in added if called & _called(other)]
    if related:
        return max(
            related, key=lambda o: (o.operator == check.operator, len(called & _called(o)), o.strength)
        )
    return None


def _subject(check: Check, masked: frozenset[str]) -> str:
    if check.operator in ("raises", "warns"):
        return check.operator
    return shape(check.parts[0], masked) if check.parts else ""


def _called(check: Check, at: int | None = None) -> set[str]:
    """The functions, methods and attributes that a check, or one part of it, looks at."""
    found: set[str] = set()
    for part in check.parts if at is None else check.parts[at : at + 1]:
        for each in ast.walk(part):
            if isinstance(each, ast.Attribute) and not _is_self(each):
                found.add(each.attr)
            elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
                found.add(each.func.id)
    return found


def _is_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _locals(unit: TestUnit) -> frozenset[str]:
    """Names that the test binds itself, its parameters included."""
    names = {arg.arg for arg in (*unit.node.args.args, *unit.node.args.kwonlyargs)}
    names |= {
        each.id
        for each in ast.walk(unit.node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return frozenset(names)


def _constants(unit: TestUnit) -> set[str]:
    """Literals of the constants, fixtures and helpers of its module that it uses."""
    bound, made = unit.module.constants, unit.module.functions
    names = unit.words | {arg.arg for arg in unit.node.args.args}
    used: list[ast.AST] = [bound[name] for name in names & bound.keys()]
    used += [made[name] for name in names & made.keys() if made[name] is not unit.node]
    return set(literals_in(used))


def _about(pair: Pair, sign: str, said: str, check: Check, other: Check) -> Find:
    return pair.find(sign, said, other.node, before=ast.unparse(check.node), after=ast.unparse(other.node))


def _spelled(checks: list[Check]) -> str | None:
    return ast.unparse(checks[0].node) if checks else None
