"""Signatures of a function that a test failed to call: the contract's, and that of the product's source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.model.evidence import Evidence, ExceptionFact
from planner.model.verdicts import EvidenceKind
from pytest_planverify.session.installation import with_promise

SOURCE = """
class Cart:
    def add(self, item, *, count=1): ...
    def drop(self, item): ...
    @odd
    def move(self, item): ...
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "cart.py").write_text(SOURCE)
    count = {"name": "count", "default": "1"}
    methods = [
        {"name": "add", "parameters": [{"name": "item"}, count]},
        {"name": "drop", "parameters": [{"name": "item"}]},
        {"name": "move", "parameters": [{"name": "item"}]},
    ]
    classes = [{"name": "Cart", "methods": methods}]
    for name, module in (("cart.json", "shop.cart"), ("lost.json", "shop.lost")):
        contract = {"contract_version": 1, "module": module, "classes": classes}
        (tmp_path / name).write_text(json.dumps(contract))
    return tmp_path


def failed_call(message: str, **more: Any) -> Evidence:
    error = ExceptionFact(type="TypeError", qualified="builtins.TypeError", message=message)
    return Evidence(kind=EvidenceKind.TEST, exceptions=(error,), **more)


@pytest.mark.parametrize(
    ("method", "contract", "promised", "actual"),
    [
        ("add", "cart.json", "Cart.add(item, count=1)", "add(item, *, count=1)"),
        ("drop", "cart.json", "Cart.drop(item)", "Cart.drop(item)"),
        ("move", "cart.json", "Cart.move(item)", "move(item)"),
        ("drop", "lost.json", "Cart.drop(item)", None),
    ],
    ids=["broken", "kept", "inconclusive", "no module"],
)
def test_failed_call_reports_promised_and_actual_signature(
    method: str, contract: str, promised: str, actual: str | None, root: Path
) -> None:
    message = f"Cart.{method}() takes 2 positional arguments but 3 were given"

    found = with_promise(failed_call(message, contract_path=contract), root)

    assert (found.promised, found.actual_signature) == (promised, actual)


@pytest.mark.parametrize(
    ("message", "contract"),
    [
        ("unsupported operand", "cart.json"),
        ("gone() takes 1 positional argument", "cart.json"),
        ("Cart.add() takes 2 positional arguments", "gone.json"),
        ("Cart.add() takes 2 positional arguments", None),
    ],
)
def test_signatures_are_not_read_for_other_failures(message: str, contract: str | None, root: Path) -> None:
    evidence = failed_call(message, contract_path=contract)
    assert with_promise(evidence, root) is evidence
    nothing = Evidence(kind=EvidenceKind.TEST)
    assert with_promise(nothing, root) is nothing
