"""Rules for code that ran and did something else than a test expects, and for broken promises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import Phase, Side
from pytest_planverify.diagnosis.boundaries import (
    LONGEST,
    definition_of,
    failed_callee,
    keeps_contract,
    signatures_told,
    telling_changes,
)
from pytest_planverify.diagnosis.case import Case, raises_by_hand
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.wording import (
    comparison,
    origin_of_value,
    origins_of_values,
    place,
    quote,
    said,
)

if TYPE_CHECKING:
    from planner.model.evidence import Frame

_FAILED = ("builtins.Failed", "_pytest.outcomes.Failed")
_NOT_RAISED = re.compile(r"^DID NOT (?P<verb>RAISE|WARN)(?P<what>.*)")
_SUBTESTS = re.compile(r"^contains (?P<count>\d+) failed subtests?$")
_DOCTEST = "doctest.DocTestFailure"
_AROUND = (Phase.SETUP, Phase.TEARDOWN)


def _name_of_test(case: Case) -> str:
    frame = case.raised_at
    if frame is not None and frame.side is Side.TEST:
        return place(frame)
    return case.evidence.nodeid or "the test"


def _xpass(case: Case) -> Hit | None:
    if not case.evidence.strict_xpass:
        return None
    return Hit(
        suggestion=f"{case.evidence.nodeid or 'The test'} passes although it is marked xfail(strict): "
        f"take the mark off."
    )


def _subtests(case: Case) -> Hit | None:
    found = _SUBTESTS.match(case.evidence.headline) if case.error is None else None
    if found is None:
        return None
    return Hit(
        suggestion=f"{case.evidence.nodeid} has {found['count']} failed subtests; see their own failures."
    )


def _assertion_in_test(case: Case) -> Hit | None:
    if not case.is_error("builtins.AssertionError") or case.error is None:
        return None
    # A plugin that gathers checks raises once the body of the test is over: nobody is on the way.
    gathered = case.in_nobody and case.evidence.phase is Phase.CALL
    if not case.in_test and not gathered:
        return None
    if case.evidence.self_contained and not case.evidence.executed:
        told = f"{_name_of_test(case)} compares only what it wrote itself: {said(case.error)}."
        return Hit(suggestion=told, owner=Owner.TEST)
    return Hit(
        suggestion=_comparison(case) or f"{_name_of_test(case)} fails: {said(case.error)}.",
        weight=_assertion_weight(case),
        frame=_giving_frame(case),
    )


def _assertion_weight(case: Case) -> float:
    """Less in a fixture, and where nothing of the product is seen to take part."""
    if case.evidence.phase in _AROUND:
        return 0.85
    product = case.evidence.subjects or any(frame.side is Side.PRODUCT for frame in case.frames)
    return 1.0 if product or case.printed else 0.8


def _comparison(case: Case) -> str | None:
    """Who gave which value, and who expects which: from pytest's own explanation of the assertion."""
    compared = comparison(case.error) if case.error else None
    if compared is None:
        return None
    left, operator, right = compared
    given = _giving(case)
    if given is not None and operator in ("==", "is") and given.value == right != left:
        left, right = right, left  # the test wrote the expected value first
    expects = right if operator in ("==", "is") else f"{operator} {right}"
    if operator == "!=":
        expects = (
            right if case.error and not case.error.message.startswith("assert") else f"anything but {right}"
        )
    giver = place(given.frame) if given and given.frame else (given.call if given else None)
    awaited = ", which nobody awaited," if left.startswith("<coroutine object") else ""
    return f"{giver or 'The product'} gave {left}{awaited} where {_name_of_test(case)} expects {expects}."


class _Given(NamedTuple):
    """Which call gave which value of an assertion, and the product's function that was called."""

    frame: Frame | None
    value: str | None = None
    call: str | None = None


