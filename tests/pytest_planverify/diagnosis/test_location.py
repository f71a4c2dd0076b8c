"""The function that is reported as the place of a failure."""

from typing import Any

import pytest
from diagnosis_samples import TEST_FILE, error, failed, frame

from planner.model.evidence import (
    ChangedFile,
    CommandFact,
    Evidence,
    ExecutedFunction,
    Finding,
    Frame,
    Hunk,
    ProcessEnd,
)
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.diagnosis.location import MOST_CANDIDATES, candidates_of, plain_name
from pytest_planverify.diagnosis.messages import place

TEST = frame("tests/test_shop.py", "test_total", 5, source="assert total(x) == 3")


def of_shop(function: str) -> Frame:
    return frame("shop.py", function, 10)


def ran(function: str, green: int = 0, line_green: int | None = None) -> ExecutedFunction:
    """Return a function that the failing test executed, and of the passing tests ``green``."""
    lines = {} if line_green is None else {"suspect_line": 7, "line_red": 1, "line_green": line_green}
    return ExecutedFunction(path="shop.py", line=3, function=function, green=green, **lines)


def hunk(function: str | None, path: str = "shop.py", side: Side = Side.PRODUCT) -> Hunk:
    return Hunk(path=path, line=12, added=1, removed=1, function=function, side=side)


def failure(*frames: Frame, **more: Any) -> Evidence:
    """Return evidence of a test whose assertion failed; ``frames`` are those below the test."""
    red = min(len(more.get("executed", ())), 1)
    raised = error("AssertionError", "", TEST, *frames)
    return failed(raised, nodeid="tests/test_shop.py::test_total", red_tests=red, green_tests=10, **more)


def ranked(evidence: Evidence) -> list[str | None]:
    return [each.function for each in candidates_of(evidence)]


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("total", "total"),
        ("Cart.add", "Cart.add"),
        ("cached.<locals>.wrapper", "cached.wrapper"),
        ("total.<locals>.<listcomp>", "total"),
        ("<module>", None),
        ("<lambda>", None),
    ],
)
def test_qualified_name_is_shown_as_in_the_source(name: str, plain: str | None):
    assert plain_name(name) == plain


def test_function_that_returned_the_none_of_the_error_ranks_above_the_one_that_uses_it():
    raised = error("TypeError", "'NoneType' object is not iterable", TEST, of_shop("bill"))
    origin = ran("items").model_copy(update={"is_origin_of_none": True})
    found = diagnose(failed(raised, executed=(ran("bill"), origin), red_tests=1, green_tests=10))
    assert found.location == Location(path="shop.py", line=3, function="items")
    assert [each.reasons[-1] for each in found.candidates] == ["origin", "traceback"]
    assert found.suggestion.endswith("not iterable. The None comes from items (shop.py:3).")


def test_code_that_asks_for_an_attribute_ranks_above_the_getattr_that_lacks_it():
    raised = error("AttributeError", "no totl", TEST, of_shop("bill"), of_shop("Cart.__getattr__"))
    functions = (ran("bill"), ran("Cart.__getattr__"))
    found = diagnose(failed(raised, executed=functions, red_tests=1, green_tests=10))
    assert found.location == Location(path="shop.py", line=10, function="bill")


def test_changed_function_precedes_the_raising_one():
    evidence = failure(
        of_shop("total"), executed=(ran("total"), ran("_sum", green=5)), hunks=(hunk("_sum"),)
    )

    first = candidates_of(evidence)[0]

    assert (first.function, first.line, first.reasons) == ("_sum", 12, ("changed", "spectrum"))
    assert first.hunk is not None


ONLY_RED = (ran("total", 9, line_green=9), ran("_sum", 9, line_green=0), ran("_rate", 9, line_green=4))
UNCHANGED = (ran("total", 9), ran("_sum", 1), ran("_rate", 9))
REMARK = hunk(None).model_copy(update={"text": "@@\n+\n+# thinking\n", "added": 2, "removed": 0})
CODE = REMARK.model_copy(update={"text": "@@\n+\n+TAX = 1\n"})

