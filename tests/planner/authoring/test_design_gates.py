"""Reviews, gates and workflows of a design plan: blocking items, the next step, and its guidance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from design_samples import CONTEXT, NOW, PLANNING, begin, begin_complete, begin_frozen, pass_gates, review
from hypothesis import given, settings
from hypothesis import strategies as st
from planner_command import Command
from pydantic import ValidationError

from planner.authoring.design import state_folder
from planner.authoring.design.review import (
    Gate,
    ItemStatus,
    LoopState,
    ReviewFile,
    ReviewItem,
    ReviewPhase,
    ReviewSeverity,
    blocking_severities,
)
from planner.authoring.design.state_folder import STEPS, GateFile, StateFolder, render_step, step_after_gate
from planner.errors import DesignError
from planner.planfile.project_files import read_regular

DESIGN, CODE, DOCS = PLANNING


def fail_gate(folder: StateFolder, phase: ReviewPhase, times: int) -> None:
    """Fail the gate `times` times, then mark the failed item as passed."""
    item = review(folder, phase, "status=FAIL", "finding=no")
    for _ in range(times):
        folder.decide_gate(phase, passed=False)
    folder.answer_item(phase, item, ["status=PASS"])


# -- items -----------------------------------------------------------------------------------------


def test_qr_phase_json_has_the_fields_of_the_schema(folder: StateFolder) -> None:
    for phase in ReviewPhase:
        item = review(folder, phase)
        path = folder.review_file(phase)
        fields = {"id": "qa-001", "scope": "*", "check": "Is it so?", "severity": "MUST", "status": "TODO"}

        assert json.loads(path.read_text()) == {
            "schema_version": "1.0",
            "phase": phase.value,
            "items": [{**fields, "finding": None}],
        }
        folder.answer_item(phase, item, ["status=PASS"])
        folder.decide_gate(phase, passed=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("qa-001 status=FAIL", "a FAIL needs a finding"),
        ("qa-001 status=MAYBE", "Input should be 'TODO', 'PASS' or 'FAIL'"),
        ("qa-001 severity=COULD", "severity cannot be changed; set status and finding"),
        ("qa-001 check=b", "check cannot be changed"),
        ("qa-001 id=qa-002", "id cannot be changed"),
        ("qa-001 note=b", "unknown field 'note'"),
        ("qa-009 status=PASS", "unknown item; the items are: qa-001"),
    ],
)
def test_an_item_can_be_answered_but_not_rewritten(
    words: str, message: str, planner: Command, folder: StateFolder
) -> None:
    review(folder, DESIGN)

    done = planner("design", "set", *f"plan-design/{words}".split())

    assert done.status == 4
    assert message in done.err
    assert folder.review(DESIGN).items[0].status is ItemStatus.TODO


def test_duplicate_item_ids_are_refused() -> None:
    item = ReviewItem(id="qa-001", check="a")

    with pytest.raises(ValidationError, match="qa-001 occurs more than once"):
        ReviewFile(phase=DESIGN, items=(item, item))


# -- the loop --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("iteration", "blocks"),
    [
        (1, "MUST SHOULD COULD"),
        (2, "MUST SHOULD COULD"),
        (3, "MUST SHOULD"),
        (4, "MUST SHOULD"),
        (5, "MUST"),
    ],
)
def test_blocking_severities_depend_on_the_iteration(iteration: int, blocks: str) -> None:
    assert " ".join(blocking_severities(iteration)) == blocks


# -- gates -----------------------------------------------------------------------------------------


def test_a_gate_does_not_pass_while_the_plan_has_gaps(planner: Command, folder: StateFolder) -> None:
    planner("design", "set", "overview", "problem=")
    review(folder, DESIGN, "status=PASS")

    shown = planner("design", "gate", "plan-design")
    done = planner("design", "gate", "plan-design", "pass")

    assert shown.status == 1
    assert "overview.problem is empty" in shown.out
    assert done.status == 4
    assert "overview.problem is empty" in done.err
    assert not folder.gates().gates


def test_phases_must_pass_in_order(folder: StateFolder) -> None:
    for phase in ReviewPhase:
        for later in list(ReviewPhase)[list(ReviewPhase).index(phase) + 1 :]:
            with pytest.raises(DesignError, match=f"the gate {phase.value} must pass first"):
                review(folder, later)
            with pytest.raises(DesignError, match=f"the gate {phase.value} must pass first"):
                folder.decide_gate(later, passed=True)
        pass_gates(folder, phase)

    assert all(folder.gates().gate(phase).is_complete for phase in ReviewPhase)


def test_a_review_requires_a_frozen_context(tmp_path: Path) -> None:
    folder = begin(tmp_path)
    folder.context_file.write_text(json.dumps(CONTEXT))

    with pytest.raises(DesignError, match="the context is not frozen"):
        review(folder, DESIGN)


def test_the_documentation_gate_sets_frozen_at_and_writes_the_page(
    planner: Command, folder: StateFolder
) -> None:
    pass_gates(folder, DESIGN, CODE)
    assert planner("design", "gate", "plan-docs", "pass").status == 4
    assert folder.plan().frozen_at is None
    review(folder, DOCS, "status=PASS")

    done = planner("design", "gate", "plan-docs", "pass")

    assert done.out == (
        "plan-docs: COMPLETE, iteration 1, the plan is frozen\n"
        f"next: planner workflow execute --step 1 --state-dir {folder.path}\n"
    )
    assert folder.plan().frozen_at is not None
    assert folder.page_file.read_text() == planner("design", "show").out


def test_an_interrupted_freeze_is_completed_by_deciding_again(folder: StateFolder) -> None:
    """The plan is written before the gates; a plan that is already frozen is not frozen again."""
    pass_gates(folder, DESIGN, CODE)
    review(folder, DOCS, "status=PASS")
    before, items = folder.gates_file.read_bytes(), folder.review_file(DOCS).read_bytes()
    folder.decide_gate(DOCS, passed=True, now=NOW)
    folder.gates_file.write_bytes(before)
    folder.review_file(DOCS).write_bytes(items)

    with pytest.raises(DesignError, match="the plan was frozen on"):
        folder.edit_plan(lambda plan: plan)
    assert folder.decide_gate(DOCS, passed=True).is_complete
    assert folder.plan().frozen_at == NOW


def test_a_reader_that_meets_the_freeze_is_not_told_of_a_change(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers take no lock: between two files that one reads, another process may freeze the plan."""
    pass_gates(folder, DESIGN, CODE)
    review(folder, DOCS, "status=PASS")
    reader = StateFolder(folder.path)

    def read_and_freeze(path: Path, most: int) -> bytes:
        data = read_regular(path, most)
        monkeypatch.undo()
        folder.decide_gate(DOCS, passed=True)
        return data

    monkeypatch.setattr(state_folder, "read_regular", read_and_freeze)

    assert reader.plan().frozen_at is not None


