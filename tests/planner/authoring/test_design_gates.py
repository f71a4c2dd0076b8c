"""Reviews, gates and workflows of a design plan: blocking items, gaps, the next step, and its guidance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from design_samples import (
    CONTEXT,
    PLANNING,
    begin,
    begin_complete,
    begin_frozen,
    change,
    pass_gates,
    review,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from planner_command import Command
from pydantic import ValidationError

from planner.authoring.design.parts import add_part, remove_part
from planner.authoring.design.plan import Gate, LoopState, ReviewFile, ReviewItem, ReviewPhase, find_gaps
from planner.authoring.design.state_folder import StateFolder
from planner.cli.design import STEPS, WorkflowStep, render_step, step_after_gate
from planner.errors import DesignError

DESIGN, CODE, DOCS = PLANNING


def fail_gate(folder: StateFolder, phase: ReviewPhase, times: int) -> None:
    """Fail the gate `times` times, then mark the failed item as passed."""
    item = review(folder, phase, "status=FAIL", "finding=no")
    for _ in range(times):
        folder.decide_gate(phase, passed=False)
    change(folder, item, "status=PASS", phase=phase)


def step(workflow: str, number: int, folder: StateFolder) -> ET.Element:
    return ET.fromstring(render_step(STEPS[workflow, number], folder.path))


def test_qr_phase_json_has_the_fields_of_the_schema(folder: StateFolder) -> None:
    for phase in ReviewPhase:
        item = review(folder, phase)
        fields = {"id": "qa-001", "scope": "*", "check": "Is it so?", "severity": "MUST", "status": "TODO"}
        assert json.loads(folder.review_file(phase).read_text()) == {
            "schema_version": "1.0",
            "phase": phase.value,
            "items": [{**fields, "finding": None}],
        }
        change(folder, item, "status=PASS", phase=phase)
        folder.decide_gate(phase, passed=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("qa-001 status=FAIL", "qa-001: a FAIL needs a finding"),
        ("qa-001 status=MAYBE", "Input should be 'TODO', 'PASS' or 'FAIL'"),
        ("qa-001 severity=COULD", "severity cannot be changed; set status and finding"),
        ("qa-009 status=PASS", "unknown part; the parts are: qa-001"),
    ],
)
def test_an_item_can_be_answered_but_not_rewritten(
    words: str, message: str, planner: Command, folder: StateFolder
) -> None:
    review(folder, DESIGN)
    done = planner("design", "set", *f"plan-design/{words}".split())
    assert done.status == 4
    assert message in done.err
    assert folder.review(DESIGN).items[0].status == "TODO"


def test_duplicate_item_ids_are_refused() -> None:
    item = ReviewItem(id="qa-001", check="a")
    with pytest.raises(ValidationError, match="qa-001 occurs more than once"):
        ReviewFile(phase=DESIGN, items=(item, item))


@pytest.mark.parametrize(
    ("message", "phase", "part", "words"),
    [
        ("overview.problem is empty", DESIGN, "overview", "problem="),
        ("M-001 has no requirement", DESIGN, "M-001", "requirements="),
        ("M-001 has no test file", DESIGN, "M-001", "tests.files="),
        ("M-001 is documentation only but has", DESIGN, "M-001", "is_documentation_only=true"),
        ("M-001 is in no wave", DESIGN, "W-1", "milestones="),
        ("DL-001 has no reasons", DESIGN, "DL-001", "reasoning_chain="),
        ("CC-001.diff is not a unified diff", CODE, "CC-001", "diff=words"),
        (
            "CC-001 changes shop/cart.py, but its diff shop/tax.py",
            CODE,
            "CC-001",
            "diff=--- a/shop/tax.py\n+++ b/shop/tax.py\n@@ -1 +1 @@\n-a\n+b\n",
        ),
        ("CC-001 changes shop/cart.py, but CI-001 is about shop/a.py", CODE, "CI-001", "file=shop/a.py"),
        ("M-001 has no documentation", DOCS, "M-001", "documentation.module_comment="),
    ],
)
def test_each_gap_of_a_phase_is_reported(
    message: str, phase: ReviewPhase, part: str, words: str, folder: StateFolder
) -> None:
    change(folder, part, words)
    (gap,) = find_gaps(folder.plan(), phase)
    assert gap.startswith(message)


def test_milestones_intents_and_changes_are_required(folder: StateFolder) -> None:
    with folder.edit() as data:
        remove_part(data, "CC-001")
    assert not find_gaps(folder.plan(), DESIGN)
    assert find_gaps(folder.plan(), CODE)[0].startswith("CI-001 has no code change")
    change(folder, "M-001", "files=")
    with folder.edit() as data:
        remove_part(data, "CI-001")
    gaps = find_gaps(folder.plan(), DESIGN)
    assert [each[:16] for each in gaps] == ["M-001 names no f", "M-001 has no cod"]
    with folder.edit() as data:
        data |= {"milestones": [], "milestone_dependencies": {}}
    assert [each[:21] for each in find_gaps(folder.plan(), DOCS)] == ["the plan has no miles"]


def test_a_documentation_only_milestone_needs_neither_tests_nor_code(folder: StateFolder) -> None:
    words = ["name=Pages", "files=README.md", "requirements=a", "acceptance_criteria=b"]
    words += ["is_documentation_only=true", "documentation.module_comment=c"]
    with folder.edit() as data:
        add_part(data, "wave", [f"milestones={add_part(data, 'milestone', words)}"])
    assert not find_gaps(folder.plan(), DOCS)


def test_milestones_of_one_wave_may_not_change_the_same_file(folder: StateFolder) -> None:
    change(folder, "CI-002", "file=shop/cart.py")
    assert not find_gaps(folder.plan(), DESIGN)
    change(folder, "W-2", "milestones=")
    change(folder, "W-1", "milestones+=M-002")
    (gap,) = find_gaps(folder.plan(), DESIGN)
    assert gap.startswith("W-1: M-001 and M-002 both change shop/cart.py")


@pytest.mark.parametrize(
    ("iteration", "blocks"), [(2, "MUST SHOULD COULD"), (3, "MUST SHOULD"), (5, "MUST")]
)
def test_blocking_severities_depend_on_the_iteration(iteration: int, blocks: str) -> None:
    assert " ".join(Gate(state=LoopState.RETRY, iteration=iteration).blocks) == blocks


def test_phases_must_pass_in_order(folder: StateFolder) -> None:
    for phase in ReviewPhase:
        for later in list(ReviewPhase)[len(phase.before) + 1 :]:
            with pytest.raises(DesignError, match=f"the gate {phase.value} must pass first"):
                review(folder, later)
            with pytest.raises(DesignError, match=f"the gate {phase.value} must pass first"):
                folder.decide_gate(later, passed=True)
        pass_gates(folder, phase)
    assert all(folder.gates().gate(phase).is_complete for phase in ReviewPhase)


def test_a_review_requires_a_frozen_context(tmp_path: Path) -> None:
    folder = begin(tmp_path)
    folder.context_file.write_text(json.dumps(CONTEXT))
    with pytest.raises(DesignError, match="it is not frozen; freeze it: planner design context"):
        review(folder, DESIGN)


def test_an_interrupted_freeze_is_completed_by_deciding_again(folder: StateFolder) -> None:
    """The plan is written before the gates; a plan that is already frozen is not frozen again."""
    pass_gates(folder, DESIGN, CODE)
    review(folder, DOCS, "status=PASS")
    before, items = folder.gates_file.read_bytes(), folder.review_file(DOCS).read_bytes()
    folder.decide_gate(DOCS, passed=True)
    first = folder.plan()
    folder.gates_file.write_bytes(before)
    folder.review_file(DOCS).write_bytes(items)

    with pytest.raises(DesignError, match="it was frozen on"):
        change(folder, "M-001", "name=b")
    assert folder.decide_gate(DOCS, passed=True).is_complete
    assert folder.plan() == first


def test_qr_phase_json_is_ephemeral(planner: Command, folder: StateFolder) -> None:
    """The file exists from the first item until the gate passes, across failed iterations."""
    path = folder.review_file(DESIGN)
    assert not path.exists()
    fail_gate(folder, DESIGN, 1)
    assert path.exists()
    folder.decide_gate(DESIGN, passed=True)

    assert not path.exists()
    assert folder.review(DESIGN).items == ()
    with pytest.raises(DesignError, match="final"):
        review(folder, DESIGN)
    with pytest.raises(DesignError, match="final"):
        folder.decide_gate(DESIGN, passed=False)
    done = planner("workflow", "plan", "--step", "3")
    assert done.status == 4
    assert "plan-design: its gate has passed, which is final" in done.err


ITEMS = st.lists(
    st.tuples(st.sampled_from(["MUST", "SHOULD", "COULD"]), st.sampled_from(["TODO", "PASS", "FAIL"])),
    max_size=5,
)


@settings(deadline=None, max_examples=20)
@given(items=ITEMS, failures=st.integers(0, 5), passed=st.booleans(), broken=st.booleans())
def test_a_gate_cannot_pass_with_a_blocking_item(
    tmp_path_factory: pytest.TempPathFactory, items: list[Any], failures: int, passed: bool, broken: bool
) -> None:
    folder = begin_complete(tmp_path_factory.mktemp("state"))
    if failures:
        fail_gate(folder, DESIGN, failures)
    for severity, status in items:
        review(folder, DESIGN, f"severity={severity}", f"status={status}", "finding=a")
    if broken:
        change(folder, "overview", "problem=")
    before = folder.gates().gate(DESIGN)
    blocking = [each for each in items if each[1] != "PASS" and each[0] in before.blocks]

    try:
        folder.decide_gate(DESIGN, passed=passed)
    except DesignError:
        assert folder.gates().gate(DESIGN) == before

    after = folder.gates().gate(DESIGN)
    may_pass = not blocking and not broken and bool(items or failures)
    assert after.is_complete == (passed and may_pass)
    assert after.iteration - before.iteration == (not passed and bool(blocking))


def test_a_gate_shows_what_blocks_it_and_cannot_fail_without(planner: Command, folder: StateFolder) -> None:
    fail_gate(folder, DESIGN, 1)
    assert planner("design", "show", "plan-design").json["items"][0]["finding"] == "no"
    passing, state = planner("design", "gate", "plan-design"), "plan-design: RETRY, iteration 2\n"
    following = f"next: planner design gate plan-design pass --state-dir {folder.path}\n"
    assert (passing.status, passing.out) == (0, state + following)
    review(folder, DESIGN, "severity=COULD", "status=FAIL", "finding=too short")
    blocked = planner("design", "gate", "plan-design")
    assert (blocked.status, blocked.out) == (1, f"{state}  qa-002 (COULD, *) is FAIL: too short\n")

    change(folder, "qa-002", "status=PASS", phase=DESIGN)
    not_failed = planner("design", "gate", "plan-design", "fail")
    change(folder, "overview", "problem=")
    incomplete = planner("design", "gate", "plan-design", "fail")
    assert (not_failed.status, incomplete.status) == (4, 4)
    assert "no item blocks it; set one to FAIL, or pass the gate" in not_failed.err
    assert "no item blocks it; set one to FAIL, or complete the plan" in incomplete.err


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
    assert step_after_gate(ReviewPhase(phase), passed=True) == STEPS[on_pass]
    assert step_after_gate(ReviewPhase(phase), passed=False) == STEPS[on_fail]


@pytest.mark.parametrize("place", STEPS.values(), ids=lambda each: each.name)
def test_the_guidance_of_a_step_has_role_inputs_outputs_and_next_command(
    place: WorkflowStep, planner: Command
) -> None:
    path = planner.folder / "state"
    folder = begin_complete(path) if place.workflow == "plan" else begin_frozen(path)
    steps = list(STEPS.values())
    for each in steps[: steps.index(place)]:
        if each.phase and each.pattern == "gate" and not folder.gates().gate(each.phase).is_complete:
            pass_gates(folder, each.phase)
    files = {each: each.read_bytes() for each in folder.path.iterdir()}

    done = planner("workflow", place.workflow, "--step", str(place.number))

    assert done.status == 0, done.err
    shown = ET.fromstring(done.out)
    numbers = {"number": str(place.number), "of": "11" if place.workflow == "plan" else "9"}
    assert shown.attrib == {"workflow": place.workflow, **numbers, "name": place.name}
    assert [each.get("agent") for each in shown.findall("role") if each.text] == [place.agent]
    for tag, names in (("inputs", place.reads), ("outputs", place.mutates)):
        assert [each.text for each in shown.findall(f"{tag}/*")] == list(names)
    actions = [each.text for each in shown.findall("actions/action")]
    assert set(place.actions) <= set(actions)
    following = shown.findall("next/*")
    if place.pattern == "gate":
        assert [each.get("when") for each in following] == ["PASS", "FAIL"]
    elif place.name != "reconcile":
        after = steps[steps.index(place) + 1]
        assert [each.text for each in following] == [f"{after.command} --state-dir {folder.path}"]
    assert files == {each: each.read_bytes() for each in folder.path.iterdir()}, "guidance changes nothing"


def test_a_retry_lists_the_failed_items_and_gaps(folder: StateFolder) -> None:
    review(folder, DESIGN, "status=FAIL", "finding=<no> & \x1b[31mno", "scope=M-001")
    review(folder, DESIGN, "status=PASS", "scope=shop/cart.py")
    folder.decide_gate(DESIGN, passed=False)
    (loop,) = step("plan", 3, folder).findall("loop")

    state = {"phase": "plan-design", "state": "RETRY", "iteration": "2", "blocks": "MUST SHOULD COULD"}
    assert loop.attrib == state
    (item,) = loop.findall("item")
    assert item.attrib == {"id": "qa-001", "scope": "M-001", "severity": "MUST", "status": "FAIL"}
    assert item.findtext("finding") == "<no> & no"
    change(folder, "overview", "problem=", "approach=")
    (loop,) = step("plan", 5, folder).findall("loop")
    assert [each.tag for each in loop] == ["item", "missing", "missing"]


def test_milestones_are_listed_by_wave_for_implementation(frozen: StateFolder) -> None:
    waves = step("execute", 3, frozen).findall("wave")
    shown = [(wave.get("number"), [each.get("id") for each in wave]) for wave in waves]
    assert shown == [("1", ["M-001"]), ("2", ["M-002"])]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("plan --step 9", 4, "the gate plan-design must pass first"),
        ("plan --step 2 --state-dir none", 4, "it cannot be read (No such file or directory)"),
        ("plan --step 12", 2, "the steps are 1 to 11 of plan, 1 to 9 of execute"),
    ],
)
def test_a_step_that_is_unknown_or_out_of_turn_is_refused(
    words: str, status: int, message: str, planner: Command, folder: StateFolder
) -> None:
    done = planner("workflow", *words.split())
    assert done.status == status
    assert message in done.err


def test_only_the_first_step_needs_no_state_directory(planner: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PLANNER_STATE_DIR")
    assert "planner design init title=TEXT" in planner("workflow", "plan").out
    assert "--state-dir is missing" in planner("workflow", "plan", "--step", "2").err
