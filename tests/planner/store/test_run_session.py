"""Sessions of a driven run: events are stored and completed from files, and the run can be resumed."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import stepping
from revision_samples import PLAN, write_plans
from sample_documents import sample_document
from stepping import FAILURE, START

from planner.errors import LogError, PlannerError, RefusedEvent
from planner.model.events import PlanSubmitted, RunPolicy, SubPlanLoaded, Verified
from planner.model.outcome import Outcome
from planner.model.plan import Plan
from planner.model.taxonomy import Category
from planner.model.verdicts import PlanState
from planner.planfile.loader import load_plan
from planner.planfile.plan_folder import IGNORED, PlanFolder
from planner.planfile.record_files import write_outcomes
from planner.policy.limits import lowered
from planner.store.index import open_index
from planner.store.plan_run import PlanRun
from planner.store.run_log import MAX_EVENT_BYTES, RunLog, logged_actions, read_event, replay
from planner.store.session import RunSession, RunSettings, submission
from planner.testing import simulate_failure, simulate_success

HOLLOW = {"cmd": "pytest tests/test_t1.py --collect-only", "timeout_seconds": 20}
"""A criterion that runs no test."""


class Desk:
    """A project with a plan, and the sessions opened on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "run.jsonl"
        self.minutes = 0

    def plan(self, *todos: dict[str, Any], **keys: Any) -> Path:
        return stepping.shop(self.folder, *todos, **keys)

    def open(self, **settings: Any) -> RunSession:
        given: dict[str, Any] = {"plan": self.folder / "plan.yaml", "log": self.log, **settings}
        return RunSession.open(RunSettings(**given))

    def tell(self, session: RunSession, kind: str, **keys: Any) -> list[str]:
        """Send an event a minute after the previous one, and return the kinds of the resulting actions."""
        self.minutes += 1
        event = read_event(json.dumps(stepping.event(kind, self.minutes, **keys)).encode())
        return [action.action for action in session.tell(event)]

    def started(self, **settings: Any) -> RunSession:
        """Return a session whose run has begun."""
        session = self.open(**settings)
        self.tell(session, "run_started")
        return session

    def fail(self, session: RunSession, todo_id: str = "t1", **failure: Any) -> None:
        """Let a todo fail with its test."""
        evidence = {**FAILURE, "top_failing_tests": [f"tests/test_{todo_id.split('/')[-1]}.py::test_it"]}
        outcome = {**stepping.FAILED, "todo_id": todo_id, "failure_evidence": {**evidence, **failure}}
        self.tell(session, "verified", outcome=outcome)

    def events(self, path: Path | None = None) -> list[Any]:
        return [entry.event for entry in RunLog.read(path or self.log).entries()]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    made = Desk(tmp_path)
    made.plan()
    return made


def test_runs_of_one_version_of_a_plan_have_ids_of_their_own(desk: Desk) -> None:
    loaded, later = load_plan(desk.plan()), START + timedelta(seconds=1)
    ids = [submission(loaded, at, RunPolicy()).run_id for at in (START, START, later)]
    assert ids[0] == ids[1] != ids[2]


def test_the_plan_is_submitted_with_the_time_of_the_first_event(desk: Desk) -> None:
    session = desk.open(jobs=3)
    assert session.state is None
    assert desk.log.read_text() == "", "nothing is known before"
    assert desk.tell(session, "run_started") == ["implement"]
    submitted, started = desk.events()
    assert submitted.at == started.at
    assert submitted.policy.jobs == 3
    assert submitted.path == "plan.yaml"
    assert submitted.policy.fingerprint == submitted.memory.fingerprint
    assert submitted.run_id == f"20260101T100100Z-{submitted.digest[7:13]}"


def test_a_reopened_run_continues_at_the_end_of_its_log(desk: Desk) -> None:
    first = desk.started()
    desk.tell(first, "work_finished", todo_id="t1", tokens=7)
    first.close()
    second = desk.open()
    assert second.unanswered() == (), "they were answered then"
    assert second.state is not None
    assert second.state.spent.tokens == 7
    assert desk.tell(second, "run_resumed") == ["verify"]


