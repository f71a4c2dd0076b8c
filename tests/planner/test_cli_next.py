"""`planner next`: decided from files, shown, printed for programs, written into a new plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from planner_command import Command, done, failed, pending, undecided, with_test

from planner.cli import next_plan
from planner.edges.json_schemas import schema
from planner.errors import EditConflictError
from planner.planfile.loader import load_plan


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, monkeypatch, capsys)


@pytest.fixture
def red(command: Command) -> Command:
    """One todo is red, one is blocked by it, one waits for an answer, one is ready."""
    command.plan(
        with_test("a"),
        with_test("b", dependencies=["a"]),
        with_test("c"),
        metadata={"auto_fix_mode": True},
    )
    command.outcomes(failed("a"), pending("b", state="blocked", blocked_by=["a"]), pending("c"))
    return command


def test_where_no_plan_is_named_the_usual_one_is_meant(red: Command) -> None:
    named = red("next", "plan.yaml")
    assert (named.status, named.out) == (0, red("next").out)
    assert red("status").out == red("status", "plan.yaml").out
    assert red("explain", "a").out == red("explain", "a", "--plan", "plan.yaml").out


def test_a_red_todo_gets_a_branch(red: Command) -> None:
    ran = red("next", "plan.yaml")

    assert ran.status == 0
    assert "make the branch a_branch_01 for the coder" in ran.out
    assert "b by a" in ran.out
    assert "Ready (1)\n  c" in ran.out


def test_json_is_the_document_of_its_schema_and_always_the_same_bytes(red: Command) -> None:
    ran = red("next", "plan.yaml", "--json")

    Draft202012Validator(schema("decision")).validate(ran.json)
    assert ran.out == red("next", "plan.yaml", "--json").out
    assert ran.out == json.dumps(ran.json, indent=2, sort_keys=True) + "\n"
    (repair,) = ran.json["repairs"]
    assert "status" not in repair["branch"], "a todo is written as a plan file writes it"
    assert repair["branch"]["x-planner"]["attempts"] == 0


def test_output_writes_a_plan_with_the_branch_and_leaves_the_old_one(red: Command) -> None:
    before = Path("plan.yaml").read_bytes()

    ran = red("next", "plan.yaml", "--output", "next.yaml")

    assert ran.status == 0
    assert [todo.id for todo in load_plan(Path("next.yaml")).plan.items] == ["a", "a_branch_01", "b", "c"]
    assert Path("plan.yaml").read_bytes() == before
    assert "wrote next.yaml: " in ran.out
    assert "pytest --planverify next.yaml" in ran.out


def test_with_json_what_was_written_is_told_beside(red: Command) -> None:
    ran = red("next", "plan.yaml", "--json", "--output", "next.yaml")

    assert ran.json["repairs"]
    assert ran.err.startswith("planner: wrote next.yaml: ")


@pytest.mark.parametrize("name", ["plan.yaml", "there.yaml"])
def test_no_file_is_ever_replaced(red: Command, name: str) -> None:
    Path("there.yaml").write_text("mine")
    before = Path(name).read_bytes()

    ran = red("next", "plan.yaml", "--output", name)

    assert ran.status == 4
    taken = "there is such a file already, and none is replaced; name a new one, or remove it"
    assert ran.err == f"planner: {name}: cannot be written: {taken}\n"
    assert Path(name).read_bytes() == before


def test_a_folder_that_is_not_there_is_made(red: Command) -> None:
    assert red("next", "plan.yaml", "--output", "new/next.yaml").status == 0
    assert Path("new/next.yaml").is_file()


def test_without_edits_the_new_plan_is_the_old_one(command: Command) -> None:
    command.plan(with_test("a"))
    command.outcomes(done("a"))

    ran = command("next", "plan.yaml", "--output", "next.yaml")

    assert ran.status == 0
    assert "no edit applies: the plan is unchanged" in ran.out
    assert Path("next.yaml").read_text() == Path("plan.yaml").read_text()


@pytest.fixture
def asking(red: Command) -> Command:
    """The same, in a plan that asks before it makes a branch."""
    red.plan(with_test("a"), with_test("b", dependencies=["a"]))
    red.outcomes(failed("a"), pending("b", state="blocked", blocked_by=["a"]))
    return red


def test_what_is_not_approved_is_left_out_and_only_a_person_can_go_on(asking: Command) -> None:
    ran = asking("next", "plan.yaml", "--output", "next.yaml")

    assert ran.status == 11
    assert "planner next plan.yaml --approve a_branch_01 --output FILE" in ran.out
    assert "needs --approve a_branch_01" in " ".join(ran.out.split())
    assert [todo.id for todo in load_plan(Path("next.yaml")).plan.items] == ["a", "b"]


@pytest.mark.parametrize("approval", ["a_branch_01", "all"])
def test_what_is_approved_is_applied(asking: Command, approval: str) -> None:
    ran = asking("next", "plan.yaml", "--approve", approval, "--output", "next.yaml")

    assert ran.status == 0
    assert "a_branch_01" in [todo.id for todo in load_plan(Path("next.yaml")).plan.items]


def test_an_approval_of_nothing_is_refused(asking: Command) -> None:
    ran = asking("next", "plan.yaml", "--approve", "a_branch_7", "--output", "next.yaml")

    assert ran.status == 2
    assert "did you mean 'a_branch_01'?" in ran.err
    assert not Path("next.yaml").exists()


def test_one_todo_can_be_asked_about(red: Command) -> None:
    ran = red("next", "plan.yaml", "--todo", "b", "--json")

    assert (ran.json["repairs"], ran.json["ready"]) == ([], [])
    assert [each["todo_id"] for each in ran.json["blocked"]] == ["b"]


def test_about_an_unknown_todo_the_nearest_is_named(red: Command) -> None:
    ran = red("next", "plan.yaml", "--todo", "bb")

    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "planner: there is no todo 'bb' in the plan; did you mean 'b'?\n"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (done("a"), 0),
        (undecided("a", "needs_human"), 11),
        (failed("a", "ENVIRONMENT_ERROR", owner="environment"), 10),
        (failed("a", "SANDBOX_VIOLATION"), 13),
        (failed("a", "BUDGET_EXCEEDED", owner="plan"), 12),
    ],
    ids=["done", "question", "environment", "violation", "budget"],
)
def test_the_exit_status_tells_what_stands_in_the_way(
    command: Command, outcome: dict[str, object], status: int
) -> None:
    command.plan(with_test("a"), metadata={"auto_fix_mode": True})
    command.outcomes(outcome)

    assert command("next", "plan.yaml").status == status


def test_a_branch_in_a_sub_plan_is_written_into_a_sub_plan_of_its_own(command: Command) -> None:
    command.plan(with_test("x"), path="phases/one.yaml", todo_list_id="one", root="..")
    command.plan(
        {"id": "phase", "sub_plan": "phases/one.yaml"}, with_test("a"), metadata={"auto_fix_mode": True}
    )
    text = (
        Path("phases/one.yaml")
        .read_text()
        .replace('"items"', '"metadata": {"auto_fix_mode": true}, "items"')
    )
    Path("phases/one.yaml").write_text(text)
    command.outcomes(failed("phase/x"), pending("phase"), pending("a"))

    ran = command("next", "plan.yaml", "--output", "next.yaml")

    assert ran.status == 0, ran.err
    assert load_plan(Path("next.yaml")).plan.todo("phase").sub_plan == "next.phase.yaml"
    assert [todo.id for todo in load_plan(Path("next.phase.yaml")).plan.items] == ["x", "x_branch_01"]
    assert "wrote next.phase.yaml, the sub-plan of phase" in ran.out
    assert command("status", "next.yaml", "phase/x_branch_01").status == 0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("next", "gone.yaml"), 4, "gone.yaml"),
        (("next", "folder"), 4, "folder"),
        (("next", "broken.yaml"), 4, "broken.yaml:1"),
        (("next", "plan.yaml", "--outcomes", "folder"), 4, "is a folder"),
        (("next", "plan.yaml", "--outcomes", "broken.yaml"), 4, "broken.yaml"),
        (("next", "fresh.yaml"), 4, "run first: pytest --planverify fresh.yaml"),
        (("next", "fresh.yaml", "--outcomes", ".planverify/plans/shop/outcomes.json"), 4, "not of 'fresh'"),
        (("next", "plan.yaml", "--nonsense"), 2, "--nonsense"),
        (("nxt", "plan.yaml"), 2, "did you mean 'next'?"),
    ],
)
def test_wrong_input_is_refused_with_what_to_do_and_never_a_traceback(
    red: Command, words: tuple[str, ...], status: int, said: str
) -> None:
    Path("folder").mkdir()
    Path("broken.yaml").write_text("items: [")
    Path("fresh").mkdir()
    red.plan(with_test("a"), path="fresh.yaml", todo_list_id="fresh", root="fresh")

    ran = red(*words)

    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_outcomes_of_an_older_plan_are_refused(red: Command) -> None:
    red.plan(with_test("a"))

    ran = red("next", "plan.yaml")

    assert ran.status == 4
    assert "the outcomes are of another version of the plan: of plan.yaml with sha256:" in ran.err
    assert ran.err.count("\n") == 1


def test_a_branch_may_be_asked_about_by_its_own_id(red: Command) -> None:
    red("next", "plan.yaml", "--output", "next.yaml")
    red.outcomes(failed("a"), failed("a_branch_01"), plan="next.yaml", path="outcomes.json")

    ran = red("next", "next.yaml", "--outcomes", "outcomes.json", "--todo", "a_branch_01", "--json")

    (repair,) = ran.json["repairs"]
    assert (repair["todo_id"], repair["branch_id"]) == ("a", "a_branch_01")


def test_edits_that_do_not_fit_together_are_left_out_with_the_reason(
    red: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise EditConflictError("add_branch", "a", "it is there", "choose another id")

    monkeypatch.setattr(next_plan, "apply_edits", refuse)

    ran = red("next", "plan.yaml", "--output", "next.yaml")

    assert ran.status == 0
    assert "no edit applies" in ran.out
    assert (
        "left out: a: add the todo a_branch_01 after a: add_branch of 'a' does not fit the plan"
        in " ".join(ran.out.split())
    )


@pytest.fixture
def nested(command: Command) -> Command:
    """A plan whose sub-plan has a red todo."""
    command.plan(with_test("x"), path="sub/one.yaml", todo_list_id="one")
    phase = {"id": "phase", "sub_plan": "sub/one.yaml"}
    command.plan(phase, path="plans/plan.yaml", root="..", metadata={"auto_fix_mode": True})
    text = Path("plans/plan.yaml").read_text()
    assert "sub/one.yaml" in text
    command.outcomes(failed("phase/x"), pending("phase"), plan="plans/plan.yaml", path="outcomes.json")
    return command


def test_a_revised_sub_plan_may_not_lie_outside_the_root(
    nested: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "next.yaml"

    ran = nested("next", "plans/plan.yaml", "--outcomes", "outcomes.json", "--output", str(outside))

    assert ran.status == 4
    assert ran.err.count("\n") == 1
    assert not outside.exists()


def test_all_files_are_written_or_none(nested: Command) -> None:
    Path("plans/next.yaml").touch()

    ran = nested("next", "plans/plan.yaml", "--outcomes", "outcomes.json", "--output", "plans/next.yaml")

    assert ran.status == 4
    assert not Path("plans/next.phase.yaml").exists()
