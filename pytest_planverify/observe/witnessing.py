"""Watches, beside the recorder, who has a say in a session's verdicts, and writes it down at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_planverify.observe.agreeing import agreeing_classes
from pytest_planverify.observe.hostile import guarded
from pytest_planverify.observe.inventory import Inventory, environment_files
from pytest_planverify.observe.machinery import Machinery

if TYPE_CHECKING:
    from pytest_planverify.journal import JournalWriter

MOST_KINDS_OF_TESTS = 100
"""So many times the judges are looked at while a test's body is about to run."""
OFTEN = 8
"""So often the judges are looked at between criteria; then each time that their number has doubled."""
MOST_BODIES = 200

_machinery: Machinery | None = None


def begin() -> Machinery:
    """Remember what judges as it is now, once a process; to be asked before the project is loaded."""
    global _machinery
    if _machinery is None:
        _machinery = Machinery()
    return _machinery


class Witness:
    """One session's; a plugin of pytest, registered as early as the recorder."""

    def __init__(self) -> None:
        self.is_environment = environment_files()
        self.machinery = begin()
        self._inventory = Inventory(self.is_environment)
        self._kinds: set[tuple[object, ...]] = set()
        self._has_hooks: bool | None = None
        self._parent: object = None
        self._names: object = None
        self._criteria = 0
        self._without_body: list[str] = []
        self._written = False

    def pytest_plugin_registered(
        self, plugin: object, plugin_name: str, manager: pytest.PytestPluginManager
    ) -> None:
        self._inventory.registered(plugin, plugin_name, manager)
        self._has_hooks = None

    def pytest_collection_finish(self) -> None:
        self.machinery.look("collection")

    def between_criteria(self) -> None:
        """The tests of other criteria come now. What stays patched is seen at the end, too."""
        self._criteria += 1
        if self._criteria <= OFTEN or not self._criteria & (self._criteria - 1):
            self.machinery.look("session")

    def body_begins(self, item: pytest.Item) -> None:
        """A test's fixtures are ready: what they patch is seen once for each set of them.

        Where the project has hooks around tests, which may act for one file only, once for each file, too.
        """
        names = getattr(item, "fixturenames", ())
        if item.parent is self._parent and names == self._names:
            return
        self._parent, self._names = item.parent, names
        kind = _fixtures_of(item)
        if self._has_hooks is None:
            self._has_hooks = self._inventory.has_a_hand_in_tests()
        if self._has_hooks:
            kind = (item.path, *kind)
        if kind not in self._kinds and len(self._kinds) < MOST_KINDS_OF_TESTS:
            self._kinds.add(kind)
            self.machinery.look("tests")

    def passed_without_body(self, item: pytest.Item, nodeid: str) -> None:
        """A test was reported as passed, and nothing of it was called."""
        # A test of unittest is called by unittest.
        if (
            isinstance(item, pytest.Function)
            and type(item).__module__ != "_pytest.unittest"
            and len(self._without_body) < MOST_BODIES
        ):
            self._without_body.append(nodeid)

    def write(self, journal: JournalWriter, worker: str, manager: pytest.PytestPluginManager) -> None:
        """At the end of the session; only once."""
        if self._written:
            return
        self._written = True
        facts: dict[str, Any] = guarded(lambda: self._facts(manager), {"incomplete": True})
        journal.write("session_inventory", worker=worker, **facts)

    def _facts(self, manager: pytest.PytestPluginManager) -> dict[str, Any]:
        self.machinery.look("session")
        self.machinery.foreign(self.is_environment)
        return {
            **self._inventory.facts(manager),
            "patched": self.machinery.facts(),
            "agreeing": agreeing_classes(self.is_environment),
            "without_body": self._without_body,
        }


def _fixtures_of(item: pytest.Item) -> tuple[object, ...]:
    """The functions of a test's fixtures: those of one name may differ from file to file."""
    info: Any = getattr(item, "_fixtureinfo", None)
    if info is None:
        return (item.path,)
    return tuple(id(each.func) for found in info.name2fixturedefs.values() for each in found)
