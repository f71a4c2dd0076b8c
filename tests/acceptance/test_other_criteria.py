"""Artifacts, contracts, metrics, data files and questions to people, and the exit status that follows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, Verified, todo
from real_planner import planner

FILES = {
    "out/report.json": '{"rows": 3}',
    "out/empty.txt": "",
    "schema.json": '{"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}',
    "strict.json": '{"type": "object", "required": ["columns"]}',
    "indicators.py": "def rsi(series: list, period: int = 14) -> float:\n    return 0.0\n",
    "test_it.py": "def test_it(): pass\n",
    "contracts/right.json": json.dumps(
        {
            "contract_version": 1,
            "module": "indicators",
            "functions": [
                {"name": "rsi", "parameters": [{"name": "series"}, {"name": "period", "default": "14"}]}
            ],
        }
    ),
    "contracts/wrong.json": json.dumps(
        {
            "contract_version": 1,
            "module": "indicators",
            "functions": [{"name": "rsi", "parameters": [{"name": "prices"}]}],
        }
    ),
}
DIGEST = hashlib.sha256(FILES["out/report.json"].encode()).hexdigest()

ARTIFACTS: dict[str, tuple[Any, str]] = {
    "exists": ("out/report.json", "passed"),
    "missing": ("out/missing.json", "failed"),
    "glob": ("out/*.json", "passed"),
    "schema": ({"path": "out/report.json", "schema": "schema.json"}, "passed"),
    "other_schema": ({"path": "out/report.json", "schema": "strict.json"}, "failed"),
    "other_digest": ({"path": "out/report.json", "sha256": "0" * 64}, "failed"),
}


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("artifacts"), FILES)
    example.plan(
        *(todo(name, expected_artifacts=[spec]) for name, (spec, _) in ARTIFACTS.items()),
        todo("right", "pytest test_it.py", contract_path="contracts/right.json"),
        todo("wrong", "pytest test_it.py", contract_path="contracts/wrong.json"),
        todo("no_contract", "pytest test_it.py", contract_path="contracts/missing.json"),
    )
    return example.verify()


@pytest.mark.parametrize("name", ARTIFACTS)
def test_an_artifact_is_looked_at(name: str, looked_at: Verified):
    assert looked_at.verdicts[name] == ARTIFACTS[name][1], str(looked_at)


def test_a_missing_artifact_is_told_as_one(looked_at: Verified):
    assert looked_at.category("missing") == "ARTIFACT_MISSING"


def test_a_contract_is_compared_with_the_module(looked_at: Verified):
    verdicts = {
        name: looked_at.check(name, "contract_path")["verdict"]
        for name in ("right", "wrong", "no_contract")
    }

    assert verdicts == {"right": "passed", "wrong": "failed", "no_contract": "failed"}, str(looked_at)
    assert looked_at.category("wrong") == "SPEC_MISMATCH"


# -- questions -----------------------------------------------------------------------------------------

QUESTION = "Does the chart look right?"


def asking(folder: Path) -> Example:
    example = Example(folder, FILES)
    example.plan(todo("chart", "pytest test_it.py", manual=[{"question": QUESTION, "role": "human"}]))
    return example


def test_an_open_question_waits_for_a_human(tmp_path: Path):
    run = asking(tmp_path).verify()

    assert run.verdicts["chart"] == {"tests[0]": "passed", "manual[0]": "needs_human"}, str(run)
    assert run.states["chart"] == "testing"
    assert run.exit_code == 11
    assert "planner answer plan.yaml chart yes # or no, or a reason" in run.output


def test_each_of_several_questions_names_the_command_that_answers_it_alone(tmp_path: Path):
    example = Example(tmp_path, FILES)
    questions = [{"question": text, "role": "human"} for text in (QUESTION, "Is the legend complete?")]
    example.plan(todo("chart", "pytest test_it.py", manual=questions))
    assert (
        "planner answer plan.yaml chart yes --check 'manual[0]' # or no, or a reason"
        in example.verify().output
    )

    told = planner("answer", "chart", "yes", "--check", "manual[0]", "--by", "Ada", cwd=example.root)

    assert told.status == 0, told.err
    run = example.verify()
    expected = {"tests[0]": "passed", "manual[0]": "passed", "manual[1]": "needs_human"}
    assert run.verdicts["chart"] == expected, str(run)


@pytest.mark.parametrize(
    ("said", "verdict", "exit_code"),
    [("yes", "passed", 0), ("no", "failed", 1), ("The legend hides the peak.", "failed", 1)],
    ids=["yes", "no", "a reason"],
)
def test_an_answer_of_a_person_decides(said: str, verdict: str, exit_code: int, tmp_path: Path):
    example = asking(tmp_path)
    example.verify()

    told = planner("answer", "chart", said, "--by", "Ada", cwd=example.root)

    assert told.status == 0, told.err
    assert "next: planner next plan.yaml" in told.out
    run = example.verify()
    assert run.check("chart", "manual[0]")["verdict"] == verdict, str(run)
    assert run.exit_code == exit_code
    if said not in ("yes", "no"):
        assert said in run.output


@pytest.mark.parametrize(
    ("word", "question", "verdict"),
    [("yes", "Is the chart blue?", "stale"), ("perhaps", QUESTION, "needs_human")],
    ids=["another question", "no answer"],
)
def test_an_answer_that_does_not_fit_the_question_decides_nothing(
    word: str, question: str, verdict: str, tmp_path: Path
):
    example = asking(tmp_path)
    entry = {"plan": "example", "todo_id": "chart", "check_id": "manual[0]", "question": question}
    answers = {"schema_version": 1, "answers": [{**entry, "answer": word, "by": "Ada"}]}
    example.write({".planverify/answers.json": json.dumps(answers)})

    run = example.verify()

    assert run.check("chart", "manual[0]")["verdict"] == verdict, str(run)
    assert run.exit_code == 11


METRICS_FILES = {
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
    example = Example(tmp_path_factory.mktemp("measured"), METRICS_FILES)
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


READS = """\
    def test_it(planverify):
        assert planverify.fixture_path.is_absolute()
        assert planverify.fixture_path.read_text() == "right"
