"""Files beside a plan: records, plan folders, and the history of runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sample_documents import sample_document

from planner.errors import OutcomeFileError
from planner.model.answers import Answer
from planner.model.outcome import Outcome, OutcomeMetrics
from planner.model.plan import Plan, Todo
from planner.model.taxonomy import Category
from planner.planfile.latest_outcomes import ChangedFiles, changed_files, past_runs
from planner.planfile.left_files import remember_written
from planner.planfile.plan_folder import PlanFolder, file_name, make_home
from planner.planfile.record_files import (
    add_answers,
    load_answers,
    read_any_outcomes,
    read_outcomes,
    write_outcomes,
)

SEED = Path(__file__).parents[3] / "fixtures" / "seeds" / "controller_outcome.json"

DOCUMENT = sample_document(
    Plan(todo_list_id="p", items=(Todo(id="a", title="A"),)),
    [Outcome(todo_id="a", success=True, tests_passed=True, recorded={"rows": (1.5, "nan", "é\ud7ff")})],
    at=datetime(2026, 11, 21, tzinfo=UTC),
)


def test_the_outcome_of_the_seed_controller_loads_unchanged() -> None:
    outcome = read_any_outcomes(SEED)
    assert isinstance(outcome, Outcome)
    assert (outcome.todo_id, outcome.success, outcome.tests_passed) == ("fix-test-001", False, False)
    assert (outcome.metrics.tokens_used, outcome.metrics.patch_cycles) == (1200, 2)
    assert outcome.failure_evidence is not None
    assert outcome.failure_evidence.category is Category.TEST_REGRESSION
    assert outcome.failure_evidence.suggestion == "Check the login route handler"


def test_written_outcomes_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.json"
    write_outcomes(DOCUMENT, path)
    assert read_outcomes(path) == DOCUMENT
    assert read_outcomes(path).outcome("a", "p").success
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_unknown_keys_of_newer_outcome_files_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.json"
    values = json.loads(DOCUMENT.model_dump_json())
    values["novelty"] = values["run"]["novelty"] = 1
    path.write_text(json.dumps(values))
    assert read_outcomes(path) == DOCUMENT


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is not valid JSON: Expecting value: line 1 column 1"),
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


IDS = st.text(min_size=1, max_size=300) | st.text("aA./%+~-:é\udcff", min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("todo_list_id", "name"),
    [
        ("workflow_momentum_001", "workflow_momentum_001"),
        ("shop/1: first", "shop%2F1%3A%20first"),
        (".hidden", "%2Ehidden"),
        ("50%", "50%25"),
        ("ä", "%C3%A4"),
        ("Shop", r"Shop\+[0-9a-f]{16}"),
        ("a" * 200, r"a{80}\+[0-9a-f]{16}"),
    ],
)
def test_the_folder_name_of_a_plan_shows_its_id_or_a_digest_if_long_or_capitalised(
    todo_list_id: str, name: str
) -> None:
    assert re.fullmatch(name, file_name(todo_list_id))
    folder = PlanFolder(Path("root"), todo_list_id).path
    assert folder == Path("root/.planverify/plans") / file_name(todo_list_id)


@given(IDS, IDS)
@example("Shop", "shop")
@example("a" * 200, "a" * 201)
@example("a%2Fb", "a/b")
@example("Ä", "ä")
@example("Shop", file_name("Shop"))
def test_two_plans_never_share_a_folder_even_if_case_is_ignored(one: str, other: str) -> None:
    assert (file_name(one).lower() == file_name(other).lower()) == (one == other)


@given(IDS)
def test_any_plan_id_gives_a_valid_name_for_file_systems_and_git(todo_list_id: str) -> None:
    name = file_name(todo_list_id)
    assert re.fullmatch(r"[A-Za-z0-9_%][A-Za-z0-9_.%+-]{0,99}", name)
    assert ".." not in name
    assert not name.endswith((".", ".lock"))


def test_git_ignores_all_records_except_answers_unless_the_user_changes_that(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    home = make_home(tmp_path)
    (home / "plans" / "shop").mkdir(parents=True)
    for name in ("answers.json", "outcomes.json", "plans/shop/outcomes.json", "plans/shop/answers.json"):
        (home / name).write_text("{}")

    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    done = subprocess.run(status, cwd=tmp_path, check=True, capture_output=True, text=True)

    assert done.stdout == "?? .planverify/answers.json\n"
    assert home.stat().st_mode & 0o777 == 0o700
    (home / ".gitignore").write_text("mine\n")
    make_home(tmp_path)
    assert (home / ".gitignore").read_text() == "mine\n"


def test_answers_that_are_given_at_once_are_all_kept(tmp_path: Path) -> None:
    def give(number: int) -> None:
        todo_id = f"t{number}"
        added = Answer(plan="p", todo_id=todo_id, check_id="manual[0]", question="?", answer="yes", by="me")
        add_answers(tmp_path, [added])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(give, range(40)))

    assert len(load_answers(tmp_path)) == 40


def test_answers_are_not_written_through_a_link(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (make_home(root) / "answers.json").symlink_to(outside)
    answer = Answer(plan="p", todo_id="a", check_id="manual[0]", question="So?", answer="yes", by="me")
    add_answers(root, [answer])
    assert not outside.exists()
    assert load_answers(root) == (answer,)


FIRST = 1767225600
"""2026-01-01 00:00 UTC, in seconds since the epoch."""


def record(kind: str, **keys: Any) -> dict[str, Any]:
    return {"record": kind, "session": "parent", "at": FIRST, "plan": "p", **keys}


def judged(**keys: Any) -> dict[str, Any]:
    check = {"id": "verify", "kind": "command", "verdict": "passed", "duration_ms": 1}
    return record("check_judged", **{"todo_id": "a", "check": check, **keys})


def finished(plan: str = "p") -> dict[str, Any]:
    return record("run_finished", plan=plan, exit_status=1)


def journal(root: Path, day: int) -> Path:
    path = root / f".planverify/runs/202601{day:02}T000000-1-abc/journal.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write_journal(root: Path, day: int, *records: dict[str, Any]) -> None:
    journal(root, day).write_text("".join(json.dumps(each) + "\n" for each in records))


def started(plan: str = "p") -> dict[str, Any]:
    reference = {"todo_list_id": plan, "path": "plan.yaml", "digest": ""}
    keys = {"version": 1, "run_id": "r", "digest": "", "reference": reference}
    return record("run_started", plan="plan.yaml", **keys)


def test_huge_figures_are_limited_to_what_has_a_float():
    figures = OutcomeMetrics.model_validate({"duration_ms": 10**400, "patch_cycles": -(10**400)})
    assert (figures.duration_ms, figures.patch_cycles) == (10**15, -(10**15))


def test_a_name_that_no_file_can_have_is_that_of_a_missing_file(tmp_path: Path):
    write_journal(tmp_path, 1, started(), judged(rests_on={"files": {"a\0b": "x"}}), finished())
    assert changed_files(tmp_path, next(past_runs(tmp_path, "p"))).paths == ("a\0b",)


def test_a_change_of_another_plan_file_does_not_outdate_a_verdict(tmp_path: Path):
    write_journal(tmp_path, 1, started(), judged(), finished())
    run = next(past_runs(tmp_path, "p"))
    (tmp_path / "iterations").mkdir()
    (tmp_path / "iterations/002.yaml").write_text("todo_list_id: next\nitems: []\n")
    assert changed_files(tmp_path, run) == ChangedFiles()
    (tmp_path / "data.yaml").write_text("rates: [1, 2]\n")
    assert changed_files(tmp_path, run) == ChangedFiles(paths=("data.yaml",), by_todo={"a": ("data.yaml",)})


def test_a_report_that_the_run_wrote_at_its_end_does_not_outdate_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_journal(tmp_path, 1, started(), judged(), finished())
    run = next(past_runs(tmp_path, "p"))
    monkeypatch.chdir(tmp_path)
    report = Path("report.xml")
    report.write_text("<testsuites/>")
    remember_written(report)
    assert changed_files(tmp_path, run) == ChangedFiles()
    report.write_text("<testsuites></testsuites>")
    assert changed_files(tmp_path, run).paths == ("report.xml",)


def test_runs_of_other_plans_and_files_that_are_not_journals_are_skipped(tmp_path: Path):
    write_journal(tmp_path, 1, started(), judged())
    write_journal(tmp_path, 2, started("other"), judged(plan="other"), finished("other"))
    journal(tmp_path, 3).mkdir()
    os.mkfifo(journal(tmp_path, 4))
    journal(tmp_path, 5).symlink_to("/dev/zero")
    (tmp_path / ".planverify/runs/file").write_text("x")
    journal(tmp_path, 6).write_bytes(b"\xff\0\n[[[[\n" + b"[" * 100_000 + b"\n{}\n1\n")
    (run,) = past_runs(tmp_path, "p")
    assert (run.folder.name[:8], run.finished, set(run.checks)) == ("20260101", None, {("a", "verify")})


@pytest.mark.parametrize(
    "odd",
    [
        *({"at": at} for at in ("yesterday", None, True, float("nan"))),
        *({"todo_id": ["a"]}, {"check": None}, {"session": "s1"}),
    ],
    ids=str,
)
def test_an_invalid_record_and_one_of_a_worker_are_ignored(odd: dict[str, Any], tmp_path: Path):
    write_journal(tmp_path, 1, started(), judged(todo_id="b"), judged(**odd))
    (run,) = past_runs(tmp_path, "p")
    assert set(run.checks) == {("b", "verify")}
