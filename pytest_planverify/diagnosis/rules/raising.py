"""Rules for an exception that no other rule knows: by the side of the frame that raised it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.kinds import Phase
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.reading import is_relative
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.wording import place, quote, said

if TYPE_CHECKING:
    from pytest_planverify.diagnosis.reading import Case

_WRITES = re.compile(
    r"\.(?:unlink|rmdir|remove|write_\w+|mkdir|touch|rename)\(|\bopen\([^)]*[\"'][wax]b?\+?[\"']"
)
_AROUND_NAMES = {
    Phase.SETUP: "The set-up",
    Phase.TEARDOWN: "The teardown",
    Phase.SESSION: "The conftest or hook",
}


def _missing_file_of_project(case: Case) -> Hit | None:
    """A file below the plan's root that a test opens."""
    error = case.error
    if (
        error is None
        or not case.is_error("builtins.FileNotFoundError")
        or not case.in_test
        or not error.path
    ):
        return None
    if not is_relative(error.path) or case.evidence.phase is Phase.TEARDOWN:
        return None
    if case.only_product_changed and not case.is_changed(error.path):
        return None  # the file is none that was removed: the product should have written it
    return Hit(suggestion=f"{error.path} does not exist, and {_at(case)} reads it.")


def _missing_output(case: Case) -> Hit | None:
    error = case.error
    if error is None or not case.is_error("builtins.FileNotFoundError") or not case.in_test:
        return None
    if case.evidence.phase in _AROUND_NAMES or _WRITES.search(
        (case.raised_at and case.raised_at.source) or ""
    ):
        return None  # it is not read there
    return Hit(suggestion=f"{error.path or 'A file'} was not written, and {_at(case)} reads it.")


def _missing_file_in_product(case: Case) -> Hit | None:
    error = case.error
    if error is None or not case.is_error("builtins.FileNotFoundError") or not case.in_product:
        return None
    return Hit(suggestion=f"{_at(case)} opens {error.path or 'a file'}, which does not exist.")


def _at(case: Case) -> str:
    return place(case.raised_at) if case.raised_at else "The code"


def _recursion(case: Case) -> Hit | None:
    if not case.is_error("builtins.RecursionError") or case.raised_at is None:
        return None
    return Hit(
        suggestion=f"{_at(case)} calls itself without end.",
        owner=Owner.TEST if case.in_test else Owner.PRODUCT,
    )


def _warning(case: Case) -> Hit | None:
    if not case.is_error("builtins.Warning") or case.error is None:
        return None
    by_test = case.in_test and not case.only_product_changed
    owner = Owner.ENVIRONMENT if case.in_nobody else (Owner.TEST if by_test else Owner.PRODUCT)
    return Hit(suggestion=f"A warning is an error "
    f"here{f', in {_at(case)}' if case.raised_at else ''}: {said(case.error)}.",
               owner=owner)  # fmt: skip


def _raised_in_product(case: Case) -> Hit | None:
    if not case.in_product or case.error is None:
        return None
    source = f" at `{quote(case.raised_at.source, 80)}`" if case.raised_at and case.raised_at.source else ""
    return Hit(
        suggestion=f"{_at(case)} raises {said(case.error)}{source}.",
        weight=1.0 if case.innermost is case.raised_at else 0.93,
    )


def _raised_around_test(case: Case) -> Hit | None:
    phase = _AROUND_NAMES.get(case.evidence.phase) if case.evidence.phase else None
    if not case.in_test or phase is None or case.error is None or case.evidence.subjects:
        return None
    if case.only_product_changed:
        return None
    return Hit(suggestion=f"{phase} in {_at(case)} fails by itself: {said(case.error)}.")


def _raised_in_test_alone(case: Case) -> Hit | None:
    """In test code that names nothing of the product, so that nothing of it can have given the value."""
    if not case.in_test or case.error is None or case.evidence.subjects or case.printed:
        return None
    if case.only_product_changed:
        return None  # what was changed is at fault rather than what was not
    return Hit(suggestion=f"{_at(case)} raises {said(case.error)} by itself.")


