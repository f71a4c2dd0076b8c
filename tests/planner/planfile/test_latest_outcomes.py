"""Lookup of outcomes, and their match with the current plan; a mismatch names the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planner_command import Command, done, failed, with_test

from planner.errors import OutcomeFileError
from planner.planfile.latest_outcomes import FoundOutcomes, find_outcomes
from planner.planfile.loader import load_plan
from planner.planfile.tree import load_tree


@pytest.fixture
def command(command: Command) -> Command:
    command.plan(with_test("a"))
    return command


def find(given: Path | None = None) -> FoundOutcomes:
    """Return the outcomes of the current plan, from the file `given` or from its last run."""
    return find_outcomes(load_plan(Path("plan.yaml")), given)


def test_outcomes_below_the_root_are_found(command: Command) -> None:
    before = find()
    command.outcomes(done("a"))
    found = find()
    assert (before.document, before.verify) == (None, "pytest --planverify plan.yaml")
    assert found.plan_change is None
    assert found.document is not None
    assert found.document.outcome("a").success
    assert found.path == command.folder / ".planverify/plans/shop/outcomes.json"


def test_a_missing_outcome_file_or_a_folder_is_refused(command: Command) -> None:
    (command.folder / "out").mkdir()
    for name, message in {
        "gone.json": r"^gone\.json: the file does not exist; run first: pytest --planverify",
        "out": r"out: .* it cannot be read \(it is a directory\); check its path",
    }.items():
        with pytest.raises(OutcomeFileError, match=message):
            find(Path(name))


def test_outcomes_of_another_plan_are_refused_with_both_names(command: Command) -> None:
    other = [{"todo_list_id": "\x1b[2Jother", "path": "o.yaml", "digest": "sha256:1"}]
    given = command.outcomes(done("a"), plans=other, path="other.json")
    with pytest.raises(
        OutcomeFileError, match=r"are of 'other' \(o\.yaml\), not of 'shop' \(plan\.yaml\)"
    ) as refused:
        find(given)
    assert str(refused.value).isprintable()


def test_a_verdict_is_valid_while_its_todo_is_unchanged(command: Command) -> None:
    command.plan(with_test("a"), with_test("b"), with_test("c", dependencies=["b"]))
    command.outcomes(done("a"), failed("b"), {**failed("c"), "blocked_by": ["b"]})
    plan = Path("plan.yaml")
    plan.write_text(f"# a comment\n{plan.read_text()}")
    assert known() == (["a", "b", "c"], ())

    command.plan(
        with_test("new"),
        with_test("a", title="Better", status="claimed"),
        with_test("b"),
        with_test("c", dependencies=["b"]),
    )
    assert known() == (["a", "b", "c"], ("new",))

    command.plan(with_test("a"), with_test("b", timeout_seconds=9), with_test("c", dependencies=["b"]))
    assert known() == (["a"], ("b",)), "what b blocked is not known either"

    command.plan(with_test("a"), metadata={"network": "deny"})
    change = find().plan_change
    assert change is not None, "no verdict is left"
    assert "of another version of the plan: plan.yaml has changed" in change
    assert change.endswith("pytest --planverify plan.yaml")


def known() -> tuple[list[str], tuple[str, ...]]:
    """Return the todos with valid verdicts, and the changed todos."""
    found = find()
    assert found.document is not None
    assert found.plan_change is None
    return [each.todo_id for each in found.document.outcomes], found.changed_todos


def test_a_changed_sub_plan_makes_the_outcomes_stale(command: Command) -> None:
    command.plan(with_test("x"), path="sub.yaml", todo_list_id="sub")
    command.plan({"id": "phase", "sub_plan": "sub.yaml"})
    flat = load_tree(Path("plan.yaml")).load_all().flat()
    sub = {"todo_id": "phase", "path": "sub.yaml", "digest": flat.files["phase"].digest}
    gone = {"todo_id": "gone", "path": "gone.yaml", "digest": "sha256:00"}
    ref = {"todo_list_id": "shop", "path": "plan.yaml", "digest": flat.loaded.digest}
    command.outcomes(plans=[{**ref, "sub_plans": [sub, gone]}])
    assert find_outcomes(flat.loaded, None, flat.files).plan_change is None

    command.plan(with_test("y"), path="sub.yaml", todo_list_id="sub")
    changed = load_tree(Path("plan.yaml")).load_all().flat()

    change = find_outcomes(changed.loaded, None, changed.files).plan_change
    assert change is not None
    assert "sub.yaml has changed" in change


def test_of_a_run_of_several_plans_only_outcomes_of_this_plan_count(command: Command) -> None:
    loaded = load_plan(Path("plan.yaml"))
    command.outcomes(
        done("a"),
        done("z", plan="other"),
        plans=[
            {"todo_list_id": "other", "path": "o.yaml", "digest": "sha256:1"},
            {"todo_list_id": "shop", "path": "plan.yaml", "digest": loaded.digest},
        ],
    )

    document = find_outcomes(loaded).document

    assert document is not None
    assert [ref.path for ref in document.plans] == ["plan.yaml"]
    assert [entry.todo_id for entry in document.outcomes] == ["a"]


ALONE = {"step_id": "a", "success": False, "tests_passed": False, "metrics": {"duration_ms": 8500}}


def test_a_single_outcome_is_taken_for_the_current_plan(command: Command) -> None:
    (command.folder / "one.json").write_text(json.dumps(ALONE))
    document = find(Path("one.json")).document
    assert document is not None
    digest = load_plan(Path("plan.yaml")).digest
    assert [(ref.todo_list_id, ref.digest) for ref in document.plans] == [("shop", digest)]
    assert [(each.todo_id, each.success) for each in document.outcomes] == [("a", False)]
    assert (document.run.duration_ms, document.run.exit_status) == (8500, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step_id": "A"}, r"the plan 'shop' has no todo 'A'; did you mean 'a'\?$|name the id of a todo"),
        ({"success": None}, "success does not fit an outcome file"),
    ],
)
def test_a_single_outcome_that_does_not_fit_is_refused(
    command: Command, change: dict[str, object], message: str
) -> None:
    (command.folder / "one.json").write_text(json.dumps({**ALONE, **change}))
    with pytest.raises(OutcomeFileError, match=message):
        find(Path("one.json"))


@pytest.mark.parametrize(
    ("outcomes", "keys", "message"),
    [
        ([done("b")], {}, r"the plan 'shop' has no todo 'b'; name the id"),
        ([done("a"), done("a")], {}, r"outcomes\[1\] is the second of todo 'a'; keep one"),
        ([done("a", plan="inn")], {}, r"outcomes\[0\] names the plan 'inn', which is not among its plans"),
        ([done("a")], {"schema_version": 99}, "schema_version 99 is newer"),
    ],
)
def test_outcomes_that_do_not_fit_the_plan_are_refused_in_one_line(
    command: Command, outcomes: list[dict[str, object]], keys: dict[str, Any], message: str
) -> None:
    command.outcomes(*outcomes, **keys)
    with pytest.raises(OutcomeFileError, match=message) as refused:
        find()
    assert "\n" not in str(refused.value)
