"""Plans whose todos have sub-plans: one run over all levels, and the verdicts of the parents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, Verified, todo
from real_command import WORKER
from text_bundles import unpack_bundle

from planner.errors import PlannerError
from pytest_planverify.options import PlanArgument
from pytest_planverify.session.plans import load_plans

PHASES = Path(__file__).parents[2] / "fixtures/projects/phases.txt"
GREEN, RED = "pytest test_green.py", "pytest test_red.py"
FILES = {"test_green.py": "def test_it(): pass\n", "test_red.py": "def test_it(): assert 0\n"}
UP = {"root": ".."}
UNCONFIRMED = "--planverify-confirm=0"


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


def selected(example: Example, *todo_ids: str) -> PlanArgument:
    """Return the argument that selects these todos of the plan."""
    return PlanArgument(example.root / "plan.yaml", "plan.yaml", todo_ids, example.root)


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
    return red_example.verify(UNCONFIRMED)


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

    keys = ("kind", "verdict", "title", "reason", "isolation")
    told = tuple(check(green, "phase-1")[key] for key in keys)
    assert told == ("sub_plan", "passed", "phases/foundation.yaml", None, "parent")
    assert (phase_1["verified"], phase_2["verified"]) == (False, True)
    assert phase_1["success"] is phase_1["tests_passed"] is True
    assert green.verdicts["phase-2"] == {"sub_plan": "passed", "tests[0]": "passed"}
    assert green.verdicts["phase-3/cursor"] == "passed"


def test_the_line_of_a_parent_has_the_verdict_of_its_sub_plan(green: Verified, red: Verified):
    for run, word, parent in ((green, "passed", "phase-1"), (red, "failed", "phase-2")):
        (line,) = (each for each in str(run).splitlines() if each.split()[2:3] == [parent] and word in each)
        assert line.split()[1] == word


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


def test_a_failed_child_leaves_its_parent_unfinished_and_blocks_dependents_of_both(red: Verified):
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
    assert check(red, "phase-3")["reason"] == "blocked by phase-2"
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


def test_workers_and_keep_going_change_no_state_of_sub_plans(tmp_path: Path, red: Verified):
    options = ("-n", "2", "-p", "xdist.plugin", "--planverify-keep-going", UNCONFIRMED)
    run = without_undo(tmp_path).verify(*options)

    assert run.exit_code == 1, str(run)
    assert run.states == red.states
    for todo_id, state in red.states.items():
        if state in ("done", "test_failed"):
            assert run.verdicts[todo_id] == red.verdicts[todo_id]
    assert run.verdicts["phase-2/buffer-integration"] == "failed"
    assert run.verdicts["phase-3/words"] == "passed"


def test_a_parent_is_verified_with_all_its_todos_but_a_todo_alone(tmp_path: Path):
    run = without_undo(tmp_path).verify("plan.yaml::phase-2", "plan.yaml::phase-1/layout", UNCONFIRMED)

    asked = {
        "phase-2": "testing",
        "phase-2/buffer-tests": "done",
        "phase-2/buffer-impl": "test_failed",
        "phase-2/buffer-integration": "blocked",
        "phase-1/layout": "done",
    }
    assert run.states | asked == run.states, str(run)
    assert run.states["phase-1/text-impl"] == "pending", "no dependency is awaited that was not asked for"
    assert run.states["phase-1"] not in ("done", "pending")
    assert run.exit_code == 1


def test_last_failed_runs_todos_of_sub_plans_below_their_root(
    red_example: Example, red: Verified, tmp_path: Path
):
    again = red_example.copied_to(tmp_path / "copy").verify("--lf", UNCONFIRMED)

    assert again.tests("phase-2/buffer-impl")["tests/test_text.py::test_undo"] == "failed", str(again)
    assert again.check("phase-2/buffer-impl")["taken_from"] is None
    assert again.check("phase-1/text-impl")["taken_from"]
    assert again.exit_code == 1


def test_an_invalid_sub_plan_and_an_unknown_todo_are_errors_only_where_they_are_selected(tmp_path: Path):
    example = phases(tmp_path)
    example.write({"phases/foundation.yaml": "items: 1"})

    run = example.verify("plan.yaml::phase-2/buffer-impl", "plan.yaml::phase-3")

    assert run.exit_code == 0, str(run)
    assert run.states["phase-2/buffer-impl"] == run.states["phase-3"] == "done"
    assert not [todo_id for todo_id in run.states if todo_id.startswith("phase-1")]
    with pytest.raises(PlannerError, match=r"foundation\.yaml"):
        load_plans([selected(example, "phase-1/layout")])
    with pytest.raises(pytest.UsageError, match=r"did you mean plan\.yaml::phase-2/buffer-impl\?"):
        load_plans([selected(example, "phase-2/buffer-imp")])


def test_a_sub_plan_verified_beside_its_parent_has_the_same_states(tmp_path: Path):
    example = without_undo(tmp_path)
    target = tmp_path / "o.json"

    words = ("plan.yaml", "phases/buffer.yaml", "--planverify-outcomes=o.json", UNCONFIRMED)
    run = example.verify(*words, outcomes=target)

    assert run.document is not None
    found = {(entry["plan"], entry["todo_id"]): entry["state"] for entry in run.document["outcomes"]}
    alone = {todo_id: state for (plan, todo_id), state in found.items() if plan == "buffer-management"}
    assert alone["buffer-impl"] == "test_failed"
    for todo_id, state in alone.items():
        assert found["editor", f"phase-2/{todo_id}"] == state
    assert len(found) == 12 + 3
    assert (tmp_path / "diagnostics/phase-2__buffer-impl_failure_report.json").exists()
    assert (tmp_path / "buffer/diagnostics/buffer-impl_failure_report.json").exists()


@pytest.fixture(scope="module")
def parents(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return a run with a parent for each rule; two of them share a file, whose id is that of the plan."""
    made = "import pathlib\ndef test_it(): assert pathlib.Path('made').read_text() == 'made'\n"
    files = {"test_made.py": made, "make.py": "open('made', 'w').write('made')\n"}
    files["phases/test_green.py"] = FILES["test_green.py"]
    example = Example(tmp_path_factory.mktemp("parents"), {**FILES, **files})
    later = todo("later", requires_testing=False)
    one = sub_plan(example, "one", todo("a", GREEN))
    make = sub_plan(example, "make", todo("a", "python make.py"))
    partly = sub_plan(example, "partly", todo("a", GREEN), later)
    pending = sub_plan(example, "pending", later)
    claimed = sub_plan(example, "claimed", later | {"status": "claimed"})
    asking = sub_plan(example, "asking", todo("a", GREEN, manual=[{"question": "Nice?"}]), root=".")
    answer = {"plan": "one", "todo_id": "answered/a", "check_id": "manual[0]", "question": "Nice?"}
    answers = {"answers": [answer | {"answer": "yes", "by": "R"}]}
    example.write({".planverify/answers.json": json.dumps(answers)})
    example.plan(
        todo("red", RED, **one),
        todo("after_red", GREEN, after=("red",)),
        todo("shares", **one),
        todo("made", "pytest test_made.py", **make),
        todo("partly", **partly),
        todo("pending", **pending),
        todo("claimed", **claimed),
        todo("asking", **asking),
        todo("answered", **asking),
        todo_list_id="one",
    )
    return example.verify(UNCONFIRMED)