"""


@pytest.fixture(scope="module", params=[(), ("-p", "xdist", "-n2"), ("--planverify-isolate",)], ids=str)
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(
        tmp_path_factory.mktemp("data"),
        {
            "test_it.py": READS,
            "test_any.py": "def test_it(): pass\n",
            "data/right.json": "right",
            "data/wrong.json": "wrong",
        },
    )
    example.plan(
        todo("right", {"cmd": "pytest test_it.py", "fixture": "data/right.json"}),
        todo("wrong", {"cmd": "pytest test_it.py", "fixture": "data/wrong.json"}),
        todo("none", "pytest test_it.py"),
        todo("missing", {"cmd": "pytest test_any.py", "fixture": "data/missing.json"}),
        todo("unread", {"cmd": "pytest test_any.py", "fixture": "data/right.json"}),
    )
    return example.verify(*request.param)


def test_two_todos_may_run_the_same_tests_on_different_files(read: Verified):
    names = ("right", "wrong", "none")

    assert {name: read.verdicts[name] for name in names} == {
        "right": "passed",
        "wrong": "failed",
        "none": "failed",
    }, str(read)


def test_the_digest_of_the_file_is_kept(read: Verified):
    digest = hashlib.sha256(b"right").hexdigest()

    assert read.check("unread")["fixture"] == {"path": "data/right.json", "sha256": digest}
    assert read.verdicts["unread"] == "passed"


def test_a_file_that_is_missing_fails_its_criterion(read: Verified):
    assert read.verdicts["missing"] == "failed", str(read)
    assert read.check("missing")["fixture"] == {"path": "data/missing.json", "sha256": None}
    assert "data/missing.json" in read.output
