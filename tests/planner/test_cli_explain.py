"""`planner explain`: every word that is used somewhere has its explanation."""

from __future__ import annotations

from pathlib import Path

import pytest
from planner_command import Command, done, failed, pending, undecided, with_test

from planner.cli.ending import INTERRUPTED, Status
from planner.edges.explanations import load_explanations
from planner.engine import ENGINE_RULES
from planner.model.edits import Edit
from planner.model.findings import Severity
from planner.model.outcome import CheckKind, Since, TodoState, Verdict
from planner.model.taxonomy import BranchReason, Category, Owner, Repeatability, Role, RoutingKey
from planner.rules.reviewing import REVIEW_FIGURES
from planner.rules.revision import REVISION_RULES
from planner.rules.validation import VALIDATION_RULES
from pytest_planverify.corpus import catalogue
from pytest_planverify.diagnosis import RULES
from pytest_planverify.diagnosis.learning import RULE as LEARNED
from pytest_planverify.session.exit_status import ExitStatus


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, monkeypatch, capsys)


KINDS = load_explanations().kinds()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("category", Category),
        ("verdict", Verdict),
        ("state of a plan", PlanState),
        ("role", Role),
        ("owner", Owner),
        ("repeatability", Repeatability),
        ("move", Move),
        ("kind of check", CheckKind),
        ("severity of a finding", Severity),
        ("routing key", {*RoutingKey, *BranchReason}),
        ("comparison with the baseline", set(Since) - {Since.UNKNOWN}),
        ("rule of planner next", DECISION_RULES),
        ("rule of the revision", REVISION_RULES),
        ("rule of the engine", ENGINE_RULES.keys() - DECISION_RULES.keys() - REVISION_RULES.keys()),
        ("figure of the review", REVIEW_FIGURES),
        ("rule of planner validate", VALIDATION_RULES),
        ("rule of the diagnosis", {LEARNED, *(rule.id for rule in RULES)}),
        ("exit status", {str(int(each)) for each in (*Status, *ExitStatus, INTERRUPTED)}),
        ("edit", {model.model_fields["edit"].default for model in Edit.__args__[0].__args__}),  # type: ignore[attr-defined]
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_word_of_the_vocabulary_is_explained(kind: str, words: object) -> None:
    assert set(KINDS[kind]) == set(words)  # type: ignore[call-overload]


def test_every_state_of_a_todo_is_explained() -> None:
    assert set(TodoState) <= set(KINDS["state of a todo"])


def test_every_explanation_says_something() -> None:
    for entry in load_explanations().entries:
        assert entry.means.strip()
        assert entry.means.strip().endswith((".", "?")), f"{entry.kind} {entry.word}: {entry.means}"


def test_the_data_file_of_the_diagnosis_is_current() -> None:
    assert catalogue.FILE.read_text(encoding="utf-8") == catalogue.render(), (
        "run: python -m pytest_planverify.corpus.catalogue"
    )


def test_the_catalogue_writes_what_it_renders(tmp_path: Path) -> None:
    catalogue.write(tmp_path / "rules.json")

    assert (tmp_path / "rules.json").read_text(encoding="utf-8") == catalogue.render()


def test_a_category_tells_its_meaning_who_acts_and_what_to_check(command: Command) -> None:
    ran = command("explain", "spec-mismatch")

    assert ran.status == 0
    text = " ".join(ran.out.split())
    assert "SPEC_MISMATCH category" in text
    assert (
        "acts architect, unless the todo's failure_routing names another for SPEC_MISMATCH or spec_mismatch"
        in text
    )
    assert "planner Makes a branch for the architect" in text
    assert "check - expected and actual signature" in text
    assert "spec_mismatch routing key" in text, "a word that means several things tells all"


def test_a_category_with_a_role_of_its_own_is_routed_by_its_name_only(command: Command) -> None:
    text = " ".join(command("explain", "TEST_CRASH").out.split())

    assert "names another for TEST_CRASH routing" in text


def test_rules_tell_what_they_say_and_what_to_do(command: Command) -> None:
    diagnosis = command("explain", "assertion-in-test").out
    assert "rule of the diagnosis" in diagnosis
    assert "says     TEST_REGRESSION" in diagnosis
    assert "rule of planner next" in command("explain", "branch-depth").out
    assert "weighs   warning" in command("explain", "wall-clock").out
    assert "10  exit status" in command("explain", "10").out


def test_without_a_word_all_words_are_listed(command: Command) -> None:
    ran = command("explain")

    assert ran.status == 0
    for word in ("TEST_REGRESSION", "needs_human", "wall-clock", "branch-depth", "130"):
        assert word in ran.out


def test_an_unknown_word_is_answered_with_the_nearest(command: Command) -> None:
    ran = command("explain", "TEST_REGRESION")

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("planner: nothing is called 'TEST_REGRESION'; did you mean 'TEST_REGRESSION'")


@pytest.fixture
def plan(command: Command) -> Command:
    command.plan(with_test("sub"), path="sub.yaml", todo_list_id="sub")
    command.plan(
        with_test("red"),
        {**with_test("red_branch_01"), "parent_id": "red", "branch_depth": 1, "is_temporary": True},
        with_test("after", dependencies=["red"]),
        with_test("later", dependencies=["asked"]),
        with_test("asked"),
        with_test("fine"),
        {"id": "phase", "sub_plan": "sub.yaml"},
    )
    command.outcomes(
        failed("red"),
        pending("red_branch_01"),
        pending("after", state="blocked", blocked_by=["red"]),
        pending("later"),
        undecided("asked", "needs_human"),
        done("fine"),
        pending("phase"),
        pending("phase/sub"),
    )
    return command


@pytest.mark.parametrize(
    ("todo", "said"),
    [
        ("red", "red_branch_01 is open"),
        ("red", "planner next plan.yaml --todo red"),
        ("red_branch_01", "is a branch todo, made to repair red, at depth 1"),
        ("after", "blocked by red"),
        ("after", "next Nothing of its own: repair what is in its way"),
        ("later", "next It waits for asked."),
        ("asked", "only the answer of a person is missing"),
        ("fine", "is a unit of work, proved by 1 criterion"),
        ("fine", "next Nothing: every criterion passed"),
        ("phase", "is a parent: 0 of 1 todo of its sub-plan are done"),
    ],
)
def test_a_todo_tells_what_it_is_how_it_stands_and_what_comes_next(
    plan: Command, todo: str, said: str
) -> None:
    ran = plan("explain", todo, "--plan", "plan.yaml")

    assert ran.status == 0
    assert said in " ".join(ran.out.split())


def test_a_word_that_is_also_a_todo_is_explained_as_both(plan: Command) -> None:
    plan.plan(with_test("coder"))

    ran = plan("explain", "coder", "--plan", "plan.yaml")

    assert "coder  role" in ran.out
    assert "is       a unit of work" in ran.out
    assert ran.out.startswith("coder  role")


def test_a_word_that_is_no_todo_is_explained_as_what_it_is(plan: Command) -> None:
    assert plan("explain", "coder", "--plan", "plan.yaml").status == 0


def test_an_unknown_todo_is_answered_with_the_nearest_of_the_plan(plan: Command) -> None:
    ran = plan("explain", "reed", "--plan", "plan.yaml")

    assert ran.status == 1
    assert "did you mean 'red'" in ran.err
