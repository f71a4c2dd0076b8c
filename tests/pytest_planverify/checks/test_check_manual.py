"""A question passes only when a person answered yes to these very words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.model.plan import ManualSpec
from planner.model.verdicts import Verdict
from planner.planfile.loader import load_plan_text
from pytest_planverify.checks import manual as module
from pytest_planverify.checks.manual import ANSWERS_FILE, check_manual, read_answers
from pytest_planverify.checks.result import Judgement

QUESTION = "Does the chart look right?"
LOADED = load_plan_text("todo_list_id: p\nitems: [{id: t, title: T}]\n", Path("plan.yaml"))


def entry(**changes: Any) -> dict[str, Any]:
    usual = {
        "plan": "p",
        "todo_id": "t",
        "check_id": "manual[0]",
        "question": QUESTION,
        "answer": "yes",
        "by": "Ada",
    }
    return {**usual, **changes}


def ask(root: Path, *entries: dict[str, Any], question: str = QUESTION) -> Judgement:
    file = root / ANSWERS_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"schema_version": 1, "answers": list(entries), "later": 1}))
    answers = read_answers(root)
    return check_manual(ManualSpec(question=question), LOADED, "t", "manual[0]", answers, alone=True)


def test_yes_passes_and_no_fails(tmp_path: Path) -> None:
    assert ask(tmp_path, entry()).verdict is Verdict.PASSED
    result = ask(tmp_path, entry(answer="no", note="axis \x1b[31mwrong"))
    assert (result.verdict, result.reason) == (Verdict.FAILED, "Ada answered no: axis wrong")
    assert len(result.evidence) == 1


def test_the_last_answer_counts(tmp_path: Path) -> None:
    assert ask(tmp_path, entry(), entry(answer="no")).verdict is Verdict.FAILED
    assert ask(tmp_path, entry(answer="no"), entry()).verdict is Verdict.PASSED
    assert ask(tmp_path, entry(), entry(question="Other?", answer="no")).verdict is Verdict.PASSED


def test_an_answer_to_other_words_is_stale(tmp_path: Path) -> None:
    result = ask(tmp_path, entry(question="Does it look right?"))
    assert result.verdict is Verdict.STALE
    assert "'Does it look right?'" in (result.reason or "")


@pytest.mark.parametrize("changes", [{"plan": "q"}, {"todo_id": "u"}, {"check_id": "manual[1]"}])
def test_an_answer_to_another_check_is_none(tmp_path: Path, changes: dict[str, str]) -> None:
    assert ask(tmp_path, entry(**changes)).verdict is Verdict.NEEDS_HUMAN


def test_an_open_question_shows_the_command_that_answers_it_also_without_a_file(tmp_path: Path) -> None:
    spec = ManualSpec(question=QUESTION)
    without = check_manual(spec, LOADED, "t", "manual[0]", read_answers(tmp_path), alone=True)
    for result in (without, ask(tmp_path)):
        assert result.verdict is Verdict.NEEDS_HUMAN
        assert (result.reason or "").endswith("answer: planner answer plan.yaml t yes # or no, or a reason")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"schema_version": 2}',
        '{"answers": [{"plan": "p"}]}',
        json.dumps({"answers": [entry(answer="maybe")]}),
        json.dumps({"answers": [entry(by="")]}),
        json.dumps({"answers": [entry(answer=True)]}),
    ],
)
def test_a_broken_answers_file_never_passes(tmp_path: Path, content: str) -> None:
    (tmp_path / ".planverify").mkdir()
    (tmp_path / ANSWERS_FILE).write_text(content)
    answers = read_answers(tmp_path)
    assert answers.problem is not None
    result = check_manual(ManualSpec(question=QUESTION), LOADED, "t", "manual[0]", answers, alone=True)
    assert result.verdict is Verdict.NEEDS_HUMAN
    assert (result.reason or "").startswith(f"{ANSWERS_FILE} cannot be used")


def test_an_answers_file_that_is_none_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "root" / ANSWERS_FILE).mkdir(parents=True)
    assert "is not a file" in (read_answers(tmp_path / "root").problem or "")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / ".planverify").symlink_to(tmp_path / "root" / ".planverify")
    assert "is outside of" in (read_answers(tmp_path / "link").problem or "")

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(module, "is_regular_file", refuse)
    assert "Permission denied" in (read_answers(tmp_path / "root").problem or "")
