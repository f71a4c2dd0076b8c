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


def written(text: str, function: str | None = None, path: str = "shop.py") -> Hunk:
    """Return a change with this text."""
    return hunk(function, path).model_copy(update={"text": text})


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


ONLY_RED = (ran("total", 9, line_green=9), ran("_sum", 9, line_green=0), ran("_rate", 9, line_green=4))
UNCHANGED = (ran("total", 9), ran("_sum", 1), ran("_rate", 9))
REMARK = written("@@\n+\n+# thinking\n").model_copy(update={"added": 2, "removed": 0})
CODE = REMARK.model_copy(update={"text": "@@\n+\n+TAX = 1\n"})

UNREAD = hunk(None, path="scratch.py").model_copy(update={"is_unread": True})
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
        failure(of_shop("total"), executed=(ran("total"),), hunks=(UNREAD,)),
    ),
    "a change that mentions a missing name": (
        None,
        failed(
            error("ImportError", "", TEST, name="total"),
            hunks=(
                written("-    return 1\n+    return 2", "spare"),
                written("-def total(x):\n+def sum_of(x):"),
            ),
        ),
    ),
    "of equally suspicious functions, the enclosed one": (
        "create_app.view",
        failure(executed=(ran("create_app"), ran("create_app.<locals>.view"))),
    ),
}


@pytest.mark.parametrize(("first", "evidence"), FIRST.values(), ids=FIRST)
def test_most_suspicious_function_is_the_first_candidate(first: str | None, evidence: Evidence):
    assert ranked(evidence)[0] == first


IN_TEST_FILE = hunk("test_total", "tests/test_shop.py", Side.TEST)
DATA = tuple(hunk(None, f"tests/data/{number}.ics", Side.TEST) for number in range(MOST_CANDIDATES))
RED = {"executed": (ran("total").model_copy(update={"red": 1}),), "red_tests": 1}
PATHS: dict[str, tuple[Evidence, list[str]]] = {
    "a changed test after the product": (
        failure(executed=(ran("_sum"),), hunks=(IN_TEST_FILE, hunk("_sum"))),
        ["shop.py", "tests/test_shop.py"],
    ),
    "data of tests after the product": (
        failure(executed=(ran("_sum"),), hunks=DATA),
        ["shop.py", "tests/data/0.ics"],
    ),
    "changed constants first": (failed(hunks=(hunk(None, "limits.py"),), **RED), ["limits.py"]),
    "constants of a changed class first": (
        failed(hunks=(hunk("Kind", "limits.py"),), **RED),
        ["limits.py"],
    ),
    "no function that was not executed": (failed(hunks=(hunk("unused", "limits.py"),), **RED), ["shop.py"]),
}


@pytest.mark.parametrize(("evidence", "paths"), PATHS.values(), ids=PATHS)
def test_changed_files_have_their_place_among_the_candidates(evidence: Evidence, paths: list[str]):
    assert [each.path for each in candidates_of(evidence)][: len(paths)] == paths


def test_changed_test_at_fault_is_a_candidate_however_many_functions_it_executes():
    executed = tuple(ran(f"f{number}") for number in range(MOST_CANDIDATES))
    found = candidates_of(failure(executed=executed, hunks=(IN_TEST_FILE,)), of_tests=True)
    assert [each.path for each in found] == ["tests/test_shop.py"]


def test_candidate_has_the_line_of_its_change_or_the_one_that_only_red_tests_executed():
    executed = (ran("total"), ran("_sum", green=5))
    first = candidates_of(failure(of_shop("total"), executed=executed, hunks=(hunk("_sum"),)))[0]
    assert (first.function, first.line, first.reasons) == ("_sum", 12, ("changed", "spectrum"))
    assert candidates_of(failure(executed=(ran("_sum", green=9, line_green=0),)))[0].line == 7


def test_deeper_exception_precedes_its_consequence():
    assert candidates_of(failure(of_shop("total")), of_shop("_inner"))[0].function == "_inner"


@pytest.mark.parametrize(
    ("source", "first"),
    [
        ("raise Unreadable(path) from error", "_parse"),
        ("raise Unreadable(path) from error  # a missing price", "_parse"),
        ("raise Unreadable(path) from None", "load"),
        ("raise Unreadable(path)", "load"),
        ("clean_up(path)", "load"),
    ],
)
def test_cause_precedes_the_exception_that_translates_it(source: str, first: str):
    raised = error("Unreadable", "", TEST, frame("shop.py", "load", 20, source=source))
    cause = error("KeyError", "'price'", of_shop("load"), of_shop("_parse"))
    assert ranked(failed(raised, cause))[0] == first


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