def test_integration_tests_of_a_parent_decide_its_verdict(parents: Verified):
    states = {todo_id: parents.states[todo_id] for todo_id in ("red", "red/a", "after_red")}
    assert states == {"red": "test_failed", "red/a": "done", "after_red": "blocked"}, str(parents)
    assert parents.verdicts["red"] == {"sub_plan": "passed", "tests[0]": "failed"}
    assert parents.outcomes["red"]["verified"] is True
    assert parents.category("red") == "TEST_REGRESSION"
    assert parents.exit_code == 1


def test_two_phases_may_share_one_file_and_sub_plans_may_share_an_id(parents: Verified):
    assert parents.states["red/a"] == parents.states["shares/a"] == parents.states["shares"] == "done"


def test_criteria_of_a_parent_run_after_its_todos(parents: Verified):
    assert (parents.states["made"], parents.states["made/a"]) == ("done", "done"), str(parents)


def test_a_parent_waits_for_its_pending_todos(parents: Verified):
    states = parents.states
    assert (states["partly"], states["partly/a"], states["partly/later"]) == ("testing", "done", "pending")
    assert check(parents, "partly")["verdict"] == "not_run"
    assert check(parents, "partly")["reason"] == "partly/later not done yet"
    assert (states["pending"], states["pending/later"]) == ("pending", "pending")
    assert (states["claimed"], states["claimed/later"]) == ("done", "done")


def test_questions_of_a_sub_plan_are_answered_in_the_top_plan(parents: Verified):
    assert (parents.states["asking"], parents.states["asking/a"]) == ("testing", "testing")
    assert check(parents, "asking")["verdict"] == "needs_human"
    assert check(parents, "asking")["reason"] == "asking/a must be answered by a person"
    assert parents.states["answered"] == "done"


def test_a_todo_counts_as_claimed_when_it_or_a_parent_is_or_a_claimed_todo_depends_on_it(tmp_path: Path):
    example = Example(tmp_path, FILES)
    parent = sub_plan(example, "parent", todo("a", GREEN, status="open"), todo("b", RED))
    child = sub_plan(example, "child", todo("a", GREEN, status="claimed"), todo("b", RED))
    first = sub_plan(example, "first", todo("a", RED))
    second = sub_plan(example, "second", todo("b", GREEN, status="claimed"), todo("c", GREEN))
    example.plan(
        todo("parent", status="claimed", **parent),
        todo("child", status="open", **child),
        todo("first", **first),
        todo("second", after=("first",), **second),
        todo("other", RED),
    )

    run = example.verify("--planverify-scope=claimed", UNCONFIRMED)

    assert run.states == {
        "parent": "testing",
        "parent/a": "done",
        "parent/b": "test_failed",
        "child/a": "done",
        "first": "testing",
        "first/a": "test_failed",
        "second/b": "blocked",
    }, str(run)
    assert run.exit_code == 1