def test_qr_phase_json_is_ephemeral(folder: StateFolder) -> None:
    """The file exists from the first item until the gate passes, across failed iterations."""
    path = folder.review_file(DESIGN)
    assert not path.exists()

    item = review(folder, DESIGN, "status=FAIL", "finding=no")
    folder.decide_gate(DESIGN, passed=False)
    assert path.exists()
    folder.answer_item(DESIGN, item, ["status=PASS"])
    folder.decide_gate(DESIGN, passed=True)

    assert not path.exists()
    assert folder.review(DESIGN).items == ()
    with pytest.raises(DesignError, match="final"):
        review(folder, DESIGN)
    with pytest.raises(DesignError, match="final"):
        folder.decide_gate(DESIGN, passed=False)


ITEMS = st.lists(
    st.tuples(st.sampled_from(ReviewSeverity), st.sampled_from(ItemStatus)), min_size=0, max_size=5
)


@settings(deadline=None, max_examples=60)
@given(items=ITEMS, failures=st.integers(0, 5), passed=st.booleans(), broken=st.booleans())
def test_a_gate_cannot_pass_with_a_blocking_item(
    tmp_path_factory: pytest.TempPathFactory, items: list[Any], failures: int, passed: bool, broken: bool
) -> None:
    folder = begin_complete(tmp_path_factory.mktemp("state"))
    if failures:
        fail_gate(folder, DESIGN, failures)
    for severity, status in items:
        review(folder, DESIGN, f"severity={severity.value}", f"status={status.value}", "finding=a")
    if broken:
        folder.edit_plan(
            lambda plan: plan.model_copy(update={"milestones": (), "milestone_dependencies": {}})
        )
    blocking = [
        status
        for severity, status in items
        if status is not ItemStatus.PASS and severity in blocking_severities(failures + 1)
    ]
    before = folder.gates().gate(DESIGN)

    try:
        folder.decide_gate(DESIGN, passed=passed)
    except DesignError:
        assert folder.gates().gate(DESIGN) == before

    after = folder.gates().gate(DESIGN)
    may_pass = not blocking and not broken and bool(items or failures)
    assert after.is_complete == (passed and may_pass)
    assert (after.iteration > before.iteration) == (not passed and bool(blocking))


