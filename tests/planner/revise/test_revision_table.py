"""Edits for each failure category: one test for each row of the strategy table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from revision_samples import (
    BRANCH,
    EvidenceKind,
    Side,
    added,
    check,
    commands,
    edits_of,
    failure,
    frame,
    only,
    raised,
    revised,
    seen,
    situation,
    todo,
)

from planner.model.edits import (
    AddTodoBefore,
    Isolate,
    NameArtifact,
    NarrowFiles,
    RetargetCheck,
)
from planner.model.evidence import (
    ArtifactFact,
    CommandFact,
    Confirmation,
    ContractFact,
    Finding,
    Selector,
)
from planner.model.outcome import Failure
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import CheckKind
from planner.revise.situation import Situation
from planner.revise.strategies import REVISION_RULES, revise

RSI = "tests/test_rsi.py::test_values"
BANDS = "tests/test_rsi.py::test_bands"
FILE = "pytest tests/test_rsi.py -q"


def case_of(failed: Failure, **fields: Any) -> Situation:
    """Return the situation of a todo with one red test."""
    return situation(failed, todo("t2", FILE), check("tests[0]", FILE, RSI), **fields)


EDITS = {  # all other categories halt the run, or need no edit
    Category.TEST_REGRESSION: ["narrow_files", "isolate"],
    Category.TEST_TIMEOUT: ["isolate", "raise_limit"],
    Category.FLAKY_TEST: ["isolate", "quarantine"],
    Category.TEST_CRASH: ["isolate"],
    Category.TEST_NOT_FOUND: ["name_artifact"],
    Category.COMPILATION_ERROR: ["add_check", "narrow_files"],
    Category.TYPE_ERROR: ["add_check"],
    Category.LINT_ERROR: ["add_todo_before", "narrow_files"],
    Category.IMPORT_ERROR: ["add_todo_before"],
    Category.SPEC_MISMATCH: ["add_todo_before"],
    Category.ARTIFACT_MISSING: ["name_artifact"],
    Category.UNKNOWN: ["narrow_files"],
}


@pytest.mark.parametrize("category", Category)
def test_each_category_has_its_edits_with_documented_rules(category: Category) -> None:
    facts = seen(
        artifact=ArtifactFact(path="out/x.json", problem="missing"),
        contract=ContractFact(path="c.json", problem="signature"),
        confirmations=(Confirmation(where="alone", passed=True, duration_ms=100),),
    )
    edits = revise(case_of(failure(category, RSI, at="pkg/calc.py"), observations=(facts,)))
    assert [edit.edit for edit in edits] == EDITS.get(category, [])
    assert all(edit.rule in REVISION_RULES and edit.because for edit in edits)


def test_a_regression_narrows_the_files_and_isolates_the_failing_tests() -> None:
    failed = failure(Category.TEST_REGRESSION, RSI, at="indicators/rsi.py", owner=Owner.PRODUCT)
    item = todo("t2", FILE, contract_path="c.json")
    case = situation(failed, item, check("tests[0]", FILE, RSI, green=(BANDS,)))
    assert [edit.rule for edit in revise(case)] == ["regression-narrows-files", "regression-isolates"]
    branch = revised(case).todo(BRANCH)
    assert branch.allowed_files == ("indicators/**",)
    assert commands(branch) == [f"pytest {RSI} -q"]
    assert branch.contract_path is None
    assert revised(case).todo("t2") == case.todo


def test_a_compilation_error_adds_a_syntax_check_first_and_narrows_to_the_file() -> None:
    branch = revised(case_of(failure(Category.COMPILATION_ERROR, at="pkg/calc.py"))).todo(BRANCH)
    assert commands(branch) == ["python -m py_compile pkg/calc.py", FILE]
    assert branch.allowed_files == ("pkg/calc.py",)


def test_a_lint_error_adds_an_auto_fix_step_and_narrows_to_the_files_with_findings() -> None:
    failed = failure(Category.LINT_ERROR, check_id="verify", at="pkg/a.py")
    findings = tuple(Finding(path=f"pkg/{name}.py", line=1, code="F401", message="unused") for name in "ab")
    fact = CommandFact(argv=("ruff", "check", "."), tool="ruff", purpose="lint", findings=findings)
    case = situation(
        failed,
        todo("t2", verify="ruff check ."),
        check("verify", "ruff check ."),
        observations=(seen(EvidenceKind.COMMAND, command=fact),),
    )
    step = only(case, AddTodoBefore).todo
    assert (step.id, step.is_temporary, step.requires_testing) == ("t2_step_01", True, False)
    assert step.controller_task_spec.type == "AUTO_FIX"
    assert "ruff check --fix ." in step.controller_task_spec.hint
    result = revised(case)
    assert result.todo(BRANCH).dependencies == ("t2_step_01",)
    assert result.todo(BRANCH).allowed_files == ("pkg/a.py", "pkg/b.py")


def test_a_spec_mismatch_adds_a_contract_step_for_the_architect() -> None:
    step = only(case_of(failure(Category.SPEC_MISMATCH, RSI)), AddTodoBefore).todo
    (contract,) = step.acceptance_criteria.expected_artifacts
    assert (step.agent_role, contract.path) == (Role.ARCHITECT, "contracts/t2_contract.json")


def test_a_missing_test_retargets_the_command_only_with_approval() -> None:
    wrong = "tests/test_rsi.py::test_valuse"
    cmd = f"pytest {wrong} -q"
    selector = Selector(text=wrong, problem="missing_id", nearest=(RSI,))
    case = situation(
        failure(Category.TEST_NOT_FOUND, at="tests/test_rsi.py"),
        todo("t2", cmd),
        check("tests[0]", cmd),
        observations=(seen(EvidenceKind.SELECTION, selectors=(selector,)),),
    )
    edit = only(case, RetargetCheck)
    assert (edit.todo_id, edit.from_cmd, edit.to_cmd) == ("t2", cmd, f"pytest {RSI} -q")
    assert edit.requires_approval
    assert edits_of(case, NameArtifact) == []
    assert commands(revised(case).todo("t2")) == [f"pytest {RSI} -q"]


@pytest.mark.parametrize("category", sorted(Category))
def test_a_success_has_no_edits(category: Category) -> None:
    case = case_of(failure(category, RSI, at="pkg/calc.py"))
    passed = case.outcome.model_copy(update={"success": True})
    assert revise(replace(case, outcome=passed)) == ()


def test_a_metric_check_is_not_isolated() -> None:
    item = todo("t2", FILE, criteria={"metrics": [{"name": "rows", "operator": ">=", "value": 1}]})
    shown = check("metrics[0]", None, kind=CheckKind.METRIC)
    case = situation(failure(Category.TEST_REGRESSION, check_id="metrics[0]"), item, shown)
    assert edits_of(case, Isolate) == []
    assert len(added(case)) == 1


def test_a_product_frame_narrows_the_files_and_a_test_frame_does_not() -> None:
    error = raised("AssertionError", "", frame("tests/test_rsi.py", Side.TEST), frame("src/pkg/core.py"))
    failed = failure(Category.TEST_REGRESSION, RSI, at="tests/test_rsi.py")
    case = case_of(failed, observations=(seen(exceptions=(error,)),))
    assert only(case, NarrowFiles).allowed_files == ("src/pkg/**",)
