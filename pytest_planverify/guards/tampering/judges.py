"""Compare what judges (builtins, pytest, unittest) by identity with what it was at the start.

What a test patches for itself and puts back is a mock. What is another one between tests, or already when a
test's body begins, was patched for all of them.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from operator import is_
from types import FunctionType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from pytest_planverify.guards.tampering.code_files import (
    defining_file,
    file_of_module,
    innermost_function,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_JUDGES = ("builtins", "math", "operator", "pytest", "unittest.case", "unittest.suite", "unittest.result")
_INSTALLED = frozenset(
    {
        "_pytest.approx", "_pytest.assertion", "_pytest.assertion.rewrite", "_pytest.assertion.util",
        "_pytest.config", "_pytest.fixtures", "_pytest.main", "_pytest.mark", "_pytest.mark.structures",
        "_pytest.nodes", "_pytest.outcomes", "_pytest.python", "_pytest.python_api", "_pytest.raises",
        "_pytest.recwarn", "_pytest.reports", "_pytest.runner", "_pytest.skipping", "_pytest.subtests",
        "_pytest.unittest", "pytest_planverify.guards.tampering.observer", "pytest_planverify.journal",
        "pytest_planverify.guards.sandbox_policy", "pytest_planverify.observe.audit",
        "pytest_planverify.observe.recorder", "pytest_planverify.observe.results",
    }
)  # fmt: skip
_LATE = ("numpy.testing", "numpy.testing._private.utils", "pandas.testing", "pandas._testing")
"""Judges that only some projects import; watched from the first look that finds them."""
_OFTEN_PATCHED = frozenset(
    {"_", "print", "open", "input", "exit", "quit", "help", "copyright", "credits", "license"}
    | {"breakpoint", "__build_info__"}
)
"""Builtins that decide nothing."""
_MOCKED_BY_FIXTURES = (
    "builtins.__import__", "math.", "operator.", "unittest.", "numpy.", "pandas.", "sys.", "os."
)  # fmt: skip
"""What a fixture may patch for the tests that use it, as long as it is put back."""
_OWN_HABIT = "_pytest/legacypath.py"
"""pytest gives its classes what they once had when it is configured."""
_MARKS = "pytest.mark"

_all: Callable[[Iterable[object]], bool] = all
_map: Callable[..., Iterable[object]] = map
_len = len
# As they are now: these are among what is looked at.


class _Namespace:
    """The names of a module or class, and what they stood for at first."""

    __slots__ = ("_functions", "_names", "_values", "label", "now")

    def __init__(self, label: str, now: Mapping[str, Any], names: Iterable[str] | None = None) -> None:
        """Only ``names`` are looked at where they are given."""
        self.label, self.now, self._names = label, now, names
        self._values = self._read()
        self._functions = [
            (function, function.__code__, function.__defaults__, function.__kwdefaults__)
            for each in self._values.values()
            if isinstance(function := _inner_function(each), FunctionType)
        ]

    def _read(self) -> dict[str, Any]:
        return dict(self.now) if self._names is None else {name: self.now.get(name) for name in self._names}

    def changes(self) -> Iterator[tuple[str, Any]]:
        """Yield names with what they stand for now, of what decides something."""
        now, before = self._read(), self._values
        if _len(now) != _len(before) or not _all(_map(is_, now.values(), before.values())):
            for name, value in before.items():
                if now.get(name) is not value and _decides(value):
                    yield name, now.get(name)
            for name in now.keys() - before.keys():
                if self._overrides(name, now[name]):
                    yield name, now[name]
        for function, *parts in self._functions:
            here = (function.__code__, function.__defaults__, function.__kwdefaults__)
            if not _all(_map(is_, here, parts)):
                yield f"{function.__name__}()", function

    def _overrides(self, name: str, value: object) -> bool:
        """Return whether a new name of a class, or of ``pytest.mark``, overrides what it had."""
        if isinstance(self.now, MappingProxyType):
            return name.startswith("__") and name.endswith("__") and type(value) is FunctionType
        return self.label == _MARKS and not name.startswith("_")


class ObservedJudges:
    """Snapshot of what judges, taken before anything of the project is loaded."""

    def __init__(self) -> None:
        self._spaces: list[_Namespace] = []
        self._modules: dict[str, ModuleType] = {}
        self._found: dict[tuple[str, str], None] = {}
        """Names of what is another one by now, with the files that it was written in, if any is known."""
        self._classes: set[int] = set()
        judging = [name for name in sys.modules if name in _INSTALLED or name.startswith("pluggy.")]
        for name in (*_JUDGES, *judging, *_LATE):
            self._watch(name)
        # Of these only what ends a process judges.
        self._spaces += [_Namespace("sys", vars(sys), ("exit",)), _Namespace("os", vars(os), ("_exit",))]
        if (marks := getattr(sys.modules.get("pytest"), "mark", None)) is not None:
            self._spaces.append(_Namespace(_MARKS, cast("dict[str, Any]", vars(marks))))

    def compare(self, during: str) -> None:
        """Note what is another one by now: after ``collection``, in ``tests``, or in the ``session``."""
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                self._found[f"sys.modules[{name!r}]", ""] = None
        for space in self._spaces:
            for name, value in space.changes():
                full = f"{space.label}.{name}"
                is_harmless = space.label == "builtins" and name in _OFTEN_PATCHED
                is_mock = during == "tests" and full.startswith(_MOCKED_BY_FIXTURES)
                file = _file_of(value)
                if not is_harmless and not is_mock and not file.endswith(_OWN_HABIT):
                    self._found[full, file] = None
        for name in _LATE:
            if name not in self._modules:
                self._watch(name)

    def facts(self) -> list[list[str]]:
        """Return all that was found, each once: its name, and the file of what stands there now."""
        return [list(each) for each in self._found]

    def _watch(self, name: str) -> None:
        module = sys.modules.get(name)
        if not isinstance(module, ModuleType):
            return
        self._modules[name] = module
        space: dict[str, Any] = vars(module)
        self._spaces.append(_Namespace(name, space))
        package = name.partition(".")[0]
        kinds = [cast("type[Any]", each) for each in space.values() if isinstance(each, type)]
        for kind in kinds if name != "builtins" else ():
            if kind.__module__.partition(".")[0] == package and id(kind) not in self._classes:
                self._classes.add(id(kind))
                self._spaces.append(_Namespace(f"{kind.__module__}.{kind.__qualname__}", kind.__dict__))


@cache
def judges_at_start() -> ObservedJudges:
    """Remember what judges as it is now, once a process; to be asked before the project is loaded."""
    return ObservedJudges()


def _inner_function(value: Any) -> object:
    """Return the function in a method of a class or a property."""
    if isinstance(value, classmethod | staticmethod):
        return cast("Any", value).__func__
    return value.fget if isinstance(value, property) else value


def _decides(value: object) -> bool:
    """Return whether a value has a say: code, or a tolerance of ``pytest.approx``."""
    return callable(value) or isinstance(value, property | staticmethod | classmethod | float)


def _file_of(value: object) -> str:
    value = _inner_function(value)
    if isinstance(value, type):
        return file_of_module(value) or ""
    value = innermost_function(value)
    return defining_file(value) if isinstance(value, FunctionType) else ""
