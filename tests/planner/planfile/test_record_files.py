"""The records of runs: read in full or refused in one line, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.errors import OutcomeFileError
from planner.model.outcome import Outcome, OutcomeDocument, PlanRef, RunInfo, Summary
from planner.model.taxonomy import Category
from planner.model.verdicts import TodoState, Verdict
from planner.planfile.record_files import read_any_outcomes, read_outcomes, write_outcomes

SEED = Path(__file__).parents[3] / "fixtures" / "seeds" / "controller_outcome.json"

RUN = RunInfo(
    run_id="r1",
    started_at="2026-11-21T10:00:00Z",
    finished_at="2026-11-21T10:00:01Z",
    duration_ms=1000,
    exit_status=0,
    scope="all",
    python="3.13.0",
    pytest="9.2.0",
)
DOCUMENT = OutcomeDocument(
    plans=(PlanRef(todo_list_id="p", path="plan.yaml", digest="sha256:0"),),
    run=RUN,
    summary=Summary(todos={TodoState.DONE: 1}, criteria={Verdict.PASSED: 2}),
    outcomes=(
        Outcome(
            todo_id="a",
            plan="p",
            success=True,
            tests_passed=True,
            recorded={"rows": (1.5, "nan", "é\ud7ff")},
        ),
    ),
)


def test_the_controllers_outcome_loads_as_it_stands() -> None:
    outcome = read_any_outcomes(SEED)
    assert isinstance(outcome, Outcome)
    assert (outcome.todo_id, outcome.success, outcome.tests_passed) == ("fix-test-001", False, False)
    assert (outcome.metrics.tokens_used, outcome.metrics.patch_cycles) == (1200, 2)
    assert outcome.failure_evidence is not None
    assert outcome.failure_evidence.category is Category.TEST_REGRESSION
    assert outcome.failure_evidence.suggestion == "Check the login route handler"


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.json"
    write_outcomes(DOCUMENT, path)
    assert read_outcomes(path) == DOCUMENT
    assert read_outcomes(path).outcome("a", "p").success
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_keys_of_a_newer_version_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.json"
    values = json.loads(DOCUMENT.model_dump_json())
    values["novelty"] = values["run"]["novelty"] = 1
    path.write_text(json.dumps(values))
    assert read_outcomes(path) == DOCUMENT


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is not valid JSON: Expecting value: line 1 column 1"),
        ("{", "line 1 column 2"),
        ("[]", "the document does not fit an outcome file"),
        ('{"schema_version": 1}', "plans does not fit an outcome file: Field required (and 3 more)"),
        ("[" * 200_000, "nesting is too deep"),
        ("9" * 5000, "digits"),
        ('{"\\u001b[31m', "is not valid JSON"),
    ],
)
def test_a_broken_outcome_file_is_refused_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "outcomes.json"
    path.write_text(text)
    with pytest.raises(OutcomeFileError) as caught:
        read_outcomes(path)
    assert problem in str(caught.value)
    assert str(caught.value).startswith(f"{path}: the outcome file cannot be used: ")
    assert str(caught.value).isprintable()


def test_a_missing_outcome_file_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(OutcomeFileError, match="it cannot be read"):
        read_outcomes(tmp_path / "none.json")
