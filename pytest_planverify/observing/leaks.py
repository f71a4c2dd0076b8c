"""Finds out whether tests changed the process that the next criterion's tests run in.

A fingerprint covers what a test can change for those after it: ``sys.path``, the environment, the
working directory, signal handlers, warning filters, logging, the globals of the project's own modules,
and the values of fixtures that outlive a test. It is taken only where the running criterion changes,
so its cost does not grow with the number of tests.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import types
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_DEPTH = 4
MAX_VALUES = 20_000
"""A fingerprint stops looking closer after so many values; what lies beyond is not seen."""

_IGNORED_VARIABLES = frozenset(
    {b"PYTEST_CURRENT_TEST", b"COLUMNS", b"LINES", b"PYTEST_VERSION"}
    | {b"COV_CORE_SOURCE", b"COV_CORE_CONFIG", b"COV_CORE_DATAFILE"}
)
_SIGNALS = [
    number
    for number in signal.valid_signals()
    if number not in (getattr(signal, "SIGKILL", None), getattr(signal, "SIGSTOP", None))
]

_SHARED = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    types.GeneratorType,
    types.CodeType,
)
_MODULE_NOISE = frozenset({"__builtins__", "__cached__", "__loader__", "__spec__", "__warningregistry__"})

Fingerprint = dict[str, object]


class LeakWatch:
    """Compares the state of the process with what it was when last looked at."""

    def __init__(
        self,
        is_first_party: Callable[[str], bool],
        live_fixtures: Callable[[], Iterable[tuple[str, Any]]],
        expected_paths: frozenset[str],
    ) -> None:
        self._is_first_party = is_first_party
        self._live_fixtures = live_fixtures
        self._expected_paths = expected_paths
        self._verdicts: dict[str, bool] = {}
        self._last: Fingerprint | None = None

    def start(self) -> None:
        """Remember the state as it is now."""
        self._last = self._take()

    def changes(self) -> list[str]:
        """What has changed since the last look, by name; new modules and new fixtures are no change."""
        now = self._take()
        before = self._last if self._last is not None else now
        self._last = now
        return sorted(
            name for name, value in now.items() if name in before and before[name] != value
        ) + sorted(name for name in before if name not in now and name.startswith("module "))

    def _take(self) -> Fingerprint:
        state: Fingerprint = {
            "sys.path": tuple(entry for entry in sys.path if entry not in self._expected_paths),
            "environment": _environment(),
            "working directory": _working_directory(),
            "signal handlers": tuple(map(_handler, _SIGNALS)),
            "warning filters": tuple(map(str, warnings.filters)),
            "logging": _logging(),
            "standard streams": (id(sys.__stdout__), id(sys.__stderr__)),
        }
        walk = _Walk()
        for name, module in list(sys.modules.items()):
            if self._watches(name, module):
                state[f"module {name}"] = (id(module), walk.namespace(vars(module)))
        for name, value in self._live_fixtures():
            state[f"fixture {name}"] = walk.value(value, 0)
        return state

    def _watches(self, name: str, module: object) -> bool:
        known = self._verdicts.get(name)
        if known is None:
            file = getattr(module, "__file__", None)
            known = isinstance(module, types.ModuleType) and isinstance(file, str) and self._is_first_party(file)
            self._verdicts[name] = known
        return known


class _Walk:
    """Turns values into something that compares by content where that is cheap and safe.

    Only exact built-in containers and instance dictionaries are looked into, never a user's
    ``__eq__``, ``__hash__`` or ``__repr__``.
    """

    def __init__(self) -> None:
        self._budget = MAX_VALUES

    def namespace(self, members: dict[str, Any]) -> tuple[object, ...]:
        return tuple(
            (name, self.value(value, 1)) for name, value in list(members.items()) if name not in _MODULE_NOISE
        )

    def value(self, value: Any, depth: int) -> object:
        kind = type(value)
        self._budget -= 1
        if kind in (int, float, str, bytes, bool, complex, type(None)):
            return value if kind is not float or value == value else "nan"
        if isinstance(value, type):
            return self._class(value, depth)
        if isinstance(value, _SHARED) or depth >= MAX_DEPTH or self._budget <= 0:
            return id(value)
        if kind is list or kind is tuple:
            return (id(value) if kind is list else 0, *(self.value(entry, depth + 1) for entry in list(value)))
        if kind is dict:
            return (
                id(value),
                *(
                    (self.value(key, depth + 1), self.value(entry, depth + 1))
                    for key, entry in list(value.items())
                ),
            )
        if kind is set or kind is frozenset:
            return (id(value), len(value), frozenset(id(entry) for entry in value))
        if kind is bytearray:
            return (id(value), bytes(value))
        members = getattr(value, "__dict__", None)
        if type(members) is dict:
            entries = [(name, self.value(entry, depth + 1)) for name, entry in list(members.items())]
            return (id(value), tuple(entries))
        return id(value)

    def _class(self, value: type, depth: int) -> object:
        if depth > 1 or self._budget <= 0:
            return id(value)
        members = [
            (name, self.value(member, MAX_DEPTH - 1))
            for name, member in list(vars(value).items())
            if not name.startswith("__") and name not in ("_abc_impl",)
        ]
        return (id(value), tuple(members))


def _environment() -> tuple[object, ...]:
    data: dict[bytes, bytes] = getattr(os.environ, "_data", {})
    return tuple(sorted((key, value) for key, value in data.items() if key not in _IGNORED_VARIABLES))


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "(gone)"


def _handler(number: int) -> int:
    handler = signal.getsignal(number)
    return handler if isinstance(handler, int) else id(handler)


def _logging() -> tuple[object, ...]:
    root = logging.root
    handlers = tuple(
        type(handler).__name__
        for handler in root.handlers
        if not type(handler).__module__.startswith("_pytest")
    )
    return (root.level, handlers, logging.root.manager.disable)
