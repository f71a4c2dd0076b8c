"""Finds out whether tests changed the process that the next criterion's tests run in.

A fingerprint covers what a test can change for those after it: ``sys.path``, the environment, the
working directory, signal handlers, warning filters, logging, often patched modules of the standard
library, the globals of the project's own modules, and the values of fixtures that outlive a test. It is
taken only where the running criterion changes, so its cost does not grow with the number of tests.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]  # has no stubs
import logging
import os
import signal
import sys
import types
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MAX_DEPTH = 4
MAX_VALUES = 20_000
"""A fingerprint stops looking closer after so many values; what lies beyond is not seen."""

_IGNORED_VARIABLES = frozenset(
    {b"PYTEST_CURRENT_TEST", b"COLUMNS", b"LINES", b"PYTEST_VERSION"}
    | {b"COV_CORE_SOURCE", b"COV_CORE_CONFIG", b"COV_CORE_DATAFILE"}
)
_SIGNALS = sorted(
    number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)
)
_OFTEN_PATCHED = (
    "builtins", "datetime", "io", "json", "locale", "os", "os.path", "pathlib", "random", "shutil",
    "socket", "subprocess", "tempfile", "threading", "time", "urllib.request",
)  # fmt: skip
_MADE_ON_USE = frozenset({"tempdir", "_name_sequence", "__warningregistry__"})
_NUMBERS = (int, str, bytes, bool, complex, type(None))
_WITHOUT_STATE = (
    str, bytes, int, float, complex, bool, type(None), range,
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, types.GeneratorType,
    types.CodeType, logging.Logger,
)  # fmt: skip
_MAPPINGS = (dict, defaultdict, OrderedDict, Counter)
_MODULE_NOISE = frozenset(
    {"__builtins__", "__cached__", "__loader__", "__spec__", "__warningregistry__", "__path__"}
)

Fingerprint = dict[str, object]


class _ModuleShape(NamedTuple):
    """What a module's namespace binds, and those of its values that can change in place."""

    names: tuple[str, ...]
    ids: tuple[int, ...]
    bindings: tuple[tuple[str, int], ...]
    mutable: tuple[tuple[str, Any], ...]


class LeakWatch:
    """Compares the state of the process with what it was when last looked at."""

    def __init__(
        self,
        is_first_party: Callable[[str], bool],
        live_fixtures: Callable[[], Iterable[tuple[str, Any, object]]],
        is_expected_path: Callable[[str], bool],
    ) -> None:
        """``live_fixtures`` gives name, value and the value's fingerprint when it was made."""
        self._live_fixtures = live_fixtures
        self._is_expected_path = is_expected_path
        self._modules = _Modules(is_first_party)
        self._shapes: dict[str, _ModuleShape] = {}
        self._last: Fingerprint | None = None

    def start(self) -> None:
        """Remember the state as it is now."""
        self._last, _ = self._take()

    def changes(self, *, imports_count: bool) -> list[str]:
        """What has changed since the last look, by name.

        With ``imports_count`` a module that is new and holds state counts, too: whoever imports it next
        no longer gets it fresh.
        """
        now, made = self._take()
        before = dict(self._last if self._last is not None else now)
        self._last = dict(now)
        for state in (before, now):  # what is expected may have become known only since the last look
            entries = cast("tuple[str, ...]", state["sys.path"])
            state["sys.path"] = [entry for entry in entries if not self._is_expected_path(entry)]
        changed = [name for name, value in now.items() if before.get(name, made.get(name, value)) != value]
        changed += [name for name in before if name not in now and name.startswith("module ")]
        if imports_count:
            changed += [
                f"{name} (first imported)"
                for name in now
                if name not in before and self._shapes.get(name.removeprefix("module "), _NO_SHAPE).mutable
            ]
        return sorted(changed)

    def _take(self) -> tuple[Fingerprint, Fingerprint]:
        """The state now, and that of fixtures when they were made."""
        self._modules.update()
        state: Fingerprint = {
            "sys.path": tuple(sys.path),
            "environment": _environment(),
            "working directory": _working_directory(),
            "signal handlers": tuple(map(_handler, _SIGNALS)),
            "warning filters": tuple(warnings.filters),
            "logging": _logging(),
            "stand-ins for modules": dict(self._modules.stand_ins),
        }
        for name in _OFTEN_PATCHED:
            module = sys.modules.get(name)
            if module is not None:
                members = list(_members_of(module).items())
                state[name] = [_stamp(value) for key, value in members if key not in _MADE_ON_USE]
        walk = _Walk()
        for name, module in self._modules.first_party.items():
            shape = self._shape(name, _members_of(module))
            values = tuple(walk.value(value, 1) for _, value in shape.mutable)
            state[f"module {name}"] = (id(module), shape.bindings, values)
        made: Fingerprint = {}
        for name, value, when_made in self._live_fixtures():
            state[f"fixture {name}"] = walk.value(value, 0)
            made[f"fixture {name}"] = when_made
        return state, made

    def _shape(self, name: str, members: dict[str, Any]) -> _ModuleShape:
        names, ids = tuple(members), tuple(map(id, members.values()))
        known = self._shapes.get(name)
        if known is not None and known.ids == ids and known.names == names:
            return known
        kept = [(each, value) for each, value in list(members.items()) if not _is_noise(name, each, value)]
        shape = _ModuleShape(
            names,
            ids,
            tuple((each, id(value)) for each, value in kept),
            tuple((each, value) for each, value in kept if _has_state(name, value)),
        )
        self._shapes[name] = shape
        return shape


