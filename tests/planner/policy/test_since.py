"""Comparison with the baseline, and the criteria of a todo."""

from __future__ import annotations

import pytest

from planner.catalog import RECIPES
from planner.errors import CommandSyntaxError
from planner.model.baseline import BaselineCheck, BaselineTest
from planner.model.plan import AcceptanceCriteria, CommandSpec, ManualSpec, MetricSpec, Operator, Todo
from planner.model.verdicts import CheckAtBase, CheckKind, Since, TestOutcome, Verdict
from planner.policy.criteria import commands_of, criteria_of, pytest_command, wants_convention
from planner.policy.outcomes import check_at_base, since_of, since_of_check, since_of_tests

ABSENT, MAYBE, FLAKY = "absent", "maybe", "flaky"

TABLE = {
    "failed": {
        "passed": "new",
        "xpassed": "new",
        "skipped": "new",
        "xfailed": "new",
        "failed": "pre_existing",
        "error": "pre_existing",
        "timeout": "pre_existing",
        "crashed": "pre_existing",
        FLAKY: "flaky_at_base",
        ABSENT: "new",
        MAYBE: "unknown",
    },
    "passed": {
        "passed": "unknown",
        "skipped": "unknown",
        "failed": "fixed",
        "error": "fixed",
        "timeout": "fixed",
        "crashed": "fixed",
        "xfailed": "fixed",
        FLAKY: "flaky_at_base",
        ABSENT: "unknown",
        MAYBE: "unknown",
    },
    "xpassed": {"passed": "unknown", "failed": "fixed"},
    "error": {"passed": "new", "xpassed": "new", "failed": "pre_existing", FLAKY: "flaky_at_base"},
    "timeout": {"passed": "new", "failed": "pre_existing"},
    "crashed": {"passed": "new", "failed": "pre_existing"},
    "skipped": {"passed": "unknown", "failed": "unknown", FLAKY: "unknown", ABSENT: "unknown"},
    "xfailed": {"passed": "unknown", "failed": "unknown"},
    "not_run": {"passed": "unknown", "failed": "unknown", ABSENT: "unknown"},
}
ROWS = [(now, then, since) for now, row in TABLE.items() for then, since in row.items()]


def at_base(then: str) -> BaselineTest | None:
    if then in (ABSENT, MAYBE):
        return None
    return BaselineTest(outcome=TestOutcome("failed" if then == FLAKY else then), flaky=then == FLAKY)


@pytest.mark.parametrize(("now", "then", "since"), ROWS)
def test_since_follows_from_the_result_now_and_at_the_baseline(now: str, then: str, since: str) -> None:
    found = since_of(TestOutcome(now), at_base(then), may_have_been_there=then == MAYBE)
    assert found == since


@pytest.mark.parametrize(
    ("sinces", "since"),
    [
        ({Since.NEW, Since.PRE_EXISTING}, Since.NEW),
        ({Since.UNKNOWN, Since.PRE_EXISTING}, Since.UNKNOWN),
        ({Since.PRE_EXISTING, Since.FLAKY_AT_BASE}, Since.PRE_EXISTING),
        ({Since.FLAKY_AT_BASE}, Since.FLAKY_AT_BASE),
        (set(), Since.UNKNOWN),
    ],
)
def test_one_new_test_makes_the_failure_new(sinces: set[Since], since: Since) -> None:
    assert since_of_tests(sinces) is since


@pytest.mark.parametrize(
    ("verdict", "signature", "since"),
    [
        ("passed", "abc", "new"),
        ("failed", "abc", "pre_existing"),
        ("failed", "other", "new"),
        ("failed", None, "new"),
        ("flaky", "abc", "flaky_at_base"),
        ("inconclusive", "abc", "pre_existing"),
        ("inconclusive", "other", "unknown"),
        ("not_run", None, "unknown"),
        (None, "abc", "unknown"),
    ],
)
def test_a_failure_without_tests_is_compared_by_check_verdict_and_signature(
    verdict: str | None, signature: str | None, since: str
) -> None:
    signatures = () if verdict in ("passed", "not_run") else ("abc",)
    then = None if verdict is None else BaselineCheck(verdict=Verdict(verdict), signatures=signatures)
    assert since_of_check(then, signature) == since


