"""Grouping of failures by cause, and the order of causes: those that hide others come first."""

import random
from dataclasses import replace
from typing import Any

import pytest
from diagnosis_samples import error, failed, frame
from hypothesis import given
from hypothesis import strategies as st

from planner.model.evidence import (
    ArtifactFact,
    ChangedFile,
    CommandFact,
    Confirmation,
    Evidence,
    Finding,
    Frame,
    Hunk,
    Selector,
)
from planner.model.outcome import Diagnosis
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Phase, Side
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.diagnosis.causes import SeenFailure, find_causes, grouping

SHOP = "shop"

# In the builders, ``file`` is a part of a name: of ``tests/test_a.py`` it is ``a``.


def raised(
    file: str,
    *frames: Frame,
    kind: str = "KeyError",
    message: str = "'a'",
    test: str = "test_it",
    **more: Any,
) -> Evidence:
    """Return evidence of a test that raised; ``frames`` are those below the test."""
    path = f"tests/test_{file}.py"
    return failed(error(kind, message, frame(path, test), *frames, **more), nodeid=f"{path}::{test}")


def asserted(file: str, message: str, *subjects: Frame, source: str = "assert x") -> Evidence:
    """Return evidence of a test whose own assertion failed."""
    path = f"tests/test_{file}.py"
    wrong = error("AssertionError", message, frame(path, "test_it", source=source))
    return failed(wrong, nodeid=f"{path}::test_it", subjects=subjects)


def unfound(todo: str, name: str) -> Evidence:
    """Return evidence of a test that asks for a fixture that does not exist."""
    asks, kind = frame(f"tests/test_{todo}.py", f"test_{todo}"), "_pytest.fixtures.FixtureLookupError"
    return failed(error(kind, f"fixture '{name}' not found", asks, name=name), phase=Phase.SETUP)


def refused(
    file: str,
    fixture: str = "service",
    why: str = "bad",
    *,
    kind: str = "ValueError",
    test: str = "test_it",
) -> Evidence:
    """Return evidence of a test whose fixture raised."""
    raising = error(kind, why, frame("tests/conftest.py", fixture))
    return failed(raising, nodeid=f"tests/test_{file}.py::{test}", phase=Phase.SETUP)


def uncollected(file: str, kind: str, message: str, *frames: Frame, **more: Any) -> Evidence:
    """Return evidence of a test file that failed to import; ``frames`` are those below it."""
    path = f"tests/test_{file}.py"
    raising = error(kind, message, frame(path, "<module>"), *frames, **more)
    return failed(raising, nodeid=path, kind=EvidenceKind.COLLECTION, phase=Phase.COLLECT)


def missing(file: str, module: str, *frames: Frame) -> Evidence:
    return uncollected(file, "ModuleNotFoundError", f"No module named '{module}'", *frames, name=module)


def no_name(file: str, name: str) -> Evidence:
    message = f"cannot import name '{name}' from 'shop.cart' (/project/shop/cart.py)"
    return uncollected(file, "ImportError", message, name="shop.cart")


def example(function: str) -> Evidence:
    wrong = error("doctest.DocTestFailure", "1 gave 1", name=function, path="shop/tax.py", line=3)
    return failed(wrong, nodeid=f"shop/tax.py::{function}")


def unparsed(file: str, broken: str = "shop/tax.py") -> Evidence:
    return uncollected(file, "SyntaxError", "expected ':'", path=broken, line=3)


def lacking(file: str, owner: str, name: str, *frames: Frame) -> Evidence:
    facts = {"name": name, "object_type": owner, "object_side": Side.PRODUCT}
    message = f"{owner} has no attribute '{name}'"
    return raised(file, *frames, kind="AttributeError", message=message, **facts)


def unbound(file: str, function: str, module: str | None = "shop.tax") -> Evidence:
    raising = frame("shop/tax.py", function, module=module)
    return raised(file, raising, kind="NameError", message="name 'RATES' is not defined", name="RATES")


def endless(file: str, message: str, function: str = "net") -> Evidence:
    evidence = raised(file, frame("shop/tax.py", function), kind="Failed", message=message)
    return evidence.model_copy(update={"timed_out": True})


