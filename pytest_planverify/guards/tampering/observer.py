"""Observes inside a worker who has a say in its verdicts, and holds reports against what tests raised.

What it finds goes into the record ``session_inventory``, which is compared with the baseline by
:mod:`pytest_planverify.guards.session_signals`.
"""

from __future__ import annotations

import unittest
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_planverify.guards.tampering.code_files import defining_file, environment_files, file_of_module
from pytest_planverify.guards.tampering.judges import judges_at_start

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_planverify.journal import JournalWriter

MOST_HOOKS = 2_000
"""So many hooks are told of; a session with more is no session of one project."""
MOST_FIXTURE_SETS = 100
"""So many times the judges are looked at while a test's body is about to run."""
MOST_BODIES = 200

_NO_FAILURE = (
    pytest.skip.Exception,
    pytest.xfail.Exception,
    pytest.exit.Exception,
    unittest.SkipTest,
    KeyboardInterrupt,
)


class TamperingObserver:
    """Observes one session; registered as early as the recorder."""

    def __init__(self) -> None:
        self.judges = judges_at_start()
        self._is_environment = environment_files()
        self._hooks: dict[tuple[str, str], None] = {}
        """Names of hooks with the files of the project that implement them."""
        self._fixture_sets: set[object] = set()
        self._without_body: list[str] = []
        self._written = False

    def pytest_plugin_registered(self, plugin: object, manager: pytest.PytestPluginManager) -> None:
        """Note the hooks of a plugin, which count even where it has gone by the end."""
        home = file_of_module(plugin)
        if home is not None and self._is_environment(home) and isinstance(plugin, ModuleType):
            return  # of an installed module all hooks are: spare looking at each
        for caller in manager.get_hookcallers(plugin) or ():
            for implementation in caller.get_hookimpls():
                if implementation.plugin is plugin:
                    self._note_hook(caller.name, implementation)

    def pytest_collection_finish(self) -> None:
        """Look at the judges once conftests and test files are imported."""
        self.judges.compare("collection")

    def body_begins(self, item: pytest.Item) -> None:
        """Look at the judges when a test's fixtures are ready, once for each set of fixtures of a file.

        Fixtures of one name, and what hooks of the project do around tests, may differ from file to file.
        """
        key = (item.path, tuple(getattr(item, "fixturenames", ())))
        if key not in self._fixture_sets and len(self._fixture_sets) < MOST_FIXTURE_SETS:
            self._fixture_sets.add(key)
            self.judges.compare("tests")

    def passed_without_body(self, item: pytest.Item, nodeid: str) -> None:
        """Note a test that was reported as passed, though its function was not called."""
        # A test of unittest is called by unittest.
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
        except Exception:  # what the project has replaced may raise anything
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
    """Counts the failures that the running test's body raised, and those that were reported of it.

    A plugin or a conftest may run a failing test again and report the last answer only, turn a report
    round, or keep an exception to itself. What was raised is counted where it happens.
    """

    __slots__ = ("_evidence", "_made", "_reported", "_runs", "passed", "raised")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start to count for another test."""
        self._runs = 0
        self.passed = False
        """Its call was reported as passed."""
        self.raised = 0
        """Bodies that raised what is a failure."""
        self._made = 0
        """Failures that reports were made of."""
        self._reported = 0
        """Failures that were reported to everybody."""
        self._evidence: str | None = None

    def ran(self, error: BaseException | None) -> None:
        """Count a run of the body, to its end or not."""
        self._runs += 1
        if error is not None and not isinstance(error, _NO_FAILURE):
            self.raised += 1

    def made(
        self,
        call: pytest.CallInfo[None],
        report: pytest.TestReport,
        evidence: Callable[[], str | None],
    ) -> None:
        """Count a report made of one phase. ``evidence`` gives the facts of a failure as JSON."""
        if call.when == "call" and call.excinfo is None and self.raised and report.outcome == "passed":
            self._made += 1  # it was kept from the one who makes reports
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
        """Count a report that was given to everybody."""
        if report.outcome not in ("passed", "skipped"):
            self._reported += 1

    @property
    def unproved(self) -> bool:
        """Return whether it was reported as passed though its body was never run."""
        return self.passed and not self._runs

    def hidden(self) -> dict[str, Any] | None:
        """Return how many failures were not reported, in how many runs of the body, and one of them."""
        count = self._made - self._reported
        if count <= 0:
            return None
        return {"count": count, "runs": self._runs, "evidence": self._evidence}