FIRST: dict[str, tuple[str | None, Evidence]] = {
    "a changed function whose line only red tests executed": (
        "_sum",
        failure(executed=ONLY_RED, hunks=tuple(map(hunk, ("total", "_sum", "_rate")))),
    ),
    "changed code of the module": (None, failure(executed=(ran("Cart.add"),), hunks=(hunk(None),))),
    "an added line of code": (None, failure(executed=(ran("_sum"),), hunks=(CODE,))),
    "not an added comment": ("_sum", failure(executed=(ran("_sum"),), hunks=(REMARK,))),
    "without a change, what few green tests executed": ("_sum", failure(executed=UNCHANGED)),
    "what returned the object that an assertion finds false": (
        "between",
        failure(executed=(ran("Refusal.__bool__"), ran("between"))),
    ),
    "without a change, what raised": (
        "_rate",
        failure(of_shop("total"), of_shop("_rate"), executed=UNCHANGED),
    ),
    "a changed function that encloses an executed one": (
        "cached",
        failure(executed=(ran("cached.<locals>.wrapper"),), hunks=(hunk("cached"),)),
    ),
    "an executed function before a changed one that was not": (
        "total",
        failure(of_shop("total"), executed=(ran("total"),), hunks=(hunk("spare", path="other.py"),)),
    ),
    "an executed function before a changed module that was not read": (
        "total",
        failure(
            of_shop("total"),
            executed=(ran("total"),),
            hunks=(hunk(None, path="scratch.py").model_copy(update={"is_unread": True}),),
        ),
    ),
}


@pytest.mark.parametrize(("first", "evidence"), FIRST.values(), ids=FIRST)
def test_most_suspicious_function_is_the_first_candidate(first: str | None, evidence: Evidence):
    assert ranked(evidence)[0] == first


def test_line_executed_only_by_red_tests_is_the_line_of_the_candidate():
    (first, *_) = candidates_of(failure(executed=(ran("_sum", green=9, line_green=0),)))

    assert first.line == 7


def test_deeper_exception_precedes_its_consequence():
    assert candidates_of(failure(of_shop("total")), of_shop("_inner"))[0].function == "_inner"


def test_candidates_are_limited_and_sorted_by_score():
    found = candidates_of(failure(executed=tuple(ran(f"f{n}", green=n) for n in range(9))))

    assert len(found) == MOST_CANDIDATES
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


def test_missing_module_is_located_at_its_import_whatever_else_was_changed():
    importing = frame("shop/__init__.py", "<module>", 2)
    lacking = error("ModuleNotFoundError", "", TEST, importing, bases="ImportError", name="shop.version")
    evidence = failed(lacking, kind=EvidenceKind.COLLECTION, hunks=(hunk("total", path="shop/tax.py"),))
    assert candidates_of(evidence)[0].path == "shop/__init__.py"
    message = "No module named 'shop.version'"
    asked = error("ModuleNotFoundError", message, TEST, bases="ImportError", name="shop.version")
    constant = (hunk(None, path="shop/tax.py"),)
    by_test = evidence.model_copy(
        update={"exceptions": (asked,), "first_party": ("shop",), "hunks": constant}
    )
    assert diagnose(by_test).location == Location(path=TEST.path, line=TEST.line, function=TEST.function)


def test_changed_test_is_a_candidate_after_the_product():
    changed_test = hunk("test_total", "tests/test_shop.py", Side.TEST)

    found = candidates_of(failure(executed=(ran("_sum"),), hunks=(changed_test, hunk("_sum"))))

    assert [each.path for each in found] == ["shop.py", "tests/test_shop.py"]


def test_changed_data_of_tests_take_no_places_of_the_product_functions():
    data = (hunk(None, f"tests/data/{number}.ics", Side.TEST) for number in range(MOST_CANDIDATES))

    found = candidates_of(failure(executed=(ran("_sum"),), hunks=tuple(data)))

    assert [each.path for each in found][:2] == ["shop.py", "tests/data/0.ics"]


def test_changed_test_at_fault_is_a_candidate_however_many_functions_it_executes():
    executed = tuple(ran(f"f{number}") for number in range(MOST_CANDIDATES))
    changed_test = hunk("test_total", "tests/test_shop.py", Side.TEST)

    found = candidates_of(failure(executed=executed, hunks=(changed_test,)), of_tests=True)

    assert [each.path for each in found] == ["tests/test_shop.py"]


def test_changed_fixture_is_the_place_of_a_failure_in_an_unchanged_test():
    changed = ChangedFile(path="tests/conftest.py", side=Side.TEST)
    hunks = tuple(hunk(each, changed.path, Side.TEST) for each in (None, "clean"))
    raised = failure(of_shop("total"), hunks=hunks, changed=(changed,))
    found = diagnose(raised)
    assert (found.owner, found.location) == (
        Owner.TEST,
        Location(path=changed.path, line=12, function="clean"),
    )