def _raised_in_test(case: Case) -> Hit | None:
    if not case.in_test or case.error is None:
        return None
    deeper = next((each.raised_at for each in case.deeper_cases if each.in_product), None)
    if deeper is not None:
        return Hit(
            suggestion=f"{place(deeper)} raises, and {_at(case)} gets to see {said(case.error)}.",
            frame=deeper,
        )
    giver = place(case.evidence.subjects[0]) if len(case.evidence.subjects) == 1 else "the product"
    return Hit(suggestion=f"{_at(case)} cannot work with what {giver} gave: {said(case.error)}.")


def _raised_by_nobody(case: Case) -> Hit | None:
    if case.error is None or not case.in_nobody:
        return None
    last = case.innermost
    where = f" in {place(last)}" if last else ""
    return Hit(
        suggestion=f"{said(case.error)}{where}, with no code of the project on the way.",
        frame=last,
    )


RAISING_RULES: tuple[Rule, ...] = (
    Rule(
        id="file-of-project-missing",
        about=frozenset({"builtins.FileNotFoundError"}),
        because="A test reads a file of the project that does not exist.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.75,
        runner_up=(Category.TEST_REGRESSION, 0.25),
        read=_missing_file_of_project,
    ),
    Rule(
        id="output-not-written",
        about=frozenset({"builtins.FileNotFoundError"}),
        because="A test reads a file elsewhere that the product did not write.",
        category=Category.TEST_REGRESSION,
        confidence=0.7,
        runner_up=(Category.ARTIFACT_MISSING, 0.3),
        read=_missing_output,
    ),
    Rule(
        id="file-missing-in-product",
        about=frozenset({"builtins.FileNotFoundError"}),
        because="Product code opens a file that does not exist.",
        category=Category.TEST_REGRESSION,
        confidence=0.75,
        runner_up=(Category.ARTIFACT_MISSING, 0.25),
        read=_missing_file_in_product,
    ),
    Rule(
        id="endless-recursion",
        about=frozenset({"builtins.RecursionError"}),
        because="The code calls itself without end.",
        category=Category.TEST_REGRESSION,
        confidence=0.93,
        read=_recursion,
    ),
    Rule(
        id="warning-is-an-error",
        about=frozenset({"builtins.Warning"}),
        because="A warning was turned into an error.",
        category=Category.TEST_REGRESSION,
        confidence=0.7,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.25),
        read=_warning,
    ),
    Rule(
        id="raised-in-product",
        because="Product code raised, and the test did not expect it.",
        category=Category.TEST_REGRESSION,
        confidence=0.9,
        read=_raised_in_product,
    ),
    Rule(
        id="raised-around-test",
        because="Set-up, teardown or hook code of the tests failed by itself.",
        category=Category.TEST_REGRESSION,
        confidence=0.65,
        owner=Owner.TEST,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.3),
        read=_raised_around_test,
    ),
    Rule(
        id="raised-in-test-alone",
        because="Test code that names nothing of the product raised.",
        category=Category.TEST_REGRESSION,
        confidence=0.65,
        owner=Owner.TEST,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.15),
        read=_raised_in_test_alone,
    ),
    Rule(
        id="raised-in-test",
        because="Test code raised while it worked with what the product gave.",
        category=Category.TEST_REGRESSION,
        confidence=0.75,
        runner_up=(Category.SPEC_MISMATCH, 0.2),
        read=_raised_in_test,
    ),
)

LAST_RULES: tuple[Rule, ...] = (
    Rule(
        id="raised-outside-project",
        because="Something failed with no code of the project on the way.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.5,
        runner_up=(Category.UNKNOWN, 0.4),
        read=_raised_by_nobody,
    ),
)
