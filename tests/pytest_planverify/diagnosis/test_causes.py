"""Grouping of failures by cause, and the order of causes: those that hide others come first."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.evidence import (
    ArtifactFact,
    ChangedFile,
    CommandFact,
    Confirmation,
    Evidence,
    ExceptionFact,
    Finding,
    Frame,
    Hunk,
    ProcessEnd,
)
from planner.model.outcome import Diagnosis
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Phase, Side
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.diagnosis.causes import SeenFailure, find_causes, grouping

if TYPE_CHECKING:
    from planner.model.outcome import Cause


SHOP = "shop"


def frame(path: str, function: str, *, line: int = 1, source: str = "x = 1", **more: Any) -> Frame:
    side = Side.TEST if path.startswith("tests/") else Side.PRODUCT
    module = path.removesuffix(".py").replace("/", ".")
    return Frame(path=path, line=line, function=function, side=side, source=source, module=module, **more)


def error(kind: str, message: str = "", *frames: Frame, **more: Any) -> ExceptionFact:
    module = "" if "." in kind else "builtins."
    return ExceptionFact(
        type=kind.rpartition(".")[2], qualified=f"{module}{kind}", message=message, frames=frames, **more
    )


def failing(nodeid: str, *errors: ExceptionFact, phase: Phase = Phase.CALL, **more: Any) -> Evidence:
    """Return evidence of a failed test phase with these exceptions."""
    return Evidence(
        kind=EvidenceKind.TEST,
        check_id="tests[0]",
        phase=phase,
        nodeid=nodeid,
        tests=(nodeid,),
        exceptions=errors,
        headline=f"{errors[0].type}: {errors[0].message}" if errors else "failed",
        first_party=("shop",),
        **more,
    )


def asserted(nodeid: str, message: str, *subjects: Frame, source: str = "assert x") -> Evidence:
    """Return evidence of a test whose own assertion failed."""
    path, _, function = nodeid.partition("::")
    failed = error("AssertionError", message, frame(path, function, source=source))
    return failing(nodeid, failed, subjects=subjects)


def uncollected(path: str, failed: ExceptionFact) -> Evidence:
    """Return evidence of a test file that failed to import."""
    return Evidence(
        kind=EvidenceKind.COLLECTION,
        check_id="tests[0]",
        phase=Phase.COLLECT,
        nodeid=path,
        exceptions=(failed,),
        headline=f"{failed.type}: {failed.message}",
        first_party=("shop",),
    )


def complained(tool: str, *findings: Finding, purpose: str = "lint") -> Evidence:
    """Return evidence of a command that reported these findings."""
    fact = CommandFact(argv=(tool, "shop"), tool=tool, purpose=purpose, findings=findings)
    said = findings[0].message if findings else tool
    return Evidence(kind=EvidenceKind.COMMAND, check_id="tests[0]", command=fact, headline=said)


def absent(path: str) -> Evidence:
    fact = ArtifactFact(path=path, problem="missing")
    headline = f"{path} is missing"
    return Evidence(
        kind=EvidenceKind.ARTIFACT, check_id="expected_artifacts[0]", artifact=fact, headline=headline
    )


def seen(
    todo: str, evidence: Evidence, *, root: str = "/shop", plan: str = SHOP, **more: Any
) -> SeenFailure:
    """Return the failure with the diagnosis of the rules; ``more`` overrides its fields."""
    diagnosis = diagnose(evidence)
    return SeenFailure((plan, todo), evidence, diagnosis.model_copy(update=more), root)


def plan_of(**depends: str) -> dict[tuple[str | None, str], list[tuple[str | None, str]]]:
    """Return the todos in plan order, each with its dependencies."""
    return {(SHOP, todo): [(SHOP, each) for each in names.split()] for todo, names in depends.items()}


def top_tests_by_rank(causes: tuple[Cause, ...]) -> list[tuple[str, ...]]:
    return [cause.top_tests for cause in causes]


PLAN = plan_of(a="", b="a", c="b")

SERVICE = ("tests/conftest.py", "service")


def missing(path: str, module: str, *via: str) -> Evidence:
    frames = [frame(path, "<module>"), *(frame(each, "<module>") for each in via)]
    return uncollected(
        path, error("ModuleNotFoundError", f"No module named '{module}'", *frames, name=module)
    )


def no_name(path: str, name: str, module: str = "shop.cart") -> Evidence:
    message = f"cannot import name '{name}' from '{module}' (/project/shop/cart.py)"
    return uncollected(path, error("ImportError", message, frame(path, "<module>"), name=module))


def unparsed(path: str, broken: str = "shop/tax.py") -> Evidence:
    failed = error("SyntaxError", "expected ':'", frame(path, "<module>"), path=broken, line=3)
    return uncollected(path, failed)


def refused(
    test: str, fixture: tuple[str, str] = SERVICE, kind: str = "ValueError", why: str = "bad"
) -> Evidence:
    return failing(f"tests/{test}", error(kind, why, frame(*fixture)), phase=Phase.SETUP)


def raised(test: str, *frames: tuple[str, str], kind: str = "KeyError", message: str = "'a'") -> Evidence:
    path = f"tests/{test}"
    steps = [frame(*path.split("::", 1)), *(frame(*each) for each in frames)]
    return failing(path, error(kind, message, *steps))


def lacking(test: str, owner: str, name: str, *, in_product: bool = False) -> Evidence:
    path = f"tests/{test}"
    steps = [frame(*path.split("::", 1))] + ([frame("shop/report.py", "show")] if in_product else [])
    message = f"{owner} has no attribute '{name}'"
    more = {"name": name, "object_type": owner, "object_side": Side.PRODUCT}
    return failing(path, error("AttributeError", message, *steps, **more))


def of_none(test: str) -> Evidence:
    path = f"tests/{test}"
    message = "'NoneType' object has no attribute 'a'"
    step = frame(*path.split("::", 1))
    return failing(path, error("AttributeError", message, step, name="a", object_type="NoneType"))


def unbound(test: str, function: str, *, module: str | None = "shop.tax") -> Evidence:
    path = f"tests/{test}"
    raising = frame("shop/tax.py", function).model_copy(update={"module": module})
    failed = error(
        "NameError", "name 'RATES' is not defined", frame(*path.split("::")), raising, name="RATES"
    )
    return failing(path, failed)


def endless(test: str, message: str, function: str = "net") -> Evidence:
    path = f"tests/{test}"
    failed = error("Failed", message, frame(*path.split("::")), frame("shop/tax.py", function))
    return failing(path, failed, timed_out=True)


def stopped(test: str) -> Evidence:
    stack = 'Current thread 0x00007f (most recent call first):\n  File "shop/tax.py", line 3 in net\n'
    return failing(f"tests/{test}", timed_out=True, process=ProcessEnd(stack=stack, timed_out=True))


def handled(test: str, function: str) -> Evidence:
    path = f"tests/{test}"
    outer = error("KeyError", function, frame(*path.split("::")), frame("shop/api.py", function))
    inner = error("ImportError", "no speedups", frame("shop/api.py", "load"), name="shop.speedups")
    return failing(path, outer, inner)


TAX = frame("shop/tax.py", "rate")
SUM = frame("shop/tax.py", "with_tax")
CART = frame("shop/cart.py", "Cart")
TWO = "assert 3 == 4\n +  where 3 = rate(1)"
METHOD = "assert 3 == 4\n +  where 3 = <bound method Cart.total of <shop.cart.Cart object at 0x7f>>()"
PROPERTY = "assert 3 == 4\n +  where 3 = <shop.cart.Cart object at 0x7f>.total"

ONE_FAULT: dict[str, tuple[Evidence, ...]] = {
    "one module cannot be imported in two files": (
        missing("tests/test_a.py", "yaml"),
        missing("tests/test_b.py", "yaml", "shop/conf.py"),
    ),
    "a name that a module lacks, imported and looked up": (
        no_name("tests/test_a.py", "total"),
        lacking("test_b.py::test_it", "module shop.cart", "total"),
        lacking("test_c.py::test_it", "module shop.cart", "total", in_product=True),
    ),
    "an attribute that a class lacks": (
        lacking("test_b.py::test_it", "shop.cart.Cart", "lines"),
        lacking("test_c.py::test_other", "shop.cart.Cart", "lines", in_product=True),
    ),
    "a file that does not parse, by pytest, linter and type checker": (
        unparsed("tests/test_a.py"),
        complained(
            "ruff", Finding(path="shop/tax.py", line=3, code="invalid-syntax", message="Expected ':'")
        ),
        complained(
            "mypy",
            Finding(path="shop/tax.py", line=3, code="syntax", message="invalid syntax"),
            purpose="type_check",
        ),
    ),
    "one fixture": (
        refused("test_a.py::test_it"),
        refused("test_b.py::test_it", why="worse", kind="KeyError"),
    ),
    "one function of the product, other messages": (
        raised("test_a.py::test_it", ("shop/tax.py", "rate"), message="no such key"),
        raised(
            "test_b.py::test_it", ("shop/cart.py", "total"), ("shop/tax.py", "rate"), message="what is this"
        ),
    ),
    "one helper of the tests": (
        raised("test_a.py::test_it", ("tests/tools.py", "made")),
        raised("test_b.py::test_it", ("tests/tools.py", "made"), message="something else here"),
    ),
    "arguments that one function does not take": (
        raised(
            "test_a.py::test_it",
            kind="TypeError",
            message="rate() missing 1 required positional argument: 'x'",
        ),
        raised(
            "test_b.py::test_it",
            ("shop/cart.py", "total"),
            kind="TypeError",
            message="rate() got an unexpected keyword argument 'y'",
        ),
    ),
    "one function gives the value, as pytest shows it": (
        asserted("tests/test_a.py::test_it", TWO, TAX, SUM),
        asserted("tests/test_b.py::test_it", "assert 5 == 7", TAX, SUM, source="assert rate(2) == 7"),
    ),
    "one method gives the value": (
        asserted("tests/test_a.py::test_it", METHOD, CART),
        asserted("tests/test_b.py::test_it", PROPERTY, CART, TAX),
        asserted(
            "tests/test_c.py::test_it", "3 != 4", CART, source="self.assertEqual(self.cart.total(), 4)"
        ),
    ),
    "the only function that a test names": (
        asserted("tests/test_a.py::test_it", "assert 3 == 4", TAX, source="assert got == 4"),
        asserted("tests/test_b.py::test_it", "assert 8 == 9", TAX, source="assert wanted == given"),
    ),
    "a function that refuses good values and takes bad ones": (
        raised("test_a.py::test_it", ("shop/tax.py", "rate"), kind="ValueError"),
        asserted(
            "tests/test_b.py::test_it", "DID NOT RAISE", TAX, source="with pytest.raises(ValueError):"
        ),
    ),
    "a value that the test cannot use": (
        asserted("tests/test_a.py::test_it", TWO, TAX),
        failing(
            "tests/test_b.py::test_it",
            error(
                "TypeError",
                "'NoneType' object is not subscriptable",
                frame("tests/test_b.py", "test_it", source="assert rate(1)[0] == 2"),
            ),
            subjects=(TAX,),
        ),
    ),
    "a name that a module of the product no longer binds": (
        unbound("test_a.py::test_it", "net"),
        unbound("test_b.py::test_other", "gross"),
    ),
    "a function that does not come to an end": (
        endless("test_a.py::test_it", "Timeout after 1 s"),
        endless("test_b.py::test_it", "gave up after a while"),
        stopped("test_c.py::test_it"),
    ),
    "one artifact that two todos want": (absent("out/a.json"), absent("out/a.json")),
}

TWO_FAULTS: dict[str, tuple[Evidence, Evidence]] = {
    "other modules": (missing("tests/test_a.py", "yaml"), missing("tests/test_b.py", "toml")),
    "other names of one module": (no_name("tests/test_a.py", "total"), no_name("tests/test_b.py", "net")),
    "other files that do not parse": (
        unparsed("tests/test_a.py", "shop/tax.py"),
        unparsed("tests/test_b.py", "shop/cart.py"),
    ),
    "a linter that complains of more than the file that does not parse": (
        unparsed("tests/test_a.py"),
        complained(
            "ruff",
            Finding(path="shop/tax.py", line=3, code="invalid-syntax", message="Expected ':'"),
            Finding(path="shop/cart.py", line=3, code="F401", message="unused import"),
        ),
    ),
    "other fixtures of one conftest": (
        refused("test_a.py::test_it"),
        refused("test_b.py::test_it", ("tests/conftest.py", "database")),
    ),
    "other functions of one module": (
        raised("test_a.py::test_it", ("shop/tax.py", "rate")),
        raised("test_b.py::test_it", ("shop/tax.py", "with_tax")),
    ),
    "functions of one name in other files": (
        raised("test_a.py::test_it", ("shop/tax.py", "parse")),
        raised("test_b.py::test_it", ("shop/cart.py", "parse")),
    ),
    "two assertions through one helper of the tests": (
        raised("test_a.py::test_it", ("tests/tools.py", "check"), kind="AssertionError", message="no rows"),
        raised(
            "test_b.py::test_it", ("tests/tools.py", "check"), kind="AssertionError", message="no columns"
        ),
    ),
    "values of two functions that both tests name": (
        asserted("tests/test_a.py::test_it", TWO, TAX, SUM),
        asserted("tests/test_b.py::test_it", "assert 5 == 7", TAX, SUM, source="assert with_tax(2) == 7"),
    ),
    "values that any of two functions may have given": (
        asserted("tests/test_a.py::test_it", "assert 3 == 4", TAX, SUM, source="assert got == 4"),
        asserted("tests/test_b.py::test_it", "assert 5 == 7", TAX, SUM, source="assert got == 7"),
    ),
    "other methods of one class": (
        asserted("tests/test_a.py::test_it", METHOD, CART),
        asserted("tests/test_b.py::test_it", "assert 5 == 7", CART, source="assert cart.net() == 7"),
    ),
    "an attribute of None in two tests": (
        of_none("test_a.py::test_it"),
        of_none("test_b.py::test_it"),
    ),
    "what was met while another was handled elsewhere": (
        handled("test_a.py::test_it", "net"),
        handled("test_b.py::test_it", "gross"),
    ),
    "other functions that do not come to an end": (
        endless("test_a.py::test_it", "Timeout"),
        endless("test_b.py::test_it", "Timeout", "gross"),
    ),
    "names that no module is known to lack": (
        unbound("test_a.py::test_it", "net", module=None),
        unbound("test_b.py::test_other", "gross", module=None),
    ),
    "other artifacts": (absent("out/a.json"), absent("out/b.json")),
}


def causes_of(*evidence: Evidence, todos: str = "abc") -> int:
    found = [seen(todos[place % len(todos)], each) for place, each in enumerate(evidence)]
    return len(find_causes(found, plan_of(a="", b="", c="")))


@pytest.mark.parametrize("evidence", ONE_FAULT.values(), ids=ONE_FAULT)
def test_consequences_of_one_fault_are_one_cause(evidence: tuple[Evidence, ...]) -> None:
    assert causes_of(*evidence) == 1


@pytest.mark.parametrize("evidence", TWO_FAULTS.values(), ids=TWO_FAULTS)
def test_unrelated_failures_are_separate_causes(evidence: tuple[Evidence, Evidence]) -> None:
    assert causes_of(*evidence) == 2


def test_equal_paths_under_different_roots_are_different_files() -> None:
    one = seen("a", missing("tests/test_a.py", "shop.tax"), root="/one", signature="1" * 12)
    other = seen("b", missing("tests/test_b.py", "shop.tax"), root="/two", signature="2" * 12)
    assert len(find_causes([one, other], PLAN)) == 2


def test_pre_existing_failures_are_a_separate_later_cause() -> None:
    evidence = raised("test_a.py::test_a", ("shop/cart.py", "total"))
    old, new = seen("a", evidence), seen("b", evidence)

    first, second = find_causes([replace(old, is_old=True), new], PLAN)

    assert [each.todo_id for each in first.todos] == ["b"]
    assert [each.todo_id for each in second.todos] == ["a"]
    assert (first.because, second.because) == (
        "independent of the others",
        "it failed before the work began",
    )


def test_wrong_value_and_timeout_from_one_changed_function_are_one_cause() -> None:
    hunk = Hunk(path="shop/cart.py", line=3, added=1, removed=1, function="total", side=Side.PRODUCT)
    changes = {"hunks": (hunk,), "changed": (ChangedFile(path="shop/cart.py", side=Side.PRODUCT),)}
    wrong = raised("test_a.py::test_a", ("shop/cart.py", "total"), ("shop/cart.py", "check"))
    timeout = error(
        "Failed", "Timeout (>5.0s)", frame("tests/test_b.py", "test_b"), frame("shop/cart.py", "total")
    )
    late = failing("tests/test_b.py::test_b", timeout, timed_out=True, limit_seconds=5)

    (cause,) = find_causes(
        [seen(name, each.model_copy(update=changes)) for name, each in (("a", wrong), ("b", late))], PLAN
    )

    assert cause.category is Category.TEST_REGRESSION


def test_equal_signatures_are_one_cause() -> None:
    one = seen("a", absent("out/a.json"), signature="1" * 12)
    other = seen("b", missing("tests/test_b.py", "toml"), signature="1" * 12)
    (cause,) = find_causes([one, other], PLAN)
    assert cause.signatures == ("1" * 12,)


def test_a_fixture_that_fails_1700_tests_is_one_cause_with_1700_consequences() -> None:
    diagnosis = seen("a", refused("test_a.py::test_it")).diagnosis
    found = [
        SeenFailure((SHOP, "abc"[n % 3]), refused(f"test_{n % 9}.py::test_{n}", why=f"no {n}"), diagnosis)
        for n in range(1_700)
    ]
    (cause,) = find_causes(found, PLAN)
    assert cause.tests == 1_700
    assert len(cause.top_tests) == 10
    assert [(todo.todo_id, todo.tests) for todo in cause.todos] == [("a", 567), ("b", 567), ("c", 566)]


def test_test_named_by_several_todos_counts_once() -> None:
    found = [seen(todo, refused("test_a.py::test_it")) for todo in "ab"]
    (cause,) = find_causes(found, PLAN)
    assert (cause.tests, len(cause.todos)) == (1, 2)


def test_collection_error_counts_as_a_file() -> None:
    (cause,) = find_causes([seen("a", missing("tests/test_a.py", "yaml"))], PLAN)
    assert (cause.tests, cause.files, cause.top_tests) == (0, 1, ("tests/test_a.py",))


def test_most_confident_failure_represents_the_cause() -> None:
    found = [
        seen("a", refused("test_a.py::test_it", why="vague"), confidence=0.4, signature="1" * 12),
        seen("b", refused("test_b.py::test_it", why="clear"), confidence=0.9, signature="2" * 12),
    ]
    (cause,) = find_causes(found, PLAN)
    assert (cause.headline, cause.confidence) == ("ValueError: clear", 0.9)
    assert cause.signatures == ("2" * 12, "1" * 12)


def wrong(test: str) -> Evidence:
    return asserted(f"tests/{test}", "assert 3 == 4")


def flaky(test: str) -> Evidence:
    answers = (Confirmation(where="alone", passed=True), Confirmation(where="alone", passed=False))
    return wrong(test).model_copy(update={"confirmations": answers})


FIRST: dict[str, tuple[SeenFailure, SeenFailure]] = {
    "a syntax error before an assertion of an earlier todo": (
        seen("b", unparsed("tests/test_b.py")),
        seen("a", wrong("test_a.py::test_it")),
    ),
    "a set-up before an assertion": (
        seen("b", refused("test_b.py::test_it")),
        seen("a", wrong("test_a.py::test_it")),
    ),
    "an earlier todo before a later one": (
        seen("a", wrong("test_z.py::test_it")),
        seen("b", wrong("test_a.py::test_it")),
    ),
    "what is red every time before what is not": (
        seen("c", wrong("test_c.py::test_it")),
        seen("a", flaky("test_a.py::test_it")),
    ),
    "what tests found before what a linter remarks": (
        seen("c", wrong("test_c.py::test_it")),
        seen(
            "a",
            complained("ruff", Finding(path="shop/a.py", line=3, code="F401", message="unused import")),
            category=Category.LINT_ERROR,
        ),
    ),
    "the environment that everything needs before the code": (
        seen("a", refused("test_a.py::test_it"), category=Category.ENVIRONMENT_ERROR),
        seen("a", unparsed("tests/test_b.py")),
    ),
    "a violation before everything": (
        seen("c", wrong("test_c.py::test_it"), category=Category.HYGIENE_VIOLATION),
        seen("a", unparsed("tests/test_b.py")),
    ),
}


@pytest.mark.parametrize("pair", FIRST.values(), ids=FIRST)
def test_cause_that_hides_others_comes_first(pair: tuple[SeenFailure, SeenFailure]) -> None:
    for found in (pair, pair[::-1]):
        causes = find_causes(found, PLAN)
        assert [cause.top_tests or cause.headline for cause in causes] == [
            each.shown_by or each.evidence.headline for each in pair
        ]


def test_cause_with_more_consequences_comes_first() -> None:
    few = [seen("a", raised("test_a.py::test_1", ("shop/tax.py", "rate")))]
    many = [seen("a", raised(f"test_b.py::test_{n}", ("shop/cart.py", "add"))) for n in range(3)]
    causes = find_causes([*few, *many], PLAN)
    assert [cause.tests for cause in causes] == [3, 1]
    assert causes[0].because == "explains more failures than the next"


def test_partial_environment_failure_does_not_precede_import_errors() -> None:
    found = [
        seen("a", missing("tests/test_a.py", "yaml")),
        seen("b", missing("tests/test_b.py", "yaml")),
        seen("c", refused("test_c.py::test_it"), category=Category.ENVIRONMENT_ERROR),
    ]
    assert find_causes(found, PLAN)[0].files == 2


def test_cyclic_dependencies_are_ordered() -> None:
    circle = plan_of(a="b", b="a", c="nowhere")
    found = [seen(todo, wrong(f"test_{todo}.py::test_it")) for todo in "cba"]
    assert len(find_causes(found, circle)) == 3


def test_todo_unknown_to_the_plan_comes_last() -> None:
    found = [seen(todo, wrong(f"test_{todo}.py::test_it")) for todo in ("unknown", "a")]
    causes = find_causes(found, PLAN)
    assert top_tests_by_rank(causes) == [("tests/test_a.py::test_it",), ("tests/test_unknown.py::test_it",)]


def test_grouping_returns_indices_of_failures() -> None:
    found = [
        seen("a", wrong("test_a.py::test_it")),
        seen("b", missing("tests/test_b.py", "yaml")),
        seen("c", missing("tests/test_c.py", "yaml")),
    ]
    assert grouping(found, PLAN) == [[1, 2], [0]]


def test_a_green_run_has_no_causes() -> None:
    assert find_causes([], PLAN) == ()


def test_long_dependency_chain_is_ordered() -> None:
    chain = plan_of(**{f"t{n}": f"t{n - 1}" if n else "" for n in range(3_000)})
    found = [seen(f"t{n}", wrong(f"test_{n}.py::test_it")) for n in (2_999, 0)]
    causes = find_causes(found, chain)
    assert [cause.todos[0].todo_id for cause in causes] == ["t0", "t2999"]
    assert causes[0].because == "in an earlier todo than the next"
    assert causes[0].owner is not Owner.PLAN


TODOS = ("a", "b", "c", "d")
NAMES = st.sampled_from(("one", "two", "three"))


def _test(name: str, other: str, phase: Phase) -> Evidence:
    steps = [frame(f"tests/test_{name}.py", f"test_{other}"), frame(f"shop/{other}.py", name)]
    return failing(f"tests/test_{name}.py::test_{other}", error("KeyError", other, *steps), phase=phase)


def _file(name: str, other: str) -> Evidence:
    path = f"tests/test_{name}.py"
    failed = error("ModuleNotFoundError", f"No module named '{other}'", frame(path, "<module>"), name=other)
    return uncollected(path, failed)


def _value(name: str, other: str) -> Evidence:
    subject = frame(f"shop/{other}.py", other)
    return asserted(
        f"tests/test_{name}.py::test_{other}", f"assert 1 == 2\n +  where 1 = {other}()", subject
    )


EVIDENCE = st.one_of(
    st.builds(_test, NAMES, NAMES, st.sampled_from((Phase.CALL, Phase.SETUP))),
    st.builds(_file, NAMES, NAMES),
    st.builds(_value, NAMES, NAMES),
    st.builds(absent, NAMES),
)
DIAGNOSIS = st.builds(
    lambda category, confidence, signature: Diagnosis(
        category=category,
        owner=category.facts.usual_owner,
        confidence=confidence,
        rule="a",
        because="b",
        signature=f"{category}{signature}",
        suggestion="c",
    ),
    st.sampled_from(Category),
    st.sampled_from((0.5, 0.9)),
    st.integers(0, 3),
)
SEEN = st.builds(
    lambda todo, evidence, diagnosis: SeenFailure((SHOP, todo), evidence, diagnosis),
    st.sampled_from((*TODOS, "unknown")),
    EVIDENCE,
    DIAGNOSIS,
)
DEPENDS = st.fixed_dictionaries(
    {
        (SHOP, todo): st.lists(st.sampled_from([(SHOP, each) for each in TODOS]), max_size=2)
        for todo in TODOS
    }
)


@settings(max_examples=40, deadline=None)
@given(st.lists(SEEN, max_size=8), DEPENDS, st.randoms(use_true_random=False))
def test_every_failure_has_one_cause_and_the_order_is_total(
    found: list[SeenFailure],
    depends: dict[tuple[str | None, str], list[tuple[str | None, str]]],
    chance: random.Random,
) -> None:
    causes = find_causes(found, depends)
    groups = grouping(found, depends)
    assert sorted(place for group in groups for place in group) == list(range(len(found)))
    assert [cause.rank for cause in causes] == list(range(1, len(groups) + 1))
    for cause, group in zip(causes, groups, strict=True):
        assert {found[place].diagnosis.signature for place in group} == set(cause.signatures)
        assert cause.because

    signatures = [signature for cause in causes for signature in cause.signatures]
    assert len(signatures) == len(set(signatures))

    shuffled = list(found)
    chance.shuffle(shuffled)
    assert find_causes(shuffled, depends) == causes
