"""Plugin that notes who has a say in a session's verdicts, for the record ``session_inventory``."""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_planverify.guards.tampering.code_files import defining_file, environment_files, file_of_module
from pytest_planverify.guards.tampering.judges import judges_at_start
from pytest_planverify.guards.tampering.loose_equality import agreeing_methods

if TYPE_CHECKING:
    from pytest_planverify.journal import JournalWriter

MOST_NAMES = 2_000
"""So many hooks or plugins are told of; a session with more is no session of one project."""
MOST_FIXTURE_SETS = 100
"""So many times the judges are looked at while a test's body is about to run."""
MOST_BODIES = 200

_AROUND_TESTS = ("pytest_runtest", "pytest_pyfunc_call", "pytest_fixture")


class TamperingObserver:
    """Observes one session; registered as early as the recorder."""

    def __init__(self) -> None:
        self.judges = judges_at_start()
        self._is_environment = environment_files()
        self._plugins: dict[str, None] = {}
        self._hooks: dict[tuple[str, str], None] = {}
        """Names of hooks with the files of the project that implement them."""
        self._fixture_sets: set[tuple[object, ...]] = set()
        self._last: tuple[object, object] = (None, None)
        """Parent and fixtures of the test before, for most tests share them with it."""
        self._has_hooks_around_tests: bool | None = None
        self._without_body: list[str] = []
        self._written = False

    def pytest_plugin_registered(
        self, plugin: object, plugin_name: str, manager: pytest.PytestPluginManager
    ) -> None:
        """Note a plugin and its hooks, which count even where it has gone by the end."""
        self._has_hooks_around_tests = None
        home = file_of_module(plugin)
        is_installed = home is not None and self._is_environment(home)
        if is_installed and isinstance(plugin, ModuleType):
            self._plugins[plugin_name or plugin.__name__] = None
            return
        if not is_installed:
            self._plugins[_stable_name(plugin, plugin_name)] = None
        for caller in manager.get_hookcallers(plugin) or ():
            for implementation in caller.get_hookimpls():
                if implementation.plugin is plugin:
                    self._note_hook(caller.name, implementation)

    def pytest_collection_finish(self) -> None:
        """Look at the judges once conftests and test files are imported."""
        self.judges.compare("collection")

    def body_begins(self, item: pytest.Item) -> None:
        """Look at the judges when a test's fixtures are ready, once for each set of fixtures.

        Where the project has hooks around tests, which may act for one file only, once for each file, too.
        """
        names = getattr(item, "fixturenames", ())
        if item.parent is self._last[0] and names == self._last[1]:
            return
        self._last = item.parent, names
        if self._has_hooks_around_tests is None:
            self._has_hooks_around_tests = any(hook.startswith(_AROUND_TESTS) for hook, _ in self._hooks)
        info: Any = getattr(item, "_fixtureinfo", None)
        # By identity: fixtures of one name may differ from file to file.
        found = () if info is None else info.name2fixturedefs.values()
        kind = tuple(id(each.func) for definitions in found for each in definitions)
        if self._has_hooks_around_tests or info is None:
            kind = (item.path, *kind)
        if kind not in self._fixture_sets and len(self._fixture_sets) < MOST_FIXTURE_SETS:
            self._fixture_sets.add(kind)
            self.judges.compare("tests")

    def passed_without_body(self, item: pytest.Item, nodeid: str) -> None:
        """Note a test that was reported as passed, though its function was not called."""
        # A test of unittest is called by unittest.
        if (
            isinstance(item, pytest.Function)
            and type(item).__module__ != "_pytest.unittest"
            and len(self._without_body) < MOST_BODIES
        ):
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
        self.judges.note_foreign(self._is_environment)
        for hook, caller in list(vars(manager.hook).items()):
            find = getattr(caller, "get_hookimpls", None)
            if not hook.startswith("_") and find is not None:
                for implementation in find():
                    self._note_hook(hook, implementation)
        return {
            "plugins": sorted(self._plugins)[:MOST_NAMES],
            "hooks": [list(each) for each in sorted(self._hooks)][:MOST_NAMES],
            "patched": self.judges.facts(),
            "agreeing": agreeing_methods(self._is_environment),
            "without_body": self._without_body,
        }

    def _note_hook(self, hook: str, implementation: Any) -> None:
        file = defining_file(implementation.function, implementation.plugin)
        if not self._is_environment(file):
            self._hooks[hook, file] = None


def _stable_name(plugin: object, name: str | None) -> str:
    """Return a name that is the same in every run; objects are registered by their number."""
    if name and not name.isdigit():
        return os.path.basename(name) if os.path.isabs(name) else name
    kind = plugin if isinstance(plugin, type) else type(plugin)
    return f"{kind.__module__}.{kind.__qualname__}"
