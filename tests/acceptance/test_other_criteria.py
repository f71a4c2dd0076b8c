"""Artifacts, contracts and questions to people, and the exit status that follows from them."""

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
