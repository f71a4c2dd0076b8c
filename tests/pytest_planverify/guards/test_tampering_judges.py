"""Replacement of objects that decide verdicts, detected by identity; irrelevant ones are not flagged."""

from __future__ import annotations

import builtins
import math
import os
import sys
import unittest
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from _pytest.config import PytestPluginManager
from _pytest.reports import TestReport
from _pytest.runner import CallInfo
from pluggy import HookCaller

from pytest_planverify.guards import tamper_observer
from pytest_planverify.guards.tamper_observer import (
    ObservedJudges,
    TamperingObserver,
    defining_file,
    environment_files,
)

APPROX: Any = type(pytest.approx(1.0))


def agree(*_: object) -> bool:
    return True


def answer(*_: object) -> int:
    return 1


def leave(*_: object) -> None:
    sys.exit("called")


@pytest.fixture
def judges() -> ObservedJudges:
    return ObservedJudges()


def names(judges: ObservedJudges, during: str = "session") -> set[str]:
    judges.compare(during)
    return {name for name, *_ in judges.facts()}


def patches() -> Iterator[tuple[str, Callable[[pytest.MonkeyPatch], None]]]:
    yield "builtins.all", lambda patch: patch.setattr(builtins, "all", agree)
    yield "builtins.AssertionError", lambda patch: patch.setattr(builtins, "AssertionError", KeyError)
    yield "math.isclose", lambda patch: patch.setattr(math, "isclose", agree)
    yield "pytest.approx", lambda patch: patch.setattr(pytest, "approx", agree)
    yield "pytest.approx()", lambda patch: patch.setattr(pytest.approx, "__defaults__", (None, 9.0, False))
    yield "pytest.raises()", lambda patch: patch.setattr(pytest.raises, "__code__", agree.__code__)
    yield (
        "pytest.mark.parametrize",
        lambda patch: patch.setattr(pytest.mark, "parametrize", agree, raising=False),
    )
    yield (
        "unittest.case.TestCase.assertEqual",
        lambda patch: patch.setattr(unittest.TestCase, "assertEqual", partial(agree, 1)),
    )
    yield (
        "_pytest.reports.TestReport.__bool__",
        lambda patch: patch.setattr(TestReport, "__bool__", agree, raising=False),
    )
    yield (
        "_pytest.reports.TestReport.from_item_and_call",
        lambda patch: patch.setattr(TestReport, "from_item_and_call", agree),
    )
    yield (
        "_pytest.runner.CallInfo.from_call()",
        lambda patch: patch.setattr(
            CallInfo.__dict__["from_call"].__func__, "__kwdefaults__", {"reraise": None}
        ),
    )
    yield (
        f"{APPROX.__module__}.{APPROX.__name__}.DEFAULT_RELATIVE_TOLERANCE",
        lambda patch: patch.setattr(APPROX, "DEFAULT_RELATIVE_TOLERANCE", 5.0),
    )
    yield (
        f"{HookCaller.__module__}.HookCaller.get_hookimpls",
        lambda patch: patch.delattr(HookCaller, "get_hookimpls"),
    )
    yield "sys.exit", lambda patch: patch.setattr(sys, "exit", agree)
    yield "os._exit", lambda patch: patch.setattr(os, "_exit", agree)
    yield "sys.modules['pytest']", lambda patch: patch.setitem(sys.modules, "pytest", ModuleType("pytest"))


@pytest.mark.parametrize(("name", "patch"), list(patches()), ids=[name for name, _ in patches()])
def test_replaced_judge_is_named(
    judges: ObservedJudges, name: str, patch: Callable[[pytest.MonkeyPatch], None]
) -> None:
    with pytest.MonkeyPatch.context() as context:
        patch(context)
        judges.compare("session")
    assert name in {found for found, *_ in judges.facts()}


def test_comparison_finds_replacements_but_not_restored_objects(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "any", agree)
    monkeypatch.undo()
    assert names(judges) == set()
    fresh = ObservedJudges()
    monkeypatch.setattr(builtins, "any", agree)
    assert names(fresh) == names(judges) == {"builtins.any"}


def test_replacement_is_reported_once_with_its_file(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "any", agree)
    judges.compare("collection")
    judges.compare("session")
    assert judges.facts() == [["builtins.any", __file__]]


def test_removed_or_mocked_judge_has_no_file(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "all", MagicMock())  # it has every attribute
    monkeypatch.delattr(builtins, "sorted")
    judges.compare("session")
    monkeypatch.undo()
    assert sorted(judges.facts()) == [
        ["builtins.all", ""],
        ["builtins.sorted", ""],
    ]


