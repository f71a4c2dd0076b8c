"""Rules for what pytest was asked for and does not have: fixtures, marks, async tests, file names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.known import PLUGIN_OF_FIXTURE, PLUGIN_OF_MARK
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.wording import alike, place, quote

if TYPE_CHECKING:
    from pytest_planverify.diagnosis.reading import Case

FIXTURE_LOOKUP = "_pytest.fixtures.FixtureLookupError"
_NO_ASYNC_PLUGIN = "async def functions are not natively supported"
_UNKNOWN_MARK = re.compile(
    r"^(?:'(?P<strict>\w+)' not found in `markers` configuration option|Unknown "
    r"pytest\.mark\.(?P<warned>\w+) )"
)


def _at(case: Case) -> str:
    return f" in {place(case.raised_at)}" if case.raised_at else ""


def _fixture_of_plugin(case: Case) -> Hit | None:
    if not case.is_error(FIXTURE_LOOKUP) or case.error is None or case.error.name is None:
        return None
    plugin = PLUGIN_OF_FIXTURE.get(case.error.name)
    if plugin is None or case.error.name in case.evidence.known_fixtures:
        return None
    return Hit(
        suggestion=f"The fixture {case.error.name} comes with {plugin}, which is not installed or not "
        f"loaded."
    )


def _fixture_recursion(case: Case) -> Hit | None:
    if not case.is_error(FIXTURE_LOOKUP) or case.error is None:
        return None
    if case.error.name not in case.evidence.known_fixtures:
        return None
    return Hit(suggestion=f"The fixture {case.error.name} exists, but asks for itself{_at(case)}.")


def _fixture_misspelt(case: Case) -> Hit | None:
    if not case.is_error(FIXTURE_LOOKUP) or case.error is None or case.error.name is None:
        return None
    similar = alike(case.error.name, case.evidence.known_fixtures)
    if not similar:
        return None
    return Hit(
        suggestion=f"There is no fixture {case.error.name}, which is asked for{_at(case)}; "
        f"{similar[0]} exists."
    )


def _fixture_unknown(case: Case) -> Hit | None:
    if not case.is_error(FIXTURE_LOOKUP) or case.error is None:
        return None
    name = case.error.name or "that is asked for"
    return Hit(
        suggestion=f"No conftest and no installed plugin gives the fixture {name}{_at(case)}: install "
        f"the plugin "
        "that brings it, or write it."
    )


def is_async_without_plugin(case: Case) -> bool:
    """Whether pytest refused an async test because nothing runs those."""
    if case.error is None or not case.error.message.startswith(_NO_ASYNC_PLUGIN):
        return False
    return case.is_error("builtins.Failed", "_pytest.outcomes.Failed") and case.in_nobody


def _async_plugin(case: Case) -> Hit | None:
    if not is_async_without_plugin(case):
        return None
    return Hit(
        suggestion=f"{case.evidence.nodeid or 'The test'} is an async function, and no plugin that "
        "runs those is installed: install pytest-asyncio or anyio, or run it with asyncio.run."
    )


def unknown_mark(case: Case) -> str | None:
    """The mark that strict marks, or warnings that are errors, refuse."""
    found = _UNKNOWN_MARK.match(case.error.message) if case.error else None
    if found is None or not case.is_error(
        "builtins.Failed", "_pytest.outcomes.Failed", "pytest.PytestUnknownMarkWarning"
    ):
        return None
    return found["strict"] or found["warned"]


def _mark(case: Case) -> Hit | None:
    mark = unknown_mark(case)
    if mark is None:
        return None
    plugin = PLUGIN_OF_MARK.get(mark)
    remedy = (
        f"it comes with {plugin}, which is not installed"
        if plugin
        else "register it, or install its plugin"
    )
    return Hit(
        suggestion=f"The mark {mark}{_at(case)} is not registered, and strict marks make that an "
        f"error: {remedy}.",
        weight=1.0 if plugin else 0.7,
    )


def _two_files_one_name(case: Case) -> Hit | None:
    if not case.is_error("_pytest.pathlib.ImportPathMismatchError"):
        return None
    return Hit(
        suggestion=f"Two test files have the same base name and no package: "
        f"{quote(case.error.message, 240)}. "
        "Add __init__.py files, rename one, or use --import-mode=importlib."
        if case.error
        else "Two test files have the same base name."
    )


PLUGIN_RULES: tuple[Rule, ...] = (
    Rule(
        id="fixture-of-absent-plugin",
        about=frozenset({"_pytest.fixtures.FixtureLookupError"}),
        because="A fixture that a well-known plugin brings is not there.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.95,
        read=_fixture_of_plugin,
    ),
    Rule(
        id="fixture-recursion",
        about=frozenset({"_pytest.fixtures.FixtureLookupError"}),
        because="A fixture depends on itself.",
        category=Category.TEST_REGRESSION,
        confidence=0.85,
        owner=Owner.TEST,
        read=_fixture_recursion,
    ),
    Rule(
        id="fixture-misspelt",
        about=frozenset({"_pytest.fixtures.FixtureLookupError"}),
        because="An unknown fixture looks like one that exists.",
        category=Category.TEST_REGRESSION,
        confidence=0.7,
        owner=Owner.TEST,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.3),
        read=_fixture_misspelt,
    ),
    Rule(
        id="fixture-unknown",
        about=frozenset({"_pytest.fixtures.FixtureLookupError"}),
        because="Nothing here gives a fixture that is asked for.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.75,
        runner_up=(Category.TEST_REGRESSION, 0.25),
        read=_fixture_unknown,
    ),
    Rule(
        id="async-plugin-absent",
        about=frozenset({"builtins.Failed", "_pytest.outcomes.Failed"}),
        because="An async test needs a plugin that is not installed.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.95,
        read=_async_plugin,
    ),
    Rule(
        id="mark-unknown",
        about=frozenset({"builtins.Failed", "_pytest.outcomes.Failed", "pytest.PytestUnknownMarkWarning"}),
        because="A mark that no plugin and no configuration registers is an error here.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_mark,
    ),
    Rule(
        id="two-files-one-name",
        about=frozenset({"_pytest.pathlib.ImportPathMismatchError"}),
        because="Two test files of one base name cannot be imported together.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        read=_two_files_one_name,
    ),
)