def _giving(case: Case) -> _Given | None:
    """The product's function that gave a value, if only one can be meant; else the first call."""
    origins = origins_of_values(case.error) if case.error else ()
    subjects = case.evidence.subjects
    for value, call in origins:
        callee = call.partition("(")[0].rpartition(".")[2]
        for frame in subjects:
            if frame.function.rpartition(".")[2] == callee:
                return _Given(frame, value, call)
    if origins:
        return _Given(None, *origins[0])
    return _Given(subjects[0]) if len(subjects) == 1 else None


def _giving_frame(case: Case) -> Frame | None:
    given = _giving(case)
    return given.frame if given else None


def _not_raised(case: Case) -> Hit | None:
    found = _NOT_RAISED.match(case.error.message) if case.error else None
    if found is None or not case.is_error(*_FAILED):
        return None
    verb = "raise" if found["verb"] == "RAISE" else "warn"
    giver = place(case.evidence.subjects[0]) if len(case.evidence.subjects) == 1 else "The product"
    return Hit(
        suggestion=f"{giver} did not "
        f"{verb}{quote(found['what'], 80) and ' ' + quote(found['what'], 80)} where "
        f"{_name_of_test(case)} expects it.",
        weight=1.0 if case.in_test else 0.9,
    )


def _doctest(case: Case) -> Hit | None:
    error = case.error
    if error is None or not case.is_error(_DOCTEST):
        return None
    where = Location(path=error.path, line=error.line, function=error.name) if error.path else None
    position = f" ({error.path}:{error.line})" if error.path else ""
    return Hit(
        suggestion=f"The example of {error.name or 'a doctest'}{position}: {quote(error.message)}.",
        location=where,
    )


def _refused_definition(case: Case) -> Hit | None:
    if case.error is None or case.evidence.phase is not Phase.COLLECT or not case.in_nobody:
        return None
    if not case.is_error(*_FAILED, "_pytest.nodes.CollectError", "_pytest.nodes.Collector.CollectError"):
        return None
    return Hit(suggestion=f"pytest refuses how a test is written: {quote(case.error.message, 240)}.")


# fmt: off
BEHAVIOUR_RULES: tuple[Rule, ...] = (
    Rule("strict-xpass", Category.TEST_REGRESSION, 0.9, _xpass, owner=Owner.TEST,
         because="A test that is marked as failing passes, and its mark is strict."),
    Rule("subtests-failed", Category.TEST_REGRESSION, 0.7, _subtests,
         because="Subtests of the test failed."),
    Rule("assertion-in-test", Category.TEST_REGRESSION, 0.95, _assertion_in_test,
         about=("builtins.AssertionError",), second=(Category.SPEC_MISMATCH, 0.05),
         because="An assertion of a test does not hold."),
    Rule("did-not-raise", Category.TEST_REGRESSION, 0.9, _not_raised,
         about=("_pytest.outcomes.Failed", "builtins.Failed",), second=(Category.SPEC_MISMATCH, 0.15),
         because="The product did not raise or warn where the test expects it."),
    Rule("doctest-differs", Category.TEST_REGRESSION, 0.93, _doctest, about=("doctest.DocTestFailure",),
         because="The example of a docstring gave something else."),
    Rule("test-definition-refused", Category.TEST_REGRESSION, 0.75, _refused_definition, owner=Owner.TEST,
         about=("_pytest.nodes.CollectError", "_pytest.nodes.Collector.CollectError", *_FAILED),
         second=(Category.TEST_NOT_FOUND, 0.2),
         because="pytest cannot use a test as it is written."),
)
# fmt: on


_NONE = re.compile(r"'NoneType' object|\bNoneType\b'?(?: and |$)|(?:^| and )'?NoneType'?$")
_PATCHED = re.compile(
    r"^<(?:module|class) '(?P<owner>[\w.]+)'(?: from .*)?> (?:does not have the|has no) attribute "
    r"'(?P<name>\w+)'$"
)
_NONE_TYPE = "builtins.NoneType"
_MODULE = "module "