def test_the_number_of_jobs_is_fixed_at_the_start_of_a_run(desk: Desk) -> None:
    two = desk.folder / "two.jsonl"
    desk.started()
    desk.started(jobs=2, log=two)
    assert desk.open().remarks() == desk.open(jobs=2, log=two).remarks() == []
    for settings in ({"jobs": 3}, {"jobs": 3, "log": two}, {"allow_unproved": True}):
        (remark,) = desk.open(**settings).remarks()
        assert "continues with the --jobs and --allow-unproved that it was started with" in remark


def test_actions_caused_by_another_writer_are_returned_as_unanswered(desk: Desk) -> None:
    other, one = desk.open(), desk.started()
    assert desk.tell(other, "work_finished", todo_id="t1") == ["verify"]
    assert [action.action for action in other.unanswered()] == ["implement"]
    assert desk.tell(one, "clock_ticked") == []
    assert [action.action for action in one.unanswered()] == ["verify"]
    with pytest.raises(RefusedEvent):
        desk.tell(one, "work_finished", todo_id="t9")
    assert one.unanswered() == ()


def test_the_log_of_another_plan_is_refused_by_a_run(desk: Desk) -> None:
    desk.started()
    desk.plan(todo_list_id="inn")
    with pytest.raises(LogError, match=r"of the plan 'shop', but plan\.yaml is 'inn'; name another"):
        desk.open()


def test_a_plan_with_errors_is_rejected_unless_validation_is_disabled(desk: Desk) -> None:
    hollow = {"id": "t2", "dependencies": ["t1"], "acceptance_criteria": {"tests": [HOLLOW]}}
    desk.plan({"id": "t1"}, hollow)
    strict = desk.open()

    with pytest.raises(RefusedEvent, match="rejected"):
        desk.tell(strict, "run_started")
    (finish,) = strict.unanswered()
    assert finish.action == "finish"
    (problem,) = desk.events()[0].problems
    assert re.match(r"plan\.yaml:\d+:\d+: .* \[command-hollow\]$", problem)

    lenient = desk.open(validates=False, log=desk.folder / "lenient.jsonl")
    assert desk.tell(lenient, "run_started") == ["implement"]


def test_a_refused_first_event_does_not_submit_the_plan(desk: Desk) -> None:
    session = desk.open()
    with pytest.raises(RefusedEvent):
        desk.tell(session, "work_finished", todo_id="t1", at=(START + timedelta(days=365_000)).isoformat())
    desk.tell(session, "run_started")
    assert session.state is not None
    assert session.state.now < START.timestamp() + 86400


def test_an_approval_may_not_allow_files_outside_the_root(desk: Desk) -> None:
    session = desk.started()
    approval = {"approval_id": "t1_branch_01", "decision": "modify", "digest": "sha256:0"}
    with pytest.raises(RefusedEvent) as refusal:
        desk.tell(session, "approval_given", **approval, changes={"allowed_files": ["src/**", "../x"]})
    assert refusal.value.rule == "unfit-edit"


def test_an_uncreatable_log_folder_is_an_error_that_names_no_option(desk: Desk) -> None:
    (desk.folder / ".planverify").write_text("")
    with pytest.raises(LogError, match=r"cannot be made \(.*\); make its parent folder writable$"):
        desk.open(log=None)


# Facts read from files


def test_a_failure_is_recorded_with_its_context(desk: Desk) -> None:
    desk.fail(desk.started())
    event = desk.events()[-1]
    assert isinstance(event, Verified)
    assert event.context is not None
    assert {excerpt.path for excerpt in event.context.excerpts} == {"tests/test_t1.py"}


@pytest.fixture
def parent(desk: Desk) -> Desk:
    """Return a desk whose plan has a parent as its second todo."""
    desk.plan({"id": "t1"}, {"id": "phase", "acceptance_criteria": {}, "sub_plan": "phases/two.json"})
    return desk


