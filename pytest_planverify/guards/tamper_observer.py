"""Observation inside of a worker: who can influence its verdicts, and whether reports match what tests
raised.

Findings go into the ``session_inventory`` record, which :mod:`pytest_planverify.guards.session_signals`
compares with the baseline.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import unittest
from functools import cache, partial
from operator import is_
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytest_planverify.journal import JournalWriter


_UNKNOWN = "<unknown>"


@cache
def environment_files() -> Callable[[str], bool]:
    """Return a predicate: whether a path belongs to the interpreter, an installed package, or this one."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = {own, os.path.join(os.path.dirname(own), "planner"), os.path.dirname(os.__file__)}
    folders |= {path for name, path in sysconfig.get_paths().items() if "lib" in name}
    # Folders added by .pth files are only found on sys.path.
    folders |= {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
    folders |= {os.path.realpath(folder) for folder in folders if folder}
    starts = tuple(f"{folder.rstrip(os.sep)}{os.sep}" for folder in sorted(folders) if folder)
    known: dict[str, bool] = {}

    def is_environment(file: str) -> bool:
        found = known.get(file)
        if found is None:
            found = known[file] = file.startswith(starts) or file.startswith("<frozen")
        return found

    return is_environment


def defining_file(function: object, holder: object = None) -> str:
    """Return the file that defines a function; for generated code, the file that generated it.

    ``holder`` is the object that has the function, used if the function itself does not tell.
    """
    function = innermost_function(function)
    code = getattr(function, "__code__", None)
    file = getattr(code, "co_filename", None)
    if isinstance(file, str) and (not file.startswith("<") or file.startswith("<frozen")):
        return file
    space = getattr(function, "__globals__", None)
    known = cast("dict[str, Any]", space).get("__file__") if isinstance(space, dict) else None
    if isinstance(known, str):
        return known
    # Without code: an instance with __call__.
    return (code is None and file_of_module(function)) or file_of_module(holder) or _UNKNOWN


def innermost_function(function: object) -> object:
    """Return the function underlying methods and partial objects."""
    while True:
        if isinstance(function, MethodType):
            function = function.__func__
        elif isinstance(function, partial):
            function = cast("partial[Any]", function).func
        else:
            return function


def file_of_module(thing: object) -> str | None:
    """Return the file of a module, or of the module that defines a class or an object's class."""
    if thing is None:
        return None
    module: object = thing
    if not isinstance(thing, ModuleType):
        kind: type[Any] = thing if isinstance(thing, type) else type(thing)
        module = sys.modules.get(kind.__module__)
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return file if isinstance(file, str) else None


_JUDGES = ("builtins", "math", "operator", "pytest", "unittest.case", "unittest.suite", "unittest.result")
_INSTALLED = frozenset(
    {
        "_pytest.approx", "_pytest.assertion", "_pytest.assertion.rewrite", "_pytest.assertion.util",
        "_pytest.config", "_pytest.fixtures", "_pytest.main", "_pytest.mark", "_pytest.mark.structures",
        "_pytest.nodes", "_pytest.outcomes", "_pytest.python", "_pytest.python_api", "_pytest.raises",
        "_pytest.recwarn", "_pytest.reports", "_pytest.runner", "_pytest.skipping", "_pytest.subtests",
        "_pytest.unittest", "pytest_planverify.guards.tamper_observer", "pytest_planverify.journal",
        "pytest_planverify.guards.sandbox_policy", "pytest_planverify.observe.audit",
        "pytest_planverify.observe.recorder", "pytest_planverify.observe.results",
    }
)  # fmt: skip
_LATE = ("numpy.testing", "numpy.testing._private.utils", "pandas.testing", "pandas._testing")
"""Judging modules that only some projects import; watched from their first appearance."""
_OFTEN_PATCHED = frozenset(
    {"_", "print", "open", "input", "exit", "quit", "help", "copyright", "credits", "license"}
    | {"breakpoint", "__build_info__"}
)
"""Builtins that have no influence on verdicts."""
_MOCKED_BY_FIXTURES = (
    "builtins.__import__", "math.", "operator.", "unittest.", "numpy.", "pandas.", "sys.", "os."
)  # fmt: skip
"""Names that fixtures may patch temporarily."""
_OWN_HABIT = "_pytest/legacypath.py"
"""pytest itself adds legacy attributes to its classes when it is configured."""
_MARKS = "pytest.mark"

_all: Callable[[Iterable[object]], bool] = all
_map: Callable[..., Iterable[object]] = map
_len = len
# Bound early: these functions are themselves watched.


class _Namespace:
    """Names of a module or class with their initial values."""

    __slots__ = ("_functions", "_names", "_values", "label", "now")

    def __init__(self, label: str, now: Mapping[str, Any], names: Iterable[str] | None = None) -> None:
        """Watch all names, or only ``names``."""
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
        """Yield changed names that can decide verdicts, with their current values."""
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
        """Return whether a new name overrides an inherited one, or one of ``pytest.mark``."""
        if isinstance(self.now, MappingProxyType):
            return name.startswith("__") and name.endswith("__") and type(value) is FunctionType
        return self.label == _MARKS and not name.startswith("_")


class ObservedJudges:
    """Snapshot of all judging code, taken before any project code is loaded."""

    def __init__(self) -> None:
        self._spaces: list[_Namespace] = []
        self._modules: dict[str, ModuleType] = {}
        self._found: dict[tuple[str, str], None] = {}
        """Changed names with the files that define their new values, if known."""
        self._classes: set[int] = set()
        judging = [name for name in sys.modules if name in _INSTALLED or name.startswith("pluggy.")]
        for name in (*_JUDGES, *judging, *_LATE):
            self._watch(name)
        # Of these modules only process-ending functions matter.
        self._spaces += [_Namespace("sys", vars(sys), ("exit",)), _Namespace("os", vars(os), ("_exit",))]
        if (marks := getattr(sys.modules.get("pytest"), "mark", None)) is not None:
            self._spaces.append(_Namespace(_MARKS, cast("dict[str, Any]", vars(marks))))

    def compare(self, during: str) -> None:
        """Record what changed so far; ``during`` is ``collection``, ``tests`` or ``session``."""
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
        """Return all changes: name, and file of the new value."""
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
    """Return the snapshot of this process, taken at the first call, which must precede any project code."""
    return ObservedJudges()


def _inner_function(value: Any) -> object:
    """Return the function inside of a classmethod, staticmethod or property."""
    if isinstance(value, classmethod | staticmethod):
        return cast("Any", value).__func__
    return value.fget if isinstance(value, property) else value


def _decides(value: object) -> bool:
    """Return whether a value can decide a verdict: code, or a tolerance of ``pytest.approx``."""
    return callable(value) or isinstance(value, property | staticmethod | classmethod | float)


def _file_of(value: object) -> str:
    value = _inner_function(value)
    if isinstance(value, type):
        return file_of_module(value) or ""
    value = innermost_function(value)
    return defining_file(value) if isinstance(value, FunctionType) else ""


MOST_HOOKS = 2_000
"""Limit of reported hooks."""
MOST_FIXTURE_SETS = 100
"""Limit of comparisons before test bodies."""
MOST_BODIES = 200

_NO_FAILURE = (
    pytest.skip.Exception,
    pytest.xfail.Exception,
    pytest.exit.Exception,
    unittest.SkipTest,
    KeyboardInterrupt,
)


class TamperingObserver:
    """Plugin that observes one session; registered together with the recorder."""

    def __init__(self) -> None:
        self.judges = judges_at_start()
        self._is_environment = environment_files()
        self._hooks: dict[tuple[str, str], None] = {}
        """Hook names with the project files that implement them."""
        self._fixture_sets: set[object] = set()
        self._without_body: list[str] = []
        self._written = False

    def pytest_plugin_registered(self, plugin: object, manager: pytest.PytestPluginManager) -> None:
        """Record a plugin's hooks, which count even if it is unregistered later."""
        home = file_of_module(plugin)
        if home is not None and self._is_environment(home) and isinstance(plugin, ModuleType):
            return  # all hooks of an installed module are installed, too
        for caller in manager.get_hookcallers(plugin) or ():
            for implementation in caller.get_hookimpls():
                if implementation.plugin is plugin:
                    self._note_hook(caller.name, implementation)

    def pytest_collection_finish(self) -> None:
        """Compare after conftests and test files were imported."""
        self.judges.compare("collection")

    def body_begins(self, item: pytest.Item) -> None:
        """Compare when a test's fixtures are set up, once for each file and set of fixtures.

        Fixtures of the same name, and hooks around tests, may differ between files.
        """
        key = (item.path, tuple(getattr(item, "fixturenames", ())))
        if key not in self._fixture_sets and len(self._fixture_sets) < MOST_FIXTURE_SETS:
            self._fixture_sets.add(key)
            self.judges.compare("tests")

    def passed_without_body(self, item: pytest.Item, nodeid: str) -> None:
        """Record a test that was reported as passed although its function was never called."""
        # unittest calls its test methods itself.
        is_plain = isinstance(item, pytest.Function) and type(item).__module__ != "_pytest.unittest"
        if is_plain and len(self._without_body) < MOST_BODIES:
            self._without_body.append(nodeid)

    def write(self, journal: JournalWriter, worker: str, manager: pytest.PytestPluginManager) -> None:
        """Write the record at the end of the session; only once."""
        if self._written:
            return
        self._written = True
        try:
            facts = self._facts(manager)
        except Exception:  # replaced objects may raise anything
            facts = {"incomplete": True}
        journal.write("session_inventory", worker=worker, **facts)

    def _facts(self, manager: pytest.PytestPluginManager) -> dict[str, Any]:
        self.judges.compare("session")
        for hook, caller in list(vars(manager.hook).items()):
            find = getattr(caller, "get_hookimpls", None)
            if not hook.startswith("_") and find is not None:
                for implementation in find():
                    self._note_hook(hook, implementation)
        return {
            "hooks": [list(each) for each in sorted(self._hooks)][:MOST_HOOKS],
            "patched": self.judges.facts(),
            "without_body": self._without_body,
        }

    def _note_hook(self, hook: str, implementation: Any) -> None:
        file = defining_file(implementation.function, implementation.plugin)
        if not self._is_environment(file):
            self._hooks[hook, file] = None


class FailureTally:
    """Counts failures raised by the running test's body, and failures reported for it.

    A plugin or conftest may rerun a failing test and report only the last result, change a report, or
    swallow the exception. Counting where exceptions are raised detects that.
    """

    __slots__ = ("_evidence", "_made", "_reported", "_runs", "passed", "raised")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Reset the counts for the next test."""
        self._runs = 0
        self.passed = False
        """The call phase was reported as passed."""
        self.raised = 0
        """Number of executions of the body that raised a failure."""
        self._made = 0
        """Number of failures for which a report was created."""
        self._reported = 0
        """Number of failures reported to all plugins."""
        self._evidence: str | None = None

    def ran(self, error: BaseException | None) -> None:
        """Count one execution of the body; ``error`` is what it raised."""
        self._runs += 1
        if error is not None and not isinstance(error, _NO_FAILURE):
            self.raised += 1

    def made(
        self,
        call: pytest.CallInfo[None],
        report: pytest.TestReport,
        evidence: Callable[[], str | None],
    ) -> None:
        """Count a created report. ``evidence`` returns the facts of a failure as JSON."""
        if call.when == "call" and call.excinfo is None and self.raised and report.outcome == "passed":
            self._made += 1  # the exception was hidden from the report's creation
            return
        if call.excinfo is None or call.excinfo.errisinstance(_NO_FAILURE):
            return
        if report.outcome == "skipped" and hasattr(report, "wasxfail"):
            self.raised = 0
            return
        self._made += 1
        if report.outcome in ("passed", "skipped"):
            self._evidence = evidence()

    def reported(self, report: pytest.TestReport) -> None:
        """Count a report that was delivered."""
        if report.outcome not in ("passed", "skipped"):
            self._reported += 1

    @property
    def unproved(self) -> bool:
        """Return whether the test was reported as passed although its body never ran."""
        return self.passed and not self._runs

    def hidden(self) -> dict[str, Any] | None:
        """Return the number of unreported failures and executions, with one failure as example; else
        ``None``.
        """
        count = self._made - self._reported
        if count <= 0:
            return None
        return {"count": count, "runs": self._runs, "evidence": self._evidence}
