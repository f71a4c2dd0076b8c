"""Assembly of outcomes: state of a todo, its failures by root cause, and the requested todos."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import commit_all
from diagnosis_samples import error, failed, frame
from example_project import todo
from text_bundles import write_files

from planner.errors import PlannerError
from planner.model.evidence import ChangedFile, Evidence, Hunk
from planner.model.journal import CheckRun
from planner.model.outcome import Check, Diagnosis, Outcome
from planner.model.plan import Todo
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import CheckKind, EvidenceKind, Side, TodoState, Verdict
from planner.planfile.loader import LoadedPlan, load_plan
from planner.planfile.tree import FlatPlan
from pytest_planverify.baseline.changes import Changes
from pytest_planverify.checks.result import title_of
from pytest_planverify.options import PlanArgument
from pytest_planverify.session.check_runs import PlanResult, masked
from pytest_planverify.session.outcomes import (
    MOST_CHANGED,
    Assembler,
    _with_reads,
    _with_sides_of_tests,
    changed_files,
    summary_of,
    todo_state,
)
from pytest_planverify.session.plans import ChosenPlan, load_plans, todos_in_scope

PASSED, FAILED, FLAKY = Verdict.PASSED, Verdict.FAILED, Verdict.FLAKY
INCONCLUSIVE, NOT_RUN, HUMAN = Verdict.INCONCLUSIVE, Verdict.NOT_RUN, Verdict.NEEDS_HUMAN


def plan_of(root: Path, *items: dict[str, Any]) -> LoadedPlan:
    path = root / "plan.yaml"
    path.write_text(json.dumps({"todo_list_id": "p", "items": list(items)}))
    return load_plan(path)


@pytest.mark.parametrize(
    ("verdicts", "state"),
    [
        ((PASSED, PASSED), TodoState.DONE),
        ((PASSED, FAILED), TodoState.TEST_FAILED),
        ((FLAKY,), TodoState.TEST_FAILED),
        ((FAILED, HUMAN, NOT_RUN), TodoState.TEST_FAILED),
        ((PASSED, HUMAN), TodoState.TESTING),
        ((PASSED, INCONCLUSIVE), TodoState.TESTING),
        ((PASSED, NOT_RUN), TodoState.TESTING),
        ((Verdict.STALE,), TodoState.TESTING),
        ((NOT_RUN,), TodoState.PENDING),
        ((), TodoState.PENDING),
    ],
)
def test_todo_state_follows_from_verdicts(verdicts: tuple[Verdict, ...], state: TodoState):
    item = Todo(id="a", title="a")
    assert todo_state(item, verdicts, blocked=False) is state
    assert todo_state(item, verdicts, blocked=True) is TodoState.BLOCKED


@pytest.mark.parametrize(
    ("keys", "state"),
    [
        ({"status": "claimed", "requires_testing": False}, TodoState.DONE),
        ({"status": "claimed", "requires_testing": True}, TodoState.PENDING),
        ({"status": "open", "requires_testing": False}, TodoState.PENDING),
        ({"status": "claimed", "requires_testing": False, "sub_plan": "x.yaml"}, TodoState.PENDING),
    ],
)
def test_todo_without_criteria_is_done_only_if_claimed(keys: dict[str, Any], state: TodoState):
    assert todo_state(Todo(id="a", title="a", **keys), [], blocked=False) is state


def check_run(check_id: str, verdict: Verdict, *headlines: str, **more: Any) -> CheckRun:
    check = Check(id=check_id, kind=CheckKind.TEST, verdict=verdict, cmd="pytest", duration_ms=5)
    evidence = tuple(
        Evidence(kind=EvidenceKind.TEST, check_id=check_id, headline=text, tests=(f"{check_id}::{number}",))
        for number, text in enumerate(headlines)
    )
    return CheckRun(check=check, evidence=evidence, **more)


def diagnosis_in_headline(evidence: Evidence, _: object) -> Diagnosis:
    """Return the diagnosis that the headline encodes: ``CATEGORY confidence signature``."""
    category, confidence, signature = evidence.headline.split()
    return Diagnosis(
        category=Category(category),
        owner=Owner.PRODUCT,
        confidence=float(confidence),
        rule="test",
        because="it says so",
        signature=signature,
        suggestion="look",
    )


def outcomes_of(
    root: Path, item: dict[str, Any], *runs: CheckRun, blocked: tuple[str, ...] = ()
) -> tuple[Outcome, Sequence[Evidence]]:
    plan = plan_of(root, item)
    checks = {"a": {run.check.id: run for run in runs}}
    result = PlanResult(FlatPlan(loaded=plan), list(plan.plan.items), checks)
    if blocked:
        result.blocked["a"] = blocked
    changes = {root: Changes(root)}
    assembler = Assembler(
        result=result, shown_path="my plan.yaml", changes=changes, diagnose=diagnosis_in_headline
    )
    (found,) = assembler.assemble()
    return found.outcome, found.evidence


TWO = todo("a", "pytest x.py", "pytest y.py")


def test_failures_with_one_signature_merge_under_the_surest_diagnosis(tmp_path: Path):
    outcome, evidence = outcomes_of(
        tmp_path,
        TWO,
        check_run("tests[0]", FAILED, "TEST_REGRESSION 0.5 s1", "TEST_REGRESSION 0.8 s2"),
        check_run("tests[1]", FAILED, "TEST_REGRESSION 0.9 s1"),
    )

    first, second = outcome.failures
    assert (first.signature, first.confidence, first.check_id) == ("s1", 0.9, "tests[1]")
    assert (second.signature, second.check_id) == ("s2", "tests[0]")
    assert first.tests == ("tests[0]::0", "tests[1]::0")
    assert len(evidence) == 3
    assert first.rerun == "pytest --planverify 'my plan.yaml::a'"


@pytest.mark.parametrize(
    ("headlines", "first"),
    [
        (("TEST_REGRESSION 0.9 s1", "IMPORT_ERROR 0.5 s2"), "s2"),
        (("TEST_REGRESSION 0.5 s1", "TEST_CRASH 0.9 s2"), "s2"),
        (("IMPORT_ERROR 0.9 s1", "ENVIRONMENT_ERROR 0.1 s2"), "s2"),
        (("SANDBOX_VIOLATION 0.1 s1", "ENVIRONMENT_ERROR 0.9 s2"), "s1"),
        (("UNKNOWN 1.0 s1", "FLAKY_TEST 0.1 s2"), "s2"),
    ],
)
def test_most_severe_and_surest_failure_decides(headlines, first: str, tmp_path: Path):
    outcome, _ = outcomes_of(tmp_path, TWO, check_run("tests[0]", FAILED, *headlines))
    assert outcome.failure_evidence.signature == first


def test_failure_knows_the_routing_of_the_plan_and_which_files_todos_may_write(tmp_path: Path):
    missing = error("ModuleNotFoundError", name="newlib")
    run = check_run("tests[0]", FAILED, "TEST_REGRESSION 0.9 s1")
    piece = run.evidence[0].model_copy(update={"exceptions": (missing,)})
    item = todo("a", "pytest x.py", allowed_files=["newlib/**"], expected_artifacts=["out/a.json"])
    item["failure_routing"] = {"implementation_bug": "architect"}
    outcome, (diagnosed,) = outcomes_of(tmp_path, item, run.model_copy(update={"evidence": (piece,)}))
    assert outcome.failures[0].target_agent is Role.ARCHITECT
    assert diagnosed.granted == ("newlib/**", "out/a.json")


def test_blocked_todo_has_no_failures(tmp_path: Path):
    run = masked(check_run("tests[0]", FAILED, "TEST_REGRESSION 0.9 s1"), ["b"])
    outcome, evidence = outcomes_of(tmp_path, TWO, run, blocked=("b",))
    assert (outcome.state, outcome.blocked_by, outcome.failures) == (TodoState.BLOCKED, ("b",), ())
    assert outcome.checks[0].reason == "blocked by b"
    assert not outcome.verified
    assert evidence == ()


def test_numeric_properties_are_kept_but_texts_only_for_metrics(tmp_path: Path):
    item = todo("a", "pytest x.py", metrics=[{"name": "asked", "operator": ">=", "value": 1}])
    properties = [("asked", "odd"), ("asked", True), ("free", 3), ("free", "x"), ("free", float("nan"))]
    outcome, _ = outcomes_of(tmp_path, item, check_run("tests[0]", PASSED, properties=properties))
    assert json.loads(outcome.model_dump_json())["recorded"] == {"asked": ["odd", "True"], "free": [3]}
    assert '"free":[3]' in outcome.model_dump_json(), "not 3.0"
    assert outcome.tests_passed
    assert outcome.metrics.duration_ms == 5


def test_the_summary_counts_todos_and_criteria(tmp_path: Path):
    outcome, _ = outcomes_of(tmp_path, TWO, check_run("tests[0]", PASSED), check_run("tests[1]", NOT_RUN))
    summary = summary_of([outcome, outcome])
    assert (summary.todos, summary.criteria) == ({TodoState.TESTING: 2}, {PASSED: 2, NOT_RUN: 2})


def test_every_criterion_has_a_title(tmp_path: Path):
    manual = [{"question": "Right?"}]
    metrics = [{"name": "rows", "operator": ">=", "value": 10}]
    more = {"metrics": metrics, "manual": manual, "expected_artifacts": ["x.json"]}
    plan = plan_of(tmp_path, todo("a", "pytest x.py", **more, contract_path="c.json"))
    titles = [title_of(criterion) for criterion in plan.criteria["a"]]
    assert titles == ["pytest x.py", "x.json", "rows >= 10", "Right?", "c.json"]


# -- requested todos -------------------------------------------------------------------------------


def argument(path: Path, *todo_ids: str) -> PlanArgument:
    return PlanArgument(path, path.name, todo_ids, path.parent)


def test_plan_is_loaded_once_with_the_requested_todos(tmp_path: Path):
    path = plan_of(tmp_path, *(todo(name, "pytest x.py") for name in "abc")).path
    (some,) = load_plans([argument(path, "c"), argument(path, "a")])
    (whole,) = load_plans([argument(path, "c"), argument(path)])
    assert [each.id for each in todos_in_scope(some, "claimed")] == ["a", "c"]
    assert [each.id for each in todos_in_scope(whole, "all")] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("todo_id", "hint"), [("alpa", "did you mean plan.yaml::alpha?"), ("zz", "it has alpha")]
)
def test_unknown_todo_is_refused_even_beside_the_whole_plan(todo_id: str, hint: str, tmp_path: Path):
    path = plan_of(tmp_path, todo("alpha", "pytest x.py")).path
    for arguments in ([argument(path, todo_id)], [argument(path), argument(path, todo_id)]):
        with pytest.raises(pytest.UsageError) as refused:
            load_plans(arguments)
        assert f"plan.yaml: the plan has no todo {todo_id!r}; {hint}" in str(refused.value)


def test_errors_of_all_plans_are_reported_together(tmp_path: Path):
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    write_files(tmp_path, dict.fromkeys(("one.yaml", "two.yaml"), "items: 3\n"))
    with pytest.raises(PlannerError) as refused:
        load_plans([argument(one), argument(two), argument(one)])
    assert str(refused.value).count("one.yaml") == str(refused.value).count("two.yaml") > 0


def test_claimed_scope_includes_dependencies(tmp_path: Path):
    plan = plan_of(
        tmp_path,
        todo("a", "pytest x.py"),
        todo("b", "pytest x.py", after=("a",)),
        todo("c", "pytest x.py", after=("b",), status="claimed"),
        todo("d", "pytest x.py"),
    )
    chosen = ChosenPlan(FlatPlan(loaded=plan), "plan.yaml", None)

    assert [each.id for each in todos_in_scope(chosen, "claimed")] == ["a", "b", "c"]
    assert len(todos_in_scope(chosen, "ready")) == 4


# -- changed files ----------------------------------------------------------------------------------


def test_changed_files_are_known_from_the_first_commit_with_a_side_and_exclude_plans(tmp_path: Path):
    files = ("cart.py", "tests/test_cart.py", "notes.md", "plan.json")
    write_files(tmp_path, dict.fromkeys(files, "{}\n"))
    assert changed_files(tmp_path, Changes(tmp_path)) is None
    commit_all(tmp_path)
    write_files(tmp_path, dict.fromkeys(files, "{} \n"))

    found = changed_files(tmp_path, Changes(tmp_path, [tmp_path / "plan.json"]))

    assert [(each.path, each.side) for each in found] == [
        ("cart.py", Side.PRODUCT),
        ("tests/test_cart.py", Side.TEST),
        ("notes.md", None),
    ]


def test_code_precedes_other_files_when_changed_files_are_truncated(tmp_path: Path):
    write_files(tmp_path, {"a.md": ""})
    commit_all(tmp_path)
    write_files(tmp_path, {f"a{number:02}.md": "" for number in range(MOST_CHANGED)} | {"z.py": ""})
    found = changed_files(tmp_path, Changes(tmp_path))
    assert (len(found), found[0].path) == (MOST_CHANGED, "z.py")


@pytest.mark.parametrize(
    ("read", "side"), [("shop/_fast.cpython-311.so", Side.PRODUCT), ("shop/cart.py", None)]
)
def test_changed_native_source_counts_if_the_criterion_loaded_a_module_built_of_such(read: str, side: Side):
    changed = (ChangedFile(path="src/fast.c"), ChangedFile(path="notes.txt"))
    facts = _with_reads({"changed": changed, "hunks": ()}, {read}, is_complete=True)
    assert [each.side for each in facts["changed"]] == [side, None]


@pytest.mark.parametrize("by_message", [True, False], ids=["message", "source"])
def test_changed_file_that_the_error_names_counts_although_the_worker_did_not_read_it(by_message: bool):
    said = "['node', 'lib/web.js']"
    changed = tuple(ChangedFile(path=path) for path in ("lib/web.js", "lib/other.js", "eb.js"))
    message, source = said if by_message else "", None if by_message else said
    raised = error("shop.E", message, frame("tests/test_a.py", "test_a", source=source))
    facts = _with_reads({"changed": changed, "hunks": ()}, (), [failed(raised)], is_complete=False)
    assert [each.side for each in facts["changed"]] == [Side.PRODUCT, None, None]


def test_changed_data_that_was_read_counts_although_others_may_have_been_read_too():
    changed = (ChangedFile(path="tests/keys.json"), ChangedFile(path="tests/other.json"))
    code = Hunk(path="shop/cart.py", line=1, added=1)
    facts = _with_reads({"changed": changed, "hunks": (code,)}, {"tests/keys.json"}, is_complete=False)
    assert [each.side for each in facts["changed"]] == [Side.TEST, None]
    assert not facts["hunks"][0].is_unread


def test_changed_code_that_the_criterion_did_not_read_is_marked():
    hunks = (
        Hunk(path="shop/cart.py", line=1),
        Hunk(path="scratch.py", line=1, added=1),
        Hunk(path="data.csv", line=1, added=1),
        Hunk(path="deleted.py", line=1, removed=9),
    )
    facts = _with_reads({"changed": (), "hunks": hunks}, {"shop/cart.py"}, is_complete=True)
    assert [each.path for each in facts["hunks"] if each.is_unread] == ["scratch.py"]


def test_changed_file_whose_test_the_worker_collected_is_of_the_tests_whatever_its_name():
    changed = (ChangedFile(path="tests.py", side=Side.PRODUCT), ChangedFile(path="a.py", side=Side.PRODUCT))
    raised = error("KeyError", "", frame("tests.py", "test_a", side=Side.TEST))
    facts = _with_sides_of_tests({"changed": changed, "hunks": ()}, [failed(raised)])
    assert [each.side for each in facts["changed"]] == [Side.TEST, Side.PRODUCT]