NO_CURRENCY = "total() got an unexpected keyword argument 'currency'"
NO_OWNER = "Cart.__init__() got an unexpected keyword argument 'owner'"
NO_NAME = "cannot import name 'total' from 'shop.cart' (/x/shop/cart.py)"
RUN = {"executed": (ran("bill"),), "red_tests": 1, "green_tests": 10}
UNIMPORTED = written("-from .sums import total", path=CART)
LOST = "restore it; the change at shop/cart.py:12 removed it"


def called(message: str = NO_CURRENCY, *subjects: Frame, **more: Any) -> Evidence:
    """Return evidence of a test that called a changed function as it cannot be called."""
    fields: dict[str, Any] = {
        "subjects": subjects or (frame(CART, "total", 4),),
        "contract_path": CONTRACT,
        "changed": changed(CART),
        "changed_since": "commit",
    }
    return failed(error("TypeError", message, IN_TEST, object_side=Side.PRODUCT), **fields | more)


def lacking(object_type: str = "module shop.cart", name: str = "total", **more: Any) -> Evidence:
    """Return evidence of a test that asked for a name that an object of the product lacks."""
    facts = {"name": name, "object_type": object_type, "object_side": Side.PRODUCT}
    fields = {"changed": changed(CART, "shop/__init__.py"), **more}
    return failed(error("AttributeError", "", IN_TEST, **facts), **fields)


def unimported(asks: Frame, *hunks: Hunk, **facts: Any) -> Evidence:
    """Return evidence of a test that failed as a name of the cart could not be imported."""
    raised = error("ImportError", NO_NAME, asks, path=CART, object_side=Side.PRODUCT, **facts)
    return failed(raised, hunks=hunks)


def undefined(path: str) -> Evidence:
    raised = error("NameError", "name 'total' is not defined", frame(CART, "pay", 4), name="total")
    return failed(raised, hunks=(UNIMPORTED.model_copy(update={"path": path}),))