def test_a_sub_plan_is_loaded_when_the_event_announces_it(parent: Desk) -> None:
    session = parent.started()
    parent.plan({"id": "s1"}, path="phases/two.json", todo_list_id="two", root="..")

    assert parent.tell(session, "sub_plan_loaded", todo_id="phase") == ["implement"]

    event = parent.events()[-1]
    assert isinstance(event, SubPlanLoaded)
    assert event.plan is not None
    assert event.plan.todo_list_id == "two"
    assert event.digest.startswith("sha256:")
    assert session.state is not None
    assert "phase/s1" in session.state.todos
    parent.fail(session, "phase/s1")
    assert {each.path for each in parent.events()[-1].context.excerpts} == {"tests/test_s1.py"}


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({}, "the file 'phases/two.json'"),
        ({"path": "../two.json"}, "leaves"),
        ({"path": "phases/broken.json"}, "phases/broken.json"),
        ({"path": "phases/hollow.json"}, "[command-hollow]"),
        ({"problems": ["it is not planned"]}, "it is not planned"),
    ],
)
def test_problems_of_a_sub_plan_are_recorded_in_the_event(parent: Desk, keys: dict[str, Any], problem: str):
    session = parent.started()
    hollow = {"id": "s1", "acceptance_criteria": {"tests": [HOLLOW]}}
    parent.plan(hollow, path="phases/hollow.json", todo_list_id="hollow", root="..")
    (parent.folder / "phases/broken.json").write_text('{"todo_list_id": "broken", "items": []}')
    parent.tell(session, "sub_plan_loaded", todo_id="phase", **keys)
    event = parent.events()[-1]
    assert event.plan is None
    assert problem in " ".join(event.problems)


def test_a_sub_plan_may_be_written_after_a_failed_load(desk: Desk) -> None:
    phase = {"id": "phase", "acceptance_criteria": {}, "is_parent": True, "sub_project_id": "two"}
    desk.plan({"id": "t1"}, phase)
    session = desk.started()
    desk.tell(session, "sub_plan_loaded", todo_id="phase")
    assert desk.events()[-1].problems
    desk.plan({"id": "s1"}, path="phases/second.json", todo_list_id="two", root="..")
    desk.tell(session, "sub_plan_loaded", todo_id="phase")
    assert desk.events()[-1].plan is not None


def test_a_sub_plan_below_one_whose_file_is_gone_is_a_problem(parent: Desk) -> None:
    session = parent.started()
    inner = {"id": "in", "acceptance_criteria": {}, "sub_plan": "x.json"}
    two = parent.plan({"id": "s1"}, inner, path="phases/two.json", todo_list_id="two", root="..")
    parent.tell(session, "sub_plan_loaded", todo_id="phase")
    two.unlink()
    parent.tell(session, "sub_plan_loaded", todo_id="phase/in")
    assert "the plan above 'phase/in' cannot be loaded" in parent.events()[-1].problems[0]


# Memory


def test_a_finished_run_is_followed_by_one_in_a_new_log_that_learns_from_it(desk: Desk) -> None:
    desk.plan({"id": "t1"}, workflow_name="Sell things")
    session = desk.started(log=None)
    desk.fail(session)
    session.close()
    session = desk.open(log=None)
    assert session.log.name == "shop.jsonl", "it is not over yet"
    desk.tell(session, "work_finished", todo_id="t1_branch_01")
    desk.tell(session, "verified", outcome={"todo_id": "t1_branch_01", **stepping.PASSED})
    assert desk.tell(session, "verified", outcome={"todo_id": "t1", **stepping.PASSED}) == ["finish"]
    session.close()
    with open_index(desk.folder) as index:
        (run,) = index.runs()
    again, alone = desk.started(log=None), desk.started()

    assert (run["state"], run["goal"]) == ("completed", "Sell things")
    assert again.log.name == "shop.2.jsonl"
    (submitted, *_) = desk.events(again.log)
    assert isinstance(submitted, PlanSubmitted)
    assert [each.fixed for each in submitted.memory.repairs] == [True]
    assert desk.events()[0].memory.repairs == (), "a log that is named stands for itself"
    assert again.remarks() == alone.remarks() == []


