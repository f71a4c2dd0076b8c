"""Rules for code that ran: failed assertions, unexpected exceptions, and mismatched interfaces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path
from planner.model.outcome import Location
from planner.model.taxonomy import Owner, Repeatability
from planner.model.verdicts import Phase, Side
from planner.text.python_text import (
    MIRRORED_OPERATORS,
    callee_of,
    is_expected_first,
    is_result_of,
)
from pytest_planverify.diagnosis.case import Case, is_class, last_frame_of, raises_by_hand, removals_of
from pytest_planverify.diagnosis.messages import (
    comparison,
    error_text,
    origins_of_values,
    place,
    quote,
)
from pytest_planverify.diagnosis.rule import Hit

if TYPE_CHECKING:
    from planner.model.evidence import Frame


_NOT_RAISED = re.compile(r"^DID NOT (?P<verb>RAISE|WARN)(?P<what>.*)")
_ARGUMENTS = re.compile(r"\([^()]*\)")
_NO_MATCH = re.compile(
    r"^Regex pattern did not match\.\n *(?:Expected )?[Rr]egex: (?P<regex>.+)\n *(?:Actual message|Input): "
    r"(?P<message>.+)"
)
_DEFINED = re.compile(r"^(?:In )?(?P<path>\S+?\.py)::(?P<name>\w+(?:::\w+)*): ")
"""The message of a wrong ``parametrize``, which starts with the test."""
_SUBTESTS = re.compile(r"^contains (?P<count>\d+) failed subtests?$")
_PATCHED = re.compile(
    r"^<(?:module|class) '(?P<owner>[\w.]+)'(?: from .*)?> (?:does not have the|has no) attribute "
    r"'(?P<name>\w+)'$"
)
_LONGEST = 110
"""Limit of characters of each message or signature in a suggestion that contains several."""


def _at(case: Case) -> str:
    """Return the raising project frame as a phrase."""
    return place(case.raised_at, "the test")


def _product_file(case: Case) -> str | None:
    """Return the file of the module or class that lacks an attribute; ``None`` if unknown or ambiguous.

    If no known file is that of its module, it is the only file that the failing line refers to.
    """
    kind, _, owner = (case.error.object_type or "").rpartition(" ")
    stem = (owner if kind == "module" else owner.rpartition(".")[0]).replace(".", "/")
    subjects = case.evidence.subjects
    seen = (*subjects, *(case.evidence.changed or ()), *case.evidence.executed) if owner else ()
    ends = (f"{stem}.py", f"{stem}/__init__.py")
    path = next((each.path for each in seen if each.path.endswith(ends)), None)
    if path is not None or kind == "module":
        return path
    files = {frame.path for frame in subjects}
    return files.pop() if len(files) == 1 else None


def _definition(case: Case, name: str) -> Frame | None:
    """Return the frame that defines a product function, or else its class; ``None`` if unknown."""
    owner, _, bare = name.rpartition(".")
    # For a method its class, but never a module-level function that merely has the method's name.
    wanted = (name, owner or bare) if name else ()
    for each in wanted:
        for frame in case.evidence.subjects:
            if each in (frame.function, "" if each is name else frame.function.rpartition(".")[2]):
                return frame
    return None


def call_does_not_fit_signature(case: Case) -> Hit | None:
    """The test calls a product function with arguments that it does not take."""
    callee, error, evidence = callee_of(case.error.message), case.error, case.evidence
    if callee is None or error.object_side not in (Side.PRODUCT, None):
        return None
    if case.innermost is not case.raised_at:
        return None
    promised, actual = evidence.promised, evidence.actual_signature
    is_kept = promised is not None and promised == actual  # then the test contradicts the contract
    contract = f" {evidence.contract_path} promises {quote(promised, _LONGEST)}." if promised else ""
    if is_kept:
        contract += " The code agrees, but the test calls it differently."
    elif actual:
        contract += f" The code has {quote(actual, _LONGEST)}."
    defined = _definition(case, callee)
    known = defined if defined is not None and not defined.path.startswith("<") else None
    # Of a method only the class may be known, and that can be called.
    is_whole = defined is not None and defined.function == callee
    called = place(defined, callee) if is_whole or callee.endswith(("__init__", "__new__")) else callee
    return Hit(
        suggestion=f"{called} cannot be called as {_at(case)} does: "
        f"{quote(error.message, _LONGEST)}.{contract}",
        owner=Owner.TEST if is_kept else None,
        # The call failed before the function ran, so what the test executed does not show the place.
        frame=known,
        holder=known.path if known else None,
        weight=1.0 if error.object_side is Side.PRODUCT else 0.9,
    )


def promised_attribute_missing(case: Case) -> Hit | None:
    """The test uses or replaces an attribute that a product module or class lacks."""
    error = case.error
    if error.name is not None and error.object_side is Side.PRODUCT:
        lacks, name = f"{error.object_type or 'an object'} has no {error.name}", error.name
    elif (found := _PATCHED.match(error.message)) and case.is_first_party(found["owner"]):
        # monkeypatch.setattr and mock.patch name the target in their message only.
        lacks, name = f"{found['owner']} has no {found['name']}", found["name"]
    else:
        return None
    is_raised_by_product = any(frame.side is Side.PRODUCT for frame in case.error.frames)
    return Hit(
        suggestion=f"{lacks}, which {_at(case)} uses: {case.remedy_for_missing(name)}.",
        holder=None if is_raised_by_product else _product_file(case),
    )


def wrong_kind_inside_product(case: Case) -> Hit | None:
    """Product code meets a value of the wrong kind."""
    weight, what = 1.0 if case.innermost is case.raised_at else 0.85, "gets a value of the wrong type"
    # An object of the product has its type; a misspelt or renamed attribute is likelier.
    name = case.error.name if case.error.object_side is Side.PRODUCT else None
    if name is not None and not raises_by_hand(case.innermost):
        lacks = f"uses {name}, which {case.error.object_type or 'its object'} lacks"
        return Hit(suggestion=f"{_at(case)} {lacks}: {case.remedy_for_missing(name)}.", weight=weight)
    if callee_of(case.error.message) is not None:
        what = "makes a call that does not fit"
    if raises_by_hand(case.raised_at):
        weight, what = 0.7, "rejects the type of a value"
    sentence = f"{_at(case)} {what}: {error_text(case.error)}."
    if (
        origin := next((each for each in case.evidence.executed if each.is_origin_of_none), None)
    ) is not None:
        sentence += f" The None comes from {origin.function} ({origin.path}:{origin.line})."
    return Hit(suggestion=sentence, weight=weight)


def undefined_name_in_test(case: Case) -> str | None:
    """The test uses a name that nothing defines."""
    if case.is_error("UnboundLocalError"):
        return None
    name = case.error.name or quote(case.error.message)
    return f"{_at(case)} uses {name}, which nothing defines: import it, or correct the name."


def strict_xpass(case: Case) -> str:
    """A test that is marked as failing passes, and its mark is strict."""
    name = case.evidence.nodeid or "The test"
    return f"{name} passes although it is marked as expected to fail: remove the mark."


def subtests_failed(case: Case) -> str | None:
    """Subtests of the test failed."""
    found = _SUBTESTS.match(case.evidence.headline)
    return found and f"{case.evidence.nodeid} has {found['count']} failed subtests; see their own failures."


def passed_with_these_files(case: Case) -> Hit | None:
    """The test passed at the baseline with the same files, and now fails each time."""
    if not case.evidence.passed_unchanged or case.repeatability is not Repeatability.DETERMINISTIC:
        return None
    # Only code that involves chance is run so often.
    chance = " Its code involves chance, which may be the cause, too." if case.happened_again else ""
    return Hit(
        suggestion=f"{_at(case)} raises {error_text(case.error)}, but passed with the same files at the "
        "baseline. Restore what differs outside of them: a variable, a program, the clock or a package."
        f"{chance}",
        weight=0.6 if chance else 1.0,
    )


def assertion_in_test(case: Case) -> Hit | None:
    """An assertion of a test does not hold."""
    evidence = case.evidence
    # A plugin for soft assertions raises after the test's body, so no project frame is on the stack.
    if not case.in_test and not (case.raised_at is None and evidence.phase is Phase.CALL):
        return None
    test = _at(case) if case.in_test else evidence.nodeid or "the test"
    if evidence.self_contained and not evidence.executed:
        sentence = f"{test} compares only its own values: {error_text(case.error)}."
        return Hit(suggestion=sentence, owner=Owner.TEST)
    if found := _NO_MATCH.search(case.error.message):
        sentence = (
            f"{_subject(case, 'The product')} raised {quote(found['message'], _LONGEST)} where {test} "
        )
        return Hit(
            suggestion=f"{sentence}expects a message that matches {quote(found['regex'], _LONGEST)}."
        )
    value, function = _origin(case)
    has_product = evidence.subjects or any(frame.side is Side.PRODUCT for frame in case.frames)
    weight = 1.0 if has_product or case.printed else 0.8
    # A fixture may assert a property of the machine: that a service answers, that an extension is built.
    by_phase = {Phase.SETUP: 0.55, Phase.TEARDOWN: 0.85}
    return Hit(
        suggestion=_comparison(case, test, value, function) or f"{test} fails: {error_text(case.error)}.",
        weight=by_phase.get(evidence.phase or Phase.CALL, weight),
        frame=function,
    )


def _origin(case: Case) -> tuple[str | None, Frame | None]:
    """Return the compared value that a product function returned, and the function, as far as known.

    The function is one that pytest's explanation names, or the only one that the failing line refers to if
    there is no explanation; the value is known from an explanation only.
    """
    origins, subjects = origins_of_values(case.error), case.evidence.subjects
    ran = {(each.path, each.function) for each in case.evidence.executed}
    for value, call in origins:
        callee = _callee(call)
        named = [frame for frame in subjects if frame.function.rpartition(".")[2] == callee]
        if named:
            # Of a function and a method of one name, the one that the test executed.
            return value, next((frame for frame in named if (frame.path, frame.function) in ran), named[0])
    # The value may come from any method of a class.
    is_function = len(subjects) == 1 and not origins and not is_class(subjects[0])
    return None, subjects[0] if is_function else None


def _callee(call: str) -> str:
    """Return the name that a call or an access ends with: ``as_list`` for ``Bits('').as_list()``."""
    while (shorter := _ARGUMENTS.sub("", call)) != call:  # innermost parentheses first
        call = shorter
    return call.partition("(")[0].rpartition(".")[2]


def _comparison(case: Case, test: str, given: str | None, function: Frame | None) -> str | None:
    """Return a sentence with the returned and the expected value; ``None`` if no comparison is recognized.

    ``given`` is the value that a product function returned, if known, and decides which operand is the
    result; else the source decides whether the expected one is left.
    """
    compared = comparison(case.error)
    if compared is None:
        return None
    left, operator, right = compared
    frame = last_frame_of(case.frames, Side.TEST)
    source = "" if frame is None else frame.source or ""
    is_right = given == right or (
        given != left and is_expected_first(source, case.evidence.fixtures, operator)
    )
    if is_right:
        left, right = right, left
        operator = MIRRORED_OPERATORS.get(operator, operator)
    expects = right if operator in ("==", "is") else f"{operator} {right}"
    if operator.endswith("containing"):
        expects = f"one {expects}"
    if operator in ("!=", "is not"):
        expects = f"anything but {right}"
    # Of ``len(total(x)) == 2`` the function returned what ``len`` was applied to, not the compared value.
    clipped = left.strip("…") if "…" in left else None
    # That the product took part is known if the test names a part of it, or executed one.
    unknown = "The product" if case.evidence.subjects or case.evidence.executed else ""
    maker = dict(origins_of_values(case.error)).get(left, unknown)
    is_returned = given in (None, left) or (clipped is not None and clipped in (given or ""))
    is_called = maker.startswith(f"{given}(")  # an object that can be called, such as a cache
    giver = place(function, maker) if is_returned or is_called else maker
    if function is not None and given is None:  # the only one that the line may refer to
        bare = function.function.rpartition(".")[2]
        giver = giver if is_result_of(bare, source, right=is_right) else ""
    awaited = ", which was not awaited," if left.startswith("<coroutine object") else ""
    # pytest shows a method by its name alone.
    if function is not None and function.function.endswith(f".{left}") and maker.endswith(f".{left}"):
        return f"{giver} was not called, so {test} got the method itself where it expects {expects}."
    if left == expects:  # equal representations say nothing about what differs
        return f"{giver or test} gave {left}, which is shown like the expected value, but not equal to it."
    if not giver:
        return f"{test} got {left}{awaited} where it expects {expects}."
    return f"{giver} returned {left}{awaited} where {test} expects {expects}."


def did_not_raise(case: Case) -> Hit | None:
    """The product did not raise or warn where the test expects it."""
    found = _NOT_RAISED.match(case.error.message)
    if found is None:
        return None
    what = " ".join((found["verb"].lower(), quote(found["what"], 80))).strip()
    return Hit(
        suggestion=f"{_subject(case, 'The product')} did not {what} where {_at(case)} expects it.",
        weight=1.0 if case.in_test else 0.9,
    )


def _subject(case: Case, unknown: str) -> str:
    """Return the only product function that the failing line names, as a phrase; else ``unknown``."""
    subjects = case.evidence.subjects
    is_function = len(subjects) == 1 and not is_class(subjects[0])
    return place(subjects[0]) if is_function else unknown


def doctest_differs(case: Case) -> Hit:
    """The example of a docstring gave something else."""
    error = case.error
    where = Location(path=error.path, line=error.line, function=error.name) if error.path else None
    position = f" ({error.path}:{error.line})" if error.path else ""
    # A module of tests documents its own functions; a text file there documents the product.
    is_module = (error.path or "").endswith(".py") and is_test_path(error.path or "")
    return Hit(
        suggestion=f"The example of {error.name or 'a doctest'}{position}: {quote(error.message)}.",
        location=where,
        owner=Owner.TEST if is_module and not case.product_changed else None,
    )


def test_definition_refused(case: Case) -> Hit | None:
    """pytest cannot use a test as it is written."""
    # Fixtures and steps of scenarios are requested only when the test is set up or called.
    is_late = case.error.message.startswith(("ScopeMismatch", "Step definition is not found"))
    if case.evidence.phase is not Phase.COLLECT and not is_late:
        return None
    found = _DEFINED.match(case.error.message)
    return Hit(
        suggestion=f"pytest rejects the definition of a test: {quote(case.error.message, 240)}.",
        location=found and Location(path=found["path"], function=found["name"].replace("::", ".")),
    )


def raised_in_product(case: Case) -> Hit | None:
    """Product code raised, and the test did not expect it."""
    frame = case.raised_at
    if frame is None:
        return None
    source = f" at `{quote(frame.source, 80)}`" if frame.source else ""
    name = case.error.name or "" if case.is_error("NameError") else ""
    gone = next((each for each in removals_of(name, case.evidence) if each.path == frame.path), None)
    remedy = f": restore it; the change at {gone.path}:{gone.line} removed it" if gone else ""
    return Hit(
        suggestion=f"{place(frame)} raises {error_text(case.error).rstrip('.')}{source}{remedy}.",
        weight=1.0 if case.innermost is frame else 0.93,
    )


_AROUND = {
    Phase.SETUP: "The set-up",
    Phase.TEARDOWN: "The teardown",
    Phase.SESSION: "The conftest or hook",
}
"""Subjects of a sentence, for code that runs outside of a test's body."""


