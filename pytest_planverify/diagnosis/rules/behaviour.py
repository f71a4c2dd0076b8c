"""Rules for code that ran and did something else than a test expects; the general ones come last."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from planner.model.kinds import Phase, Side
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.reading import Case, raises_by_hand
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.wording import comparison, origins_of_values, place, quote, said

if TYPE_CHECKING:
    from planner.model.evidence import Frame

_FAILED = ("builtins.Failed", "_pytest.outcomes.Failed")
_NOT_RAISED = re.compile(r"^DID NOT (?P<verb>RAISE|WARN)(?P<what>.*)")
_SUBTESTS = re.compile(r"^contains (?P<count>\d+) failed subtests?$")
_WAITED = (
    "builtins.TimeoutError",
    "asyncio.exceptions.TimeoutError",
    "concurrent.futures._base.TimeoutError",
    "subprocess.TimeoutExpired",
    "hypothesis.errors.DeadlineExceeded",
)
_BOTH_ANSWERS = ("hypothesis.errors.Flaky", "hypothesis.errors.FlakyFailure")
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


def _both_answers(case: Case) -> Hit | None:
    if case.error is None or not case.is_error(*_BOTH_ANSWERS):
        return None
    return Hit(suggestion=f"{_name_of_test(case)} gave both answers for one input: {said(case.error)}.")


def _not_implemented(case: Case) -> Hit | None:
    if not case.is_error("builtins.NotImplementedError") or not case.in_product or case.raised_at is None:
        return None
    return Hit(suggestion=f"{place(case.raised_at)} is not implemented yet.")


def _assertion_in_test(case: Case) -> Hit | None:
    if not case.is_error("builtins.AssertionError") or not case.in_test or case.error is None:
        return None
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


def _assertion_in_product(case: Case) -> Hit | None:
    if not case.is_error("builtins.AssertionError") or not case.in_product or case.raised_at is None:
        return None
    return Hit(suggestion=f"An assertion of the product fails in {place(case.raised_at)}: {_source(case)}.")


def _gathered_checks(case: Case) -> Hit | None:
    """Checks that did not hold, for which a plugin raises once the test's body is over."""
    if not case.in_nobody or not case.is_error("builtins.AssertionError") or case.error is None:
        return None
    if case.evidence.phase is not Phase.CALL:
        return None
    return Hit(suggestion=f"A check in {_name_of_test(case)} does not hold: {said(case.error)}.")


def _source(case: Case) -> str:
    frame = case.raised_at
    return quote(frame.source) if frame and frame.source else (said(case.error) if case.error else "")


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


def _failed_by_hand(case: Case) -> Hit | None:
    if case.error is None or not case.is_error(*_FAILED) or case.in_nobody:
        return None
    return Hit(suggestion=f"{_name_of_test(case)} says: {quote(case.error.message)}.")


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


def _waited(case: Case) -> Hit | None:
    if case.error is None or not case.is_error(*_WAITED) or case.in_nobody or case.error.errno is not None:
        return None
    if raises_by_hand(case.innermost) and case.in_product and case.innermost is case.raised_at:
        return None
    around = case.evidence.phase in _AROUND
    return Hit(
        suggestion=f"{place(case.raised_at) if case.raised_at else 'The test'} waited longer than it "
        f"allows itself: "
        f"{said(case.error)}.",
        owner=Owner.ENVIRONMENT if around else None,
        weight=0.8 if around else 1.0,
    )


BEHAVIOUR_RULES: tuple[Rule, ...] = (
    Rule(
        id="strict-xpass",
        because="A test that is marked as failing passes, and its mark is strict.",
        category=Category.TEST_REGRESSION,
        confidence=0.9,
        owner=Owner.TEST,
        read=_xpass,
    ),
    Rule(
        id="subtests-failed",
        because="Subtests of the test failed.",
        category=Category.TEST_REGRESSION,
        confidence=0.7,
        read=_subtests,
    ),
    Rule(
        id="property-gave-both-answers",
        about=frozenset({"hypothesis.errors.Flaky", "hypothesis.errors.FlakyFailure"}),
        because="The test framework saw one input pass and fail.",
        category=Category.FLAKY_TEST,
        confidence=0.85,
        runner_up=(Category.TEST_REGRESSION, 0.2),
        read=_both_answers,
    ),
    Rule(
        id="not-implemented",
        about=frozenset({"builtins.NotImplementedError"}),
        because="Product code says that it is not implemented.",
        category=Category.TEST_REGRESSION,
        confidence=0.95,
        read=_not_implemented,
    ),
    Rule(
        id="assertion-in-test",
        about=frozenset({"builtins.AssertionError"}),
        because="An assertion of a test does not hold.",
        category=Category.TEST_REGRESSION,
        confidence=0.95,
        runner_up=(Category.SPEC_MISMATCH, 0.05),
        read=_assertion_in_test,
    ),
    Rule(
        id="assertion-in-product",
        about=frozenset({"builtins.AssertionError"}),
        because="An assertion of the product itself does not hold.",
        category=Category.TEST_REGRESSION,
        confidence=0.93,
        read=_assertion_in_product,
    ),
    Rule(
        id="gathered-checks",
        about=frozenset({"builtins.AssertionError"}),
        because="A plugin gathered the checks of a test that do not hold.",
        category=Category.TEST_REGRESSION,
        confidence=0.8,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.15),
        read=_gathered_checks,
    ),
    Rule(
        id="did-not-raise",
        about=frozenset({"builtins.Failed", "_pytest.outcomes.Failed"}),
        because="The product did not raise or warn where the test expects it.",
        category=Category.TEST_REGRESSION,
        confidence=0.9,
        runner_up=(Category.SPEC_MISMATCH, 0.15),
        read=_not_raised,
    ),
    Rule(
        id="failed-by-hand",
        about=frozenset({"builtins.Failed", "_pytest.outcomes.Failed"}),
        because="The test called pytest.fail.",
        category=Category.TEST_REGRESSION,
        confidence=0.85,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.1),
        read=_failed_by_hand,
    ),
    Rule(
        id="doctest-differs",
        about=frozenset({"doctest.DocTestFailure"}),
        because="The example of a docstring gave something else.",
        category=Category.TEST_REGRESSION,
        confidence=0.93,
        read=_doctest,
    ),
    Rule(
        id="test-definition-refused",
        about=frozenset(
            {
                "builtins.Failed",
                "_pytest.outcomes.Failed",
                "_pytest.nodes.CollectError",
                "_pytest.nodes.Collector.CollectError",
            }
        ),
        because="pytest cannot use a test as it is written.",
        category=Category.TEST_REGRESSION,
        confidence=0.75,
        owner=Owner.TEST,
        runner_up=(Category.TEST_NOT_FOUND, 0.2),
        read=_refused_definition,
    ),
    Rule(
        id="waited-too-long",
        because="The code gave up waiting for something.",
        category=Category.TEST_TIMEOUT,
        confidence=0.65,
        runner_up=(Category.TEST_REGRESSION, 0.35),
        read=_waited,
    ),
)