def handled(file: str, function: str) -> Evidence:
    inner = error("ImportError", "no speedups", frame("shop/api.py", "load"), name="shop.speedups")
    outer = raised(file, frame("shop/api.py", function), message=function)
    return outer.model_copy(update={"exceptions": (*outer.exceptions, inner)})


def complained(tool: str, *findings: Finding, purpose: str = "lint") -> Evidence:
    """Return evidence of a command that reported these findings."""
    fact = CommandFact(argv=(tool, "shop"), tool=tool, purpose=purpose, findings=findings)
    return Evidence(kind=EvidenceKind.COMMAND, command=fact, headline=findings[0].message)


def absent(path: str) -> Evidence:
    fact = ArtifactFact(path=path, problem="missing")
    return Evidence(kind=EvidenceKind.ARTIFACT, artifact=fact, headline=f"{path} is missing")


def unselected(*paths: str) -> Evidence:
    """Return evidence of a command whose test files do not exist."""
    selectors = tuple(Selector(text=f"{path}::test_it", problem="missing_file") for path in paths)
    headline = f"{', '.join(paths)} does not exist"
    return Evidence(kind=EvidenceKind.SELECTION, selectors=selectors, headline=headline)


def seen(todo: str, evidence: Evidence, *, root: str = "/shop", **more: Any) -> SeenFailure:
    """Return the failure with the diagnosis of the rules; ``more`` overrides its fields."""
    diagnosis = diagnose(evidence)
    return SeenFailure((SHOP, todo), evidence, diagnosis.model_copy(update=more), root)


def plan_of(**depends: str) -> dict[tuple[str | None, str], list[tuple[str | None, str]]]:
    """Return the todos in plan order, each with its dependencies."""
    return {(SHOP, todo): [(SHOP, each) for each in names.split()] for todo, names in depends.items()}


PLAN = plan_of(a="", b="a", c="b")

TAX = frame("shop/tax.py", "rate")
SUM = frame("shop/tax.py", "with_tax")
CART = frame("shop/cart.py", "Cart")
TOTAL = frame("shop/cart.py", "total")
MADE = frame("tests/tools.py", "made")
SHOW = frame("shop/report.py", "show")
TWO = "assert 3 == 4\n +  where 3 = rate(1)"
METHOD = "assert 3 == 4\n +  where 3 = <bound method Cart.total of <shop.cart.Cart object at 0x7f>>()"
PROPERTY = "assert 3 == 4\n +  where 3 = <shop.cart.Cart object at 0x7f>.total"
SYNTAX = Finding(path="shop/tax.py", line=3, code="invalid-syntax", message="Expected ':'")
SYNTAX_OF_MYPY = Finding(path="shop/tax.py", line=3, code="syntax", message="invalid syntax")
UNUSED = Finding(path="shop/cart.py", line=3, code="F401", message="unused import")

