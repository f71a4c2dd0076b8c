"""What a value is now, in a form that compares with what it is later, without running the project's code.

A value is followed through containers, instances, closures and what the interpreter's own objects tell of
themselves. Neither a user's ``__eq__``, ``__hash__`` or ``__repr__`` is called, nor is an object asked for
its ``__class__``, by which a lazy one would be woken up. What cannot be looked into has its identity only.
"""

from __future__ import annotations

import gc
import logging
import marshal
import os
import random
import re
import sys
import sysconfig
import types
from collections import deque
from functools import _lru_cache_wrapper, cache
from typing import TYPE_CHECKING, Any, cast

from pytest_planverify.observing.caches import called_caches, is_store
from pytest_planverify.observing.value_readers import (
    BASES,
    READERS,
    SIZED,
    class_members,
    contents,
    is_number,
    is_plain,
    module_members,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_VALUES = 5_000
"""A fingerprint stops looking closer after so many values."""
MAX_LIBRARY_DEPTH = 2
"""How many objects of libraries are looked into, one inside the other."""
_LONG = 200
"""Containers longer than this are compared as bytes, if what they hold is plain."""
_BYTES_A_VALUE = 100

_OPAQUE = (
    types.ModuleType, types.CodeType, types.BuiltinFunctionType, types.FrameType, types.TracebackType,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.ClassMethodDescriptorType, types.GenericAlias, re.Pattern, range,
)  # fmt: skip
_FIXED = frozenset({"typing", "pathlib"})
"""Modules whose objects never change but for what they note for themselves."""

_class_bases: Callable[[type], tuple[type, ...]] = type.__dict__["__bases__"].__get__
_class_mro: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_subclasses: Callable[[type], list[type]] = type.__dict__["__subclasses__"]

CLASS_NOISE = frozenset(
    {"_abc_impl", "__slotnames__", "__dict__", "__weakref__", "__doc__", "__annotations__", "__module__"}
    | {"tearDown_exceptions", "_class_cleanups", "_classSetupFailed", "__qualname__", "__firstlineno__"}
    | {"__static_attributes__", "__annotations_cache__", "__annotate_func__", "__parameters__"}
)
"""What the interpreter and unittest themselves note on a class."""


class Snapshot:
    """The state of some values, and whether all of it could be looked at."""

    __slots__ = ("caches", "complete", "state", "subclasses")

    def __init__(self, walk: _Walk) -> None:
        self.state = tuple(walk.tokens)
        self.complete = not walk.waiting
        self.subclasses = tuple(walk.subclasses)
        """The classes derived from those of the module, which only a few programs ever ask for."""
        self.caches = walk.caches
        """The caches among the values: those of functions, and containers that are called so."""


def fingerprint_of(value: object) -> object:
    """What one value is now, comparable with what it is later."""
    return snapshot([value]).state


def snapshot(roots: Iterable[object], limit: int = MAX_VALUES, *, module: str | None = None) -> Snapshot:
    """The state of these values and of all that they hold; of classes, only those of the module."""
    walk = _Walk(limit, module)
    walk.note(roots, 0)
    walk.run()
    return Snapshot(walk)


def origins_of(roots: Iterable[object], limit: int, *, module: str | None = None) -> set[str]:
    """The modules of all functions, classes and instances that can be reached from these values."""
    walk = _Meeting(limit, module)
    walk.note(roots, 0)
    walk.run()
    return walk.origins


def caches_in(value: Any) -> Iterable[Any]:
    """The containers of a value that is called a cache: itself, or those of an object of the project."""
    if is_store(value):
        return (value,)
    if is_library(class_module(cast("type[Any]", type(value)))):
        return ()
    return [each for each in list(_instance_members(value).values()) if is_store(each)]


class _Walk:
    """Breadth first, so that what lies at the surface is seen before a bound is reached."""

    def __init__(self, limit: int, module: str | None) -> None:
        self._module = module
        self.tokens: list[object] = []
        self.waiting: deque[tuple[Any, type[Any], int]] = deque()
        self.subclasses: list[int] = []
        self.caches: list[Any] = []
        self._known: dict[int, None] = {}
        self._left = limit

    def run(self) -> None:
        while self.waiting and self._left > 0:
            value, kind, depth = self.waiting.popleft()
            self._left -= 1
            try:
                self._look(value, kind, depth)
            except Exception:  # a metaclass's ``__eq__``, a property named ``__dict__``: strangers' code
                self.tokens.append(id(value))

    def note(self, values: Iterable[Any], depth: int) -> None:
        """Plain values by what they are, all else by identity, to be looked into later."""
        tokens, known, waiting = self.tokens, self._known, self.waiting
        for value in values:
            kind = cast("type[Any]", type(value))
            if is_number(kind):
                tokens.append(value)
            elif kind is float:
                tokens.append(repr(value))
            elif kind is types.FunctionType and _is_stateless(value):
                tokens.append(id(value.__code__))
            else:
                identity = id(value)
                tokens.append(identity)
                if identity not in known and not issubclass(kind, _OPAQUE):
                    known[identity] = None
                    waiting.append((value, kind, depth))

    def _look(self, value: Any, kind: type[Any], depth: int) -> None:
        reader = READERS.get(kind) if type(kind) is type else None
        if reader is not None:
            if kind in SIZED and len(value) > _LONG and self._as_bytes(value):
                return
            if kind is _lru_cache_wrapper:
                self.caches.append(value)
            self.note(reader(value), depth)
        elif issubclass(kind, type):
            self._look_at_class(value, depth)
        elif issubclass(kind, types.FunctionType):
            self._look_at_function(value, depth)
        elif issubclass(kind, logging.Logger):
            self.note(
                (value.level, value.disabled, value.propagate, *value.handlers, *value.filters), depth + 1
            )
        else:
            self._look_at_instance(value, kind, depth)

    def _as_bytes(self, value: object) -> bool:
        """Compare a long container of plain values by its bytes, many times faster than one by one."""
        try:
            data = marshal.dumps(cast("Any", value), 2)
        except ValueError:
            return False
        self._left -= len(data) // _BYTES_A_VALUE
        self.tokens += (len(data), hash(data))
        return True

    def _look_at_class(self, value: type, depth: int) -> None:
        if class_module(value) != self._module:
            return
        members = class_members(value)
        names = [name for name in list(members) if name not in CLASS_NOISE and not name.startswith("test")]
        self.tokens += names
        self.tokens += map(id, _class_bases(value))
        self.subclasses += map(id, (value, *_subclasses(value)))
        registry = members.get("_abc_impl")
        if registry is not None:
            self.tokens.append(_abc_registered(value))
        private = [name for name in names if name.startswith("__")]
        self.tokens += [id(members.get(name)) for name in private]
        self._note_members({name: members.get(name) for name in names if not name.startswith("__")}, depth)

    def _look_at_function(self, value: types.FunctionType, depth: int) -> None:
        code = value.__code__
        self.tokens.append(id(code))
        if is_library_file(code.co_filename):
            depth += 1
            if depth > MAX_LIBRARY_DEPTH:
                return
        if value.__defaults__:
            names = code.co_varnames[: code.co_argcount]
            self.caches += called_caches(zip(reversed(names), reversed(value.__defaults__), strict=False))
        self.note((value.__defaults__, value.__kwdefaults__), depth)
        if value.__closure__:
            self.note(contents(value.__closure__), depth)
        members = value.__dict__
        if members:
            self.note((*members, *members.values()), depth)

    def _look_at_instance(self, value: Any, kind: type[Any], depth: int) -> None:
        self.tokens.append(id(kind))
        module = class_module(kind)
        if is_library(module):
            depth += 1
            if depth > MAX_LIBRARY_DEPTH or module in _FIXED or value is _CHANCE:
                return
        found = False
        for base, reader in BASES:
            if issubclass(kind, base):
                self.note(reader(value), depth)
                found = True
        for member in _slots_of(kind):
            try:
                self.note((member.__get__(value, kind),), depth)
            except AttributeError:
                self.tokens.append(None)
            found = True
        if kind.__dictoffset__:
            members = _instance_members(value).copy()  # a thread may add to it meanwhile
            if members:
                self.note(members, depth)
                self._note_members(members, depth)
                found = True
        if not found and gc.is_tracked(value):
            referents = [each for each in gc.get_referents(value) if not isinstance(each, type)]
            self.note(referents, depth)

    def _note_members(self, members: dict[str, Any], depth: int) -> None:
        self.caches += called_caches(members.items())
        self.note(members.values(), depth)


class _Meeting(_Walk):
    """Asks whose code can be reached, and not what it holds."""

    def __init__(self, limit: int, module: str | None) -> None:
        super().__init__(limit, module)
        self.origins: set[str] = set()

    def note(self, values: Iterable[Any], depth: int) -> None:
        values = list(values)
        for value in values:
            kind = cast("type[Any]", type(value))
            if issubclass(kind, types.FunctionType):
                self.origins.add(str(value.__globals__.get("__name__")))
            elif issubclass(kind, type):
                self.origins.add(class_module(value))
            elif not is_number(kind):
                self.origins.add(class_module(kind))
        super().note(values, depth)


def _is_stateless(function: types.FunctionType) -> bool:
    """Whether a function is nothing but its code; most are, and need not be looked into."""
    return (
        function.__closure__ is None
        and not function.__dict__
        and (function.__defaults__ is None or all(is_plain(each) for each in function.__defaults__))
        and function.__kwdefaults__ is None
    )


def _instance_members(value: object) -> dict[str, Any]:
    try:
        members = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return cast("dict[str, Any]", members) if type(members) is dict else {}


@cache
def _slots_of(kind: type[Any]) -> tuple[types.MemberDescriptorType, ...]:
    return tuple(
        member
        for base in _class_mro(kind)
        if "__slots__" in class_members(base)
        for member in class_members(base).values()
        if type(member) is types.MemberDescriptorType
    )


def _abc_registered(value: type) -> int:
    dump: Any = getattr(sys.modules["_abc"], "_get_dump")  # noqa: B009  # it has no stubs
    return len(dump(value)[0])


def class_module(kind: type[Any]) -> str:
    """The name of the module that defines a class, as the class itself holds it."""
    module = class_members(kind).get("__module__")
    return module if type(module) is str else "builtins"


@cache
def is_library(module: str) -> bool:
    """Whether a module of that name comes with Python or was installed, rather than with the project."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names and top != "this":
        return True
    found = sys.modules.get(module) or sys.modules.get(top)
    if type(found) is not types.ModuleType:
        return False
    file = module_members(found).get("__file__")
    return type(file) is str and is_library_file(file)


@cache
def is_library_file(file: str) -> bool:
    """Whether a file of code comes with Python or was installed."""
    if file.startswith("<frozen"):
        return True
    return file.startswith(_STANDARD) or any(
        part in file for part in (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
    )


_CHANCE = getattr(random, "_inst", None)  # the generator that all share, which is watched by itself
_STANDARD = (sysconfig.get_path("stdlib") + os.sep, sysconfig.get_path("platstdlib") + os.sep)
