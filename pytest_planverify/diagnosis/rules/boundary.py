"""Rules for what breaks where test and product meet, or where a value in the product has the wrong kind."""

from __future__ import annotations

import re

from planner.model.kinds import Phase, Side
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.boundaries import (
    LONGEST,
    definition_of,
    failed_callee,
    keeps_contract,
    signatures_told,
    telling_changes,
)
from pytest_planverify.diagnosis.reading import Case, raises_by_hand
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.wording import origin_of_value, place, quote, said

_ABSTRACT = re.compile(r"^Can't instantiate abstract class '?(?P<name>[\w.]+)'? with")
_NONE = re.compile(r"'NoneType' object|\bNoneType\b'?(?: and |$)|(?:^| and )'?NoneType'?$")
_PATCHED = re.compile(
    r"^<(?:module|class) '(?P<owner>[\w.]+)'(?: from .*)?> (?:does not have the|has no) attribute "
    r"'(?P<name>\w+)'$"
)
_NONE_TYPE = "builtins.NoneType"
_MODULE = "module "
_CLASS = "class "


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


def _callback(case: Case) -> Hit | None:
    callee = failed_callee(case)
    if callee is None or case.error is None or not case.in_product or case.raised_at is None:
        return None
    if case.error.object_side is not Side.TEST:
        return None
    return Hit(
        suggestion=f"{place(case.raised_at)} calls {callee}, which the test gave it, in another way "
        f"than the test "
        f"expects: {quote(case.error.message)}."
    )


def _internal_call(case: Case) -> Hit | None:
    if failed_callee(case) is None or case.error is None or not case.in_product or case.raised_at is None:
        return None
    if not _raised_here(case):
        return None
    return Hit(
        suggestion=f"{place(case.raised_at)} calls with the wrong arguments: {quote(case.error.message)}."
    )


def _abstract(case: Case) -> Hit | None:
    if case.error is None or not case.in_test or not case.is_error("builtins.TypeError"):
        return None
    found = _ABSTRACT.match(case.error.message)
    if found is None:
        return None
    return Hit(
        suggestion=f"{found['name']} leaves out methods that its base promises: "
        f"{quote(case.error.message)}."
    )


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


def _attribute_of_tests(case: Case) -> Hit | None:
    found, error = _missing_attribute(case), case.error
    if found is None or error is None or not case.in_test or error.object_side is not Side.TEST:
        return None
    return Hit(
        suggestion=f"{found[0]}, which belongs to the tests, has no {found[1]}; {_at(case)} uses it."
    )


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