ONE_FAULT: dict[str, tuple[Evidence, ...]] = {
    "one module cannot be imported in two files": (
        missing("a", "yaml"),
        missing("b", "yaml", frame("shop/conf.py", "<module>")),
    ),
    "a name that a module lacks, imported and looked up": (
        no_name("a", "total"),
        lacking("b", "module shop.cart", "total"),
        lacking("c", "module shop.cart", "total", SHOW),
    ),
    "an attribute that a class lacks": (
        lacking("b", "shop.cart.Cart", "lines"),
        lacking("c", "shop.cart.Cart", "lines", SHOW),
    ),
    "a file that does not parse, by pytest, linter and type checker": (
        unparsed("a"),
        complained("ruff", SYNTAX),
        complained("mypy", SYNTAX_OF_MYPY, purpose="type_check"),
    ),
    "one example of two docstrings": (example("a"), example("b")),
    "a fixture that does not exist": (unfound("a", "shop"), unfound("b", "shop")),
    "one fixture": (refused("a"), refused("b", why="worse", kind="KeyError")),
    "one function of the product, other messages": (
        raised("a", TAX, message="no such key"),
        raised("b", TOTAL, TAX, message="what is this"),
    ),
    "one helper of the tests": (raised("a", MADE), raised("b", MADE, message="something else here")),
    "arguments that one function does not take": (
        raised("a", kind="TypeError", message="rate() missing 1 required positional argument: 'x'"),
        raised("b", TOTAL, kind="TypeError", message="rate() got an unexpected keyword argument 'y'"),
    ),
    "one function gives the value, as pytest shows it": (
        asserted("a", TWO, TAX, SUM),
        asserted("b", "assert 5 == 7\n +  where 5 = rate(2)", TAX, SUM),
    ),
    "one method gives the value": (asserted("a", METHOD, CART), asserted("b", PROPERTY, CART, TAX)),
    "the only function that a test names": (
        asserted("a", "assert 3 == 4", TAX, source="assert got == 4"),
        asserted("b", "assert 8 == 9", TAX, source="assert wanted == given"),
    ),
    "a function that refuses good values and takes bad ones": (
        raised("a", TAX, kind="ValueError"),
        asserted("b", "DID NOT RAISE", TAX, source="with pytest.raises(ValueError):"),
    ),
    "a value that the test cannot use": (
        asserted("a", TWO, TAX),
        failed(
            error(
                "TypeError",
                "'NoneType' object is not subscriptable",
                frame("tests/test_b.py", "test_it", source="assert rate(1)[0] == 2"),
            ),
            nodeid="tests/test_b.py::test_it",
            subjects=(TAX,),
        ),
    ),
    "a name that a module of the product no longer binds": (unbound("a", "net"), unbound("b", "gross")),
    "a test file that a command and the artifacts want": (
        absent("tests/test_a.py"),
        unselected("tests/test_a.py"),
    ),
    "one artifact that two todos want": (absent("out/a.json"), absent("out/a.json")),
}

CHECK = frame("tests/tools.py", "check")
ATTRIBUTE_OF_NONE = {
    "kind": "AttributeError",
    "message": "'NoneType' object has no attribute 'a'",
    "name": "a",
    "object_type": "NoneType",
}

TWO_FAULTS: dict[str, tuple[Evidence, Evidence]] = {
    "other modules": (missing("a", "yaml"), missing("b", "toml")),
    "other names of one module": (no_name("a", "total"), no_name("b", "net")),
    "other files that do not parse": (unparsed("a", "shop/tax.py"), unparsed("b", "shop/cart.py")),
    "a linter that complains of more than the file that does not parse": (
        unparsed("a"),
        complained("ruff", SYNTAX, UNUSED),
    ),
    "other fixtures that do not exist": (unfound("a", "shop"), unfound("b", "till")),
    "other fixtures of one conftest": (refused("a"), refused("b", "database")),
    "other functions of one module": (raised("a", TAX), raised("b", SUM)),
    "functions of one name in other files": (
        raised("a", frame("shop/tax.py", "parse")),
        raised("b", frame("shop/cart.py", "parse")),
    ),
    "two assertions through one helper of the tests": (
        raised("a", CHECK, kind="AssertionError", message="no rows"),
        raised("b", CHECK, kind="AssertionError", message="no columns"),
    ),
    "values of two functions that both tests name": (
        asserted("a", TWO, TAX, SUM),
        asserted("b", "assert 5 == 7\n +  where 5 = with_tax(2)", TAX, SUM),
    ),
    "values that any of two functions may have given": (
        asserted("a", "assert 3 == 4", TAX, SUM, source="assert got == 4"),
        asserted("b", "assert 5 == 7", TAX, SUM, source="assert got == 7"),
    ),
    "other methods of one class": (
        asserted("a", METHOD, CART),
        asserted("b", METHOD.replace("total", "net"), CART),
    ),
    "an attribute of None in two tests": (
        raised("a", **ATTRIBUTE_OF_NONE),
        raised("b", **ATTRIBUTE_OF_NONE),
    ),
    "what was met while another was handled elsewhere": (handled("a", "net"), handled("b", "gross")),
    "other functions that do not come to an end": (
        endless("a", "Timeout"),
        endless("b", "Timeout", "gross"),
    ),
    "names that no module is known to lack": (
        unbound("a", "net", module=None),
        unbound("b", "gross", module=None),
    ),
    "another test file": (absent("tests/test_a.py"), unselected("tests/test_b.py")),
    "other artifacts": (absent("out/a.json"), absent("out/b.json")),
    "a test file, and a command that wants another, too": (
        absent("tests/test_a.py"),
        unselected("tests/test_a.py", "tests/test_b.py"),
    ),
}


