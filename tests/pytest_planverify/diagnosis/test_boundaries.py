"""A broken promise: which function, what was promised, what is there, and who changed it."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.evidence import ChangedFile, ContractFact, Evidence, ExceptionFact, Frame
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Phase, Side
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.diagnosis.messages import MOST_TOLD, who_changed

CART, TEST, CONTRACT = "shop/cart.py", "tests/test_cart.py", "contracts/cart.json"
SIDES = {CART: Side.PRODUCT, "shop/price.py": Side.PRODUCT, TEST: Side.TEST, CONTRACT: None}


def changed(*paths: str, since: str | None = "baseline", **more: Any) -> Evidence:
    files = tuple(ChangedFile(path=path, side=SIDES.get(path)) for path in paths)
    return Evidence(kind=EvidenceKind.TEST, changed=files, changed_since=since, **more)


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        (
            changed(CART, contract_path=CONTRACT),
            f" Since the baseline {CART} changed, {TEST} and the contract did not.",
        ),
        (changed(CART, since="commit"), f" Since the last commit {CART} changed, {TEST} did not."),
        (
            changed(TEST, since=None),
            f" Since the baseline or the last commit {TEST} changed, {CART} did not.",
        ),
        (changed(CART, TEST), f" Since the baseline {CART} and {TEST} changed."),
        (
            changed(CONTRACT, CART, TEST, contract_path=f"./{CONTRACT}"),
            f" Since the baseline {CART}, {TEST} and the contract changed.",
        ),
        (
            changed(contract_path=CONTRACT),
            f" Since the baseline neither {CART} nor {TEST} nor the contract changed.",
        ),
        (changed("README.md"), f" Since the baseline neither {CART} nor {TEST} changed."),
        (Evidence(kind=EvidenceKind.TEST), ""),
    ],
)
def test_the_sides_of_a_promise_are_told_apart_by_what_changed(evidence: Evidence, sentence: str) -> None:
    assert who_changed(evidence, product=CART, test=TEST) == sentence


def test_where_the_product_is_not_known_what_changed_of_it_is_named() -> None:
    assert who_changed(changed(CART), product=None, test=TEST) == (
        f" Since the baseline {CART} changed, {TEST} did not."
    )
    assert who_changed(changed(TEST), product=None, test=TEST) == (
        f" Since the baseline {TEST} changed, the product did not."
    )
    assert (
        who_changed(changed(), product=None, test=None)
        == " Since the baseline the product has not changed."
    )


def test_of_a_list_that_was_cut_nothing_is_said_to_be_unchanged() -> None:
    many = [f"shop/m{number}.py" for number in range(MOST_TOLD - 1)]
    assert (
        who_changed(changed(CART, *many), product=CART, test=TEST) == f" Since the baseline {CART} changed."
    )
    assert who_changed(changed("x.py", *many), product=CART, test=TEST) == ""


def wrong_call(message: str) -> ExceptionFact:
    frame = Frame(path=TEST, line=5, function="test_total", side=Side.TEST)
    return ExceptionFact(
        type="TypeError",
        qualified="builtins.TypeError",
        message=message,
        frames=(frame,),
        object_side=Side.PRODUCT,
    )


def failed_call(**more: Any) -> Evidence:
    fields: dict[str, Any] = {
        "phase": Phase.CALL,
        "exceptions": (wrong_call("total() got an unexpected keyword argument 'currency'"),),
        "subjects": (Frame(path=CART, line=4, function="total", side=Side.PRODUCT),),
        "contract_path": CONTRACT,
    }
    return changed(CART, since="commit", **fields | more)


def test_a_call_that_does_not_fit_tells_both_signatures_and_who_changed() -> None:
    found = diagnose(failed_call(promised="total(items, currency='EUR')", actual_signature="total(items)"))

    assert (found.category, found.owner) == (Category.SPEC_MISMATCH, Owner.PRODUCT)
    assert found.suggestion == (
        "total (shop/cart.py:4) cannot be called as test_total (tests/test_cart.py:5) does: total() got "
        "an unexpected keyword argument 'currency'. contracts/cart.json promises "
        "total(items, currency='EUR'). The code has total(items). "
        "Since the last commit shop/cart.py changed, tests/test_cart.py and the contract did not."
    )


def test_where_the_code_keeps_its_contract_the_test_is_at_fault() -> None:
    found = diagnose(failed_call(promised="total(items)", actual_signature="total(items)"))

    assert (found.category, found.owner) == (Category.SPEC_MISMATCH, Owner.TEST)
    assert "promises total(items). The code agrees, but the test calls it differently." in found.suggestion


def test_what_changed_is_told_whatever_the_length_of_the_rest() -> None:
    long = "total(" + ", ".join(f"argument_{number}" for number in range(90)) + ")"
    found = diagnose(failed_call(promised=long, actual_signature=long.replace("argument_1", "other")))
    assert found.suggestion.endswith("and the contract did not.")
    fact = ContractFact(
        path=CONTRACT,
        function="total",
        problem="signature",
        expected=long,
        actual=long.replace("argument_1", "other"),
        why=long,
        module_path=CART,
        line=4,
    )
    told = changed(CART, contract=fact, contract_path=CONTRACT, headline=long * 9).model_copy(
        update={"kind": EvidenceKind.CONTRACT}
    )
    assert diagnose(told).suggestion.endswith(
        " Since the baseline shop/cart.py changed, the contract did not."
    )
    headless = told.model_copy(update={"contract": fact.model_copy(update={"why": None, "expected": None})})
    assert diagnose(headless).suggestion.endswith("shop/cart.py changed, the contract did not.")


def missing(name: str, object_type: str, *changes: str, **more: Any) -> Evidence:
    frame = Frame(path=TEST, line=5, function="test_total", side=Side.TEST)
    error = ExceptionFact(
        type="AttributeError",
        qualified="builtins.AttributeError",
        name=name,
        object_type=object_type,
        object_side=Side.PRODUCT,
        frames=(frame,),
    )
    return changed(*changes, phase=Phase.CALL, exceptions=(error,), **more)


def test_of_a_missing_attribute_the_file_of_its_module_is_named() -> None:
    found = diagnose(missing("total", "module shop.cart", "shop/price.py", CART))
    assert found.suggestion.endswith(
        " Since the baseline shop/cart.py changed, tests/test_cart.py did not."
    )
    package = diagnose(missing("total", "module shop", "shop/__init__.py", TEST))
    assert package.suggestion.endswith(
        " Since the baseline shop/__init__.py and tests/test_cart.py changed."
    )
    unknown = diagnose(missing("total", "module other", "shop/price.py"))
    assert unknown.suggestion.endswith(
        " Since the baseline shop/price.py changed, tests/test_cart.py did not."
    )


def test_of_a_missing_method_the_only_file_that_the_test_names_is_told() -> None:
    subjects = (Frame(path=CART, line=1, function="Cart", side=Side.PRODUCT),)
    found = diagnose(missing("total", "shop.cart.Cart", CART, subjects=subjects))
    assert found.suggestion.endswith(
        " Since the baseline shop/cart.py changed, tests/test_cart.py did not."
    )


def test_of_a_constructor_the_file_of_its_class_is_named() -> None:
    error = wrong_call("Cart.__init__() missing 1 required positional argument: 'owner'")
    subjects = tuple(
        Frame(path=path, line=3, function=name, side=Side.PRODUCT)
        for path, name in (("shop/price.py", "price"), (CART, "Cart"))
    )
    found = diagnose(failed_call(exceptions=(error,), subjects=subjects))
    assert found.suggestion.startswith("Cart (shop/cart.py:3) cannot be called as test_total")
    assert " Since the last commit shop/cart.py changed" in found.suggestion
