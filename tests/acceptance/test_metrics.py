"""Numbers that tests record, compared by each operator; every recorded value must satisfy."""

from __future__ import annotations

from typing import Any

import pytest
from example_project import Example, Verified, todo

FILES = {
    "conftest.py": """\
        import pytest
        @pytest.fixture(scope="session")
        def suite(record_testsuite_property):
            record_testsuite_property("from_suite", 12)
    """,
    "test_it.py": """\
        import pytest
        def test_property(record_property):
            record_property("rows", 250)
            record_property("text", "many")
            record_property("nan", float("nan"))
        @pytest.mark.parametrize("n", [1, 2, 3])
        def test_each(n, record_property): record_property("n", n)
        def test_fixture(planverify):
            planverify.metric("ratio", 0.5)
            assert planverify.fixture_path is None
        def test_suite(suite): pass
        def test_other(record_property): record_property("elsewhere", 1)
        def test_red(record_property):
            assert 0
    """,
}

METRICS: dict[str, tuple[str, str, float, str]] = {
    "equal": ("rows", "==", 250, "passed"),
    "not_equal": ("rows", "==", 251, "failed"),
    "each": ("n", ">=", 1, "passed"),
    "not_each": ("n", ">=", 2, "failed"),
    "planverify": ("ratio", "==", 0.5, "passed"),
    "suite": ("from_suite", "==", 12, "passed"),
    "nobody": ("nobody_recorded", ">", 0, "failed"),
    "of_another_todo": ("elsewhere", "==", 1, "failed"),
    "text": ("text", ">", 0, "failed"),
    "nan": ("nan", "!=", 0, "failed"),
}
TESTS = " ".join(f"test_it.py::test_{name}" for name in ("property", "each", "fixture", "suite"))


def metric(name: str, operator: str, value: float) -> dict[str, Any]:
    return {"name": name, "operator": operator, "value": value}


@pytest.fixture(scope="module", params=[(), ("-p", "xdist", "-n2"), ("--planverify-isolate",)], ids=str)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("measured"), FILES)
    todos = [todo(name, f"pytest {TESTS}", metrics=[metric(*spec[:3])]) for name, spec in METRICS.items()]
    todos.append(
        todo("unused", "pytest test_it.py::test_property", metrics=[metric("from_suite", "==", 12)])
    )
    todos.append(todo("other", "pytest test_it.py::test_other"))
    todos.append(todo("red", "pytest test_it.py::test_red", metrics=[metric("rows", ">", 0)]))
    example.plan(*todos)
    return example.verify(*request.param, measured=not request.param)


@pytest.mark.parametrize("name", METRICS)
def test_every_recorded_value_must_satisfy(name: str, measured: Verified):
    assert measured.verdicts[name] == {"tests[0]": "passed", "metrics[0]": METRICS[name][3]}, str(measured)


def test_a_suite_property_counts_only_where_its_fixture_is_used(measured: Verified):
    assert measured.check("unused", "metrics[0]")["verdict"] == "failed", str(measured)


def test_an_unmet_metric_is_told_as_one(measured: Verified):
    assert measured.category("not_equal") == "METRIC_UNMET"
    assert measured.outcomes["not_equal"]["recorded"]["rows"] == [250]
    assert sorted(measured.outcomes["each"]["recorded"]["n"]) == [1, 2, 3]


def test_a_metric_that_no_test_lived_to_record_is_not_blamed(measured: Verified):
    assert measured.verdicts["red"] == {"tests[0]": "failed", "metrics[0]": "inconclusive"}, str(measured)
