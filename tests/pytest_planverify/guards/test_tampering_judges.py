"""Replacement of objects that decide verdicts, detected by identity; irrelevant ones are not flagged."""

import builtins
import math
import os
import sys
import unittest
from functools import partial
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import _pytest.main
import pytest
from _pytest.config import PytestPluginManager
from _pytest.reports import TestReport
from _pytest.runner import CallInfo
from pluggy import HookCaller, PluginManager

from pytest_planverify.guards import tamper_observer
from pytest_planverify.guards.tamper_observer import ObservedJudges, TamperingObserver, environment_files

APPROX: Any = type(pytest.approx(1.0))


def agree(*_: object) -> bool:
    return True


@pytest.fixture
def judges() -> ObservedJudges:
    return ObservedJudges()


def names(judges: ObservedJudges) -> set[str]:
    judges.compare()
    return {name for name, *_ in judges.facts()}


FROM_CALL = CallInfo.__dict__["from_call"].__func__
REPLACEMENTS: dict[str, tuple[object, str, object]] = {
    "builtins.all": (builtins, "all", agree),
    "builtins.AssertionError": (builtins, "AssertionError", KeyError),
    "math.isclose": (math, "isclose", agree),
    "pytest.approx": (pytest, "approx", agree),
    "pytest.approx()": (pytest.approx, "__defaults__", (None, 9.0, False)),
    "pytest.raises()": (pytest.raises, "__code__", agree.__code__),
    "pytest.mark.parametrize": (pytest.mark, "parametrize", agree),
    "unittest.case.TestCase.assertEqual": (unittest.TestCase, "assertEqual", partial(agree, 1)),
    "_pytest.reports.TestReport.__bool__": (TestReport, "__bool__", agree),
    "_pytest.reports.TestReport.from_item_and_call": (TestReport, "from_item_and_call", agree),
    "_pytest.runner.CallInfo.from_call()": (FROM_CALL, "__kwdefaults__", {"reraise": None}),
    f"{APPROX.__module__}.{APPROX.__name__}.DEFAULT_RELATIVE_TOLERANCE": (
        APPROX,
        "DEFAULT_RELATIVE_TOLERANCE",
        5.0,
    ),
    "sys.exit": (sys, "exit", agree),
    "os._exit": (os, "_exit", agree),
}


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_replaced_judge_is_named(judges: ObservedJudges, name: str):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*REPLACEMENTS[name], raising=False)
        judges.compare()
    assert name in {found for found, *_ in judges.facts()}


def test_removed_objects_and_replaced_module_are_named_without_a_file(judges: ObservedJudges):
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(builtins, "sorted")
        patch.delattr(HookCaller, "get_hookimpls")
        patch.setitem(sys.modules, "pytest", ModuleType("pytest"))
        judges.compare()
    assert {(name, file) for name, file in judges.facts()} == {
        ("builtins.sorted", ""),
        (f"{HookCaller.__module__}.HookCaller.get_hookimpls", ""),
        ("sys.modules['pytest']", ""),
    }