def test_of_changed_tests_the_failing_one_comes_first_and_those_of_other_modules_take_no_part():
    file = "tests/test_shop.py"
    places = (
        (file, "test_a"),
        (file, "test_total"),
        ("tests/test_other.py", "test_b"),
        ("tests/tools.py", "make"),
    )
    hunks = tuple(hunk(function, path, Side.TEST) for path, function in places)

    found = candidates_of(failure(hunks=hunks), of_tests=True)

    assert [each.function for each in found] == ["test_total", "test_a", "make"]
    assert not candidates_of(failure(hunks=hunks[2:3]), of_tests=True)


def test_change_that_mentions_a_missing_name_comes_first():
    renamed = hunk(None).model_copy(update={"text": "-def total(x):\n+def sum_of(x):"})
    other = hunk("spare").model_copy(update={"text": "-    return 1\n+    return 2"})

    found = ranked(failed(error("ImportError", "", TEST, name="total"), hunks=(other, renamed)))

    assert found == [None, "spare"]


@pytest.mark.parametrize(
    ("tool", "purpose", "functions"),
    [("mypy", "type_check", ["_sum", "spare"]), ("ruff", "lint", ["_sum"])],
)
def test_other_changes_may_explain_a_type_error_but_not_a_lint_error(
    tool: str, purpose: str, functions: list[str]
):
    finding = Finding(path="shop.py", line=14, message="a message")
    command = CommandFact(argv=(tool,), tool=tool, purpose=purpose, findings=(finding,))
    evidence = Evidence(
        kind=EvidenceKind.COMMAND, command=command, hunks=(hunk("spare", path="other.py"), hunk("_sum"))
    )

    assert ranked(evidence) == functions


@pytest.mark.parametrize(
    ("function", "first"), [(None, "limits.py"), ("Kind", "limits.py"), ("unused", "shop.py")]
)
def test_changed_constants_precede_unchanged_functions(function: str | None, first: str):
    ran = ExecutedFunction(path="shop.py", line=3, function="total", red=1, green=0)
    constants = hunk(function, path="limits.py")

    found = candidates_of(failed(executed=(ran,), red_tests=1, hunks=(constants,)))

    assert found[0].path == first


def test_changed_file_of_no_side_explains_a_failed_command_if_nothing_else_changed():
    page = Hunk(path="docs/index.md", line=3, added=1, removed=1)
    command = CommandFact(argv=("mkdocs", "build"), tool="mkdocs", purpose="build")
    evidence = Evidence(kind=EvidenceKind.COMMAND, command=command, hunks=(page,))
    beside_code = evidence.model_copy(update={"hunks": (page, hunk("_sum"))})

    assert [each.path for each in candidates_of(evidence)] == ["docs/index.md"]
    assert [each.path for each in candidates_of(beside_code)] == ["shop.py"]


def test_changed_document_explains_no_failed_test_that_does_not_name_it():
    pages = tuple(Hunk(path=path, line=1, added=3) for path in ("todo.md", "data.csv"))
    command = CommandFact(argv=("python", "manage.py", "test"), tool="python", purpose="test")
    evidence = Evidence(kind=EvidenceKind.COMMAND, command=command, hunks=pages)
    named = command.model_copy(update={"argv": ("python", "-m", "doctest", "todo.md")})

    assert [each.path for each in candidates_of(evidence)] == ["data.csv"]
    evidence = evidence.model_copy(update={"command": named})
    assert sorted(each.path for each in candidates_of(evidence)) == ["data.csv", "todo.md"]


def test_only_changed_file_of_the_product_is_the_place_of_a_command_that_names_none():
    one, other = (Hunk(path=path, line=3, added=1, removed=1) for path in ("ops.c", "calc.c"))
    test = Hunk(path="tests/ops_test.c", line=1, added=1, removed=1)
    command = CommandFact(argv=("make", "test"), tool="make", purpose="test", output_tail="boom")
    evidence = Evidence(kind=EvidenceKind.COMMAND, command=command, process=ProcessEnd(exit_code=2))

    def place(*hunks: Hunk) -> Location | None:
        return diagnose(evidence.model_copy(update={"hunks": hunks})).location

    assert place(one, test) == Location(path="ops.c", line=3)
    assert place(one, other) is place(test) is place() is None
    failed = (
        'Traceback (most recent call last):\n  File "tests/test_ops.py", line 4, in test\nAssertionError: 1'
    )
    evidence = evidence.model_copy(update={"command": command.model_copy(update={"output_tail": failed})})
    assert place(one) == Location(path="ops.c", line=3)
    assert place(one, other) == Location(path="tests/test_ops.py", line=4, function="test")


CART, CONTRACT = "shop/cart.py", "contracts/cart.json"


def changed(*paths: str) -> tuple[ChangedFile, ...]:
    return tuple(ChangedFile(path=path, side=Side.PRODUCT) for path in paths)


IN_TEST = frame(TEST_FILE, "test_total", 5)


