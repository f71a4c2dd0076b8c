"""Plans, outcomes and reports of failed todos, for the tests of repair instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from text_bundles import write_files

from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.outcome import (
    Check,
    Failure,
    FailureReport,
    FixtureUse,
    Location,
    Outcome,
    PlanRef,
    ReportedTodo,
    TestResult,
)
from planner.model.taxonomy import Category, Owner, Repeatability
from planner.model.verdicts import CheckKind, EvidenceKind, Phase, Side, TestOutcome, TodoState, Verdict
from planner.planfile.loader import load_plan

if TYPE_CHECKING:
    from pathlib import Path

    from planner.planfile.loader import LoadedPlan

PLAN_ID = "shop_001"
RUN_ID = "20260101T000000-ab12"
TEST_ID = "tests/test_cart.py::test_total"

PLAN = """\
todo_list_id: shop_001
metadata: {protected_files: [secrets.ini], max_debug_attempts: 4}
items:
  - id: t1
    title: The cart
    intent: A cart that knows its total.
    contract_path: contracts/cart.json
    acceptance_criteria:
      tests:
        - {cmd: pytest tests/test_cart.py -q, timeout_seconds: 20, fixture: data/orders.json}
        - {cmd: ruff check shop}
      expected_artifacts: [{path: out/report.json, schema: schemas/report.json}]
  - {id: t2, title: Invoices, dependencies: [t1], test_file: tests/test_invoice.py}
  - {id: t3, title: Letters, dependencies: [t2], test_file: tests/test_letter.py}
"""

CART = """\
\"\"\"A cart.\"\"\"


def total(orders):
    return sum(price(order) for order in orders)


def price(order):
    return order["price"]


def unused():
    return None
"""

TEST_CART = """\
import json

from shop.cart import total

ORDERS = json.loads("[]")


def test_total():
    assert total(ORDERS) == 3


def test_other():
    assert True
"""

FILES = {
    "plan.yaml": PLAN,
    "shop/__init__.py": "",
    "shop/cart.py": CART,
    "tests/test_cart.py": TEST_CART,
    "tests/test_invoice.py": "def test_invoice(): pass\n",
    "data/orders.json": '{"orders": [{"price": 1}, {"price": 2}], "currency": "EUR"}',
    "contracts/cart.json": '{"contract_version": 1, "module": "shop.cart"}',
    "schemas/report.json": '{"type": "object"}',
}


def project(folder: Path, **files: str) -> LoadedPlan:
    """Write the shop, with files added or replaced, and load its plan."""
    write_files(folder, FILES | files)
    return load_plan(folder / "plan.yaml", boundary=folder)


def failure(category: Category = Category.TEST_REGRESSION, **rest: Any) -> Failure:
    fields: dict[str, Any] = {
        "owner": Owner.PRODUCT,
        "repeatability": Repeatability.DETERMINISTIC,
        "confidence": 0.95,
        "rule": "assertion-in-test",
        "because": "An assertion of a test does not hold.",
        "signature": "abcdef012345",
        "check_id": "tests[0]",
        "phase": Phase.CALL,
        "top_failing_tests": (TEST_ID,),
        "tests": (TEST_ID,),
        "stack_trace_head": "AssertionError: assert 0 == 3",
        "location": Location(path="shop/cart.py", line=4, function="total"),
        "suggestion": "total (shop/cart.py:4) gave 0 where test_total expects 3.",
    }
    return Failure(category=category, **(fields | rest))


def outcome(deciding: Failure | None = None, *others: Failure, **rest: Any) -> Outcome:
    deciding = deciding or failure()
    fields: dict[str, Any] = {
        "todo_id": "t1",
        "plan": PLAN_ID,
        "title": "The cart",
        "state": TodoState.TEST_FAILED,
        "success": False,
        "tests_passed": False,
        "checks": (
            Check(
                id="tests[0]",
                kind=CheckKind.TEST,
                verdict=Verdict.FAILED,
                cmd="pytest tests/test_cart.py -q",
                timeout_seconds=20,
                tests=(TestResult(nodeid=TEST_ID, outcome=TestOutcome.FAILED),),
                fixture=FixtureUse(path="data/orders.json", sha256=None),
            ),
            Check(id="tests[1]", kind=CheckKind.COMMAND, verdict=Verdict.PASSED, cmd="ruff check shop"),
        ),
        "failure_evidence": deciding,
        "failures": (deciding, *others),
    }
    return Outcome(**(fields | rest))


TEST_FRAME = Frame(
    path="tests/test_cart.py",
    line=9,
    function="test_total",
    side=Side.TEST,
    source="assert total(ORDERS) == 3",
)
CART_FRAME = Frame(
    path="shop/cart.py", line=9, function="price", side=Side.PRODUCT, source='return order["price"]'
)


def evidence(**rest: Any) -> Evidence:
    fields: dict[str, Any] = {
        "kind": EvidenceKind.TEST,
        "check_id": "tests[0]",
        "nodeid": TEST_ID,
        "phase": Phase.CALL,
        "headline": "AssertionError: assert 0 == 3",
        "exceptions": (
            ExceptionFact(
                type="AssertionError",
                qualified="builtins.AssertionError",
                message="assert 0 == 3",
                frames=(TEST_FRAME,),
            ),
        ),
        "stdout_tail": "counting\n",
    }
    return Evidence(**(fields | rest))


def report(deciding: Failure | None = None, *seen: Evidence, **rest: Any) -> FailureReport:
    fields: dict[str, Any] = {
        "run_id": RUN_ID,
        "plan": PlanRef(todo_list_id=PLAN_ID, path="plan.yaml", digest="sha256:00"),
        "todo": ReportedTodo(id="t1", title="The cart"),
        "failures": (deciding or failure(),),
        "evidence": seen or (evidence(),),
    }
    return FailureReport(**(fields | rest))
