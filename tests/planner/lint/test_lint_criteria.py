"""Lint rules for criteria: tests exist, can fail, and are deterministic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lint_samples import GOOD_TEST, only, rules, todo

from planner.lint.rules import satisfiable
from planner.model.plan import MetricSpec, Operator

FILES = {"tests/test_a.py": GOOD_TEST, "product.py": "def answer():\n    return 42\n"}


def judge(
    folder: Path, *todos: dict[str, Any], files: dict[str, Any] | None = None, **plan: Any
) -> list[str]:
    return rules(folder, *todos, files={**FILES, **(files or {})}, **plan)


def of_source(folder: Path, source: str, **keys: Any) -> list[str]:
    return judge(folder, todo("a", "pytest t.py", **keys), files={"t.py": source})


@pytest.mark.parametrize(
    "criteria", [{"expected_artifacts": ["product.py"]}, {"manual": [{"question": "Does it look right?"}]}]
)
def test_a_todo_judged_only_by_files_or_people_is_reported(tmp_path: Path, criteria: Any) -> None:
    found = only("no-test", tmp_path, todo("a", criteria=criteria), files=FILES)
    assert (found.severity, found.place) == ("warning", "items[0].acceptance_criteria")
    assert judge(tmp_path, todo("a", criteria=criteria, requires_testing=False)) == []


def test_an_assumed_test_is_reported_with_the_places_searched(tmp_path: Path) -> None:
    found = only("test-assumed", tmp_path, todo("buffer-impl"))
    assert "tests/test_buffer_impl.py, the target test-buffer-impl of a Makefile" in found.message
    assert found.fix.startswith("write tests/test_buffer_impl.py")
    assert judge(tmp_path, todo("a")) == [], "a convention has found it"


def test_a_missing_test_file_with_a_similar_name_gets_a_suggestion(tmp_path: Path) -> None:
    files = {**FILES, "tests/test_cart.py": ""}
    found = only("test-missing", tmp_path, todo("a", "pytest tests/tets_cart.py"), files=files)
    assert found.fix.startswith("did you mean tests/test_cart.py?")
    assert found.place == "items[0].acceptance_criteria.tests[0].cmd"


@pytest.mark.parametrize(
    ("keys", "expected"), [({}, 0), ({"allowed_files": ["src/**"]}, 1), ({"status": "claimed"}, 1)]
)
def test_only_missing_tests_that_the_todo_cannot_or_should_have_written_are_reported(
    tmp_path: Path, keys: dict[str, Any], expected: int
) -> None:
    assert judge(tmp_path, todo("a", "pytest tests/else.py", **keys)) == ["test-missing"] * expected


def test_a_test_file_may_be_an_artifact_of_the_todo_or_a_dependency(tmp_path: Path) -> None:
    writes = {"expected_artifacts": ["tests/test_new.py"]}
    assert judge(tmp_path, todo("a", "pytest tests/test_new.py", criteria=writes)) == []
    first = todo("t", "pytest tests/test_a.py", criteria={"expected_artifacts": ["tests/test_n*.py"]})
    middle = todo("m", "pytest tests/test_a.py::test_answer", dependencies=["t"])
    last = todo("a", "pytest tests/test_new.py", dependencies=["m"])
    assert judge(tmp_path, first, middle, last) == []
    found = only("dependency-missing", tmp_path, first, {**last, "dependencies": []}, files=FILES)
    assert found.fix == "add 't' to the dependencies of 'a'"


def test_a_bare_pytest_command_selects_all_test_files(tmp_path: Path) -> None:
    late = "import time\n\n\ndef test_now():\n    assert time.time() > 1\n"
    for name, expected in (("else/test_b.py", ["wall-clock"]), ("else/b.py", [])):
        assert judge(tmp_path / name, todo("a", "pytest"), files={name: late}) == expected


@pytest.mark.parametrize("option", ["--collect-only", "--co", "--version", "-h", "--fixtures"])
def test_a_pytest_command_that_runs_no_test_is_reported(tmp_path: Path, option: str) -> None:
    found = only("command-hollow", tmp_path, todo("a", f"pytest tests/test_a.py {option}"), files=FILES)
    assert (found.severity, found.fix) == ("error", f"remove {option}")


RECORDS = "def test_a(planverify):\n    planverify.metric('speed', product())\n    assert product()\n"


def metrics(*comparisons: str) -> dict[str, Any]:
    rows = [each.split() for each in comparisons]
    return {"metrics": [{"name": n, "operator": o, "value": float(v)} for n, o, v in rows]}


def test_the_first_contradictory_pair_of_a_metric_is_named(tmp_path: Path) -> None:
    bounds = ("speed != 1", "speed > 5", "speed < 3", "speed < 2")
    plan = todo("a", "pytest t.py", criteria=metrics(*bounds))
    found = only("metric-unsatisfiable", tmp_path, plan, files={"t.py": RECORDS})
    assert (found.severity, found.message) == ("error", "no number satisfies speed > 5 and speed < 3")
    assert found.place.startswith("items[0].acceptance_criteria.metrics[2]")
    both = [todo(n, "pytest t.py", criteria=metrics(f"speed {c}")) for n, c in (("a", "> 5"), ("b", "< 3"))]
    assert judge(tmp_path, *both) == []


_COMPARISONS = st.tuples(st.sampled_from(list(Operator)), st.integers(-3, 3))


@given(_COMPARISONS, _COMPARISONS)
def test_comparisons_are_satisfiable_if_and_only_if_some_number_satisfies_both(
    one: tuple[Operator, int], other: tuple[Operator, int]
) -> None:
    specs = [MetricSpec(name="n", operator=each, value=value) for each, value in (one, other)]
    numbers = (halves / 2 for halves in range(-8, 9))  # all bounds, and one between or beyond any two
    holds = any(all(eval(f"{number} {each} {value}") for each, value in (one, other)) for number in numbers)
    assert satisfiable(*specs) == holds


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("random.randint(1, 6)", "unseeded-random"),
        ("np.random.rand(3)", "unseeded-random"),
        ("random.Random().random()", "unseeded-random"),
        ("random.Random(7).random()", None),
        ("np.random.default_rng(7).random()", None),
        ("datetime.now()", "wall-clock"),
        ("time.time()", "wall-clock"),
        ("urllib.request.urlopen('http://example.com')", "network-access"),
        ("requests.get('http://localhost:80')", None),
        ("product.random()", None),
    ],
)
def test_randomness_clock_and_network_use_in_a_test_are_reported(
    tmp_path: Path, call: str, expected: str | None
) -> None:
    source = (
        "import random, requests, time, urllib.request\nimport numpy as np\nimport product\n"
        f"from datetime import datetime\n\ndef test_a():\n    assert product.run({call})\n"
    )
    assert of_source(tmp_path, source) == ([expected] if expected else [])
    spec = {"fixture": "product.py"}
    assert of_source(tmp_path, source, spec=spec) == [], "a fixture is named: the data is repeatable"


def test_only_calls_in_the_bodies_of_selected_tests_are_reported(tmp_path: Path) -> None:
    source = (
        "import time\nimport hypothesis\n\ndef now():\n    return time.time()\n\n"
        "class TestA:\n    def test_b(self):\n        assert time.time()\n\n"
        "@hypothesis.given(x)\ndef test_b(x):\n    assert x\n"
    )
    for name, expected in (("test_b", []), ("TestA", ["wall-clock"]), ("TestA::test_b", ["wall-clock"])):
        assert judge(tmp_path, todo("a", f"pytest t.py::{name}"), files={"t.py": source}) == expected


ROLLS = "import random\ndef test_a():\n    assert random.random() < 2\n"
SEEDS = "import random\n\ndef pytest_runtest_setup():\n    random.seed(1)\n"


@pytest.mark.parametrize(
    "files",
    [
        {"t.py": f"import random\nrandom.seed(7)\n{ROLLS}"},
        {"t.py": ROLLS.replace("test_a()", "test_a(random)")},
        {"t.py": ROLLS, "conftest.py": SEEDS},
        {"t.py": "import time\ndef test_a(monkeypatch):\n    assert time.time()\n"},
        {"t.py": "import time\n@freeze_time('2026-01-01')\ndef test_a():\n    assert time.time()\n"},
    ],
    ids=["a seed", "a fixture", "a conftest", "a patched clock", "a frozen clock"],
)
def test_a_test_that_controls_randomness_and_clock_is_accepted(tmp_path: Path, files: dict[str, str]):
    assert judge(tmp_path, todo("a", "pytest t.py"), files=files) == []


def test_a_metric_that_no_file_names_is_reported_once_its_tests_are_written(tmp_path: Path) -> None:
    metric = {"metrics": [{"name": "max_drawdown", "operator": "<=", "value": 1}]}
    found = only("metric-unrecorded", tmp_path, todo("a", "pytest tests", criteria=metric), files=FILES)
    assert found.place == "items[0].acceptance_criteria.metrics[0].name"
    assert "no test of 'a' records the metric 'max_drawdown'" in found.message
    unwritten = {**metric, "expected_artifacts": ["tests/test_a.py"]}
    assert judge(tmp_path, todo("a", "pytest tests", criteria=unwritten)) == []
    assert "metric-unrecorded" not in judge(tmp_path, todo("a", "pytest tests/test_b.py", criteria=metric))
    helper = {"helper.py": "def record(record_property): record_property('max_drawdown', 1)"}
    assert judge(tmp_path, todo("a", "pytest tests", criteria=metric), files=helper) == []