def causes_of(*evidence: Evidence) -> int:
    found = [seen(todo, each) for todo, each in zip("abc", evidence, strict=False)]
    return len(find_causes(found, plan_of(a="", b="", c="")))


@pytest.mark.parametrize("evidence", ONE_FAULT.values(), ids=ONE_FAULT)
def test_consequences_of_one_fault_are_one_cause(evidence: tuple[Evidence, ...]):
    assert causes_of(*evidence) == 1


@pytest.mark.parametrize("evidence", TWO_FAULTS.values(), ids=TWO_FAULTS)
def test_unrelated_failures_are_separate_causes(evidence: tuple[Evidence, Evidence]):
    assert causes_of(*evidence) == 2


def test_equal_paths_under_different_roots_are_different_files():
    one = seen("a", missing("a", "shop.tax"), root="/one", signature="1" * 12)
    other = seen("b", missing("b", "shop.tax"), root="/two", signature="2" * 12)
    assert len(find_causes([one, other], PLAN)) == 2


def test_pre_existing_failures_are_a_separate_later_cause():
    evidence = raised("a", TOTAL)
    old, new = seen("a", evidence), seen("b", evidence)

    first, second = find_causes([replace(old, is_old=True), new], PLAN)

    assert [each.todo_id for each in first.todos] == ["b"]
    assert [each.todo_id for each in second.todos] == ["a"]
    assert (first.because, second.because) == (
        "independent of the others",
        "it failed before the work began",
    )


def test_wrong_value_and_timeout_from_one_changed_function_are_one_cause():
    hunk = Hunk(path="shop/cart.py", line=3, added=1, removed=1, function="total", side=Side.PRODUCT)
    changes = {"hunks": (hunk,), "changed": (ChangedFile(path="shop/cart.py", side=Side.PRODUCT),)}
    wrong = raised("a", TOTAL, frame("shop/cart.py", "check"))
    late = raised("b", TOTAL, kind="Failed", message="Timeout (>5.0s)")
    late = late.model_copy(update={"timed_out": True, "limit_seconds": 5})

    (cause,) = find_causes(
        [seen(name, each.model_copy(update=changes)) for name, each in (("a", wrong), ("b", late))], PLAN
    )

    assert cause.category is Category.TEST_REGRESSION


def test_equal_signatures_are_one_cause():
    one = seen("a", absent("out/a.json"), signature="1" * 12)
    other = seen("b", missing("b", "toml"), signature="1" * 12)
    (cause,) = find_causes([one, other], PLAN)
    assert cause.signatures == ("1" * 12,)


def test_a_fixture_that_fails_1700_tests_is_one_cause_with_1700_consequences():
    diagnosis = seen("a", refused("a")).diagnosis
    found = [
        SeenFailure((SHOP, "abc"[n % 3]), refused(f"{n % 9}", why=f"no {n}", test=f"test_{n}"), diagnosis)
        for n in range(1_700)
    ]
    (cause,) = find_causes(found, PLAN)
    assert cause.tests == 1_700
    assert len(cause.top_tests) == 10
    assert [(todo.todo_id, todo.tests) for todo in cause.todos] == [("a", 567), ("b", 567), ("c", 566)]


def test_test_named_by_several_todos_counts_once():
    (cause,) = find_causes([seen(todo, refused("a")) for todo in "ab"], PLAN)
    assert (cause.tests, len(cause.todos)) == (1, 2)


def test_collection_error_counts_as_a_file():
    (cause,) = find_causes([seen("a", missing("a", "yaml"))], PLAN)
    assert (cause.tests, cause.files, cause.top_tests) == (0, 1, ("tests/test_a.py",))


def test_most_confident_failure_represents_the_cause():
    found = [
        seen("a", refused("a", why="vague"), confidence=0.4, signature="1" * 12),
        seen("b", refused("b", why="clear"), confidence=0.9, signature="2" * 12),
    ]
    (cause,) = find_causes(found, PLAN)
    assert (cause.headline, cause.confidence) == ("ValueError: clear", 0.9)
    assert cause.signatures == ("2" * 12, "1" * 12)


