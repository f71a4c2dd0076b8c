"""The figures on runs with several faults count pairs of failures, and runs whose order begins well."""

from __future__ import annotations

import pytest
from cause_samples import absent, asserted, error, failing, frame, uncollected

from planner.model.evidence import Evidence
from planner.model.taxonomy import Category, Owner
from pytest_planverify.corpus.case import FaultyRun, Label, RunFailure
from pytest_planverify.corpus.causes_figures import cause_figures, causes_of

LABEL = Label(category=Category.TEST_REGRESSION, owner=Owner.PRODUCT)


def raised(test: str, function: str = "rate") -> Evidence:
    path = f"tests/{test}"
    return failing(path, error("KeyError", test, frame(*path.split("::")), frame("shop/tax.py", function)))


def run(*failures: tuple[str, Evidence, int], first: tuple[int, ...] = (0,)) -> FaultyRun:
    faults = max(fault for _, _, fault in failures) + 1
    return FaultyRun(
        id="one",
        package="shop",
        kinds=("wrong",) * faults,
        labels=(LABEL,) * faults,
        todos=("a", "b"),
        depends={"b": ("a",)},
        failures=tuple(RunFailure(todo=todo, evidence=each, fault=fault) for todo, each, fault in failures),
        first=first,
    )


RIGHT = run(
    ("a", raised("test_a.py::test_1"), 0),
    ("b", raised("test_b.py::test_2"), 0),
    ("b", asserted("tests/test_b.py::test_3", "assert 1 == 2"), 1),
)
APART = run(
    ("a", asserted("tests/test_a.py::test_1", "assert 1 == 2"), 0),
    ("a", asserted("tests/test_a.py::test_2", "assert 1 == 2"), 0),
)
MIXED = run(
    ("a", raised("test_a.py::test_1"), 0),
    ("a", raised("test_a.py::test_2"), 1),
    ("b", absent("out.json"), 0),
    first=(0,),
)
LATE = run(
    ("a", asserted("tests/test_a.py::test_1", "assert 1 == 2"), 0),
    ("a", uncollected("tests/test_b.py", error("ModuleNotFoundError", "No module", name="yaml")), 1),
)


def test_failures_of_one_fault_that_stand_together_are_right() -> None:
    assert causes_of(RIGHT) == [[0, 1], [2]]
    figures = cause_figures([RIGHT])
    assert figures == {
        "runs": 1,
        "failures": 3,
        "precision": 1.0,
        "recall": 1.0,
        "first": 1.0,
        "causes_a_fault": 1.0,
    }


def test_failures_of_one_fault_that_stand_apart_cost_recall() -> None:
    figures = cause_figures([APART])
    assert (figures["precision"], figures["recall"], figures["causes_a_fault"]) == (1.0, 0.0, 2.0)


def test_failures_of_two_faults_that_stand_together_cost_precision() -> None:
    figures = cause_figures([MIXED])
    assert (figures["precision"], figures["recall"]) == (0.0, 0.0)
    assert figures["first"] == 1.0  # half of the first cause is of the fault to repair first


def test_a_first_cause_of_another_fault_is_wrong() -> None:
    assert cause_figures([LATE])["first"] == 0.0
    assert cause_figures([LATE, RIGHT])["first"] == pytest.approx(0.5)


def test_no_runs_are_no_mistakes() -> None:
    assert cause_figures([])["precision"] == 1.0