def failed_call(
    message: str = "total() got an unexpected keyword argument 'currency'", **more: Any
) -> Evidence:
    """Return evidence of a test that called a changed function as it cannot be called."""
    fields: dict[str, Any] = {
        "subjects": (frame(CART, "total", 4),),
        "contract_path": CONTRACT,
        "changed": changed(CART),
        "changed_since": "commit",
    }
    return failed(error("TypeError", message, IN_TEST, object_side=Side.PRODUCT), **fields | more)


def test_mismatched_call_reports_both_signatures():
    found = diagnose(failed_call(promised="total(items, currency='EUR')", actual_signature="total(items)"))

    assert (found.category, found.owner) == (Category.SPEC_MISMATCH, Owner.PRODUCT)
    assert found.suggestion == (
        "total (shop/cart.py:4) cannot be called as test_total (tests/test_cart.py:5) does: total() got "
        "an unexpected keyword argument 'currency'. contracts/cart.json promises "
        "total(items, currency='EUR'). The code has total(items)."
    )


def test_mismatched_call_belongs_to_the_test_when_code_matches_its_contract():
    found = diagnose(failed_call(promised="total(items)", actual_signature="total(items)"))

    assert (found.category, found.owner) == (Category.SPEC_MISMATCH, Owner.TEST)
    assert "promises total(items). The code agrees, but the test calls it differently." in found.suggestion


@pytest.mark.parametrize(
    ("object_type", "path"),
    [
        ("module shop.cart", CART),
        ("module shop", "shop/__init__.py"),
        ("shop.cart.Cart", CART),
        ("module other", TEST_FILE),
    ],
    ids=["module", "package", "class", "unknown module"],
)
def test_missing_attribute_is_located_in_the_file_of_its_module(object_type: str, path: str):
    facts = {"name": "total", "object_type": object_type, "object_side": Side.PRODUCT}
    lacking = error("AttributeError", "", IN_TEST, **facts)
    found = diagnose(failed(lacking, changed=changed(CART, "shop/__init__.py")))
    assert found.location is not None
    assert found.location.path == path


def test_mismatched_constructor_names_the_file_of_its_class():
    message = "Cart.__init__() missing 1 required positional argument: 'owner'"
    subjects = (frame("shop/price.py", "price"), frame(CART, "Cart", 3))
    found = diagnose(failed_call(message, subjects=subjects))
    assert found.suggestion.startswith("Cart (shop/cart.py:3) cannot be called as test_total")


def test_mismatched_method_is_not_named_by_its_class():
    message = "Cart.add() got an unexpected keyword argument 'owner'"
    found = diagnose(failed_call(message, subjects=(frame(CART, "Cart", 3),)))
    assert found.suggestion.startswith("Cart.add cannot be called as test_total")


def test_mismatched_call_is_located_at_the_definition_or_its_change_whatever_the_test_executed():
    other = ExecutedFunction(path=CART, line=30, function="Cart.sum", red=1, green=0)
    renamed = hunk("total", CART)
    unchanged = {"executed": (other,), "red_tests": 1, "changed": changed("shop/price.py")}

    defined = diagnose(failed_call(**unchanged))
    altered = diagnose(failed_call(**unchanged, hunks=(renamed,)))

    assert defined.location == Location(path=CART, line=4, function="total")
    assert altered.location == Location(path=CART, line=renamed.line, function="total")


def test_call_of_the_product_that_does_not_fit_is_located_at_the_change_of_the_called_function():
    message = "Cart.__init__() got an unexpected keyword argument 'owner'"
    calls = error("TypeError", message, TEST, of_shop("bill"), object_side=Side.PRODUCT)
    facts: dict[str, Any] = {"executed": (ran("bill"),), "red_tests": 1, "green_tests": 10}
    found = diagnose(failed(calls, hunks=(hunk("Cart.__init__", CART), hunk("other", CART)), **facts))
    assert found.location == Location(path=CART, line=12, function="Cart.__init__")


def test_change_of_another_function_is_not_the_place_of_a_missing_parameter_or_name():
    other = (hunk("other", CART),)
    message = "cannot import name 'total' from 'shop.cart' (/x/shop/cart.py)"
    imported = error("ImportError", message, IN_TEST, name="total", path=CART, object_side=Side.PRODUCT)

    assert diagnose(failed_call(hunks=other)).location == Location(path=CART, line=4, function="total")
    assert diagnose(failed(imported, hunks=other)).location == Location(path=CART)


