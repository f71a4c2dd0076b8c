"""Signatures of a function that a test failed to call: the contract's, and that of the product's source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.session.installation import with_promise

SOURCE = """
class Cart:
    def add(self, item, *, count=1): ...
    def drop(self, item): ...
    @odd
    def move(self, item): ...
    def open(self, item): ...
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
        {"name": "open"},
    ]
    classes = [{"name": "Cart", "methods": methods}]
    for name, module in (("cart.json", "shop.cart"), ("lost.json", "shop.lost")):
        contract = {"contract_version": 1, "module": module, "classes": classes}
        (tmp_path / name).write_text(json.dumps(contract))
    return tmp_path


def failed_call(message: str, file: str = "shop/cart.py", **more: Any) -> Evidence:
    error = ExceptionFact(type="TypeError", qualified="builtins.TypeError", message=message)
    subjects = (Frame(path=file, line=2, function="Cart", side=Side.PRODUCT),)
    return Evidence(kind=EvidenceKind.TEST, exceptions=(error,), subjects=subjects, **more)


@pytest.mark.parametrize(
    ("method", "file", "contract", "promised", "actual"),
    [
        ("add", "shop/cart.py", "cart.json", "Cart.add(item, count=1)", "add(item, *, count=1)"),
        ("drop", "src/shop/cart.py", "cart.json", "Cart.drop(item)", "Cart.drop(item)"),
        ("move", "shop/cart.py", "cart.json", "Cart.move(item)", "move(item)"),
        ("open", "shop/cart.py", "cart.json", "Cart.open(…)", None),
        ("drop", "shop/other.py", "cart.json", "Cart.drop(item)", None),
        ("drop", "shop/lost.py", "lost.json", "Cart.drop(item)", None),
    ],
    ids=["broken", "kept", "inconclusive", "left open", "another module", "no module"],
)
def test_failed_call_reports_promised_and_actual_signature(
    method: str, file: str, contract: str, promised: str, actual: str | None, root: Path
) -> None:
    message = f"Cart.{method}() takes 2 positional arguments but 3 were given"

    found = with_promise(failed_call(message, file, contract_path=contract), root)

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