_class_members: Callable[[object], Mapping[str, Any]] = type.__dict__["__dict__"].__get__
_module_members: Callable[[object], dict[str, Any]] = _class_members(types.ModuleType)["__dict__"].__get__
"""What a namespace holds, past any ``__getattribute__`` by which it would answer for itself."""

_NO_SHAPE = _ModuleShape((), (), (), ())


class _Modules:
    """Sorts ``sys.modules``, looking again only at what is new or replaced."""

    def __init__(self, is_first_party: Callable[[str], bool]) -> None:
        self._is_first_party = is_first_party
        self._ids: tuple[int, ...] = ()
        self._seen: dict[str, int] = {}
        self.first_party: dict[str, types.ModuleType] = {}
        self.stand_ins: dict[str, int] = {}
        """Entries that no import made."""

    def update(self) -> None:
        ids = tuple(map(id, sys.modules.values()))
        if ids == self._ids:
            return
        self._ids = ids
        for name, module in list(sys.modules.items()):
            if self._seen.get(name) != id(module):
                self._forget(name)
                self._sort(name, module)
        for name in self._seen.keys() - sys.modules.keys():
            self._forget(name)

    def _sort(self, name: str, module: object) -> None:
        self._seen[name] = id(module)
        members = _members_of(module)
        if members.get("__spec__") is None:
            if not self._comes_with_a_library(name):
                self.stand_ins[name] = id(module)
            return
        file = members.get("__file__")
        if isinstance(file, str) and self._is_first_party(file):
            self.first_party[name] = cast("types.ModuleType", module)

    def _comes_with_a_library(self, name: str) -> bool:
        """Whether a library made the entry as it was imported: ``six.moves``, what Cython shares."""
        top, dot, _ = name.partition(".")
        if name == "__main__" or top.startswith(_MADE_BY_EXTENSIONS):
            return True
        owner = _members_of(sys.modules.get(top)) if dot else {}
        file = owner.get("__file__") or ""
        return owner.get("__spec__") is not None and not self._is_first_party(file)

    def _forget(self, name: str) -> None:
        self._seen.pop(name, None)
        self.first_party.pop(name, None)
        self.stand_ins.pop(name, None)


_MADE_BY_EXTENSIONS = ("_cython_", "cython_runtime")


def _stamp(value: object) -> object:
    """Numbers and texts by what they are, for some are made anew; all else by identity."""
    kind = type(value)
    if issubclass(kind, tuple):
        return value if _is_plain(cast("tuple[object, ...]", value)) else id(value)
    return value if issubclass(kind, _NUMBERS) else id(value)


def fingerprint_of(value: object) -> object:
    """What one value is now, comparable with what it is later."""
    return _Walk().value(value, 0)


def _members_of(module: object) -> dict[str, Any]:
    """What a module binds; nothing where something else stands in for one."""
    return _module_members(module) if issubclass(type(module), types.ModuleType) else {}


