"""Qualification of checks by their results before the work."""

from typing import Any

import pytest
from outcome_samples import check, outcome, results

from planner.model.outcome import Failure
from planner.model.plan import Todo
from planner.model.qualification import Qualification, QualifiedCheck, Quality
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import CheckKind, TestOutcome, TodoState, Verdict
from planner.policy.criteria import criteria_of
from pytest_planverify.baseline.qualification import CheckAnswer, answer_of, is_qualified, worth_of


def answer(
    verdict: Verdict, category: Category = Category.TEST_REGRESSION, owner: Owner = Owner.PRODUCT
) -> CheckAnswer:
    failure = Failure(
        category=category, owner=owner, stack_trace_head="assert 1 == 2\nmore", suggestion="do"
    )
    return CheckAnswer(verdict=verdict, failure=failure if verdict.is_red else None)


R, G, FLAKY = Verdict.FAILED, Verdict.PASSED, Verdict.FLAKY
UNKNOWN = Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("verdicts", "quality", "because"),
    [
        ([R, R, R], Quality.RED_OK, "it fails before the work: assert 1 == 2"),
        ([G, G], Quality.VACUOUS, "it passes before the work (2 of 2 times)"),
        ([G, R], Quality.UNSTABLE, "it passed in 1 of 2 runs on the same tree"),
        ([FLAKY, R], Quality.UNSTABLE, "it failed and passed in 1 of 2 runs on the same tree"),
        ([FLAKY], Quality.UNSTABLE, "it failed and passed in 1 of 1 runs on the same tree"),
        ([R, UNKNOWN], Quality.UNRUNNABLE, "it is inconclusive"),
        ([Verdict.NOT_RUN], Quality.UNRUNNABLE, "it is not_run"),
    ],
)
def test_quality_of_a_check_follows_from_its_results_and_has_a_reason(
    verdicts: list[Verdict], quality: Quality, because: str
):
    """The reason of a good check is the first line of its failure."""
    worth = worth_of([answer(each) for each in verdicts])

    assert (worth.quality, worth.because) == (quality, because)
    assert (worth.remedy is None) == (quality is Quality.RED_OK)


@pytest.mark.parametrize(
    ("failure", "facts", "quality"),
    [
        ((Category.ENVIRONMENT_ERROR, Owner.ENVIRONMENT), {}, Quality.UNRUNNABLE),
        ((Category.HARNESS_ERROR, Owner.HARNESS), {}, Quality.UNRUNNABLE),
        ((Category.IMPORT_ERROR, Owner.ENVIRONMENT), {}, Quality.UNRUNNABLE),
        ((Category.IMPORT_ERROR, Owner.PRODUCT), {}, Quality.RED_OK),
        ((Category.TEST_NOT_FOUND, Owner.PLAN), {}, Quality.UNRUNNABLE),
        ((Category.TEST_NOT_FOUND, Owner.PLAN), {"to_be_written": True}, Quality.RED_OK),
        ((Category.TEST_NOT_FOUND, Owner.TEST), {"is_expected": True}, Quality.RED_OK),
        ((Category.TEST_TIMEOUT, Owner.PRODUCT), {}, Quality.RED_OK),
    ],
)
def test_failure_unrelated_to_the_work_does_not_qualify_a_check(
    failure: tuple[Category, Owner], facts: dict[str, Any], quality: Quality
):
    assert worth_of([answer(R, *failure)], **facts).quality is quality


def unfound(*tests: str) -> CheckAnswer:
    return CheckAnswer(R, failure=Failure(category=Category.TEST_NOT_FOUND, owner=Owner.PLAN, tests=tests))


@pytest.mark.parametrize(
    ("answered", "kind", "said"),
    [
        (unfound(), CheckKind.TEST, "name existing tests"),
        (unfound("t.py::a"), CheckKind.TEST, "skips its tests"),
        (answer(G), CheckKind.TEST, "add a test"),
        (answer(G), CheckKind.ARTIFACT, "let it require what the work"),
    ],
)
def test_remedy_fits_the_check_and_its_tests(answered: CheckAnswer, kind: CheckKind, said: str):
    assert said in (worth_of([answered], kind).remedy or "")


def test_failure_of_a_check_is_its_own_or_shared_through_its_tests():
    own = Failure(category=Category.LINT_ERROR, check_id="tests[0]")
    shared = Failure(category=Category.TYPE_ERROR, check_id="other", tests=("t.py::a",))
    red = results("t.py", "a", outcome=TestOutcome.FAILED)
    checks = [
        check("tests[0]", verdict=Verdict.FAILED),
        check("tests[1]", verdict=Verdict.FAILED, tests=red),
        check("tests[2]", verdict=Verdict.FAILED),
    ]
    found = outcome("a", "A", TodoState.TEST_FAILED, *checks, failures=(own, shared))

    assert [answer_of(found, each.id).failure for each in checks] == [own, shared, None]
    assert worth_of([answer_of(found, "tests[2]")]).because == "it fails before the work"


def test_manual_and_stay_green_criteria_are_not_qualified():
    todo = Todo.model_validate(
        {
            "id": "a",
            "title": "a",
            "test_file": "tests/test_a.py",
            "must_turn_green": ["tests/test_a.py::new"],
            "must_stay_green": "all",
            "acceptance_criteria": {"manual": [{"question": "?"}], "expected_artifacts": ["x"]},
        }
    )

    assert [each.id for each in criteria_of(todo) if is_qualified(each)] == [
        "test_file",
        "must_turn_green",
        "expected_artifacts[0]",
    ]


def qualified(check_id: str, quality: Quality, kind: CheckKind) -> QualifiedCheck:
    return QualifiedCheck(todo_id="a", check_id=check_id, kind=kind, quality=quality, because="b")


def qualification(*checks: QualifiedCheck) -> Qualification:
    usual: dict[str, Any] = {"plan_digest": "d", "made_at": "x", "python": "3", "pytest": "9"}
    return Qualification(plan="p", runs=1, checks=checks, **usual)


TEST, COMMAND = CheckKind.TEST, CheckKind.COMMAND


@pytest.mark.parametrize(
    ("first", "second", "bad"),
    [
        ((Quality.RED_OK, TEST), (Quality.VACUOUS, COMMAND), []),
        ((Quality.VACUOUS, TEST), (Quality.VACUOUS, COMMAND), ["0", "1"]),
        ((Quality.RED_OK, TEST), (Quality.VACUOUS, TEST), ["1"]),
        ((Quality.RED_OK, TEST), (Quality.UNRUNNABLE, COMMAND), ["1"]),
        ((Quality.UNSTABLE, TEST), (Quality.RED_OK, TEST), ["0"]),
    ],
)
def test_green_linter_is_accepted_beside_a_qualified_check(
    first: tuple[Quality, CheckKind], second: tuple[Quality, CheckKind], bad: list[str]
):
    checks = (qualified("0", *first), qualified("1", *second))

    assert [each.check_id for each in qualification(*checks).bad_checks] == bad
