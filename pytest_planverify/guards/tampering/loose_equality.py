"""Find classes of the project whose comparisons agree with everything, however they were made.

Only bodies without a side effect are tried out: those that do nothing but compare what they were given.
"""

from __future__ import annotations

import builtins
import dis
import gc
from types import FunctionType
from typing import TYPE_CHECKING, Any

from pytest_planverify.guards.tampering.code_files import defining_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_CLASSES = 20_000
MOST_FOUND = 200
_LONGEST_BODY = 160
"""Bytes; what only agrees is short."""

_NAMES = {"__eq__", "__ne__"}

_HARMLESS = (
    "RESUME", "LOAD_FAST", "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_DEREF", "LOAD_CLOSURE", "COPY_FREE_VARS",
    "RETURN_", "POP_TOP", "COMPARE_OP", "IS_OP", "UNARY_NOT", "TO_BOOL", "NOP", "COPY", "POP_JUMP_FORWARD",
    "POP_JUMP_IF", "JUMP_FORWARD", "JUMP_IF", "LOAD_GLOBAL", "PUSH_NULL", "PRECALL", "CALL", "CACHE",
    "MAKE_CELL", "STORE_FAST", "NOT_TAKEN", "BUILD_TUPLE",
)  # fmt: skip
_BUILTINS: dict[str, object] = {
    each.__name__: each
    for each in (
        isinstance, type, bool, object, id, str, int, float, complex, bytes, list, tuple, dict, set,
        frozenset, callable, Exception,
    )
} | {"NotImplemented": NotImplemented}  # fmt: skip
"""What a harmless body may name, as it was before anything of the project was loaded."""

_unfrozen: list[object] = []


def skip_frozen_classes() -> None:
    """Look only at classes made from now on, in a process that a server has just forked."""
    _unfrozen[:] = [[]]


def agreeing_methods(is_environment: Callable[[str], bool]) -> list[list[str]]:
    """Return file, class and name of each comparison of the project that agrees with everything."""
    found: dict[tuple[str, str, str], None] = {}
    for kind in _classes():
        members = type.__dict__["__dict__"].__get__(kind)
        for name in _NAMES & members.keys():
            function = members[name]
            if type(function) is not FunctionType or is_environment(function.__code__.co_filename):
                continue
            file = defining_file(function, kind)
            if not is_environment(file) and agrees(name, function):
                found[file, f"{kind.__module__}.{kind.__qualname__}", name] = None
        if len(found) >= MOST_FOUND:
            break
    return [list(each) for each in sorted(found)]


def agrees(name: str, function: FunctionType) -> bool:
    """Check whether a comparison finds things equal that have nothing in common."""
    code = function.__code__
    if code.co_argcount != 2 or len(code.co_code) > _LONGEST_BODY or not _is_harmless(function):
        return False
    others: tuple[object, ...] = (object(), "an unlikely text", -98765.4321, [object()])
    try:
        answers = [function(object(), other) for other in others]
    except Exception:  # it asks for something that an object does not have
        return False
    answers = [bool(answer) for answer in answers if answer is not NotImplemented]
    return any(answers) if name == "__eq__" else bool(answers) and not any(answers)


def _classes() -> Iterator[type[Any]]:
    """Yield every class that is alive, but for those that a server had before it forked this process.

    What the server had is frozen, and to look at it would copy the pages that it lies in. Where the mark
    that was set after the fork is frozen as well, somebody may hide classes, and all are looked at.
    """
    objects = gc.get_objects() if _unfrozen else []
    if any(each is _unfrozen[0] for each in objects):
        kinds = list(map(type, objects))
        metaclasses = {kind for kind in set(kinds) if issubclass(kind, type)}
        yield from (each for each, kind in zip(objects, kinds, strict=True) if kind in metaclasses)
        return
    pending: list[type[Any]] = [object]
    seen: set[int] = set()
    while pending and len(seen) < MOST_CLASSES:
        for kind in type.__subclasses__(pending.pop()):
            if id(kind) not in seen:
                seen.add(id(kind))
                pending.append(kind)
                yield kind


def _is_harmless(function: FunctionType) -> bool:
    code = function.__code__
    for name in code.co_names:
        known = function.__globals__.get(name, getattr(builtins, name, None))
        if name not in _BUILTINS or known is not _BUILTINS[name]:
            return False
    return all(
        each.opname.startswith(_HARMLESS)
        and "BACKWARD" not in each.opname
        and not each.opname.startswith("CALL_INTRINSIC")
        for each in dis.get_instructions(code)
    )