def test_a_gate_shows_its_iteration_and_blocking_items(planner: Command, folder: StateFolder) -> None:
    fail_gate(folder, DESIGN, 1)
    assert planner("design", "show", "plan-design").json["items"][0]["finding"] == "no"
    passing = planner("design", "gate", "plan-design")
    review(folder, DESIGN, "severity=COULD", "status=FAIL", "finding=too short")
    blocked = planner("design", "gate", "plan-design")
    refused = planner("design", "gate", "plan-design", "pass")
    folder.answer_item(DESIGN, "qa-002", ["status=PASS"])
    not_failed = planner("design", "gate", "plan-design", "fail")
    folder.decide_gate(DESIGN, passed=True)
    passed = planner("design", "gate", "plan-design")

    state = "plan-design: RETRY, iteration 2, blocked by MUST, SHOULD, COULD\n"
    assert (passing.status, passing.out) == (0, state)
    assert (blocked.status, blocked.out) == (1, f"{state}  qa-002 (COULD, *) is FAIL: too short\n")
    assert (refused.status, refused.err.count("\n")) == (4, 1)
    assert "qa-002 (COULD, *) is FAIL: too short" in refused.err
    assert not_failed.status == 4
    assert "no item blocks it" in not_failed.err
    assert (passed.status, passed.out) == (0, "plan-design: COMPLETE, iteration 2\n")


@pytest.mark.parametrize(
    ("phase", "on_pass", "on_fail"),
    [
        ("plan-design", ("plan", 6), ("plan", 3)),
        ("plan-code", ("plan", 9), ("plan", 6)),
        ("plan-docs", ("execute", 1), ("plan", 9)),
        ("impl-code", ("execute", 6), ("execute", 3)),
        ("impl-docs", ("execute", 9), ("execute", 6)),
    ],
)
def test_a_gate_leads_to_the_next_or_an_earlier_step(
    phase: str, on_pass: tuple[str, int], on_fail: tuple[str, int]
) -> None:
    assert step_after_gate(ReviewPhase(phase), passed=True) == on_pass
    assert step_after_gate(ReviewPhase(phase), passed=False) == on_fail


# -- workflows -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workflow", "number"), [(workflow, number) for workflow, steps in STEPS.items() for number in steps]
)
def test_the_guidance_of_a_step_has_role_inputs_outputs_and_next_command(
    workflow: str, number: int, planner: Command
) -> None:
    path = planner.folder / "state"
    folder = begin_complete(path) if workflow == "plan" else begin_frozen(path)
    step, count = STEPS[workflow][number], len(STEPS[workflow])
    before = step.phase.before if step.phase else (*step.after.before, step.after) if step.after else ()
    pass_gates(folder, *(each for each in before if not folder.gates().gate(each).is_complete))
    files = {each: each.read_bytes() for each in folder.path.iterdir()}

    done = planner("workflow", workflow, "--step", str(number))

    assert done.status == 0, done.err
    shown = ET.fromstring(done.out)
    numbers = {"number": str(number), "of": str(count)}
    assert shown.attrib == {"workflow": workflow, **numbers, "name": step.name}
    assert [each.get("agent") for each in shown.findall("role") if each.text] == [step.agent]
    for tag in ("inputs", "outputs", "actions", "next"):
        assert len(shown.findall(tag)) == 1
    outputs = [each.text or "" for each in shown.find("outputs") or ()]
    assert [each.removeprefix(f"{folder.path}/") for each in outputs] == list(step.mutates)
    following = shown.find("next") or ()
    if step.name.endswith("gate"):
        assert [each.get("when") for each in following] == ["PASS", "FAIL"]
    elif number < count:
        command = f"planner workflow {workflow} --step {number + 1} --state-dir {folder.path}"
        assert [each.text for each in following] == [command]
    assert files == {each: each.read_bytes() for each in folder.path.iterdir()}, "guidance changes nothing"


