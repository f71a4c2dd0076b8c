"""Plans whose todos have sub-plans: one run over all levels, and the verdicts of the parents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, Verified, todo
from real_command import WORKER
from text_bundles import unpack_bundle

from planner.planfile.tree import load_tree

PHASES = Path(__file__).parents[2] / "fixtures/projects/phases.txt"
GREEN, RED = "pytest test_green.py", "pytest test_red.py"
FILES = {"test_green.py": "def test_it(): pass\n", "test_red.py": "def test_it(): assert 0\n"}
UP = {"root": ".."}


def phases(folder: Path) -> Example:
    return Example(unpack_bundle(PHASES, folder))


def without_undo(folder: Path) -> Example:
    """Return the same project with one failing todo in the second phase."""
    example = phases(folder)
    store = folder / "buffer/store.py"
    store.write_text(store.read_text().replace("self.undone.append(self.lines.pop())", "pass"))
    return example


def sub_plan(example: Example, name: str, *todos: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Write a plan of these todos; return the keys of a parent that names it."""
    example.plan(*todos, path=f"phases/{name}.yaml", todo_list_id=name, **(UP | keys))
    return {"sub_plan": f"phases/{name}.yaml"}


def check(run: Verified, todo_id: str) -> dict[str, Any]:
    return run.check(todo_id, "sub_plan")