def _raised_here(case: Case) -> bool:
    """Whether the project's own frame raised, with no library below it."""
    return case.innermost is not None and case.innermost is case.raised_at


def _subject(case: Case, name: str) -> str:
    """Where the named product function is defined, if that is known."""
    frame = definition_of(case, name)
    return name if frame is None else place(frame)


_FOREIGN = (Side.STDLIB, Side.FRAMEWORK)
"""A callee of these may be called by way of a wrapper of theirs."""


def _call_of(*sides: Side | None) -> Reader:
    """Reads a call from the test that does not fit the signature of a callee of these sides."""

    def read(case: Case) -> Hit | None:
        callee = failed_callee(case)
        error, frame = case.error, case.raised_at
        if callee is None or error is None or frame is None or not case.in_test:
            return None
        if not _raised_here(case) and error.object_side not in _FOREIGN:
            return None
        if error.object_side not in sides:
            return None
        return Hit(
            suggestion=f"{_subject(case, callee)} cannot be called as {place(frame)} does: "
            f"{quote(error.message, LONGEST)}.{signatures_told(case)}",
            owner=Owner.TEST if keeps_contract(case) else None,
        )

    return read


def _missing_attribute(case: Case) -> tuple[str, str] | None:
    """Type or module, and name, of an attribute that is not there."""
    error = case.error
    if error is None or not case.is_error("builtins.AttributeError") or error.name is None:
        return None
    return (error.object_type or "an object", error.name)


def _promised_attribute(case: Case) -> Hit | None:
    found, error = _missing_attribute(case), case.error
    if found is None or error is None or not case.in_test or error.object_side is not Side.PRODUCT:
        return None
    kind, name = found
    return Hit(suggestion=f"{kind} has no {name}, which {_at(case)} uses: add it, or settle its name.")


def _patched_attribute(case: Case) -> Hit | None:
    """``monkeypatch.setattr`` and ``mock.patch`` name the target in their message only."""
    if case.error is None or not case.in_test or not case.is_error("builtins.AttributeError"):
        return None
    found = _PATCHED.match(case.error.message)
    if found is None or not case.is_first_party(found["owner"]):
        return None
    return Hit(suggestion=f"{found['owner']} has no {found['name']}, which {_at(case)} replaces.")


def _attribute_of_library_module(case: Case) -> Hit | None:
    found, error = _missing_attribute(case), case.error
    if found is None or error is None or not found[0].startswith(_MODULE) or case.raised_at is None:
        return None
    if error.object_side not in (Side.THIRD_PARTY, Side.STDLIB):
        return None
    return Hit(
        suggestion=f"The installed {found[0].removeprefix(_MODULE)} has no {found[1]}, which "
        f"{_at(case)} uses: pin a "
        "version that has it, or use what this one has.",
        owner=Owner.TEST if case.in_test else Owner.PRODUCT,
    )


def _at(case: Case) -> str:
    return place(case.raised_at) if case.raised_at else "the test"


def _is_about_none(case: Case) -> bool:
    error = case.error
    if error is None:
        return False
    if case.is_error("builtins.AttributeError"):
        return error.object_type == _NONE_TYPE
    return case.is_error("builtins.TypeError") and bool(_NONE.search(error.message.partition("\n")[0]))


def _none_at_test(case: Case) -> Hit | None:
    if not case.in_test or not _is_about_none(case) or case.error is None:
        return None
    source = origin_of_value(case.error) or _subjects(case)
    return Hit(suggestion=f"{source} gave None where {_at(case)} uses the result: {said(case.error)}.")


def _subjects(case: Case, *, within: bool = False) -> str:
    """The function of the product that is meant, at the beginning of a sentence or within one."""
    subjects = case.evidence.subjects
    return place(subjects[0]) if len(subjects) == 1 else ("the product" if within else "The product")