@pytest.mark.parametrize(
    ("verdict", "known", "worth"),
    [
        ("failed", ["failed", "error"], "red"),
        ("failed", ["failed", "passed"], "mixed"),
        ("failed", ["failed", "skipped"], "mixed"),
        ("failed", ["failed", FLAKY], "mixed"),
        ("passed", ["passed", "skipped"], "green"),
        ("failed", [], "red"),
        ("passed", [], "green"),
        ("flaky", [], "mixed"),
        ("inconclusive", [], None),
        (None, [], None),
        (None, ["failed"], "red"),
    ],
)
def test_a_check_is_red_at_the_baseline_only_if_all_its_tests_were_red(
    verdict: str | None, known: list[str], worth: str | None
) -> None:
    then = None if verdict is None else BaselineCheck(verdict=Verdict(verdict))
    ran = [test for name in known if (test := at_base(name)) is not None]
    assert check_at_base(then, ran) == (None if worth is None else CheckAtBase(worth))


def test_a_pytest_command_is_a_test_criterion_and_any_other_a_command_criterion() -> None:
    todo = Todo(id="a", title="A", verify="ruff check .", test_command="pytest a.py", test_file="b c.py")
    found = {each.id: each for each in criteria_of(todo)}
    assert {name: each.kind for name, each in found.items()} == {
        "verify": CheckKind.COMMAND,
        "test_command": CheckKind.TEST,
        "test_file": CheckKind.TEST,
    }
    assert found["test_file"].command is not None
    assert found["test_file"].command.argv == ("pytest", "b c.py")
    assert pytest_command("-p.py") == "pytest ./-p.py", "it is not taken for an option"


def test_a_recipe_expands_to_its_commands() -> None:
    found = criteria_of(Todo(id="a", title="A", verify="python-quick"))
    commands = {each.id: each.spec.cmd for each in found if isinstance(each.spec, CommandSpec)}
    assert commands == {f"verify[{at}]": cmd for at, cmd in enumerate(RECIPES["python-quick"])}


def test_other_criteria_follow_the_commands() -> None:
    wanted = AcceptanceCriteria(
        tests=(CommandSpec(cmd="pytest a.py"),),
        metrics=(MetricSpec(name="n", operator=Operator.GE, value=1),),
        manual=(ManualSpec(question="Right?"),),
    )
    todo = Todo(id="a", title="A", acceptance_criteria=wanted, contract_path="c.json", verify="pytest b.py")
    ids = [each.id for each in criteria_of(todo)]
    assert ids == ["tests[0]", "verify", "metrics[0]", "manual[0]", "contract_path"]


def test_the_test_convention_applies_only_to_a_todo_without_criteria() -> None:
    bare, verified = Todo(id="a", title="A"), Todo(id="a", title="A", verify="pytest b.py")
    assert [each.id for each in criteria_of(bare, "pytest x.py")] == ["convention"]
    assert [each.id for each in criteria_of(verified, "pytest x.py")] == ["verify"]
    assert criteria_of(bare) == ()
    assert wants_convention(bare)
    assert not wants_convention(verified)
    assert not wants_convention(Todo(id="a", title="A", requires_testing=False))
    assert not wants_convention(Todo(id="a", title="A", sub_plan="b.yaml"))
    assert not wants_convention(Todo(id="a", title="A", contract_path="c.json"))


def test_the_failure_report_of_its_parent_is_not_a_criterion_of_a_branch() -> None:
    report = "diagnostics/a_failure_report.json"
    names = [report, f"./{report}", "out.json", "diagnostics/b_failure_report.json"]
    criteria = AcceptanceCriteria.model_validate({"expected_artifacts": names})
    branch = Todo(id="a_branch_01", title="A", parent_id="a", acceptance_criteria=criteria)

    assert [each.id for each in criteria_of(branch)] == ["expected_artifacts[2]", "expected_artifacts[3]"]
    assert len(criteria_of(branch.model_copy(update={"parent_id": None}))) == 4


def test_a_command_that_cannot_run_is_refused() -> None:
    with pytest.raises(CommandSyntaxError):
        criteria_of(Todo(id="a", title="A", verify="pytest && ls"))


def test_an_already_reported_invalid_command_is_not_refused_again() -> None:
    todo = Todo.model_construct(id="a", title="a", verify="")

    assert [(where, spec.cmd) for where, spec in commands_of(todo)] == [("verify", "")]
