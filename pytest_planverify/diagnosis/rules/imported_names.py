"""Rules for names that a module does not have when they are imported from it, and imports that fail."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from planner.model.kinds import Side
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.reading import top_level
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.rules.loading import imported_name, is_own_file, is_said_by_hand
from pytest_planverify.diagnosis.wording import place, said

if TYPE_CHECKING:
    from pytest_planverify.diagnosis.reading import Case

_DEPENDENCY_WORDS = re.compile(r"\b(?:dependenc|install|pip |librar)", re.IGNORECASE)


def _at(case: Case) -> str:
    return f" (imported by {place(case.raised_at)})" if case.raised_at else ""


def _is_first_party_name(case: Case, module: str) -> bool:
    if case.error is not None and case.error.object_side is not None:
        return case.error.object_side is Side.PRODUCT
    return case.is_first_party(module)


def _promised_name(case: Case) -> Hit | None:
    found = imported_name(case)
    if found is None or not case.in_test or not _is_first_party_name(case, found[0]):
        return None
    module, name = found
    where = f" ({case.error.path})" if case.error and case.error.path else ""
    return Hit(
        suggestion=f"{module}{where} has no {name}, which {_by(case)} asks for: add it, or settle its name."
    )


def _by(case: Case) -> str:
    return place(case.raised_at) if case.raised_at else "the test"


def _helper_of_tests(case: Case) -> Hit | None:
    found = imported_name(case)
    if found is None or not case.in_test or case.error is None or not is_own_file(case.error):
        return None
    if not case.is_test_package(found[0]) and case.error.object_side is not Side.TEST:
        return None
    return Hit(
        suggestion=f"{found[0]}, which belongs to the tests, has no {found[1]}, which {_by(case)} imports."
    )


def _own_name(case: Case) -> Hit | None:
    found = imported_name(case)
    if found is None or not (_is_first_party_name(case, found[0]) or case.is_test_package(found[0])):
        return None
    module, name = found
    owner = Owner.TEST if case.is_test_package(module) and case.in_test else Owner.PRODUCT
    return Hit(suggestion=f"{module} has no {name}, which {_by(case)} imports.", owner=owner)


def _foreign_name(case: Case) -> Hit | None:
    found = imported_name(case)
    if found is None:
        return None
    module, name = found
    if top_level(module) in sys.stdlib_module_names:
        return Hit(
            suggestion=f"{module} of this Python has no {name}{_at(case)}: it came, or went, with another "
            "version of Python.",
            owner=Owner.ENVIRONMENT if case.way_unchanged else None,
        )
    return Hit(
        suggestion=f"The installed {top_level(module)} has no {name} in {module}{_at(case)}: pin a "
        f"version that has it.",
        owner=Owner.ENVIRONMENT if case.in_test else Owner.PRODUCT,
    )


def _other_import(case: Case) -> Hit | None:
    if case.error is None or not case.is_error("builtins.ImportError"):
        return None
    if is_said_by_hand(case) and not _DEPENDENCY_WORDS.search(case.error.message):
        return None
    return Hit(
        suggestion=f"An import failed{_at(case)}: {said(case.error)}.",
        owner=Owner.TEST if case.in_test else Owner.PRODUCT,
    )


IMPORTED_NAME_RULES: tuple[Rule, ...] = (
    Rule(
        id="promised-name-missing",
        about=frozenset({"builtins.ImportError"}),
        because="A test imports a name that an existing module of the project lacks.",
        category=Category.SPEC_MISMATCH,
        confidence=0.92,
        runner_up=(Category.IMPORT_ERROR, 0.15),
        read=_promised_name,
    ),
    Rule(
        id="helper-of-tests-missing",
        about=frozenset({"builtins.ImportError"}),
        because="A test imports a name that a helper module of the tests lacks.",
        category=Category.TEST_REGRESSION,
        confidence=0.85,
        owner=Owner.TEST,
        runner_up=(Category.IMPORT_ERROR, 0.2),
        read=_helper_of_tests,
    ),
    Rule(
        id="own-name-missing",
        about=frozenset({"builtins.ImportError"}),
        because="The project imports a name that its own module lacks.",
        category=Category.IMPORT_ERROR,
        confidence=0.8,
        runner_up=(Category.SPEC_MISMATCH, 0.25),
        read=_own_name,
    ),
    Rule(
        id="name-missing-in-dependency",
        about=frozenset({"builtins.ImportError"}),
        because="An installed package lacks a name that is imported from it.",
        category=Category.IMPORT_ERROR,
        confidence=0.87,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.2),
        read=_foreign_name,
    ),
    Rule(
        id="import-failed",
        about=frozenset({"builtins.ImportError"}),
        because="An import failed.",
        category=Category.IMPORT_ERROR,
        confidence=0.8,
        read=_other_import,
    ),
)
