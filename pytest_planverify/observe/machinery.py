"""Whether what judges is still itself: builtins, pytest, unittest, the clock, compared by identity.

What a test patches for itself and puts back is a mock. What is another one between tests, or already when a
test's body begins, was patched for all of them.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Mapping
from itertools import chain
from operator import attrgetter, is_, methodcaller
from types import FunctionType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pytest_planverify.observe.inventory import defining_file, inmost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

HARD = "judge"
"""A part of what judges."""
ENDING = "ending"
"""What ends a process."""
CLOCK = "clock"
"""What tells the time, or chance: often patched, and seldom to deceive."""

_read = ctypes.string_at
_pointer: Any = ctypes.c_void_p.from_address
_JUDGES = ("builtins", "math", "operator", "pytest", "unittest.case", "unittest.suite", "unittest.result")
_INSTALLED = frozenset(
    {
        "_pytest.approx", "_pytest.assertion", "_pytest.assertion.rewrite", "_pytest.assertion.util",
        "_pytest.config", "_pytest.fixtures", "_pytest.main", "_pytest.mark", "_pytest.mark.structures",
        "_pytest.nodes", "_pytest.outcomes", "_pytest.python", "_pytest.python_api", "_pytest.raises",
        "_pytest.recwarn", "_pytest.reports", "_pytest.runner", "_pytest.skipping", "_pytest.subtests",
        "_pytest.unittest", "pytest_planverify.journal", "pytest_planverify.observe.bodies",
        "pytest_planverify.observe.recorder", "pytest_planverify.observe.results",
        "pytest_planverify.observe.witnessing",
    }
)  # fmt: skip
_PLUGGY = "pluggy."
_LATE = ("numpy.testing", "numpy.testing._private.utils", "pandas.testing", "pandas._testing")
"""Judges that only some projects import; watched from the first look that finds them."""

_SOFTER = {
    "sys": (ENDING, ("exit",)),
    "os": (ENDING, ("_exit",)),
    "time": (CLOCK, ("time", "time_ns", "monotonic", "perf_counter")),
    "random": (CLOCK, ("random", "seed", "randint", "choice")),
    "datetime": (CLOCK, ("datetime", "date")),
}
_OFTEN_PATCHED = frozenset(
    {"_", "print", "open", "input", "exit", "quit", "help", "copyright", "credits", "license"}
    | {"breakpoint", "__build_info__"}
)
"""Builtins that decide nothing."""

_MOCKED_BY_FIXTURES = ("builtins.__import__", "math.", "operator.", "unittest.", "numpy.", "pandas.")
"""What a fixture may patch for the tests that use it, as long as it is put back."""

_NUMBERS_COUNT = ("_pytest.python_api.", "_pytest.approx.")
"""Classes whose numbers judge, too: tolerances."""

_OWN_HABIT = "_pytest/legacypath.py"
"""pytest gives its classes what they once had when it is configured."""

_UNSTEADY = frozenset(
    {
        "_pytest.assertion.util", "_pytest.config.Config", "_pytest.fixtures.FixtureRequest",
        "_pytest.main.Session", "_pytest.nodes.Node", "_pytest.python.Function",
        "_pytest.python.FunctionDefinition", "_pytest.unittest.TestCaseFunction", "pytest.mark",
        "pytest_planverify.observe.witnessing",
    }
)  # fmt: skip
"""Namespaces that differ in every session, and so are looked at one by one."""

_code, _defaults, _keywords = (
    attrgetter("__code__"),
    attrgetter("__defaults__"),
    attrgetter("__kwdefaults__"),
)
_values = methodcaller("values")

_all: Callable[[Iterable[object]], bool] = all
_map: Callable[..., Iterable[object]] = map
_len, _list = len, list
_flat: Callable[[Any], Iterable[Any]] = chain.from_iterable
# As they are now: these are among what is looked at.


class Patched(NamedTuple):
    """A part of what judges that is another one by now."""

    name: str
    kind: str
    file: str
    """Where what stands in its place was written; empty where nobody can tell."""
    during: str
    """``collection``, ``tests``, or ``session``."""


class _Space:
    """A namespace, and what it held at first."""

    __slots__ = (
        "_codes",
        "_defaults",
        "_functions",
        "_keywords",
        "_last",
        "_now",
        "_values",
        "files",
        "kind",
        "label",
    )

    def __init__(self, label: str, now: Mapping[str, Any], kind: str = HARD) -> None:
        self.label, self.kind = label, kind
        self._now = now
        self._values = dict(now)
        self._functions = [
            function for each in self._values.values() if type(function := _inner(each)) is FunctionType
        ]
        self._codes = list(map(_code, self._functions))
        self._defaults = list(map(_defaults, self._functions))
        self._keywords = list(map(_keywords, self._functions))
        self._last = list(now.values())
        self.files = frozenset(file for _, file in space_files(self))
        """Where its functions were written."""

    def is_same(self) -> bool:
        """At a glance, which takes microseconds."""
        now, functions = self._now, self._functions
        return (
            _len(now) == _len(self._last)
            and _all(_map(is_, now.values(), self._last))
            and _all(_map(is_, _map(_code, functions), self._codes))
            and _all(_map(is_, _map(_defaults, functions), self._defaults))
            and _all(_map(is_, _map(_keywords, functions), self._keywords))
        )

    def changes(self) -> Iterator[tuple[str, Any]]:
        """Names with what they stand for now, of what decides something."""
        now = dict(self._now)
        for name, value in self._values.items():
            if name not in now:
                if _decides(value):
                    yield name, None
            elif now[name] is not value and (_decides(value) or self._counts(value, now[name])):
                yield name, now[name]
        for name in now.keys() - self._values.keys():
            if self._may_not_come(name, now[name]):
                yield name, now[name]
        for function, code, defaults, keywords in zip(
            self._functions, self._codes, self._defaults, self._keywords, strict=True
        ):
            same = function.__defaults__ is defaults and function.__kwdefaults__ is keywords
            if function.__code__ is not code or not same:
                yield f"{function.__name__}()", function

    def settle(self) -> None:
        """Take what comes and decides nothing as it is, so that the next glance is short again."""
        self._last = list(self._now.values())

    def _counts(self, value: object, now: object) -> bool:
        """Tolerances are judges, too."""
        return (
            isinstance(self._now, MappingProxyType)
            and self.label.startswith(_NUMBERS_COUNT)
            and isinstance(value, int | float)
            and value != now
        )

    def _may_not_come(self, name: str, value: object) -> bool:
        """What a class or the object ``pytest.mark`` did not have overrides what it had."""
        if isinstance(self._now, MappingProxyType):
            return name.startswith("__") and name.endswith("__") and type(value) is FunctionType
        return self.label == _MARKS and not name.startswith("_")


_MARKS = "pytest.mark"


class _Glance:
    """Many namespaces at once, for most looks find them as they were: one pass that C code makes."""

    def __init__(self, spaces: Iterable[_Space]) -> None:
        self.others = [space for space in spaces if not _is_steady(space)]
        self.spaces = whole = [space for space in spaces if _is_steady(space)]
        self._nows = [space._now for space in whole]
        self._tables = _RawTables([space._now for space in whole])
        self._sizes = [_len(space._last) for space in whole]
        self._last = list(_flat(space._last for space in whole))
        self._functions = list(_flat(space._functions for space in whole))
        _watch.functions = frozenset(map(id, self._functions))
        self._codes = list(_flat(space._codes for space in whole))
        self._defaults = list(_flat(space._defaults for space in whole))
        self._keywords = list(_flat(space._keywords for space in whole))

    def is_same(self) -> bool:
        if _watch.functions_are_watched and not _watch.functions_changed and self._tables.are_same():
            return True
        functions = self._functions
        return (
            _list(_map(_len, self._nows)) == self._sizes
            and _all(_map(is_, _flat(_map(_values, self._nows)), self._last))
            and _all(_map(is_, _map(_code, functions), self._codes))
            and _all(_map(is_, _map(_defaults, functions), self._defaults))
            and _all(_map(is_, _map(_keywords, functions), self._keywords))
        )


class _RawTables:
    """The memory of dicts, as far as it holds keys and values.

    To compare values in the usual way changes their counters of references, and so copies every page that
    a forked process has inherited: some 1,400 of them, or 4 ms, in each. Memory that is only read is
    shared.
    It relies on the layout of CPython's dicts, of which each table is made sure when it is taken.
    """

    def __init__(self, spaces: Iterable[Mapping[str, Any]]) -> None:
        self._tables: list[tuple[int, int, int, bytes]] | None = []
        for space in spaces:
            table = _raw_table(space)
            if table is None:
                self._tables = None
                return
            self._tables.append(table)

    def are_same(self) -> bool:
        """Return whether they are known to be; where the layout is another one, nothing is known."""
        return self._tables is not None and _all(
            _pointer(place).value == start and _read(start + _TABLE_HEADER, size) == before
            for place, start, size, before in self._tables
        )


_KEYS_OFFSET = 32
"""Of the pointer to its table, in a dict; the counter, type, size and version stand before it."""
_TABLE_HEADER = 16
"""Counter of references and version of a table, which change while nothing in it does."""


def _raw_table(space: Mapping[str, Any]) -> tuple[int, int, int, bytes] | None:
    if sys.implementation.name != "cpython":
        return None
    referents = cast("list[object]", gc.get_referents(space))
    inner = cast("object", space) if type(space) is dict else next(iter(referents), None)
    if not isinstance(inner, dict) or type(cast("object", inner)) is not dict or not inner:
        return None
    found = cast("dict[object, object]", inner)
    place = id(found) + _KEYS_OFFSET
    start = _pointer(place).value
    size = found.__sizeof__() - dict.__basicsize__ - _TABLE_HEADER
    if not start or size <= 0:
        return None
    text = _read(start + _TABLE_HEADER, size)
    values = list(found.values())
    known = all(id(each).to_bytes(8, sys.byteorder) in text for each in (*found, *values))
    return (place, start, size, text) if known else None


class _FunctionWatch:
    """The audit hook of a worker sees that code or defaults of a function are replaced."""

    def __init__(self) -> None:
        self.functions: frozenset[int] = frozenset()
        """The identities of the functions that judge."""
        self.functions_are_watched = self.functions_changed = False


_watch = _FunctionWatch()


def watch_functions() -> None:
    """Trust :func:`note_change` from now on, if a change of a function is seen to reach it."""

    def probe() -> None: ...

    known, _watch.functions = _watch.functions, frozenset({id(probe)})
    probe.__defaults__ = ()
    _watch.functions_are_watched, _watch.functions_changed = _watch.functions_changed, False
    _watch.functions = known


def note_change(args: tuple[Any, ...]) -> tuple[()]:
    """Take note of an ``object.__setattr__`` event of the interpreter."""
    if id(args[0]) in _watch.functions and args[1] in ("__code__", "__defaults__", "__kwdefaults__"):
        _watch.functions_changed = True
    return ()


def _is_steady(space: _Space) -> bool:
    return type(space._now) is not _Part and space.label not in _UNSTEADY


class Machinery:
    """What judges, as it was before anything of the project was loaded."""

    def __init__(self) -> None:
        self._spaces: list[_Space] = []
        self._stands: dict[str, ModuleType] = {}
        self._found: dict[tuple[str, str], Patched] = {}
        self._seen: set[int] = set()
        self._glance: _Glance | None = None
        judging = [name for name in sys.modules if name in _INSTALLED or name.startswith(_PLUGGY)]
        for name in (*_JUDGES, *judging, *_LATE):
            self._watch(name)
        for name, (kind, names) in _SOFTER.items():
            module = sys.modules.get(name)
            if isinstance(module, ModuleType):
                self._spaces.append(_Space(name, _Part(vars(module), names), kind))
        marks = getattr(sys.modules.get("pytest"), "mark", None)
        if marks is not None:
            self._spaces.append(_Space(_MARKS, cast("dict[str, Any]", vars(marks))))

    def look(self, during: str) -> None:
        """Note what is another one by now."""
        for name, module in self._stands.items():
            if sys.modules.get(name) is not module:
                self._note(Patched(f"sys.modules[{name!r}]", HARD, "", during))
        if self._glance is None:
            self._glance = _Glance(self._spaces)
        looked_at = self._glance.others
        if not self._glance.is_same():
            looked_at = [*looked_at, *self._glance.spaces]
        for space in looked_at:
            if not space.is_same():
                self._compare(space, during)
        for name in _LATE:
            if name not in self._stands and name in sys.modules:
                self._watch(name)

    def facts(self) -> list[list[str]]:
        """All that was found, each once."""
        return [list(each) for each in self._found.values()]

    def foreign(self, is_environment: Callable[[str], bool]) -> None:
        """Note what was put in the place of a judge before the first look, by where it was written."""
        for space in self._spaces:
            if space.label.startswith("pytest_planverify") or all(map(is_environment, space.files)):
                continue
            for name, file in space_files(space):
                if not is_environment(file):
                    self._note(Patched(f"{space.label}.{name}", space.kind, file, "session"))

    def _compare(self, space: _Space, during: str) -> None:
        for name, value in space.changes():
            full = f"{space.label}.{name}"
            if name in _OFTEN_PATCHED and space.label == "builtins":
                continue
            if during == "tests" and (space.kind != HARD or full.startswith(_MOCKED_BY_FIXTURES)):
                continue
            file = _file_of(value)
            if not file.endswith(_OWN_HABIT):
                self._note(Patched(full, space.kind, file, during))
        if during != "tests":
            space.settle()
            if _is_steady(space):
                self._glance = None

    def _note(self, patched: Patched) -> None:
        self._found.setdefault((patched.name, patched.file), patched)

    def _watch(self, name: str) -> None:
        module = sys.modules.get(name)
        if not isinstance(module, ModuleType):
            return
        self._stands[name] = module
        self._glance = None
        space: dict[str, Any] = vars(module)
        self._spaces.append(_Space(name, space))
        package = name.partition(".")[0]
        kinds = [cast("type[Any]", each) for each in space.values() if isinstance(each, type)]
        for kind in kinds if name != "builtins" else ():
            if kind.__module__.partition(".")[0] == package and id(kind) not in self._seen:
                self._seen.add(id(kind))
                self._spaces.append(_Space(f"{kind.__module__}.{kind.__qualname__}", kind.__dict__))


class _Part(Mapping[str, Any]):
    """Some names of a namespace, looked up anew each time."""

    def __init__(self, space: Mapping[str, Any], names: tuple[str, ...]) -> None:
        self._space, self._names = space, names

    def __getitem__(self, name: str) -> Any:
        return self._space.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def space_files(space: _Space) -> Iterator[tuple[str, str]]:
    """The names of a namespace's functions, with the files that they were written in."""
    for name, value in space._values.items():  # pyright: ignore[reportPrivateUsage]
        if type(value) is FunctionType and not value.__code__.co_filename.startswith("<"):
            yield name, value.__code__.co_filename


def _inner(value: Any) -> object:
    """The function in a method of a class or a property."""
    if isinstance(value, classmethod | staticmethod):
        return cast("Any", value).__func__
    return value.fget if isinstance(value, property) else value


def _decides(value: object) -> bool:
    return callable(value) or isinstance(value, property | staticmethod | classmethod)


def _file_of(value: object) -> str:
    if value is None:
        return ""
    value = _inner(value)
    if isinstance(value, int | float):
        return ""
    if isinstance(value, type):
        module = sys.modules.get(value.__module__)
        file = None if module is None else vars(module).get("__file__")
        return file if isinstance(file, str) else ""
    value = inmost(value)
    return defining_file(value) if isinstance(value, FunctionType) else ""
