"""Watches, beside the recorder, who has a say in a session's verdicts, and writes it down at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_planverify.observing.agreeing import agreeing_classes
from pytest_planverify.observing.hostile import guarded
from pytest_planverify.observing.inventory import Inventory, environment_files
from pytest_planverify.observing.machinery import Machinery

if TYPE_CHECKING:
    from pytest_planverify.journal import JournalWriter

MOST_KINDS_OF_TESTS = 100
"""So many times the judges are looked at while a test's body is about to run."""
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
        self._without_body: list[str] = []
        self._written = False

    def pytest_plugin_registered(
        self, plugin: object, plugin_name: str, manager: pytest.PytestPluginManager
    ) -> None:
        self._inventory.registered(plugin, plugin_name, manager)

    def pytest_collection_finish(self) -> None:
        self.machinery.look("collection")

    def between_criteria(self) -> None:
        """The tests of other criteria come now."""
        self.machinery.look("session")

    def body_begins(self, item: pytest.Item) -> None:
        """A test's fixtures are ready: what they patch is seen once for each file and set of them."""
        kind = (item.path, *getattr(item, "fixturenames", ()))
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