def test_an_unreadable_log_hides_no_other_log_and_does_not_stop_the_run(desk: Desk) -> None:
    desk.started(log=None)
    assert (desk.folder / ".planverify/.gitignore").read_text() == IGNORED
    log = desk.folder / ".planverify/logs/shop.jsonl"
    torn = log.with_name("torn.jsonl")
    torn.write_text(log.read_text().replace("run_started", "run_resumed"))
    log.unlink()
    session = desk.open(log=None)
    assert desk.tell(session, "run_started") == ["implement"]
    (remark,) = session.remarks()
    assert "torn.jsonl: line 1 was changed" in remark


# Redaction

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


def test_secrets_are_redacted_before_an_event_is_logged(desk: Desk) -> None:
    (desk.folder / "shop.py").write_text(f"TOKEN = '{SECRET}'\ndef price(x): return x\n")
    session = desk.started()
    desk.tell(session, "work_finished", todo_id="t1", message=f"pushed with {SECRET}")
    desk.fail(session, stack_trace_head=f"AssertionError: {SECRET}")
    text = desk.log.read_text()
    assert SECRET not in text
    assert text.count("[redacted: github token]") >= 3
    with RunLog.read(desk.log) as log:
        assert all(logged_actions(entry.text) == decided for entry, decided in replay(log))


# Events of a driver


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "Invalid JSON: EOF while parsing"),
        (b"[]", "Input should be an object; planner schema event shows"),
        (b" " * (MAX_EVENT_BYTES + 1), "longer than 16 MiB"),
        (b"[" * 9_999, "recursion limit"),
        (
            b'{"event": "run_strated"}',
            "not match any of the expected tags: 'plan_submitted', 'run_started'",
        ),
        (b'{"event": "run_started"}', "run_started: at: Field required"),
        (b'{"event": "run_started", "at": "2026-01-01T10:00"}', "should have timezone info"),
    ],
)
def test_an_invalid_event_line_is_refused_in_one_line(line: bytes, problem: str) -> None:
    with pytest.raises(RefusedEvent) as refused:
        read_event(line)
    assert refused.value.rule == "unfit-event"
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_driver_cannot_submit_a_plan(desk: Desk) -> None:
    session = desk.open()
    with pytest.raises(RefusedEvent, match="submitted once"):
        desk.tell(session, "plan_submitted", digest="", plan={"todo_list_id": "a", "items": []})
    assert desk.log.read_text() == ""


def drive(desk: Desk, *todos: str, verified: dict[str, Any] | None = None) -> Path:
    """Let a driver begin the run of a plan, with a lower limit than the plan has; return its path."""
    plan = desk.plan(*({"id": each} for each in todos or ("t1",)))

    def lower(held: Plan) -> Plan:
        return lowered(held, {"max_debug_attempts": 1})[0]

    with desk.started(log=None, adjust=lower) as session:
        if verified is not None:
            desk.tell(session, "verified", outcome={"todo_id": "t1", **verified})
    return plan


def verify_by_hand(plan: Path, at: datetime, outcome: Outcome) -> None:
    loaded = load_plan(plan)
    document = sample_document(loaded.plan, [outcome], at=at)
    reference = document.plans[0].model_copy(update={"digest": loaded.digest})
    target = PlanFolder(loaded.root, "shop").outcomes
    write_outcomes(document.model_copy(update={"plans": (reference,)}), target)


def test_a_run_with_lower_limits_than_its_plan_belongs_to_that_plan(desk: Desk):
    assert PlanRun.open(drive(desk)).is_driven