@pytest.fixture(scope="module")
def green(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    return phases(tmp_path_factory.mktemp("green")).verify()


@pytest.fixture(scope="module")
def red_example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return without_undo(tmp_path_factory.mktemp("red"))


@pytest.fixture(scope="module")
def red(red_example: Example) -> Verified:
    return red_example.verify()


def test_the_todos_of_all_levels_are_verified_below_their_parents(green: Verified):
    assert green.exit_code == 0, str(green)
    assert list(green.outcomes) == [
        *("phase-1", "phase-1/layout", "phase-1/text-impl"),
        *("phase-2", "phase-2/buffer-tests", "phase-2/buffer-impl", "phase-2/buffer-integration"),
        *("phase-3", "phase-3/cursor", "phase-3/cursor/left-right", "phase-3/cursor/up-down"),
        "phase-3/words",
    ]
    assert set(green.states.values()) == {"done"}
    assert {outcome["plan"] for outcome in green.outcomes.values()} == {"editor"}


def test_the_verdict_of_a_parent_combines_its_todos_and_its_criteria(green: Verified):
    phase_1, phase_2 = green.outcomes["phase-1"], green.outcomes["phase-2"]

    assert check(green, "phase-1") | {"duration_ms": 0} == {
        "id": "sub_plan",
        "kind": "sub_plan",
        "verdict": "passed",
        "title": "phases/foundation.yaml",
        "duration_ms": 0,
        "reason": None,
        "cmd": None,
        "isolation": "parent",
        "timeout_seconds": None,
        "exit_code": None,
        "runs": None,
        "reds": None,
        "witness": None,
        "tests": [],
        "fixture": None,
        "at_base": None,
        "events": [],
        "quarantined": None,
        "quarantine_ended": None,
        "taken_from": None,
    }
    assert (phase_1["verified"], phase_2["verified"]) == (False, True)
    assert phase_1["success"] is phase_1["tests_passed"] is True
    assert green.verdicts["phase-2"] == {"sub_plan": "passed", "tests[0]": "passed"}
    assert green.verdicts["phase-3/cursor"] == "passed"


def test_commands_of_all_levels_run_in_workers(green: Verified):
    assert {entry["isolation"] for outcome in green.outcomes.values() for entry in outcome["checks"]} == {
        WORKER,
        "parent",
    }
    assert green.tests("phase-1/text-impl") == {"tests/test_text.py::test_lines": "passed"}
    assert set(green.tests("phase-2/buffer-impl")) == {
        "tests/test_text.py::test_lines",
        "tests/test_text.py::test_undo",
    }
    assert green.outcomes["phase-2/buffer-impl"]["recorded"] == {"lines": [3.0]}


def test_todos_are_indented_below_their_parents_which_show_progress(green: Verified, red: Verified):
    _, _, summary = green.output.partition("\n\n")
    lines = [line.rstrip() for line in summary.splitlines()]
    (parent,) = (line for line in lines if " phase-2 " in line)
    (child,) = (line for line in lines if " buffer-impl " in line)
    (leaf,) = (line for line in lines if " left-right " in line)

    assert "Phase 2: Buffer Management (3/3)" in parent
    assert "not verified" not in green.output
    assert child.index("buffer-impl") == parent.index("phase-2") + 2
    assert leaf.index("left-right") == parent.index("phase-2") + 4
    assert "! in progress  phase-2" in red.output
    assert "Phase 2: Buffer Management (1/3)" in red.output
    assert "sub_plan failed: phase-2/buffer-impl failed" in red.output
    assert "4 done, 1 failed, 1 in progress, 6 blocked" in red.output


def test_a_failed_child_leaves_its_parent_unfinished_and_blocks_dependents(red: Verified):
    assert red.exit_code == 1, str(red)
    assert red.states == {
        "phase-1": "done",
        "phase-1/layout": "done",
        "phase-1/text-impl": "done",
        "phase-2": "testing",
        "phase-2/buffer-tests": "done",
        "phase-2/buffer-impl": "test_failed",
        "phase-2/buffer-integration": "blocked",
        "phase-3": "blocked",
        "phase-3/cursor": "blocked",
        "phase-3/cursor/left-right": "blocked",
        "phase-3/cursor/up-down": "blocked",
        "phase-3/words": "blocked",
    }
    parent = red.outcomes["phase-2"]
    assert (parent["success"], parent["verified"], parent["tests_passed"]) == (False, False, False)
    assert (parent["failure_evidence"], parent["failures"]) == (None, [])
    assert check(red, "phase-2")["verdict"] == "failed"
    assert check(red, "phase-2")["reason"] == "phase-2/buffer-impl failed"
    assert (check(red, "phase-3")["verdict"], check(red, "phase-3")["reason"]) == (
        "blocked",
        "blocked by phase-2",
    )


def test_a_failed_parent_blocks_all_todos_of_dependent_parents(red: Verified):
    blocked_by = {name: outcome["blocked_by"] for name, outcome in red.outcomes.items()}

    assert blocked_by["phase-2/buffer-integration"] == ["phase-2/buffer-impl"]
    for name in ("phase-3", "phase-3/cursor", "phase-3/cursor/left-right", "phase-3/words"):
        assert blocked_by[name] == ["phase-2"], name


def test_failure_reports_of_sub_plans_are_written_below_the_top_root(red_example: Example, red: Verified):
    (path,) = (red_example.root / "diagnostics").glob("*.json")
    report = json.loads(path.read_text())

    assert path.name == "phase-2__buffer-impl_failure_report.json"
    assert report["todo"]["id"] == "phase-2/buffer-impl"
    assert report["todo"]["dependencies"] == ["phase-2/buffer-tests", "phase-1"]
    assert report["plan"]["todo_list_id"] == "editor"
    assert report["plan"]["path"].endswith("phases/buffer.yaml")
    assert report["failures"][0]["rerun"] == "pytest --planverify plan.yaml::phase-2/buffer-impl"
    assert not (red_example.root / "buffer/diagnostics").exists()


def test_workers_do_not_change_verdicts_of_sub_plans(tmp_path: Path, red: Verified):
    other = without_undo(tmp_path).verify("-n", "2", "-p", "xdist.plugin", measured=False)

    assert other.exit_code == 1, str(other)
    assert other.states == red.states
    assert other.verdicts == red.verdicts


def test_keep_going_runs_the_checks_of_blocked_todos_in_sub_plans(tmp_path: Path, red: Verified):
    run = without_undo(tmp_path).verify("--planverify-keep-going")

    assert run.states == red.states
    assert run.verdicts["phase-2/buffer-integration"] == "failed"
    assert run.verdicts["phase-3/words"] == "passed"


def test_a_single_todo_of_a_sub_plan_can_be_verified(tmp_path: Path):
    run = without_undo(tmp_path).verify("plan.yaml::phase-2/buffer-integration")

    assert run.states["phase-2/buffer-integration"] == "test_failed", str(run)
    assert run.exit_code == 1
    assert run.states["phase-2/buffer-impl"] == run.states["phase-1/text-impl"] == "pending"
    assert run.states["phase-2"] not in ("done", "pending")


def test_a_parent_is_verified_with_all_its_todos(tmp_path: Path):
    run = without_undo(tmp_path).verify("plan.yaml::phase-2", "plan.yaml::phase-1/layout")

    asked = {
        "phase-2": "testing",
        "phase-2/buffer-tests": "done",
        "phase-2/buffer-impl": "test_failed",
        "phase-2/buffer-integration": "blocked",
        "phase-1/layout": "done",
    }
    assert run.states | asked == run.states, str(run)
    assert run.states["phase-1/text-impl"] == "pending"


def test_a_todo_that_no_sub_plan_has_is_a_usage_error(tmp_path: Path):
    example = phases(tmp_path)

    near = example.verify("plan.yaml::phase-2/buffer-imp")
    below = example.verify("plan.yaml::phase-1/layout/deeper")

    assert (near.exit_code, below.exit_code) == (4, 4)
    assert "did you mean plan.yaml::phase-2/buffer-impl?" in near.output
    assert "the plan has no todo 'phase-1/layout/deeper'" in below.output


def test_last_failed_runs_todos_of_sub_plans_below_their_root(tmp_path: Path):
    example = without_undo(tmp_path)
    example.verify()

    again = example.verify("--lf")

    assert again.tests("phase-2/buffer-impl")["tests/test_text.py::test_undo"] == "failed", str(again)
    assert again.check("phase-2/buffer-impl")["taken_from"] is None
    assert again.check("phase-1/text-impl")["taken_from"]
    assert again.exit_code == 1


def test_an_invalid_sub_plan_does_not_affect_todos_of_other_sub_plans(tmp_path: Path):
    example = phases(tmp_path)
    (example.root / "phases" / "foundation.yaml").write_text("items: 1")

    run = example.verify("plan.yaml::phase-2/buffer-impl")

    assert run.exit_code == 0, str(run)
    assert run.states == {"phase-2/buffer-impl": "done"}
    assert example.verify().exit_code == 4


def test_collect_only_shows_the_tree_of_sub_plans(tmp_path: Path):
    run = phases(tmp_path).verify("--collect-only")

    assert run.exit_code == 0, str(run)
    assert "├─ phase-2  Phase 2: Buffer Management  (3 todos, 1 criterion, 1 test)" in run.output
    assert "│  ├─ buffer-impl  The buffer  (2 criteria, 2 tests)" in run.output
    assert "   │  └─ up-down  Up and down  (1 criterion, 2 tests)" in run.output


def test_a_plan_and_its_sub_plan_can_be_verified_together(tmp_path: Path):
    example = without_undo(tmp_path)
    target = tmp_path / "o.json"

    run = example.verify("plan.yaml", "phases/buffer.yaml", "--planverify-outcomes=o.json", outcomes=target)

    assert run.document is not None
    found = {(entry["plan"], entry["todo_id"]): entry["state"] for entry in run.document["outcomes"]}
    assert (
        found["editor", "phase-2/buffer-impl"] == found["buffer-management", "buffer-impl"] == "test_failed"
    )
    assert len(found) == 12 + 3
    assert (tmp_path / "diagnostics/phase-2__buffer-impl_failure_report.json").exists()
    assert (tmp_path / "buffer/diagnostics/buffer-impl_failure_report.json").exists()


def test_a_sub_plan_run_alone_has_the_same_states(tmp_path: Path, red: Verified):
    example = without_undo(tmp_path)

    alone = example.verify("phases/buffer.yaml", outcomes=tmp_path / "buffer/.planverify/outcomes.json")

    below = {name: state for name, state in red.states.items() if name.startswith("phase-2/")}
    assert {f"phase-2/{name}": state for name, state in alone.states.items()} == below


def test_errors_in_all_plan_files_are_reported_before_any_test_runs(tmp_path: Path):
    example = phases(tmp_path)
    example.write({"phases/foundation.yaml": "todo_list_id: f\nitmes: []\n"})
    (tmp_path / "phases/cursor.json").unlink()

    run = example.verify()

    assert run.exit_code == 4, str(run)
    assert "phases/foundation.yaml:2:1 itmes:" in run.output
    assert "phases/navigation.yaml:6:15 items[0].sub_plan: the file 'phases/cursor.json'" in run.output
    assert "Traceback" not in run.output
    assert not (tmp_path / ".planverify").exists()


def test_only_selected_sub_plans_must_be_valid(tmp_path: Path):
    example = phases(tmp_path)
    example.write({"phases/foundation.yaml": "broken"})

    assert example.verify("plan.yaml::phase-3").exit_code == 0
    assert example.verify("plan.yaml::phase-1/layout").exit_code == 4


def test_integration_tests_of_a_parent_decide_its_verdict(tmp_path: Path):
    example = Example(tmp_path, FILES)
    keys = sub_plan(example, "one", todo("a", GREEN))
    example.plan(todo("p", RED, **keys), todo("next", GREEN, after=("p",)))

    run = example.verify()

    assert run.states == {"p": "test_failed", "p/a": "done", "next": "blocked"}, str(run)
    assert run.verdicts["p"] == {"sub_plan": "passed", "tests[0]": "failed"}
    assert run.outcomes["p"]["verified"] is True
    assert run.category("p") == "TEST_REGRESSION"
    assert run.exit_code == 1


def test_criteria_of_a_parent_run_after_its_todos(tmp_path: Path):
    text = "import pathlib\ndef test_it(): assert pathlib.Path('made').read_text() == 'made'\n"
    example = Example(tmp_path, {"test_made.py": text, "make.py": "open('made', 'w').write('made')\n"})
    keys = sub_plan(example, "one", todo("a", "python make.py"))
    example.plan(todo("p", "pytest test_made.py", **keys))

    assert example.verify().states == {"p": "done", "p/a": "done"}


def test_questions_of_a_sub_plan_are_answered_in_the_top_plan(tmp_path: Path):
    example = Example(tmp_path, FILES)
    keys = sub_plan(example, "one", todo("a", GREEN, manual=[{"question": "Nice?"}]), root=".")
    example.write({"phases/test_green.py": FILES["test_green.py"]})
    example.plan(todo("p", **keys))

    asked = example.verify()
    answer = {"plan": "example", "todo_id": "p/a", "check_id": "manual[0]", "question": "Nice?"}
    example.write(
        {".planverify/answers.json": json.dumps({"answers": [answer | {"answer": "yes", "by": "R"}]})}
    )
    answered = example.verify()

    assert (asked.exit_code, answered.exit_code) == (11, 0), f"{asked}\n{answered}"
    assert asked.states == {"p": "testing", "p/a": "testing"}
    assert check(asked, "p")["verdict"] == "needs_human"
    assert check(asked, "p")["reason"] == "p/a must be answered by a person"


@pytest.mark.parametrize(("parent_status", "child_status"), [("claimed", "open"), ("open", "claimed")])
def test_a_todo_counts_as_claimed_when_it_or_a_parent_is(
    parent_status: str, child_status: str, tmp_path: Path
):
    example = Example(tmp_path, FILES)
    keys = sub_plan(example, "one", todo("a", GREEN, status=child_status), todo("b", RED))
    example.plan(todo("p", status=parent_status, **keys), todo("other", RED))

    run = example.verify("--planverify-scope=claimed")

    wanted = {"p", "p/a", "p/b"} if parent_status == "claimed" else {"p/a"}
    assert set(run.states) == wanted, str(run)
    assert run.exit_code == (1 if parent_status == "claimed" else 0)


def test_scope_claimed_includes_the_dependencies_of_a_claimed_todo(tmp_path: Path):
    example = Example(tmp_path, FILES)
    one = sub_plan(example, "one", todo("a", RED))
    two = sub_plan(example, "two", todo("b", GREEN, status="claimed"), todo("c", GREEN))
    example.plan(todo("p1", **one), todo("p2", after=("p1",), **two))

    run = example.verify("--planverify-scope=claimed")

    assert run.states == {"p1": "testing", "p1/a": "test_failed", "p2/b": "blocked"}, str(run)
    assert run.exit_code == 1


def test_a_parent_waits_for_its_pending_todos(tmp_path: Path):
    example = Example(tmp_path, FILES)
    later = todo("later", requires_testing=False)
    example.plan(todo("p", **sub_plan(example, "one", todo("a", GREEN), later)))
    partly = example.verify()
    example.plan(todo("p", **sub_plan(example, "one", later)))
    not_at_all = example.verify()
    example.plan(todo("p", **sub_plan(example, "one", later | {"status": "claimed"})))
    by_word = example.verify()

    assert partly.states == {"p": "testing", "p/a": "done", "p/later": "pending"}, str(partly)
    assert check(partly, "p")["verdict"] == "not_run"
    assert check(partly, "p")["reason"] == "p/later not done yet"
    assert not_at_all.states == {"p": "pending", "p/later": "pending"}
    assert by_word.states == {"p": "done", "p/later": "done"}
    assert by_word.exit_code == 5, str(by_word)


def test_two_phases_may_share_one_file_and_sub_plans_may_share_an_id(tmp_path: Path):
    example = Example(tmp_path, FILES)
    keys = sub_plan(example, "one", todo("a", GREEN))
    example.plan(todo("p1", **keys), todo("p2", **keys), todo_list_id="one")

    assert set(example.verify().states) == {"p1", "p1/a", "p2", "p2/a"}


def test_the_journal_ends_with_the_state_of_each_todo(red_example: Example, red: Verified):
    (folder,) = red_example.runs
    records = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    judged = [record for record in records if record["record"] == "todo_judged"]

    assert {record["todo_id"]: record["state"] for record in judged} == red.states
    assert {record["plan"] for record in judged} == {"editor"}
    assert judged[-1]["blocked_by"] == ["phase-2"]
    assert records[-1]["record"] == "run_finished"
    assert records[-1]["exit_status"] == 1


def test_the_example_project_loads_without_a_run(tmp_path: Path):
    folder = unpack_bundle(PHASES, tmp_path)
    flat = load_tree(folder / "plan.yaml", boundary=folder).load_all().flat()
    assert len(flat.loaded.plan.items) == 12
