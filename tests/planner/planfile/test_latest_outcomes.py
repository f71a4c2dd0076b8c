"""Lookup of outcomes, and their match with the current plan; a mismatch names the remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planner_command import Command, done, failed, with_test

from planner.errors import ForeignOutcomesError, OutcomeFileError
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.loader import load_plan
from planner.planfile.tree import load_tree

OLD = {"todo_list_id": "shop", "path": "plan.yaml"}


@pytest.fixture
def command(command: Command) -> Command:
    command.plan(with_test("a"))
    return command


def test_outcomes_below_the_root_are_found(command: Command) -> None:
    loaded = load_plan(Path("plan.yaml"))
    before = find_outcomes(loaded)
    command.outcomes(done("a"))
    found = find_outcomes(loaded)

    assert (before.document, before.verify) == (None, "pytest --planverify plan.yaml")
    assert found.plan_change is None
    assert found.document is not None
    assert found.document.outcome("a").success
    assert found.path == command.folder / ".planverify/plans/shop/outcomes.json"


def test_a_missing_outcome_file_or_a_folder_is_refused(command: Command) -> None:
    (command.folder / "out").mkdir()
    for name, message in {
        "gone.json": r"^gone\.json: the file does not exist; run first",
        "out": "out: this is a folder; name the outcome file in it",
    }.items():
        with pytest.raises(OutcomeFileError, match=message):
            find_outcomes(load_plan(Path("plan.yaml")), Path(name))


def test_outcomes_of_another_plan_are_refused_with_both_names(command: Command) -> None:
    other = [{"todo_list_id": "other", "path": "o.yaml", "digest": "sha256:1"}]
    given = command.outcomes(done("a"), plans=other, path="other.json")

    with pytest.raises(
        ForeignOutcomesError, match=r"are of 'other' \(o\.yaml\), not of 'shop' \(plan\.yaml\)"
    ):
        find_outcomes(load_plan(Path("plan.yaml")), given)


def test_outcomes_of_an_older_plan_are_reported_with_both_digests_and_a_remedy(command: Command) -> None:
    old = load_plan(Path("plan.yaml"))
    command.plan(with_test("b"))
    loaded = load_plan(Path("plan.yaml"))

    found = find_outcomes(loaded, command.outcomes(done("a"), plans=[{**OLD, "digest": old.digest}]))

    assert found.plan_change is not None
    assert "of another version of the plan: plan.yaml has changed" in found.plan_change
    assert found.plan_change.endswith("pytest --planverify plan.yaml")


def test_a_verdict_is_valid_while_its_todo_is_unchanged(command: Command) -> None:
    command.plan(with_test("a"), with_test("b"), with_test("c", dependencies=["b"]))
    command.outcomes(done("a"), failed("b"), {**failed("c"), "blocked_by": ["b"]})
    plan = Path("plan.yaml")
    plan.write_text(f"# a comment\n{plan.read_text()}")
    assert known(command) == (["a", "b", "c"], ())

    command.plan(
        with_test("new"),
        with_test("a", title="Better", status="claimed"),
        with_test("b"),
        with_test("c", dependencies=["b"]),
    )
    assert known(command) == (["a", "b", "c"], ("new",))

    command.plan(with_test("a"), with_test("b", timeout_seconds=9), with_test("c", dependencies=["b"]))
    assert known(command) == (["a"], ("b",)), "what b blocked is not known either"

    command.plan(with_test("a"), metadata={"network": "deny"})
    assert find_outcomes(load_plan(plan)).plan_change is not None, "no verdict is left"


def known(command: Command) -> tuple[list[str], tuple[str, ...]]:
    found = find_outcomes(load_plan(command.folder / "plan.yaml"))
    assert found.document is not None
    assert found.plan_change is None
    return [each.todo_id for each in found.document.outcomes], found.changed_todos


def test_a_changed_sub_plan_makes_the_outcomes_stale(command: Command) -> None:
    command.plan(with_test("x"), path="sub.yaml", todo_list_id="sub")
    command.plan({"id": "phase", "sub_plan": "sub.yaml"})
    flat = load_tree(Path("plan.yaml")).load_all().flat()
    sub = {"todo_id": "phase", "path": "sub.yaml", "digest": flat.files["phase"].digest}
    gone = {"todo_id": "gone", "path": "gone.yaml", "digest": "sha256:00"}
    ref = {
        "todo_list_id": "shop",
        "path": "plan.yaml",
        "digest": flat.loaded.digest,
        "sub_plans": [sub, gone],
    }
    command.outcomes(plans=[ref])
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
            {"todo_list_id": "shop", "path": "old.yaml", "digest": "sha256:2"},
            {"todo_list_id": "shop", "path": "plan.yaml", "digest": loaded.digest},
        ],
    )

    document = find_outcomes(loaded).document

    assert document is not None
    assert [ref.path for ref in document.plans] == ["plan.yaml"]
    assert [entry.todo_id for entry in document.outcomes] == ["a"]


def test_a_newer_outcome_format_is_refused_in_one_line(command: Command) -> None:
    path = command.outcomes(done("a"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 99}))

    with pytest.raises(OutcomeFileError, match="schema_version 99 is newer") as raised:
        find_outcomes(load_plan(Path("plan.yaml")))
    assert "\n" not in str(raised.value)


def test_control_characters_in_plan_names_are_removed(command: Command) -> None:
    command.outcomes(plans=[{"todo_list_id": "x\x1b[2J\ny", "path": "o.yaml", "digest": "sha256:1"}])

    with pytest.raises(ForeignOutcomesError) as raised:
        find_outcomes(load_plan(Path("plan.yaml")))
    assert str(raised.value).isprintable()


ALONE = {"step_id": "a", "success": False, "tests_passed": False, "metrics": {"duration_ms": 8500}}


def test_a_single_outcome_is_taken_for_the_current_plan(command: Command) -> None:
    (command.folder / "one.json").write_text(json.dumps(ALONE))
    loaded = load_plan(Path("plan.yaml"))

    document = find_outcomes(loaded, Path("one.json")).document

    assert document is not None
    assert [(ref.todo_list_id, ref.digest) for ref in document.plans] == [("shop", loaded.digest)]
    assert [(each.todo_id, each.success) for each in document.outcomes] == [("a", False)]
    assert (document.run.duration_ms, document.run.exit_status) == (8500, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step_id": "A"}, r"the plan 'shop' has no todo 'A'; did you mean 'a'\?$|name the id of a todo"),
        ({"step_id": "elsewhere"}, "has no todo 'elsewhere'; name the id of a todo of this plan"),
        ({"plan": "other"}, r"the outcomes are of 'other' \(plan\.yaml\), not of 'shop'"),
        ({"success": None}, "success does not fit an outcome file"),
    ],
)
def test_a_single_outcome_that_does_not_fit_is_refused(
    command: Command, change: object, message: str
) -> None:
    (command.folder / "one.json").write_text(json.dumps({**ALONE, **dict(change)}))  # type: ignore[call-overload]

    with pytest.raises(OutcomeFileError, match=message):
        find_outcomes(load_plan(Path("plan.yaml")), Path("one.json"))


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ([done("b")], r"the plan 'shop' has no todo 'b'; name the id"),
        ([done("a"), done("a")], r"outcomes\[1\] is the second of todo 'a'; keep one"),
        (
            [done("a", plan="shops")],
            r"outcomes\[0\] names the plan 'shops', which is not among its plans",
        ),
        ([done("a/b")], "has no todo 'a/b'"),
    ],
)
def test_an_outcome_without_a_matching_todo_is_refused(
    command: Command, outcomes: list[dict[str, object]], message: str
) -> None:
    command.outcomes(*outcomes)

    with pytest.raises(OutcomeFileError, match=message):
        find_outcomes(load_plan(Path("plan.yaml")), None, {})
