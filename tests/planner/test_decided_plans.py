"""What is decided leads to plans that are fit to be worked on, with and without a person's approval."""

import pytest

from planner.model.outcome import Since
from planner.model.plan import Plan, Policy
from planner.model.taxonomy import Category
from planner.planfile.loader import dump_plan, load_plan
from planner.planfile.validation import validate_plan
from planner.rules.approving import edits_to_apply
from planner.rules.deciding import decide
from planner.rules.editing import apply_edits, undo
from planner.testing import create_sample_todo, sample_document, simulate_failure

LOCATION = {"path": "src/a.py", "line": 1, "function": "f"}
ROUTING = {"implementation_bug": "coder", "spec_mismatch": "architect"}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("def f():\n    return 1\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_t1.py").write_text(
        "from src.a import f\n\n\ndef test_it():\n    assert f() == 2\n"
    )
    return tmp_path


@pytest.mark.parametrize("since", [Since.UNKNOWN, Since.PRE_EXISTING])
@pytest.mark.parametrize("approved", [(), ("all",)], ids=["unapproved", "approved"])
@pytest.mark.parametrize("category", Category)
def test_a_sound_plan_stays_sound_whatever_failed(project, category, approved, since):
    todo = create_sample_todo("t1", failure_routing=ROUTING)
    plan = Plan(todo_list_id="p1", metadata=Policy(auto_fix_mode=True), items=(todo,))
    outcome = simulate_failure(todo, category, "it broke", location=LOCATION, since=since)
    decisions = decide(plan, sample_document(plan, [outcome]), approved=approved)

    edits = [edit for repair in decisions.repairs for edit in edits_to_apply(repair, approved)[0]]
    revised = apply_edits(plan, edits)

    path = project / "plan.yaml"
    path.write_text(dump_plan(revised.plan, format="yaml"))
    assert load_plan(path, boundary=project).plan == revised.plan
    assert [(found.rule, found.message) for found in validate_plan(path, boundary=project)] == []
    assert undo(revised.plan, revised.changes) == plan