def test_a_retry_lists_the_failed_items(folder: StateFolder) -> None:
    review(folder, DESIGN, "status=FAIL", "finding=<no> & \x1b[31mno", "scope=M-001")
    review(folder, DESIGN, "status=PASS", "scope=shop/cart.py")
    folder.decide_gate(DESIGN, passed=False)

    step = ET.fromstring(render_step("plan", 3, folder.path, program="planner"))

    (loop,) = step.findall("loop")
    assert (loop.get("state"), loop.get("iteration"), loop.get("blocks")) == (
        "RETRY",
        "2",
        "MUST SHOULD COULD",
    )
    (item,) = loop.findall("item")
    assert item.attrib == {"id": "qa-001", "scope": "M-001", "severity": "MUST", "status": "FAIL"}
    assert item.findtext("finding") == "<no> & no"


def test_a_gate_lists_blocking_items_and_gaps(folder: StateFolder) -> None:
    review(folder, DESIGN)
    folder.edit_plan(lambda plan: plan.model_copy(update={"overview": {"title": "a"}}))

    loop = ET.fromstring(render_step("plan", 5, folder.path, program="planner")).find("loop")

    assert loop is not None
    assert [each.tag for each in loop] == ["item", "missing", "missing"]


def test_milestones_are_listed_by_wave_for_implementation(frozen: StateFolder) -> None:
    step = ET.fromstring(render_step("execute", 3, frozen.path, program="planner"))

    waves = [(wave.get("number"), [each.get("id") for each in wave]) for wave in step.findall("wave")]
    assert waves == [("1", ["M-001"]), ("2", ["M-002"])]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("plan --step 9", 4, "the gate plan-design must pass first"),
        ("execute --step 2", 4, "the phase plan-docs is not finished"),
        ("execute --step 3", 4, "the gate plan-design must pass first"),
        ("plan --step 2 --state-dir none", 4, "the file does not exist"),
        ("plna", 2, "did you mean 'plan'?"),
        ("plan --step 12", 2, "the steps of plan are 1 to 11"),
        ("execute --step 0", 2, "the steps of execute are 1 to 9"),
    ],
)
def test_a_step_that_is_unknown_or_out_of_turn_is_refused(
    words: str, status: int, message: str, planner: Command, folder: StateFolder
) -> None:
    done = planner("workflow", *words.split())

    assert (done.status, done.err.count("\n")) == (status, 1)
    assert message in done.err


def test_a_step_of_a_passed_phase_names_the_next_step(planner: Command) -> None:
    pass_gates(begin_complete(planner.folder / "state"), DESIGN)

    done = planner("workflow", "plan", "--step", "3")

    assert done.status == 4
    assert "the gate plan-design has passed; continue: planner workflow plan --step 6" in done.err


def test_only_the_first_step_needs_no_state_directory(
    planner: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLANNER_STATE_DIR")

    assert "planner design init title=TEXT" in planner("workflow", "plan").out
    assert "--state-dir is missing" in planner("workflow", "plan", "--step", "2").err


@pytest.mark.parametrize(("state", "iteration"), [("INITIAL", 2), ("RETRY", 1), ("RETRY", 0)])
def test_a_gate_with_an_iteration_that_contradicts_its_state_is_invalid(state: str, iteration: int) -> None:
    with pytest.raises(ValidationError):
        Gate.model_validate({"state": state, "iteration": iteration})


def test_a_gate_file_with_gates_out_of_order_is_refused(folder: StateFolder) -> None:
    folder.gates_file.write_text('{"gates": {"plan-code": {"state": "COMPLETE", "iteration": 1}}}')

    with pytest.raises(DesignError, match="plan-code was decided before plan-design"):
        folder.gates()
    with pytest.raises(ValidationError):
        GateFile(gates={CODE: Gate(state=LoopState.COMPLETE)})
