"""Every hook that a file of the project implements is told of, whoever registered it and whenever."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from _pytest.config import PytestPluginManager

from pytest_planverify.guards import tamper_observer
from pytest_planverify.guards.tamper_observer import TamperingObserver, defining_file, environment_files


class Plugin:
    def pytest_runtest_logreport(self, report: Any) -> None: ...

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, object, object]:
        return (yield)


class Caller:
    def __call__(self, report: Any) -> None: ...


def pytest_sessionfinish() -> None: ...


@pytest.fixture
def manager() -> PytestPluginManager:
    return PytestPluginManager()


def hooks_of(observer: TamperingObserver, manager: PytestPluginManager) -> list[list[str]]:
    return [each for each in observer._facts(manager)["hooks"] if each[1] == __file__]


def register(
    observer: TamperingObserver, manager: PytestPluginManager, plugin: object, name: str | None = None
) -> None:
    manager.register(plugin, name)
    observer.pytest_plugin_registered(plugin, manager)


def test_an_object_that_was_registered_is_known_by_where_its_class_was_written(
    manager: PytestPluginManager,
) -> None:
    observer = TamperingObserver()
    register(observer, manager, Plugin(), "140022")
    assert hooks_of(observer, manager) == [
        ["pytest_runtest_logreport", __file__],
        ["pytest_runtest_makereport", __file__],
    ]


def test_a_plugin_that_went_away_has_still_been_there(manager: PytestPluginManager) -> None:
    observer = TamperingObserver()
    plugin = Plugin()
    register(observer, manager, plugin, "gone")
    manager.unregister(plugin)
    assert ["pytest_runtest_logreport", __file__] in hooks_of(observer, manager)


def test_a_plugin_that_nobody_told_of_is_found_in_the_end(manager: PytestPluginManager) -> None:
    observer = TamperingObserver()
    manager.register(SimpleNamespace(pytest_sessionfinish=pytest_sessionfinish))
    assert hooks_of(observer, manager) == [["pytest_sessionfinish", __file__]]


def test_hooks_of_installed_modules_are_not_told_of(manager: PytestPluginManager) -> None:
    import _pytest.runner

    observer = TamperingObserver()
    register(observer, manager, _pytest.runner, "runner")
    assert observer._facts(manager)["hooks"] == []


def test_code_that_was_made_of_text_belongs_to_the_file_that_made_it() -> None:
    space: dict[str, Any] = {"__file__": "/work/conftest.py"}
    exec("def made(): ...", space)
    assert defining_file(space["made"]) == "/work/conftest.py"
    assert defining_file(partial(partial(pytest_sessionfinish))) == __file__
    assert defining_file(Plugin().pytest_runtest_logreport) == __file__
    assert defining_file(Caller()) == __file__
    del space["__file__"]
    assert defining_file(space["made"], Plugin()) == __file__
    assert defining_file(space["made"]) == "<unknown>"


def test_installed_files_and_the_standard_library_are_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_environment = environment_files()
    assert is_environment(os.__file__)
    assert is_environment(pytest.__file__)
    assert is_environment(tamper_observer.__file__)
    assert is_environment("<frozen importlib._bootstrap>")
    assert not is_environment(__file__)
    assert not is_environment("")
    monkeypatch.setattr("site.USER_SITE", None)
    assert environment_files()(os.__file__)


def test_the_facts_are_written_once_and_where_they_cannot_be_found_out_that_is_said(
    manager: PytestPluginManager,
) -> None:
    written: list[tuple[str, dict[str, Any]]] = []

    def write(record: str, **facts: Any) -> None:
        written.append((record, facts))

    journal: Any = SimpleNamespace(write=write)
    observer = TamperingObserver()
    observer.write(journal, "", manager)
    observer.write(journal, "", manager)
    ((record, facts),) = written
    assert record == "session_inventory"
    assert facts.keys() == {"worker", "hooks", "patched", "without_body"}
    TamperingObserver().write(journal, "gw0", SimpleNamespace(hook=None))  # type: ignore[arg-type]
    assert written[1][1] == {"worker": "gw0", "incomplete": True}


def test_what_a_fixture_patches_is_looked_at_once_for_each_set_of_fixtures_of_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    observer = TamperingObserver()
    looks: list[str] = []
    monkeypatch.setattr(observer.judges, "compare", looks.append)
    for name, fixtures in (("a.py", ["x"]), ("a.py", ["x"]), ("a.py", ["x", "y"]), ("b.py", ["x"])):
        test = SimpleNamespace(path=Path(name), fixturenames=fixtures)
        observer.body_begins(cast("pytest.Item", test))
    observer.pytest_collection_finish()
    assert looks == ["tests", "tests", "tests", "collection"]


def test_tests_of_unittest_are_not_asked_for_their_bodies(request: pytest.FixtureRequest) -> None:
    observer = TamperingObserver()
    observer.passed_without_body(request.node, "a.py::test_a")
    observer.passed_without_body(request.session, "session")  # type: ignore[arg-type]
    assert observer._without_body == ["a.py::test_a"]
    for number in range(400):
        observer.passed_without_body(request.node, str(number))
    assert len(observer._without_body) == 200
    assert "unittest" in sys.modules
