"""What judges is compared by identity: what was put in its place is found, what plays no part is not."""

from __future__ import annotations

import builtins
import math
import os
import sys
import unittest
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest
from _pytest.reports import TestReport
from _pytest.runner import CallInfo
from pluggy import HookCaller

from pytest_planverify.guards.tamper_observer import ObservedJudges

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
def test_what_stands_in_for_a_judge_is_named(
    judges: ObservedJudges, name: str, patch: Callable[[pytest.MonkeyPatch], None]
) -> None:
    with pytest.MonkeyPatch.context() as context:
        patch(context)
        judges.compare("session")
    assert name in {found for found, *_ in judges.facts()}


def test_a_comparison_finds_what_is_replaced_and_nothing_that_was_put_back(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "any", agree)
    monkeypatch.undo()
    assert names(judges) == set()
    fresh = ObservedJudges()
    monkeypatch.setattr(builtins, "any", agree)
    assert names(fresh) == names(judges) == {"builtins.any"}


def test_a_stand_in_is_told_once_with_the_file_it_was_written_in(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "any", agree)
    judges.compare("collection")
    judges.compare("session")
    assert judges.facts() == [["builtins.any", __file__]]


def test_a_judge_that_is_gone_or_was_made_of_no_code_has_no_file(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "all", MagicMock())  # of which every attribute exists
    monkeypatch.delattr(builtins, "sorted")
    judges.compare("session")
    monkeypatch.undo()
    assert sorted(judges.facts()) == [
        ["builtins.all", ""],
        ["builtins.sorted", ""],
    ]


def test_a_class_in_the_place_of_a_judge_has_the_file_of_its_module(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(AssertionError):
        pass

    monkeypatch.setattr(builtins, "AssertionError", Other)
    judges.compare("session")
    monkeypatch.undo()
    assert judges.facts() == [["builtins.AssertionError", __file__]]


@pytest.mark.parametrize("name", ["print", "open", "input"])
def test_builtins_that_decide_nothing_may_be_replaced(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(builtins, name, agree)
    assert names(judges) == set()


def test_new_names_in_modules_and_plain_values_are_no_stand_ins(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest, "helper", agree, raising=False)
    monkeypatch.setattr(unittest.TestCase, "assert_alike", agree, raising=False)
    monkeypatch.setattr(unittest.TestCase, "maxDiff", None)
    monkeypatch.setattr("_pytest.main.tracebacks", agree, raising=False)
    found = names(judges) | names(judges)  # the second glance is a short one
    assert found == set()


@pytest.mark.parametrize(
    ("name", "is_found"), [("builtins.len", True), ("builtins.__import__", False), ("sys.exit", False)]
)
def test_what_fixtures_mock_for_their_tests_is_found_only_where_it_judges(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch, name: str, is_found: bool
) -> None:
    monkeypatch.setattr(name, answer)
    found = names(judges, "tests")
    monkeypatch.undo()
    assert found == ({name} if is_found else set())
    assert names(ObservedJudges()) == set()


def test_what_a_fixture_mocks_and_leaves_is_found_at_the_end(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("math.isclose", agree)
    assert names(judges, "tests") == set()
    assert names(judges) == {"math.isclose"}


def test_judges_that_are_imported_late_are_watched_from_then_on(
    judges: ObservedJudges, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = ModuleType("numpy.testing")
    late.assert_allclose = agree  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "numpy.testing", late)
    assert names(judges) == set()
    late.assert_allclose = lambda *_: None  # type: ignore[attr-defined]
    assert names(judges) == {"numpy.testing.assert_allclose"}