def test_change_that_removed_a_missing_name_is_the_place_among_others_of_its_file():
    texts = {"-import math": None, "-    see total\n+    see sum": "bill", "-def total(items):\n-": "sum"}
    hunks = tuple(hunk(name, CART).model_copy(update={"text": text}) for text, name in texts.items())
    facts = {"name": "total", "object_type": "module shop.cart", "object_side": Side.PRODUCT}
    lacking = failed(error("AttributeError", "", IN_TEST, **facts), hunks=hunks, changed=changed(CART))
    assert diagnose(lacking).location == Location(path=CART, line=12, function="sum")


def test_change_of_the_called_function_is_the_place_among_others_of_its_class():
    message = "Cart.__init__() got an unexpected keyword argument 'owner'"
    hunks = (hunk("Cart", CART), hunk("Cart.__init__", CART), hunk(None, CART))
    found = diagnose(
        failed_call(message, subjects=(frame(CART, "Cart", 3),), hunks=hunks, executed=(ran("x"),))
    )
    assert found.location == Location(path=CART, line=12, function="Cart.__init__")


def test_change_of_a_method_of_the_same_name_in_another_file_is_not_the_place():
    message = "Cart.__init__() got an unexpected keyword argument 'owner'"
    hunks = (hunk("Cart", CART), hunk("Cart.__init__", "shop/old.py"))
    found = diagnose(
        failed_call(message, subjects=(frame(CART, "Cart", 3),), hunks=hunks, executed=(ran("x"),))
    )
    assert found.location == Location(path=CART, line=12, function="Cart")


def test_name_that_a_change_removed_is_to_be_restored_for_an_import_of_the_product():
    message = "cannot import name 'total' from 'shop.cart' (/x/shop/cart.py)"
    asks = frame("shop/bill.py", "<module>", 2)
    imported = error("ImportError", message, asks, path=CART, object_side=Side.PRODUCT)
    renamed = hunk("sum", CART).model_copy(update={"text": "-def total(items):\n+def sum(items):"})
    lack = "shop.cart has no total, which shop/bill.py:2 imports"

    found = diagnose(failed(imported, hunks=(renamed,)))
    assert found.suggestion == f"{lack}: restore it; the change at shop/cart.py:12 removed it."
    assert diagnose(failed(imported)).suggestion == f"{lack}: add it, or correct the name."


@pytest.mark.parametrize(
    ("path", "end"),
    [(CART, ": restore it; the change at shop/cart.py:12 removed it."), ("shop/bill.py", "not defined.")],
)
def test_name_that_a_change_of_its_file_removed_is_to_be_restored_where_it_is_undefined(
    path: str, end: str
):
    removal = hunk(None, path).model_copy(update={"text": "-from .sums import total"})
    undefined = error("NameError", "name 'total' is not defined", frame(CART, "pay", 4), name="total")
    assert diagnose(failed(undefined, hunks=(removal,))).suggestion.endswith(end)


def test_name_that_several_changes_removed_is_to_be_restored_in_the_class_that_lacks_it():
    text = "-    limit = 3"
    hunks = tuple(
        hunk(function, path).model_copy(update={"text": text})
        for function, path in (("Cart", CART), ("Bill", "shop/bill.py"))
    )
    facts = {"name": "limit", "object_type": "class shop.cart.Cart", "object_side": Side.PRODUCT}
    found = diagnose(
        failed(error("AttributeError", "", IN_TEST, **facts), hunks=hunks, changed=changed(CART))
    )
    assert "the change at shop/cart.py:12 removed it" in found.suggestion


def test_code_at_module_level_is_named_by_its_position_alone():
    assert place(frame("shop/net.py", "<module>", 2)) == "shop/net.py:2"
    assert place(frame("shop/net.py", "outer.<locals>.inner", 2)) == "outer.inner (shop/net.py:2)"


def test_of_equally_suspicious_functions_the_enclosed_one_precedes_the_enclosing_one():
    executed = (ran("create_app"), ran("create_app.<locals>.view"))
    assert ranked(failure(executed=executed)) == ["create_app.view", "create_app"]


def test_change_that_removed_the_import_of_a_missing_name_precedes_executed_changes():
    removal = hunk(None, CART).model_copy(update={"text": "-from .sums import total"})
    hunks = (removal, hunk("main", CART))
    facts = {"name": "total", "object_type": "module shop.cart", "object_side": Side.PRODUCT}
    executed = (ran("main").model_copy(update={"path": CART}),)
    lacking = error("AttributeError", "", IN_TEST, **facts)
    found = diagnose(failed(lacking, hunks=hunks, changed=changed(CART), executed=executed, red_tests=1))
    assert found.location == Location(path=CART, line=12)
    assert "restore it; the change at shop/cart.py:12 removed it" in found.suggestion