def wrong(file: str) -> Evidence:
    return asserted(file, "assert 3 == 4")


def flaky(file: str) -> Evidence:
    answers = (Confirmation(where="alone", passed=True), Confirmation(where="alone", passed=False))
    return wrong(file).model_copy(update={"confirmations": answers})


FIRST: dict[str, tuple[SeenFailure, SeenFailure]] = {
    "a syntax error before an assertion of an earlier todo": (
        seen("b", unparsed("b")),
        seen("a", wrong("a")),
    ),
    "a set-up before an assertion": (seen("b", refused("b")), seen("a", wrong("a"))),
    "an earlier todo before a later one": (seen("a", wrong("z")), seen("b", wrong("a"))),
    "what is red every time before what is not": (seen("c", wrong("c")), seen("a", flaky("a"))),
    "what tests found before what a linter remarks": (
        seen("c", wrong("c")),
        seen("a", complained("ruff", UNUSED), category=Category.LINT_ERROR),
    ),
    "the environment that everything needs before the code": (
        seen("a", refused("a"), category=Category.ENVIRONMENT_ERROR),
        seen("a", unparsed("b")),
    ),
    "a violation before everything": (
        seen("c", wrong("c"), category=Category.HYGIENE_VIOLATION),
        seen("a", unparsed("b")),
    ),
}


@pytest.mark.parametrize("pair", FIRST.values(), ids=FIRST)
def test_cause_that_hides_others_comes_first(pair: tuple[SeenFailure, SeenFailure]):
    for found in (pair, pair[::-1]):
        causes = find_causes(found, PLAN)
        assert [cause.top_tests or cause.headline for cause in causes] == [
            each.shown_by or each.evidence.headline for each in pair
        ]


def test_cause_with_more_consequences_comes_first():
    few = seen("a", raised("a", TAX))
    many = [seen("a", raised("b", TOTAL, test=f"test_{n}")) for n in range(3)]
    causes = find_causes([few, *many], PLAN)
    assert [cause.tests for cause in causes] == [3, 1]
    assert causes[0].because == "explains more failures than the next"


def test_partial_environment_failure_does_not_precede_import_errors():
    found = [
        seen("a", missing("a", "yaml")),
        seen("b", missing("b", "yaml")),
        seen("c", refused("c"), category=Category.ENVIRONMENT_ERROR),
    ]
    assert find_causes(found, PLAN)[0].files == 2


def test_todo_unknown_to_the_plan_comes_last():
    causes = find_causes([seen(todo, wrong(todo)) for todo in ("unknown", "a")], PLAN)
    assert [cause.todos[0].todo_id for cause in causes] == ["a", "unknown"]


def test_long_dependency_chain_is_ordered():
    chain = plan_of(**{f"t{n}": f"t{n - 1}" if n else "" for n in range(3_000)})
    causes = find_causes([seen(f"t{n}", wrong(f"{n}")) for n in (2_999, 0)], chain)
    assert [cause.todos[0].todo_id for cause in causes] == ["t0", "t2999"]
    assert causes[0].because == "in an earlier wave than the next"
    assert causes[0].owner is not Owner.PLAN


TODOS = ("a", "b", "c", "d")
NAMES = st.sampled_from(("one", "two", "three"))


def _test(name: str, other: str, phase: Phase) -> Evidence:
    evidence = raised(name, frame(f"shop/{other}.py", name), message=other, test=f"test_{other}")
    return evidence.model_copy(update={"phase": phase})


def _value(name: str, other: str) -> Evidence:
    subject = frame(f"shop/{other}.py", other)
    return asserted(name, f"assert 1 == 2\n +  where 1 = {other}()", subject)


EVIDENCE = st.one_of(
    st.builds(_test, NAMES, NAMES, st.sampled_from((Phase.CALL, Phase.SETUP))),
    st.builds(missing, NAMES, NAMES),
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


@given(st.lists(SEEN, max_size=8), DEPENDS, st.randoms(use_true_random=False))
def test_every_failure_has_one_cause_and_the_order_is_total(
    found: list[SeenFailure],
    depends: dict[tuple[str | None, str], list[tuple[str | None, str]]],
    chance: random.Random,
):
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
