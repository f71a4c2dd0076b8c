"""Observation of tampering inside a worker.

The module records which code can influence verdicts (hooks that the project implements, replaced functions
of pytest, unittest and the interpreter), and whether the reports of a test agree with what its body raised.
The facts go into the ``session_inventory`` record of the journal, and
:mod:`pytest_planverify.guards.session_signals` compares them with the baseline, in the parent process.

Code under test runs in the same interpreter and may replace anything. :class:`ObservedJudges` therefore
copies the relevant namespaces before project code is imported, and compares them again at fixed points.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import unittest
from functools import cache, partial
from itertools import chain
from operator import attrgetter, is_
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytest_planverify.journal import JournalWriter


_UNKNOWN = "<unknown>"


@cache
def environment_files() -> Callable[[str], bool]:
    """Return a predicate: whether a path belongs to the interpreter, to an installed package or to us."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = {own, os.path.join(os.path.dirname(own), "planner"), os.path.dirname(os.__file__)}
    folders |= {path for name, path in sysconfig.get_paths().items() if "lib" in name}
    # Folders added by .pth files are only found on sys.path.
    folders |= {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
    folders |= {os.path.realpath(folder) for folder in folders if folder}
    starts = tuple(f"{folder.rstrip(os.sep)}{os.sep}" for folder in sorted(folders) if folder)

    @cache
    def is_environment(file: str) -> bool:
        return file.startswith(starts) or file.startswith("<frozen")

    return is_environment


def _innermost_function(function: object) -> object:
    """Return the function inside methods, properties and ``partial`` objects; other values unchanged."""
    while True:
        if isinstance(function, MethodType | classmethod | staticmethod):
            function = cast("Any", function).__func__
        elif isinstance(function, property):
            function = function.fget
        elif isinstance(function, partial):
            function = cast("partial[Any]", function).func
        else:
            return function


# Modules whose functions decide verdicts. Those of _JUDGES_IF_IMPORTED are watched only if the process has
# imported them before the snapshot.
_JUDGES = ("builtins", "math", "operator", "pytest", "unittest.case", "unittest.suite", "unittest.result")
_JUDGES_IF_IMPORTED = frozenset(
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
"""Judging modules that only some projects import; watched from the first comparison that finds them."""
_OFTEN_PATCHED = frozenset(
    {"_", "print", "open", "input", "exit", "quit", "help", "copyright", "credits", "license"}
    | {"breakpoint", "__build_info__"}
)
"""Builtins that are often replaced, by consoles and tests, and have no influence on verdicts."""
_MOCKED_BY_FIXTURES = (
    "builtins.__import__", "math.", "operator.", "unittest.", "numpy.", "pandas.", "sys.", "os."
)  # fmt: skip
"""Prefixes of names that fixtures may patch while a test runs; afterwards the patch must be undone."""
MOST_FIXTURE_SETS = 100
"""Limit of comparisons before test bodies."""
_LEGACY_PATH = "_pytest/legacypath.py"
"""pytest itself adds legacy attributes to its classes when it is configured."""
_MARKS = "pytest.mark"

# Bound before project code can replace these builtins, which are watched themselves: a replaced all() could
# hide its own replacement.
_all: Callable[[Iterable[object]], bool] = all
_map: Callable[..., Iterable[Any]] = map
_len = len
_chain = chain.from_iterable
_parts_of = attrgetter("__code__", "__defaults__", "__kwdefaults__")


class _Namespace:
    """Names of a module or class with their initial values.

    A function can also be changed without being replaced, by assigning its code or its defaults. These are
    stored and compared, too.
    """

    __slots__ = ("_functions", "_names", "_parts", "_values", "label", "now")

    def __init__(self, label: str, now: Mapping[str, Any], names: Iterable[str] | None = None) -> None:
        """Copy the values of the namespace ``now``: of all names, or only of ``names``.

        ``now`` must be the live namespace, so that it shows later changes. ``label`` is its dotted name.
        """
        self.label, self.now, self._names = label, now, names
        self._values = self._read()
        self._functions = [
            function
            for each in self._values.values()
            if isinstance(function := _innermost_function(each), FunctionType)
        ]
        self._parts = list(_chain(_map(_parts_of, self._functions)))

    def _read(self) -> dict[str, Any]:
        return dict(self.now) if self._names is None else {name: self.now.get(name) for name in self._names}

    def is_unchanged(self) -> bool:
        """Return whether all values and functions are the initial ones, as usual; ``False`` if in doubt.

        Without a loop in Python: there are hundreds of namespaces, and they are compared repeatedly.
        """
        now = self.now if self._names is None else self._read()
        try:
            return (
                _len(now) == _len(self._values)
                and _all(_map(is_, now.values(), self._values.values()))
                and _all(_map(is_, _chain(_map(_parts_of, self._functions)), self._parts))
            )
        except RuntimeError:  # another thread has changed its size
            return False

    def changes(self) -> Iterator[tuple[str, Any]]:
        """Yield changed names that can decide verdicts, with their current values."""
        now, before = self._read(), self._values
        for name, value in before.items():
            if now.get(name) is not value and _decides(value):
                yield name, now.get(name)
        for name in now.keys() - before.keys():
            if self._overrides(name, now[name]):
                yield name, now[name]
        for number, function in enumerate(self._functions):
            if not _all(_map(is_, _parts_of(function), self._parts[3 * number : 3 * number + 3])):
                yield f"{function.__name__}()", function

    def _overrides(self, name: str, value: object) -> bool:
        """Return whether a new name overrides an inherited one, or one of ``pytest.mark``."""
        # The namespace of a class is a mapping proxy. A special method that is added to it overrides that
        # of a base class.
        if isinstance(self.now, MappingProxyType):
            return name.startswith("__") and name.endswith("__") and type(value) is FunctionType
        return self.label == _MARKS and not name.startswith("_")


class ObservedJudges:
    """Snapshot of the code that decides verdicts, taken before any project code is imported."""

    def __init__(self) -> None:
        self._spaces: list[_Namespace] = []
        self._modules: dict[str, ModuleType] = {}
        self._found: dict[tuple[str, str], None] = {}
        """Changed names with the files that define their new values, if known."""
        self._classes: set[int] = set()
        judging = [
            name for name in sys.modules if name in _JUDGES_IF_IMPORTED or name.startswith("pluggy.")
        ]
        for name in (*_JUDGES, *judging, *_LATE):
            self._watch(name)
        # Of these modules only the functions that end the process matter.
        self._spaces += [_Namespace("sys", vars(sys), ("exit",)), _Namespace("os", vars(os), ("_exit",))]
        if (marks := getattr(sys.modules.get("pytest"), "mark", None)) is not None:
            self._spaces.append(_Namespace(_MARKS, cast("dict[str, Any]", vars(marks))))

    def compare(self, mocked: tuple[str, ...] = ()) -> None:
        """Record all changes since the snapshot; those of earlier calls are kept, even if undone since.

        Names that start with one of ``mocked`` are left out.
        """
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                self._found[f"sys.modules[{name!r}]", ""] = None
        for space in self._spaces:
            for name, value in () if space.is_unchanged() else space.changes():
                full, file = f"{space.label}.{name}", _file_of(value)
                is_harmless = space.label == "builtins" and name in _OFTEN_PATCHED
                is_harmless = is_harmless or full.startswith(mocked) or file.endswith(_LEGACY_PATH)
                if not is_harmless:
                    self._found[full, file] = None
        for name in _LATE:
            if name not in self._modules:
                self._watch(name)

    def facts(self) -> list[list[str]]:
        """Return all changes as pairs: dotted name, and file of the new value (empty if unknown)."""
        return [list(each) for each in self._found]

    def _watch(self, name: str) -> None:
        """Start to watch a module and the classes that its package defines, if it is imported."""
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
    """Return the snapshot of this process. The first call takes it, and must precede any project code."""
    return ObservedJudges()


def _decides(value: object) -> bool:
    """Return whether a value can decide a verdict: code, or a tolerance of ``pytest.approx``."""
    return callable(value) or isinstance(value, property | staticmethod | classmethod | float)


def _file_of(value: object) -> str:
    """Return the file that defines a function or class, for generated code its module's; else empty."""
    value = _innermost_function(value)
    space: Mapping[str, Any] = {}
    if isinstance(value, FunctionType):
        file = value.__code__.co_filename
        if not file.startswith("<") or file.startswith("<frozen"):
            return file
        space = value.__globals__
    elif isinstance(value, type) and isinstance(module := sys.modules.get(value.__module__), ModuleType):
        space = vars(module)
    file = space.get("__file__")
    return file if isinstance(file, str) else ""


MOST_BODIES = 200
"""Limit of reported tests whose body did not run."""

# Exceptions of a test body that pytest does not report as a failure of the test.
_NOT_FAILURES = (
    pytest.skip.Exception,
    pytest.xfail.Exception,
    pytest.exit.Exception,
    unittest.SkipTest,
    KeyboardInterrupt,
)


class TamperingObserver:
    """Pytest plugin that observes one session; registered together with the recorder."""

    def __init__(self) -> None:
        self.judges = judges_at_start()
        self._is_environment = environment_files()
        self._hooks: dict[tuple[str, str], None] = {}
        """Hook names with the project files that implement them."""
        self._fixture_sets: set[object] = set()
        self._without_body: list[str] = []
        self._written = False

    def pytest_plugin_registered(self, plugin: object, manager: pytest.PytestPluginManager) -> None:
        """Record a plugin's hooks at once, as the plugin may be unregistered before the session ends."""
        home = getattr(plugin, "__file__", None) if isinstance(plugin, ModuleType) else None
        if home is None or not self._is_environment(home):  # the hooks of installed modules are installed
            self._note_hooks(manager, lambda owner: owner is plugin)

    def pytest_collection_finish(self) -> None:
        """Compare the judges once all conftests and test files have been imported."""
        self.judges.compare()

    def body_begins(self, item: pytest.Item) -> None:
        """Compare the judges when a test's fixtures are set up, once per file and set of fixtures."""
        # Fixtures of the same name, and hooks around tests, may differ between files.
        key = (item.path, tuple(getattr(item, "fixturenames", ())))
        if key not in self._fixture_sets and len(self._fixture_sets) < MOST_FIXTURE_SETS:
            self._fixture_sets.add(key)
            self.judges.compare(_MOCKED_BY_FIXTURES)

    def passed_without_body(self, item: pytest.Item, nodeid: str) -> None:
        """Record a test that was reported as passed although its function was never called."""
        # unittest calls its test methods itself, so that their calls are not observed.
        is_plain = isinstance(item, pytest.Function) and type(item).__module__ != "_pytest.unittest"
        if is_plain and len(self._without_body) < MOST_BODIES:
            self._without_body.append(nodeid)

    def write(self, journal: JournalWriter, worker: str, manager: pytest.PytestPluginManager) -> None:
        """Write the ``session_inventory`` record at the end of the session; later calls do nothing.

        A record that is missing, or marked ``incomplete`` because the facts could not be read, is a signal
        of tampering itself.
        """
        if self._written:
            return
        self._written = True
        try:
            self.judges.compare()
            self._note_hooks(manager)
            facts: dict[str, Any] = {"patched": self.judges.facts(), "without_body": self._without_body}
            facts["hooks"] = [list(each) for each in sorted(self._hooks)]
        except Exception:  # replaced objects may raise anything
            facts = {"incomplete": True}
        journal.write("session_inventory", worker=worker, **facts)

    def _note_hooks(
        self, manager: pytest.PytestPluginManager, is_wanted: Callable[[object], bool] = lambda _: True
    ) -> None:
        """Record the hooks that files of the project implement, of the wanted plugins."""
        for hook, caller in list(vars(manager.hook).items()):
            for each in caller.get_hookimpls() if hasattr(caller, "get_hookimpls") else ():
                owner: object = each.plugin
                if is_wanted(owner):
                    file = _file_of(each.function) or _file_of(type(owner)) or _UNKNOWN
                    if not self._is_environment(file):
                        self._hooks[hook, file] = None


class FailureTally:
    """Counts of the failures that the running test's body raised, and of those reported for it.

    A plugin or conftest may rerun a failing test and report only the last result, change a report, or
    swallow the exception. A count taken where exceptions are raised detects that.
    """

    __slots__ = ("_evidence", "_made", "_reported", "_runs", "passed", "raised")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Reset the counts for the next test."""
        self._runs = 0
        self.passed = False
        """Whether the call phase was reported as passed."""
        self.raised = 0
        """Number of executions of the body that raised a failure."""
        self._made = 0
        """Number of failures for which a report was created."""
        self._reported = 0
        """Number of failures reported to all plugins."""
        self._evidence: str | None = None
        """Facts of a hidden failure, as JSON."""

    def ran(self, error: BaseException | None) -> None:
        """Count one execution of the body; ``error`` is the exception that it raised, if any."""
        self._runs += 1
        if error is not None and not isinstance(error, _NOT_FAILURES):
            self.raised += 1

    def made(
        self,
        call: pytest.CallInfo[None],
        report: pytest.TestReport,
        evidence: Callable[[], str | None],
    ) -> None:
        """Count a report when it is created. ``evidence`` returns the facts of the failure as JSON."""
        if call.when == "call" and call.excinfo is None and self.raised and report.outcome == "passed":
            # The body raised, but the exception was swallowed before the report was created.
            self._made += 1
            return
        if call.excinfo is None or call.excinfo.errisinstance(_NOT_FAILURES):
            return
        if report.outcome == "skipped" and hasattr(report, "wasxfail"):
            # An expected failure (xfail) is legitimately not reported as one.
            self.raised = 0
            return
        self._made += 1
        if report.outcome in ("passed", "skipped"):
            self._evidence = evidence()

    def reported(self, report: pytest.TestReport) -> None:
        """Count a report that was delivered to all plugins."""
        if report.outcome not in ("passed", "skipped"):
            self._reported += 1

    @property
    def unproved(self) -> bool:
        """Return whether the test was reported as passed although its body never ran."""
        return self.passed and not self._runs

    def hidden(self) -> dict[str, Any] | None:
        """Return the failures that were raised and not reported, or ``None`` if there are none.

        Members: ``count`` of the failures, ``runs`` of the body, ``evidence`` of one failure as JSON or
        ``None``.
        """
        count = self._made - self._reported
        if count <= 0:
            return None
        return {"count": count, "runs": self._runs, "evidence": self._evidence}
