"""``planner next --log``: what is outstanding in a run that the engine carries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planner_command import Command

from planner.store.lines import read_event
from planner.store.session import RunSession, RunSettings

PLAN = """
todo_list_id: shop
metadata: {auto_fix_mode: %s, budget: {tokens: 100}}
items:
  - {id: cart, title: The cart, max_retries: 0, test_command: pytest tests/test_cart.py}
  - {id: till, title: The till, dependencies: [cart], test_command: pytest tests/test_till.py}
"""
RED = {"todo_id": "cart", "state": "test_failed", "success": False, "tests_passed": False}


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, monkeypatch, capsys)


def lived(folder: Path, *events: dict[str, object], auto: bool = True) -> tuple[Path, Path]:
    """A plan, and the log of a run that was told those events."""
    plan, log = folder / "plan.yaml", folder / "run.jsonl"
    plan.write_text(PLAN % str(auto).lower())
    session = RunSession.open(RunSettings(plan=plan, log=log, validates=False))
    for second, event in enumerate(({"event": "run_started"}, *events)):
        line = json.dumps({"at": f"2026-11-21T10:00:{second:02d}Z", **event})
        session.tell(read_event(line.encode()))
    session.close()
    return plan, log


def test_what_the_driver_was_asked_for_is_outstanding_until_it_answers(
    planner: Command, tmp_path: Path
) -> None:
    plan, log = lived(tmp_path)

    said = planner("next", str(plan), "--log", str(log))

    assert said.status == 0
    assert "shop  executing: 0 of 2 todos done" in said.out
    assert "To work on (1)\n  cart, by the coder, turn 1: The cart" in said.out


def test_a_question_waits_for_a_person_and_says_how_it_may_be_answered(
    planner: Command, tmp_path: Path
) -> None:
    red = {"event": "verified", "outcome": RED}
    plan, log = lived(tmp_path, {"event": "work_finished", "todo_id": "cart"}, red, auto=False)

    said = planner("next", str(plan), "--log", str(log))
    told = json.loads(planner("next", str(plan), "--log", str(log), "--json").out)

    assert said.status == 11
    assert "awaiting_review" in said.out
    assert "cart_branch_01: may cart_branch_01 be made? (approve, reject, modify" in said.out
    assert [each["action"] for each in told["outstanding"]] == ["ask_human"]


def test_to_look_at_a_run_leaves_its_log_as_it_is(planner: Command, tmp_path: Path) -> None:
    plan, log = lived(tmp_path)
    before = log.read_bytes()

    planner("next", str(plan), "--log", str(log))

    assert log.read_bytes() == before


@pytest.mark.parametrize(
    ("event", "status", "words"),
    [
        ({"event": "stop_requested"}, 11, "a person wants everything to stop"),
        ({"event": "budget_spent", "tokens": 101}, 12, "budget is used up"),
    ],
)
def test_a_run_that_has_stopped_says_why(
    planner: Command, tmp_path: Path, event: dict[str, object], status: int, words: str
) -> None:
    plan, log = lived(tmp_path, event)

    said = planner("next", str(plan), "--log", str(log))

    assert said.status == status
    assert words in " ".join(said.out.split())


def test_what_waits_says_for_what(planner: Command, tmp_path: Path) -> None:
    red = {"event": "verified", "outcome": RED}
    plan, log = lived(tmp_path, {"event": "work_finished", "todo_id": "cart"}, red)

    said = planner("next", str(plan), "--log", str(log))

    assert "cart_branch_01, by the debugger, turn 1" in said.out
    assert "Waits (1)\n  till: blocked by cart" in said.out


def test_only_what_concerns_one_todo_is_shown(planner: Command, tmp_path: Path) -> None:
    plan, log = lived(tmp_path)

    assert "To work on" not in planner("next", str(plan), "--log", str(log), "--todo", "till").out
    unknown = planner("next", str(plan), "--log", str(log), "--todo", "tiller")
    assert unknown.status == 2
    assert "till" in unknown.err


def test_options_that_speak_of_outcomes_do_not_go_with_a_run(planner: Command, tmp_path: Path) -> None:
    plan, log = lived(tmp_path)

    said = planner("next", str(plan), "--log", str(log), "--approve", "all")

    assert said.status == 2
    assert "--approve does not go with --log" in said.err


def test_a_run_that_was_never_begun_says_so(planner: Command, tmp_path: Path) -> None:
    plan, log = lived(tmp_path)
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])

    said = planner("next", str(plan), "--log", str(log))

    assert said.status == 0
    assert "the run has not begun" in said.out


def test_what_only_the_environment_keeps_from_going_on_has_a_status_of_its_own(
    planner: Command, tmp_path: Path
) -> None:
    missing = {"category": "ENVIRONMENT_ERROR", "stack_trace_head": "no database"}
    red = {"event": "verified", "outcome": RED | {"failure_evidence": missing}}
    events = [{"event": "work_finished", "todo_id": "cart"}, red, red, red, red]
    plan, log = lived(tmp_path, *events)

    said = planner("next", str(plan), "--log", str(log))

    assert said.status == 10
    assert "no database" in said.out


def test_a_log_of_other_decisions_tells_nothing(planner: Command, tmp_path: Path) -> None:
    from planner.store.chain import GENESIS, digest_of

    plan, log = lived(tmp_path)
    first, second = log.read_text().splitlines()
    digest = first[first.rfind("sha256:") : -2]
    body = second[: second.rfind(',"digest":')].replace('"role":"coder"', '"role":"tester"')
    log.write_text(f'{first}\n{body},"digest":"{digest_of(body, digest)}"}}\n')
    assert digest != GENESIS

    said = planner("next", str(plan), "--log", str(log))

    assert said.status == 2
    assert "planner replay" in said.err


def test_many_that_wait_are_counted(planner: Command, tmp_path: Path) -> None:
    plan, log = tmp_path / "plan.yaml", tmp_path / "run.jsonl"
    items = "".join(f"  - {{id: t{n}, title: T{n}, allowed_files: [a.py]}}\n" for n in range(25))
    plan.write_text(f"todo_list_id: shop\nitems:\n{items}")
    session = RunSession.open(RunSettings(plan=plan, log=log, validates=False))
    session.tell(read_event(b'{"event":"run_started","at":"2026-11-21T10:00:00Z"}'))
    session.close()

    said = planner("next", str(plan), "--log", str(log))

    assert "t1: t0 is under work, and has files that it needs" in said.out
    assert "  and 4 more" in said.out