def _is_noise(module: str, name: str, value: object) -> bool:
    """What comes and goes by itself: import machinery, and submodules that somebody imports."""
    if name in _MODULE_NOISE or name.startswith("@"):
        return True
    return _members_of(value).get("__name__") == f"{module}.{name}"


def _has_state(module: str, value: object) -> bool:
    kind = type(value)
    if issubclass(kind, type):
        return _class_members(value).get("__module__") == module
    if issubclass(kind, tuple):
        return not _is_plain(cast("tuple[object, ...]", value))
    return not issubclass(kind, _WITHOUT_STATE)


def _is_plain(members: tuple[object, ...]) -> bool:
    """Whether nothing in a tuple can change; asked past an ``__iter__`` of its own."""
    return all(issubclass(type(each), _NUMBERS) for each in tuple[object, ...].__iter__(members))


class _Walk:
    """Turns values into something that compares by content where that is cheap and safe.

    Only exact built-in containers and instance dictionaries are looked into, never a user's
    ``__eq__``, ``__hash__`` or ``__repr__``; nor is an object asked for its ``__class__``, by which a lazy
    one would be woken up. What cannot be looked into is told by its identity alone.
    """

    def __init__(self) -> None:
        self._budget = MAX_VALUES

    def value(self, value: Any, depth: int) -> object:
        self._budget -= 1
        try:
            return self._look(value, cast("type[Any]", type(value)), depth)
        except Exception:  # a metaclass's ``__eq__``, a property named ``__dict__``: strangers' code
            return id(value)

    def _look(self, value: Any, kind: type[Any], depth: int) -> object:
        if kind in _NUMBERS:
            return value
        if kind is float:
            return value if value == value else "nan"
        if issubclass(kind, type):
            return self._class(value, depth)
        if issubclass(kind, _WITHOUT_STATE) or depth >= MAX_DEPTH or self._budget <= 0:
            return id(value)
        if kind is list or kind is deque:
            return (id(value), *(self.value(entry, depth + 1) for entry in list(value)))
        if kind is tuple:
            return (0, *(self.value(entry, depth + 1) for entry in value))
        if kind in _MAPPINGS:
            return (id(value), *self._entries(value, depth))
        if kind is set or kind is frozenset:
            return (id(value), len(value), frozenset(id(entry) for entry in value))
        if kind is bytearray:
            return (id(value), bytes(value))
        if not kind.__dictoffset__:
            return id(value)
        members = object.__getattribute__(value, "__dict__")
        if type(members) is not dict:
            return id(value)
        return (id(value), *self._entries(cast("dict[Any, Any]", members), depth))

    def _entries(self, members: dict[Any, Any], depth: int) -> list[object]:
        return [
            (self.value(key, MAX_DEPTH), self.value(entry, depth + 1))
            for key, entry in list(members.items())
        ]

    def _class(self, value: type, depth: int) -> object:
        if depth > 1 or self._budget <= 0:
            return id(value)
        members = _class_members(value)
        states = [
            (name, self.value(member, MAX_DEPTH - 2))
            for name, member in list(members.items())
            if type(member) in (list, set, deque, *_MAPPINGS) and not name.startswith("__")
        ]
        bindings = [
            (name, id(member)) for name, member in list(members.items()) if name not in _CLASS_NOISE
        ]
        return (id(value), tuple(bindings), tuple(states))


_CLASS_NOISE = frozenset(
    {"_abc_impl", "__slotnames__", "__dict__", "__weakref__", "__doc__", "__annotations__"}
    | {"tearDown_exceptions", "_class_cleanups", "_classSetupFailed"}
)
"""What the interpreter and unittest themselves note on a class."""


def _environment() -> dict[bytes, bytes]:
    data = dict(getattr(os.environ, "_data", {}))
    for name in _IGNORED_VARIABLES:
        data.pop(name, None)
    return data


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "(gone)"


def _handler(number: int) -> int:
    # signal.getsignal makes an enumeration of each, at some cost
    handler = cast("object", _signal.getsignal(number))  # pyright: ignore[reportUnknownMemberType]
    return handler if isinstance(handler, int) else id(handler)


def _logging() -> tuple[object, ...]:
    root = logging.root
    handlers = tuple(
        type(handler).__name__
        for handler in root.handlers
        if not type(handler).__module__.startswith("_pytest")
    )
    return (root.level, handlers, root.manager.disable)