def _with_article(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def _wrong_kind_at_test(case: Case) -> Hit | None:
    found, error = _missing_attribute(case), case.error
    if found is None or error is None or not case.in_test or found[0].startswith((_MODULE, _CLASS)):
        return None
    if error.object_side not in (Side.STDLIB, Side.THIRD_PARTY):
        return None
    return Hit(
        suggestion=f"{_subjects(case)} gave {_with_article(found[0].removeprefix('builtins.'))}, of which "
        f"{_at(case)} uses "
        f"{found[1]}: settle what it returns."
    )


def _unusable_value_at_test(case: Case) -> Hit | None:
    if not case.in_test or not case.is_error("builtins.TypeError") or case.error is None:
        return None
    if raises_by_hand(case.raised_at):
        return None
    return Hit(
        suggestion=f"{_at(case)} cannot use the value that {_subjects(case, within=True)} gave: "
        f"{said(case.error)}."
    )


def _none_in_product(case: Case) -> Hit | None:
    if not case.in_product or not _is_about_none(case) or case.error is None:
        return None
    source = f" at `{case.raised_at.source}`" if case.raised_at and case.raised_at.source else ""
    return Hit(suggestion=f"{_at(case)} meets None{source}: {said(case.error)}.")


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


def _own_module_lacks(case: Case) -> Hit | None:
    """A module of the project, asked by another of its modules while they are imported."""
    found, error = _missing_attribute(case), case.error
    if found is None or error is None or not case.in_product or case.evidence.phase is not Phase.COLLECT:
        return None
    if not found[0].startswith(_MODULE) or error.object_side is not Side.PRODUCT:
        return None
    return Hit(
        suggestion=f"{found[0].removeprefix(_MODULE)} has no {found[1]}, which {_at(case)} imports or "
        "lists in __all__: put the name back, or take it out there."
    )


BOUNDARY_RULES: tuple[Rule, ...] = (
    Rule(
        id="call-does-not-fit-signature",
        about=frozenset({"builtins.TypeError"}),
        because="The test calls a product function with arguments that it does not take.",
        category=Category.SPEC_MISMATCH,
        confidence=0.95,
        runner_up=(Category.TEST_REGRESSION, 0.05),
        read=telling_changes(_call_of(Side.PRODUCT)),
    ),
    Rule(
        id="call-does-not-fit-probably",
        about=frozenset({"builtins.TypeError"}),
        because="The test calls something, probably of the product, with arguments that it does not take.",
        category=Category.SPEC_MISMATCH,
        confidence=0.85,
        runner_up=(Category.TEST_REGRESSION, 0.15),
        read=telling_changes(_call_of(None)),
    ),
    Rule(
        id="call-of-own-helper",
        about=frozenset({"builtins.TypeError"}),
        because="The test calls a function of the tests or of a library with arguments that it does "
        "not take.",
        category=Category.TEST_REGRESSION,
        confidence=0.75,
        owner=Owner.TEST,
        runner_up=(Category.SPEC_MISMATCH, 0.2),
        read=_call_of(Side.TEST, Side.STDLIB, Side.THIRD_PARTY, Side.FRAMEWORK),
    ),
    Rule(
        id="callback-called-otherwise",
        about=frozenset({"builtins.TypeError"}),
        because="The product calls what the test gave it in another way than the test expects.",
        category=Category.SPEC_MISMATCH,
        confidence=0.8,
        runner_up=(Category.TYPE_ERROR, 0.2),
        read=telling_changes(_callback),
    ),
    Rule(
        id="call-inside-product",
        about=frozenset({"builtins.TypeError"}),
        because="The product calls its own function with arguments that it does not take.",
        category=Category.TYPE_ERROR,
        confidence=0.75,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_internal_call,
    ),
    Rule(
        id="abstract-method-missing",
        about=frozenset({"builtins.TypeError"}),
        because="The test creates a product class that leaves abstract methods out.",
        category=Category.SPEC_MISMATCH,
        confidence=0.85,
        runner_up=(Category.TYPE_ERROR, 0.15),
        read=telling_changes(_abstract),
    ),
    Rule(
        id="own-module-lacks-name",
        about=frozenset({"builtins.AttributeError"}),
        because="A module of the project lacks a name that another of its modules imports.",
        category=Category.IMPORT_ERROR,
        confidence=0.75,
        runner_up=(Category.SPEC_MISMATCH, 0.25),
        read=_own_module_lacks,
    ),
    Rule(
        id="promised-attribute-missing",
        about=frozenset({"builtins.AttributeError"}),
        because="The test uses an attribute that a product module or class lacks.",
        category=Category.SPEC_MISMATCH,
        confidence=0.93,
        runner_up=(Category.TEST_REGRESSION, 0.1),
        read=telling_changes(_promised_attribute),
    ),
    Rule(
        id="patched-attribute-missing",
        about=frozenset({"builtins.AttributeError"}),
        because="The test replaces an attribute that a product module or class lacks.",
        category=Category.SPEC_MISMATCH,
        confidence=0.9,
        read=telling_changes(_patched_attribute),
    ),
    Rule(
        id="attribute-of-tests-missing",
        about=frozenset({"builtins.AttributeError"}),
        because="The test uses an attribute that a helper of the tests lacks.",
        category=Category.TEST_REGRESSION,
        confidence=0.75,
        owner=Owner.TEST,
        read=_attribute_of_tests,
    ),
    Rule(
        id="attribute-of-library-missing",
        about=frozenset({"builtins.AttributeError"}),
        because="An installed module lacks an attribute that is used.",
        category=Category.IMPORT_ERROR,
        confidence=0.65,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_attribute_of_library_module,
    ),
    Rule(
        id="none-at-boundary",
        about=frozenset({"builtins.AttributeError", "builtins.TypeError"}),
        because="The test uses a result, and the product gave None.",
        category=Category.TEST_REGRESSION,
        confidence=0.8,
        runner_up=(Category.TYPE_ERROR, 0.25),
        read=_none_at_test,
    ),
    Rule(
        id="wrong-kind-at-boundary",
        about=frozenset({"builtins.AttributeError"}),
        because="The test uses an attribute that the kind of value it was given does not have.",
        category=Category.SPEC_MISMATCH,
        confidence=0.6,
        runner_up=(Category.TEST_REGRESSION, 0.35),
        read=telling_changes(_wrong_kind_at_test),
    ),
    Rule(
        id="value-unusable-in-test",
        about=frozenset({"builtins.TypeError"}),
        because="The test cannot use the value that it was given.",
        category=Category.TEST_REGRESSION,
        confidence=0.65,
        runner_up=(Category.SPEC_MISMATCH, 0.3),
        read=_unusable_value_at_test,
    ),
    Rule(
        id="none-inside-product",
        about=frozenset({"builtins.AttributeError", "builtins.TypeError"}),
        because="Product code meets None where it needs a value.",
        category=Category.TYPE_ERROR,
        confidence=0.92,
        runner_up=(Category.TEST_REGRESSION, 0.1),
        read=_none_in_product,
    ),
    Rule(
        id="wrong-kind-inside-product",
        about=frozenset({"builtins.AttributeError", "builtins.TypeError"}),
        because="Product code meets a value of the wrong kind.",
        category=Category.TYPE_ERROR,
        confidence=0.88,
        runner_up=(Category.TEST_REGRESSION, 0.2),
        read=_kind_in_product,
    ),
)