CLASS, BILL = frame(CART, "Cart", 3), frame("shop/bill.py", "<module>", 2)
NO_TOTL = error("AttributeError", "no totl", TEST, of_shop("bill"), of_shop("Cart.__getattr__"))
NO_OWNER_OF_BILL = error("TypeError", NO_OWNER, TEST, of_shop("bill"), object_side=Side.PRODUCT)
BOTH_TOLD = (
    "total (shop/cart.py:4) cannot be called as test_total (tests/test_cart.py:5) does: total() got an "
    "unexpected keyword argument 'currency'. contracts/cart.json promises total(items, currency='EUR'). "
    "The code has total(items)."
)
RENAMED = written("-def total(items):\n+def sum(items):", "sum", CART)
ELSEWHERE = {"executed": (ran("x"),), "red_tests": 1, "changed": changed("shop/price.py")}
LOCATED: dict[str, tuple[Evidence, str, str]] = {
    "code that asks for an attribute before the getattr that lacks it": (
        failed(NO_TOTL, **RUN | {"executed": (ran("bill"), ran("Cart.__getattr__"))}),
        "shop.py:10 bill",
        "",
    ),
    "both signatures of a mismatched call are told": (
        called(promised="total(items, currency='EUR')", actual_signature="total(items)"),
        "shop/cart.py:4 total",
        BOTH_TOLD,
    ),
    "a call that does not match code and contract": (
        called(promised="total(items)", actual_signature="total(items)"),
        "tests/test_cart.py:5 test_total",
        "promises total(items). The code agrees, but the test calls it differently.",
    ),
    "an attribute of a module": (lacking(), CART, ""),
    "an attribute of a package": (lacking("module shop"), "shop/__init__.py", ""),
    "an attribute of a class": (lacking("shop.cart.Cart"), CART, ""),
    "an attribute of an unknown module": (lacking("module other"), TEST_FILE, ""),
    "a constructor that cannot be called so": (
        called(
            "Cart.__init__() missing 1 required positional argument: 'owner'",
            frame("shop/price.py", "price"),
            CLASS,
        ),
        CART,
        "Cart (shop/cart.py:3) cannot be called as test_total",
    ),
    "a method, which is not named by its class": (
        called("Cart.add() got an unexpected keyword argument 'owner'", CLASS),
        CART,
        "Cart.add cannot be called as test_total",
    ),
    "the definition of a mismatched call, whatever was executed": (
        called(**ELSEWHERE),
        "shop/cart.py:4 total",
        "",
    ),
    "the change of a mismatched call, whatever was executed": (
        called(**ELSEWHERE, hunks=(hunk("total", CART),)),
        "shop/cart.py:12 total",
        "",
    ),
    "no change of another function for a missing parameter": (
        called(hunks=(hunk("other", CART),)),
        "shop/cart.py:4 total",
        "",
    ),
    "no change of another function for a missing name": (
        unimported(IN_TEST, hunk("other", CART), name="total"),
        CART,
        "",
    ),
    "the change of the function that the product called": (
        failed(NO_OWNER_OF_BILL, hunks=(hunk("Cart.__init__", CART), hunk("other", CART)), **RUN),
        "shop/cart.py:12 Cart.__init__",
        "",
    ),
    "the change of the called function among others of its class": (
        called(
            NO_OWNER,
            CLASS,
            hunks=tuple(hunk(name, CART) for name in ("Cart", "Cart.__init__", None)),
            executed=(ran("x"),),
        ),
        "shop/cart.py:12 Cart.__init__",
        "",
    ),
    "no change of a method of the same name in another file": (
        called(
            NO_OWNER,
            CLASS,
            hunks=(hunk("Cart", CART), hunk("Cart.__init__", "shop/old.py")),
            executed=(ran("x"),),
        ),
        "shop/cart.py:12 Cart",
        "",
    ),
    "the change that removed a missing name among others of its file": (
        lacking(
            hunks=(
                written("-import math", path=CART),
                written("-    see total\n+    see sum", "bill", CART),
                written("-def total(items):\n-", "sum", CART),
            )
        ),
        "shop/cart.py:12 sum",
        "",
    ),
    "the change that removed the import of a missing name before executed changes": (
        lacking(
            hunks=(UNIMPORTED, hunk("main", CART)),
            executed=(ran("main").model_copy(update={"path": CART}),),
            red_tests=1,
        ),
        "shop/cart.py:12 None",
        LOST,
    ),
    "a removed name that the product imports": (
        unimported(BILL, RENAMED),
        "",
        f"shop.cart has no total, which shop/bill.py:2 imports: {LOST}.",
    ),
    "a name that the product imports, but nothing removed": (
        unimported(BILL),
        "",
        "shop.cart has no total, which shop/bill.py:2 imports: add it, or correct the name.",
    ),
    "a removed import of the file in which the name is undefined": (undefined(CART), "", f": {LOST}."),
    "no removed import of another file": (undefined("shop/bill.py"), "", "not defined."),
    "the class that lacks a name that several changes removed": (
        lacking(
            "class shop.cart.Cart",
            "limit",
            hunks=(
                written("-    limit = 3", "Cart", CART),
                written("-    limit = 3", "Bill", "shop/bill.py"),
            ),
        ),
        CART,
        "the change at shop/cart.py:12 removed it",
    ),
}


@pytest.mark.parametrize(("evidence", "location", "said"), LOCATED.values(), ids=LOCATED)
def test_mismatch_is_located_at_the_definition_or_the_change_that_caused_it(
    evidence: Evidence, location: str, said: str
):
    found = diagnose(evidence)
    assert found.location is not None
    assert f"{found.location.path}:{found.location.line} {found.location.function}".startswith(location)
    assert said in found.suggestion


@pytest.mark.parametrize(
    ("promised", "owner"), [("total(items, currency='EUR')", "product"), ("total(items)", "test")]
)
def test_mismatched_call_belongs_to_the_test_when_code_matches_its_contract(promised: str, owner: str):
    found = diagnose(called(promised=promised, actual_signature="total(items)"))
    assert (found.category, found.owner) == (Category.SPEC_MISMATCH, owner)


def test_code_at_module_level_is_named_by_its_position_alone():
    assert place(frame("shop/net.py", "<module>", 2)) == "shop/net.py:2"
    assert place(frame("shop/net.py", "outer.<locals>.inner", 2)) == "outer.inner (shop/net.py:2)"