def _kind_in_product(case: Case) -> Hit | None:
    error = case.error
    if (
        error is None
        or not case.in_product
        or not case.is_error("builtins.TypeError", "builtins.AttributeError")
    ):
        return None
    if raises_by_hand(case.raised_at):
        return Hit(suggestion=f"{_at(case)} refuses the kind of a value: {said(error)}.", weight=0.7)
    weight = 1.0 if _raised_here(case) else 0.85
    return Hit(suggestion=f"{_at(case)} meets a value of the wrong kind: {said(error)}.", weight=weight)


# fmt: off
BOUNDARY_RULES: tuple[Rule, ...] = (
    Rule("call-does-not-fit-signature", Category.SPEC_MISMATCH, 0.95,
         telling_changes(_call_of(Side.PRODUCT)),
         about=("builtins.TypeError",), second=(Category.TEST_REGRESSION, 0.05),
         because="The test calls a product function with arguments that it does not take."),
    Rule("call-does-not-fit-probably", Category.SPEC_MISMATCH, 0.85, telling_changes(_call_of(None)),
         about=("builtins.TypeError",), second=(Category.TEST_REGRESSION, 0.15),
         because="The test calls something, probably the product's, with arguments that it does not take."),
    Rule("promised-attribute-missing", Category.SPEC_MISMATCH, 0.93, telling_changes(_promised_attribute),
         about=("builtins.AttributeError",), second=(Category.TEST_REGRESSION, 0.1),
         because="The test uses an attribute that a product module or class lacks."),
    Rule("patched-attribute-missing", Category.SPEC_MISMATCH, 0.9, telling_changes(_patched_attribute),
         about=("builtins.AttributeError",),
         because="The test replaces an attribute that a product module or class lacks."),
    Rule("attribute-of-library-missing", Category.IMPORT_ERROR, 0.65, _attribute_of_library_module,
         about=("builtins.AttributeError",), second=(Category.TEST_REGRESSION, 0.3),
         because="An installed module lacks an attribute that is used."),
    Rule("none-at-boundary", Category.TEST_REGRESSION, 0.8, _none_at_test,
         about=("builtins.AttributeError", "builtins.TypeError",), second=(Category.TYPE_ERROR, 0.25),
         because="The test uses a result, and the product gave None."),
    Rule("wrong-kind-inside-product", Category.TYPE_ERROR, 0.88, _kind_in_product,
         about=("builtins.AttributeError", "builtins.TypeError",), second=(Category.TEST_REGRESSION, 0.2),
         because="Product code meets a value of the wrong kind."),
)
# fmt: on


_LOCAL = re.compile(r"variable '(?P<name>\w+)'")


def _name(case: Case) -> str | None:
    if case.error is None or case.raised_at is None or not case.is_error("builtins.NameError"):
        return None
    found = _LOCAL.search(case.error.message)
    return case.error.name or (found["name"] if found else quote(case.error.message))


def _undefined_in_test(case: Case) -> Hit | None:
    name = _name(case)
    if name is None or not case.in_test or case.is_error("builtins.UnboundLocalError"):
        return None
    return Hit(
        suggestion=f"{_at(case)} uses {name}, which nothing defines: import it, or correct the name."
    )


# fmt: off
NAME_RULES: tuple[Rule, ...] = (
    Rule("undefined-name-in-test", Category.TEST_REGRESSION, 0.75, _undefined_in_test, owner=Owner.TEST,
         about=("builtins.NameError",), second=(Category.SPEC_MISMATCH, 0.25),
         because="The test uses a name that nothing defines."),
)
# fmt: on


_AROUND_NAMES = {
    Phase.SETUP: "The set-up",
    Phase.TEARDOWN: "The teardown",
    Phase.SESSION: "The conftest or hook",
}


def _at_raising(case: Case) -> str:
    return place(case.raised_at) if case.raised_at else "The code"


