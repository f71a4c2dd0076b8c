"""Classes of the project whose comparisons agree with everything, however they were made.

Only bodies without a side effect are tried out: those that do nothing but compare what they were given.
"""

from __future__ import annotations

import builtins
import dis
import gc
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from pytest_planverify.observe.inventory import defining_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_CLASSES = 20_000
MOST_FOUND = 200
_LONGEST_BODY = 160
"""Bytes; what only agrees is short."""

EQUAL = ("__eq__", "__ne__")
"""What a test compares with."""
TRUE = ("__bool__", "__len__", "__contains__", "__lt__", "__le__", "__gt__", "__ge__")
"""What may honestly be one answer for a whole class."""
_NAMES = frozenset({*EQUAL, *TRUE})

_HARMLESS = (
    "RESUME", "LOAD_FAST", "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_DEREF", "LOAD_CLOSURE", "COPY_FREE_VARS",
    "RETURN_", "POP_TOP", "COMPARE_OP", "IS_OP", "UNARY_NOT", "TO_BOOL", "NOP", "COPY", "POP_JUMP_FORWARD",
    "POP_JUMP_IF", "JUMP_FORWARD", "JUMP_IF", "LOAD_GLOBAL", "PUSH_NULL", "PRECALL", "CALL", "CACHE",
    "MAKE_CELL", "STORE_FAST", "NOT_TAKEN", "BUILD_TUPLE",
)  # fmt: skip
_BACKWARD = "BACKWARD"
_HARMLESS_BUILTINS = frozenset(
    {
        "isinstance",
        "type",
        "bool",
        "object",
        "NotImplemented",
        "id",
        "str",
        "int",
        "float",
        "complex",
        "bytes",
    }
    | {"list", "tuple", "dict", "set", "frozenset", "callable", "True", "False", "None", "Exception"}
)
_ABSENT = object()


def agreeing_classes(is_environment: Callable[[str], bool]) -> list[list[str]]:
    """File, class and method of each special method of the project that agrees with everything."""
    found: dict[tuple[str, str, str], None] = {}
    for kind in _classes():
        members = type.__dict__["__dict__"].__get__(kind)
        for name in _NAMES & members.keys():
            function = members[name]
            if type(function) is not FunctionType or _known.get(function) is function.__code__:
                continue
            if is_environment(function.__code__.co_filename):
                continue
            file = defining_file(function, kind)
            if not is_environment(file) and agrees(name, function):
                found[file, f"{kind.__module__}.{kind.__qualname__}", name] = None
        if len(found) >= MOST_FOUND:
            break
    return [list(each) for each in sorted(found)]


def know_classes(is_environment: Callable[[str], bool]) -> None:
    """Look once at the classes that are there before anything of a project is loaded."""
    for kind in _classes():
        members = type.__dict__["__dict__"].__get__(kind)
        for name in _NAMES & members.keys():
            function = members[name]
            if type(function) is FunctionType and is_environment(defining_file(function, kind)):
                _known[function] = function.__code__


_known: dict[FunctionType, CodeType] = {}
_sign: list[object] = []


def leave_out_frozen() -> None:
    """Look only at what is made from now on, in a process that was just forked by a server."""
    global _sign
    _sign = [object()]


def agrees(name: str, function: FunctionType) -> bool:
    """Whether a special method gives the agreeing answer to things that have nothing in common."""
    wanted = name != "__ne__"
    code = function.__code__
    if code.co_argcount not in (1, 2) or len(code.co_code) > _LONGEST_BODY or not _is_harmless(function):
        return False
    others: tuple[object, ...] = (object(), "an unlikely text", -98765.4321, [object()])
    try:
        if code.co_argcount == 1:
            answers = [function(object())]
        else:
            answers = [function(object(), other) for other in others]
    except Exception:  # it asks for something that an object does not have
        return False
    answers = [answer for answer in answers if answer is not NotImplemented]
    if name in TRUE or not wanted:
        return bool(answers) and all(bool(answer) is wanted for answer in answers)
    return any(bool(answer) for answer in answers)


def _classes() -> Iterator[type[Any]]:
    """Yield every class that is alive, but for those that a server had before it forked this process.

    What the server had is frozen, and to look at it would copy the pages that it lies in. Where the sign
    that was set after the fork is frozen as well, somebody may hide classes, and all are looked at.
    """
    objects = gc.get_objects() if _sign else []
    if any(each is _sign for each in objects):
        kinds = list(map(type, objects))
        metaclasses = {kind for kind in set(kinds) if issubclass(kind, type)}
        yield from (each for each, kind in zip(objects, kinds, strict=True) if kind in metaclasses)
        return
    pending: list[type[Any]] = [object]
    seen: set[int] = set()
    below = type.__subclasses__
    while pending and len(seen) < MOST_CLASSES:
        for kind in below(pending.pop()) if pending[-1] is not type else _metaclasses(pending):
            if id(kind) not in seen:
                seen.add(id(kind))
                pending.append(kind)
                yield kind


def _metaclasses(pending: list[type[Any]]) -> list[type[Any]]:
    pending.pop()
    return type.__subclasses__(type)


def _is_harmless(function: FunctionType) -> bool:
    code = function.__code__
    for name in code.co_names:
        known = function.__globals__.get(name, getattr(builtins, name, _ABSENT))
        if name not in _HARMLESS_BUILTINS or known is not _BUILTINS.get(name, _ABSENT):
            return False
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if not name.startswith(_HARMLESS) or _BACKWARD in name or name.startswith("CALL_INTRINSIC"):
            return False
    return True


_BUILTINS = {name: getattr(builtins, name) for name in _HARMLESS_BUILTINS if hasattr(builtins, name)}
