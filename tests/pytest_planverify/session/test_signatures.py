"""Signatures in the product's source of functions that a test failed to call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.model.evidence import Evidence, ExceptionFact, Frame
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.session.installation import actual_signature, with_promise

SOURCE = """
import functools, sys

def plain(a, b: int = 2, /, c="x", *rest: str, d, e=None, **more) -> list[int]: ...

@functools.lru_cache
def cached(a): ...

if sys.platform == "win32":
    def twice(a): ...
else:
    def twice(b): ...

class Cart:
    def __init__(self, owner): ...
    def add(self, item, *, count=1): ...
    @classmethod
    def of(cls, text): ...
    @staticmethod
    def tax(rate): ...
    class Line:
        def show(self, width=3): ...

class Bare: ...

attribute = 3
"""


def subject(function: str = "plain", path: str = "shop/cart.py") -> Frame:
    return Frame(path=path, line=1, function=function, side=Side.PRODUCT)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "cart.py").write_text(SOURCE)
    return tmp_path


@pytest.mark.parametrize(
    ("callee", "shown"),
    [
        ("plain", "plain(a, b: int = 2, /, c='x', *rest: str, d, e=None, **more) -> list[int]"),
        ("Cart.__init__", "Cart.__init__(owner)"),
        ("Cart.add", "Cart.add(item, *, count=1)"),
        ("Cart.of", "Cart.of(text)"),
        ("Cart.tax", "Cart.tax(rate)"),
        ("Cart.Line.show", "Cart.Line.show(width=3)"),
        ("Bare", "Bare()"),
        ("cached", "cached(a)"),
        ("twice", None),
        ("missing", None),
        ("attribute", None),
        ("Cart.missing", None),
        ("make.<locals>.inner", None),
    ],
)
def test_actual_signature_is_read_from_the_source(callee: str, shown: str | None, root: Path) -> None:
    assert actual_signature(callee, [subject(callee)], root) == shown


def test_file_of_the_class_is_searched_first(root: Path) -> None:
    (root / "other.py").write_text("class Cart:\n    def add(self, other): ...\n")
    subjects = [subject("helper", "other.py"), subject("Cart")]
    assert actual_signature("Cart.add", subjects, root) == "Cart.add(item, *, count=1)"
    assert actual_signature("Cart.of", [subject("x", "gone.py"), *subjects], root) == "Cart.of(text)"


def test_unreadable_and_outside_files_are_not_read(root: Path) -> None:
    (root / "broken.py").write_text("def plain(:\n")
    (root / "null.py").write_bytes(b"\x00")
    outside = root.parent / f"{root.name}_outside.py"
    outside.write_text("def plain(secret): ...\n")
    (root / "link.py").symlink_to(outside)
    for path in ("broken.py", "null.py", "link.py", str(outside), f"../{outside.name}", "shop", "gone.py"):
        assert actual_signature("plain", [subject(path=path)], root) is None, path


def failed_call(message: str, **more: Any) -> Evidence:
    error = ExceptionFact(type="TypeError", qualified="builtins.TypeError", message=message)
    return Evidence(kind=EvidenceKind.TEST, exceptions=(error,), subjects=(subject("Cart"),), **more)


def test_failed_call_reports_promised_and_actual_signature(root: Path) -> None:
    method = {"name": "add", "parameters": [{"name": "item"}, {"name": "count", "default": "1"}]}
    contract = {
        "contract_version": 1,
        "module": "shop.cart",
        "classes": [{"name": "Cart", "methods": [method]}],
    }
    (root / "cart.json").write_text(json.dumps(contract))
    message = "Cart.add() takes 2 positional arguments but 3 were given"

    with_both = with_promise(failed_call(message, contract_path="cart.json"), root)
    without_contract = with_promise(failed_call(message), root)

    actual = "Cart.add(item, *, count=1)"
    assert (with_both.promised, with_both.actual_signature) == ("Cart.add(item, count=1)", actual)
    assert (without_contract.promised, without_contract.actual_signature) == (None, actual)
    assert with_promise(with_both, root) == with_both


@pytest.mark.parametrize("message", ["unsupported operand", "gone() takes 1 positional argument"])
def test_signatures_are_not_read_for_other_failures(message: str, root: Path) -> None:
    evidence = failed_call(message, contract_path="gone.json")
    assert with_promise(evidence, root) is evidence
    bare = evidence.model_copy(update={"subjects": ()})
    assert with_promise(bare, root) is bare
    nothing = Evidence(kind=EvidenceKind.TEST)
    assert with_promise(nothing, root) is nothing