def test_restored_object_is_found_only_if_it_was_compared_while_replaced(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(builtins, "any", agree)
    monkeypatch.undo()
    assert names(judges) == set()
    monkeypatch.setattr(builtins, "any", agree)
    judges.compare()
    monkeypatch.undo()
    assert names(judges) == {"builtins.any"}


class OtherError(AssertionError):
    pass


@pytest.mark.parametrize(
    ("name", "value", "file"),
    [
        ("any", agree, __file__),
        ("AssertionError", OtherError, __file__),
        ("all", MagicMock(), ""),  # it has every attribute
    ],
    ids=["function", "class", "mock"],
)
def test_replacement_is_reported_once_with_its_file(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch, name: str, value: object, file: str
):
    monkeypatch.setattr(builtins, name, value)
    judges.compare()
    judges.compare()
    monkeypatch.undo()
    assert judges.facts() == [[f"builtins.{name}", file]]


HARMLESS: dict[str, tuple[object, str, object]] = {
    "print": (builtins, "print", agree),
    "open": (builtins, "open", agree),
    "new name in a module": (pytest, "helper", agree),
    "new method of a class": (unittest.TestCase, "assert_alike", agree),
    "plain value": (unittest.TestCase, "maxDiff", None),
    "new name in an inner module": (_pytest.main, "tracebacks", agree),
}


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_changes_without_influence_on_verdicts_are_ignored(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch, change: tuple[object, str, object]
):
    monkeypatch.setattr(*change, raising=False)
    assert names(judges) == set()
    assert names(judges) == set()


def test_patch_of_a_judge_that_is_undone_after_the_body_is_recorded(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
):
    observer = TamperingObserver()
    observer.judges = judges
    with monkeypatch.context() as patch:
        for name in ("math.isclose", "builtins.all"):
            patch.setattr(name, agree)
        observer.body_begins(request.node)  # fixtures may mock functions of math
    assert names(judges) == {"builtins.all"}


def test_late_imported_judges_are_watched_from_then_on(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
):
    late = ModuleType("numpy.testing")
    late.assert_allclose = agree  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "numpy.testing", late)
    assert names(judges) == set()
    late.assert_allclose = lambda *_: None  # type: ignore[attr-defined]
    assert names(judges) == {"numpy.testing.assert_allclose"}


def test_generated_code_belongs_to_the_file_that_generated_it(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
):
    space: dict[str, Any] = {"__file__": "/work/conftest.py"}
    exec("def made(): ...", space)
    monkeypatch.setattr(builtins, "all", partial(partial(space["made"])))
    judges.compare()
    del space["__file__"]
    judges.compare()
    assert judges.facts() == [["builtins.all", "/work/conftest.py"], ["builtins.all", ""]]


def test_installed_files_and_standard_library_are_the_environment(monkeypatch: pytest.MonkeyPatch):
    installed = (os.__file__, pytest.__file__, tamper_observer.__file__, "<frozen importlib._bootstrap>")
    assert all(map(environment_files(), installed))
    assert not any(map(environment_files(), (__file__, "")))
    monkeypatch.setattr("site.USER_SITE", None)
    assert environment_files()(os.__file__)


class Plugin:
    def pytest_runtest_logreport(self, report: Any) -> None: ...


def hooks_of(observer: TamperingObserver, manager: PytestPluginManager) -> list[list[str]]:
    journal = MagicMock()
    observer.write(journal, "", manager)
    return [each for each in journal.write.call_args.kwargs["hooks"] if each[1] == __file__]


def test_hooks_are_recorded_also_of_an_unregistered_or_silently_registered_plugin():
    first, second, manager = TamperingObserver(), TamperingObserver(), PytestPluginManager()
    plugin = Plugin()
    manager.register(first)
    manager.register(plugin)
    manager.unregister(plugin)
    assert hooks_of(first, manager) == [["pytest_runtest_logreport", __file__]]
    PluginManager.register(manager, plugin)
    assert hooks_of(second, manager) == [["pytest_runtest_logreport", __file__]]


def test_tampering_facts_are_written_once_or_marked_incomplete():
    manager = PytestPluginManager()
    journal, broken = MagicMock(), TamperingObserver()
    observer = TamperingObserver()
    observer.write(journal, "", manager)
    observer.write(journal, "", manager)
    broken.judges = MagicMock()
    broken.judges.compare.side_effect = RuntimeError
    broken.write(journal, "gw0", manager)

    complete, incomplete = journal.write.call_args_list
    assert complete.args == ("session_inventory",)
    assert complete.kwargs.keys() == {"worker", "hooks", "patched", "without_body"}
    assert incomplete.kwargs == {"worker": "gw0", "incomplete": True}


def test_bodies_of_unittest_tests_are_not_checked(request: pytest.FixtureRequest):
    observer = TamperingObserver()
    observer.passed_without_body(request.node, "a.py::test_a")
    observer.passed_without_body(request.session, "session")  # type: ignore[arg-type]
    assert observer._without_body == ["a.py::test_a"]
    for number in range(400):
        observer.passed_without_body(request.node, str(number))
    assert len(observer._without_body) == 200
    assert "unittest" in sys.modules