def _warning(case: Case) -> Hit | None:
    if not case.is_error("builtins.Warning") or case.error is None:
        return None
    by_test = case.in_test and not case.only_product_changed
    owner = Owner.ENVIRONMENT if case.in_nobody else (Owner.TEST if by_test else Owner.PRODUCT)
    return Hit(suggestion=f"A warning is an error "
    f"here{f', in {_at_raising(case)}' if case.raised_at else ''}: {said(case.error)}.",
               owner=owner)  # fmt: skip


def _raised_in_product(case: Case) -> Hit | None:
    if not case.in_product or case.error is None:
        return None
    source = f" at `{quote(case.raised_at.source, 80)}`" if case.raised_at and case.raised_at.source else ""
    return Hit(
        suggestion=f"{_at_raising(case)} raises {said(case.error)}{source}.",
        weight=1.0 if case.innermost is case.raised_at else 0.93,
    )


def _raised_around_test(case: Case) -> Hit | None:
    phase = _AROUND_NAMES.get(case.evidence.phase) if case.evidence.phase else None
    if not case.in_test or phase is None or case.error is None or case.evidence.subjects:
        return None
    if case.only_product_changed:
        return None
    return Hit(suggestion=f"{phase} in {_at_raising(case)} fails by itself: {said(case.error)}.")


def _raised_in_test_alone(case: Case) -> Hit | None:
    """In test code that names nothing of the product, so that nothing of it can have given the value."""
    if not case.in_test or case.error is None or case.evidence.subjects or case.printed:
        return None
    if case.only_product_changed:
        return None  # what was changed is at fault rather than what was not
    return Hit(suggestion=f"{_at_raising(case)} raises {said(case.error)} by itself.")


def _raised_in_test(case: Case) -> Hit | None:
    if not case.in_test or case.error is None:
        return None
    deeper = next((each.raised_at for each in case.deeper_cases if each.in_product), None)
    if deeper is not None:
        return Hit(
            suggestion=f"{place(deeper)} raises, and {_at_raising(case)} gets to see {said(case.error)}.",
            frame=deeper,
        )
    giver = place(case.evidence.subjects[0]) if len(case.evidence.subjects) == 1 else "the product"
    return Hit(suggestion=f"{_at_raising(case)} cannot work with what {giver} gave: {said(case.error)}.")


def _raised_by_nobody(case: Case) -> Hit | None:
    if case.error is None or not case.in_nobody:
        return None
    last = case.innermost
    where = f" in {place(last)}" if last else ""
    return Hit(
        suggestion=f"{said(case.error)}{where}, with no code of the project on the way.",
        frame=last,
    )


# fmt: off
RAISING_RULES: tuple[Rule, ...] = (
    Rule("warning-is-an-error", Category.TEST_REGRESSION, 0.7, _warning, about=("builtins.Warning",),
         second=(Category.ENVIRONMENT_ERROR, 0.25),
         because="A warning was turned into an error."),
    Rule("raised-in-product", Category.TEST_REGRESSION, 0.9, _raised_in_product,
         because="Product code raised, and the test did not expect it."),
    Rule("raised-around-test", Category.TEST_REGRESSION, 0.65, _raised_around_test, owner=Owner.TEST,
         second=(Category.ENVIRONMENT_ERROR, 0.3),
         because="Set-up, teardown or hook code of the tests failed by itself."),
    Rule("raised-in-test-alone", Category.TEST_REGRESSION, 0.65, _raised_in_test_alone, owner=Owner.TEST,
         second=(Category.ENVIRONMENT_ERROR, 0.15),
         because="Test code that names nothing of the product raised."),
    Rule("raised-in-test", Category.TEST_REGRESSION, 0.75, _raised_in_test,
         second=(Category.SPEC_MISMATCH, 0.2),
         because="Test code raised while it worked with what the product gave."),
)
# fmt: on

# fmt: off
LAST_RULES: tuple[Rule, ...] = (
    Rule("raised-outside-project", Category.ENVIRONMENT_ERROR, 0.5, _raised_by_nobody,
         second=(Category.UNKNOWN, 0.4),
         because="Something failed with no code of the project on the way."),
)
# fmt: on