@pytest.mark.parametrize(
    ("halts", "later", "state"),
    [
        pytest.param(True, 9, PlanState.COMPLETED, id="the run is over"),
        pytest.param(True, -1, PlanState.HALTED, id="it was verified before the run"),
        pytest.param(False, 9, PlanState.EXECUTING, id="the run is not over"),
    ],
)
def test_a_manual_verification_counts_after_a_driven_run(
    desk: Desk, halts: bool, later: int, state: PlanState
):
    violation = {**FAILURE, "category": "HYGIENE_VIOLATION"}
    plan = drive(desk, verified={**stepping.FAILED, "failure_evidence": violation} if halts else None)
    passed = simulate_success(load_plan(plan).plan.items[0])
    verify_by_hand(plan, START + timedelta(minutes=later), passed)
    assert PlanRun.open(plan).state.plan_state is state


@pytest.mark.parametrize("later", [9, -1])
def test_a_todo_of_a_driven_run_that_fails_in_a_later_manual_verification_is_named(desk: Desk, later: int):
    plan = drive(desk, "t1", "t2", verified=stepping.PASSED)
    failed = simulate_failure(load_plan(plan).plan.items[0], Category.TEST_REGRESSION, "no")
    verify_by_hand(plan, START + timedelta(minutes=later), failed)
    remarks = PlanRun.open(plan).remarks
    assert [each.partition(" in ")[0] for each in remarks] == (["t1 failed"] if later > 0 else [])


@pytest.fixture
def shop(desk: Desk) -> Path:
    """Return the path of a plan with a sub-plan, in the folder of the desk."""
    return write_plans(desk.folder)


def revise(desk: Desk, session: RunSession, todo_id: str) -> None:
    """Let a todo fail, which then gets a branch."""
    desk.tell(session, "sub_plan_loaded", todo_id="phase")
    desk.tell(session, "verified", outcome={**stepping.FAILED, "todo_id": todo_id})


def test_the_newest_plan_is_written_when_it_changes(desk: Desk, shop: Path) -> None:
    target = shop.with_name("newest.yaml")
    run = desk.open(newest=target)
    assert run.remarks() == []
    assert not target.exists(), "nothing is submitted yet"
    desk.tell(run, "run_started")
    revise(desk, run, "t2")
    assert run.remarks() == []
    assert load_plan(target).plan.todo("t2_branch_01").parent_id == "t2"
    os.utime(target, (1, 1))
    desk.tell(run, "clock_ticked")
    assert run.remarks() == []
    assert target.stat().st_mtime == 1, "nothing has changed"
    assert desk.open(newest=target).remarks() == [], "it may be written again by the next process"


def test_a_revised_sub_plan_is_written_beside_the_newest_plan(desk: Desk, shop: Path) -> None:
    target = shop.with_name("newest.yaml")
    run = desk.started(newest=target)
    revise(desk, run, "phase/s2")
    assert run.remarks() == []
    assert "sub_plan: newest.phase.yaml" in target.read_text()
    written = shop.with_name("newest.phase.yaml").read_text()
    assert "s2_branch_01" in written
    assert "# the second" in written
    assert shop.read_text() == PLAN


@pytest.mark.parametrize("held", ["link.yaml", "other.yaml", "run.jsonl"])
def test_a_file_that_is_not_this_plan_is_not_replaced(desk: Desk, shop: Path, held: str) -> None:
    shop.with_name("link.yaml").symlink_to(shop)
    shop.with_name("other.yaml").write_text(PLAN.replace("shop", "inn"))
    with pytest.raises(PlannerError, match=r"plan itself|log of the run|the file is not this plan"):
        desk.open(newest=shop.with_name(held))


def test_an_unwritable_newest_plan_is_reported(desk: Desk, shop: Path, monkeypatch: pytest.MonkeyPatch):
    run = desk.started(newest=shop.with_name("newest.yaml"))
    left = {each.name for each in shop.parent.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        [told] = run.remarks()
        assert told.startswith("the newest plan could not be written: ")
        assert run.remarks() == [], "it is told once"
    assert {each.name for each in shop.parent.iterdir()} == left
    assert run.remarks() == []
    assert shop.with_name("newest.yaml").read_text() == PLAN
