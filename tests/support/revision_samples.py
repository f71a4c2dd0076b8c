"""Plans, outcomes and situations for the tests of edits and revisions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from planner.model.edits import AddBranch, Edit
from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.outcome import Check, Failure, FailureContext, Location, Outcome, TestResult
from planner.model.plan import Plan, Todo
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import CheckKind, EvidenceKind, Side, TestOutcome, Verdict
from planner.policy.branches import branch_todo
from planner.revise import plan_edits
from planner.revise.situation import Situation
from planner.revise.strategies import revise

BRANCH = "t2_branch_01"

PLAN = """\
todo_list_id: shop  # mine
items:
  - {id: t1, title: One, requires_testing: false}
  - {id: t2, title: Two, requires_testing: false}
  - {id: phase, title: Phase, sub_plan: phases/two.yaml}
"""
SUB = """\
todo_list_id: two  # the second
root: ..
items:
  - {id: s1, title: First, requires_testing: false}
  - {id: s2, title: Second, requires_testing: false}
"""
"""A sub-plan in a file of its own; both files have a comment that every revision has to keep."""


def todo(id: str = "t2", *cmds: str, **fields: Any) -> Todo:
    tests = [{"cmd": cmd} for cmd in cmds]
    criteria = fields.pop("criteria", {}) | ({"tests": tests} if tests else {})
    given = {"acceptance_criteria": criteria} if criteria else {}
    return Todo.model_validate({"id": id, "title": f"Todo {id}", **given, **fields})


def plan(*todos: Todo, **fields: Any) -> Plan:
    return Plan.model_validate({"todo_list_id": "p", "items": todos, **fields})


def check(id: str, cmd: str | None, *red: str, green: tuple[str, ...] = (), **fields: Any) -> Check:
    results = [TestResult(nodeid=name, outcome=TestOutcome.FAILED) for name in red]
    results += [TestResult(nodeid=name, outcome=TestOutcome.PASSED) for name in green]
    kind = CheckKind.TEST if cmd is not None and "pytest" in cmd else CheckKind.COMMAND
    return Check(
        id=id,
        kind=fields.pop("kind", kind),
        verdict=Verdict.FAILED,
        cmd=cmd,
        tests=tuple(results),
        **fields,
    )


def failure(category: Category, *tests: str, check_id: str | None = "tests[0]", **fields: Any) -> Failure:
    where = fields.pop("at", None)
    location = Location(path=where) if where else None
    return Failure(category=category, check_id=check_id, tests=tests, location=location, **fields)


def frame(path: str, side: Side = Side.PRODUCT, **fields: Any) -> Frame:
    return Frame(path=path, line=fields.pop("line", 3), function="f", side=side, **fields)


def raised(type: str, message: str = "", *frames: Frame) -> ExceptionFact:
    return ExceptionFact(type=type, qualified=f"builtins.{type}", message=message, frames=frames)


def context(failed: Failure, *facts: Evidence) -> FailureContext:
    """Return a context whose evidence belongs to the failure."""
    named = {"check_id": failed.check_id or "", "tests": failed.tests}
    return FailureContext(todo_id="t2", evidence=tuple(fact.model_copy(update=named) for fact in facts))


def seen(kind: EvidenceKind = EvidenceKind.TEST, **fields: Any) -> Evidence:
    return Evidence(kind=kind, **fields)


def situation(
    failed: Failure,
    item: Todo,
    *checks: Check,
    observations: tuple[Evidence, ...] | None = None,
    others: tuple[Todo, ...] = (),
    metadata: dict[str, Any] | None = None,
    failures: tuple[Failure, ...] = (),
    touched: tuple[str, ...] = (),
    at_context: FailureContext | None = None,
    **fields: Any,
) -> Situation:
    """Return a situation with the branch created and nothing revised yet."""
    given = plan(item, *others, **({"metadata": metadata} if metadata is not None else {}))
    outcome = Outcome(
        todo_id=item.id,
        success=False,
        tests_passed=False,
        checks=checks,
        failure_evidence=failed,
        failures=(failed, *failures),
        touched_files=touched,
    )
    branch = branch_todo(
        item,
        outcome,
        given.metadata,
        branch_id=f"{item.id}_branch_01",
        failure=failed,
        role=Role.CODER,
        after=None,
    )
    return Situation(
        plan=given,
        todo=item,
        outcome=outcome,
        failure=failed,
        branch=branch,
        context=at_context if observations is None else context(failed, *observations),
        is_taken={branch.id, *(each.id for each in given.items)}.__contains__,
        **fields,
    )


def edits_of(case: Situation, kind: type[Any]) -> list[Any]:
    return [edit for edit in revise(case) if isinstance(edit, kind)]


def only(case: Situation, kind: type[Any]) -> Any:
    found = edits_of(case, kind)
    assert len(found) == 1, revise(case)
    return found[0]


def added(case: Situation) -> list[Edit]:
    """Return all edits, starting with the one that adds the branch."""
    return [
        AddBranch(rule="failed-todo-gets-a-branch", because="it failed", todo=case.branch),
        *revise(case),
    ]


def apply_edits(given: Plan, edits: Iterable[Edit]) -> Plan:
    """Return the plan after the edits. Raises ``EditConflictError``."""
    before = {item.id: item for item in given.items}
    todos = plan_edits.apply_edits(before.get, edits)
    return given.model_copy(update={"items": tuple({**before, **todos}.values())})


def revised(case: Situation) -> Plan:
    return apply_edits(case.plan, added(case))


def commands(item: Todo) -> list[str]:
    return [spec.cmd for spec in item.acceptance_criteria.tests]


def write_plans(folder: Path) -> Path:
    """Write both files, and return the path of the plan."""
    (folder / "phases").mkdir()
    (folder / "phases/two.yaml").write_text(SUB)
    (folder / "plan.yaml").write_text(PLAN)
    return folder / "plan.yaml"