def raised_in_test_alone(case: Case) -> str | None:
    """Test code, or what prepares it, raised, and it names nothing of the product."""
    # If only the product was changed, it is at fault rather than the unchanged test, unless that has
    # parameters with which it cannot be called: then nothing of the product ran.
    called = f"::{callee_of(case.error.message)}".replace(".", "::")
    is_test_itself = (case.evidence.nodeid or "").partition("[")[0].endswith(called)
    is_products = case.evidence.subjects or (case.product_changed and not case.raised_in_changed)
    if is_products and not is_test_itself:
        return None
    if case.server_error and case.server_error.in_product:
        return None
    around = _AROUND.get(case.evidence.phase) if case.evidence.phase else None
    # Which functions of the product a printed line names is not known; a hook of pytest names none.
    is_hook = case.raised_at is not None and case.raised_at.function.startswith("pytest_")
    if around is None and case.printed and not (case.raised_in_changed or is_hook):
        return None
    return f"{f'{around} in ' if around else ''}{_at(case)} itself raises {error_text(case.error)}."


def raised_in_test(case: Case) -> Hit | str:
    """Test code raised while it worked with what the product gave."""
    deeper = next((each.raised_at for each in case.deeper if each.in_product), None)
    if deeper is not None:
        sentence = f"{place(deeper)} raises, and {_at(case)} gets {error_text(case.error)}."
        return Hit(suggestion=sentence, frame=deeper)
    if raises_by_hand(case.raised_at):  # what the product returned plays no part
        asks = last_frame_of(case.frames, Side.PRODUCT)
        passes = f"{place(asks)} lets {error_text(case.error)} pass, which {_at(case)} raises."
        return passes if asks else f"{_at(case)} itself raises {error_text(case.error)}."
    source = _subject(case, "the product")
    return f"{_at(case)} cannot work with what {source} returned: {error_text(case.error)}."


def raised_outside_project(case: Case) -> Hit:
    """Something failed with no code of the project on the way."""
    last = case.innermost
    where = f" in {place(last)}" if last else ""
    return Hit(
        suggestion=f"{error_text(case.error)}{where}, without code of the project in the traceback.",
        frame=last,
    )


def unknown(case: Case) -> str:
    """No rule knows this failure."""
    evidence = case.evidence
    headline = evidence.headline or evidence.longrepr or evidence.nodeid or evidence.check_id
    return f"No rule matches this failure: {quote(headline or evidence.kind.value)}."