def test_replacing_class_has_the_file_of_its_module(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(AssertionError):
        pass

    monkeypatch.setattr(builtins, "AssertionError", Other)
    judges.compare("session")
    monkeypatch.undo()
    assert judges.facts() == [["builtins.AssertionError", __file__]]


@pytest.mark.parametrize("name", ["print", "open", "input"])
def test_builtins_without_influence_may_be_replaced(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(builtins, name, agree)
    assert names(judges) == set()


def test_new_names_and_plain_values_are_not_replacements(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest, "helper", agree, raising=False)
    monkeypatch.setattr(unittest.TestCase, "assert_alike", agree, raising=False)
    monkeypatch.setattr(unittest.TestCase, "maxDiff", None)
    monkeypatch.setattr("_pytest.main.tracebacks", agree, raising=False)
    found = names(judges) | names(judges)  # the second comparison finds nothing either
    assert found == set()


@pytest.mark.parametrize(
    ("name", "is_found"), [("builtins.len", True), ("builtins.__import__", False), ("sys.exit", False)]
)
def test_fixture_mocks_are_found_only_for_judges(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch, name: str, is_found: bool
) -> None:
    monkeypatch.setattr(name, answer)
    found = names(judges, "tests")
    monkeypatch.undo()
    assert found == ({name} if is_found else set())
    assert names(ObservedJudges()) == set()


def test_leftover_fixture_mock_is_found_at_the_end(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("math.isclose", agree)
    assert names(judges, "tests") == set()
    assert names(judges) == {"math.isclose"}


def test_late_imported_judges_are_watched_from_then_on(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = ModuleType("numpy.testing")
    late.assert_allclose = agree  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "numpy.testing", late)
    assert names(judges) == set()
    late.assert_allclose = lambda *_: None  # type: ignore[attr-defined]
    assert names(judges) == {"numpy.testing.assert_allclose"}


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


def test_registered_object_is_identified_by_the_file_of_its_class(
    manager: PytestPluginManager,
) -> None:
    observer = TamperingObserver()
    register(observer, manager, Plugin(), "140022")
    assert hooks_of(observer, manager) == [
        ["pytest_runtest_logreport", __file__],
        ["pytest_runtest_makereport", __file__],
    ]


def test_unregistered_plugin_is_still_reported(manager: PytestPluginManager) -> None:
    observer = TamperingObserver()
    plugin = Plugin()
    register(observer, manager, plugin, "gone")
    manager.unregister(plugin)
    assert ["pytest_runtest_logreport", __file__] in hooks_of(observer, manager)


def test_plugin_registered_without_notice_is_found_at_the_end(manager: PytestPluginManager) -> None:
    observer = TamperingObserver()
    manager.register(SimpleNamespace(pytest_sessionfinish=pytest_sessionfinish))
    assert hooks_of(observer, manager) == [["pytest_sessionfinish", __file__]]


def test_hooks_of_installed_modules_are_not_reported(manager: PytestPluginManager) -> None:
    import _pytest.runner

    observer = TamperingObserver()
    register(observer, manager, _pytest.runner, "runner")
    assert observer._facts(manager)["hooks"] == []


def test_generated_code_belongs_to_the_file_that_generated_it() -> None:
    space: dict[str, Any] = {"__file__": "/work/conftest.py"}
    exec("def made(): ...", space)
    assert defining_file(space["made"]) == "/work/conftest.py"
    assert defining_file(partial(partial(pytest_sessionfinish))) == __file__
    assert defining_file(Plugin().pytest_runtest_logreport) == __file__
    assert defining_file(Caller()) == __file__
    del space["__file__"]
    assert defining_file(space["made"], Plugin()) == __file__
    assert defining_file(space["made"]) == "<unknown>"


def test_installed_files_and_standard_library_are_the_environment(
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


def test_tampering_facts_are_written_once_or_marked_incomplete(
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


def test_fixture_patches_are_compared_once_per_file_and_fixture_set(
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


def test_bodies_of_unittest_tests_are_not_checked(request: pytest.FixtureRequest) -> None:
    observer = TamperingObserver()
    observer.passed_without_body(request.node, "a.py::test_a")
    observer.passed_without_body(request.session, "session")  # type: ignore[arg-type]
    assert observer._without_body == ["a.py::test_a"]
    for number in range(400):
        observer.passed_without_body(request.node, str(number))
    assert len(observer._without_body) == 200
    assert "unittest" in sys.modules
