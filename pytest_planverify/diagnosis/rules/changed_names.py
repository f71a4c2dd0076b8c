"""Rules that ask who brought a name that nothing gives: a change of the project, or the machine.

A program, fixture, mark or variable that is not there speaks against the machine, unless the very file that
asks for it was changed: what was committed is presumed to have found it.
"""

from __future__ import annotations

import re

from planner.model.kinds import Side
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.known import (
    EXHAUSTED,
    FORBIDDEN,
    NAME_RESOLUTION,
    PLUGIN_OF_FIXTURE,
    PLUGIN_OF_MARK,
    UNREACHABLE,
)
from pytest_planverify.diagnosis.reading import Case, raises_by_hand
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.rules.environment import program_that_was_started, variable_that_was_read
from pytest_planverify.diagnosis.rules.loading import is_native_library
from pytest_planverify.diagnosis.rules.plugins import (
    FIXTURE_LOOKUP,
    is_async_without_plugin,
    unknown_mark,
)
from pytest_planverify.diagnosis.wording import place, quote, said

_BY_NAME = (
    "importlib.metadata.PackageNotFoundError",
    "pkg_resources.DistributionNotFound",
    "zoneinfo._common.ZoneInfoNotFoundError",
    "locale.Error",
)
_OWN_DOING = FORBIDDEN | EXHAUSTED | UNREACHABLE
_READS_VARIABLE = re.compile(r"\b(?:environ\b|getenv\()")
_RAN = re.compile(r"^Command '?\[?'?(?P<program>[^'\s,\]]+)")
_PYTHON = re.compile(r"(?:^|/)python[\d.]*$|\.py$")
_GIT_FATAL = re.compile(r"^Command '?\[?'?git\b.* exit status 128\.$", re.DOTALL)
_NO_DATABASE = re.compile(
    r"^(?:unable to open database file|attempt to write a readonly database|disk I/O error|"
    r"database or disk is full)"
)
_MACHINE_WORDS = re.compile(
    r"\b(?:not installed|not available|unavailable|not running|not on PATH|command not found|"
    r"no such program|"
    r"(?:cannot|could not|can't|unable to) (?:connect|reach|find the (?:program|tool))|unreachable|"
    r"to be (?:in|on) (?:the )?PATH|no display|too many connections|held by (?:another )?(?:process|pid)|"
    r"another (?:process|instance)|executable (?:doesn't|does not) exist|environment variable|"
    r"no (?:usable|recommended) \w+|no CUDA|no GPU|must be set|"
    r"not mounted|no such device|out of (?:disk )?space|"
    r"connection refused)\b",
    re.IGNORECASE,
)


def _at(case: Case) -> str:
    return place(case.raised_at) if case.raised_at else "the code"


def _side_owner(case: Case) -> Owner:
    return Owner.TEST if case.in_test else Owner.PRODUCT


def _asked_by_name(case: Case) -> str | None:
    """What was asked of the machine by its name, and is not there."""
    if program := program_that_was_started(case):
        return f"the program {program}"
    if variable := variable_that_was_read(case):
        return f"the environment variable {variable}"
    error = case.error
    if error is None or (case.innermost is case.raised_at and raises_by_hand(case.innermost)):
        return None
    if error.qualified in _BY_NAME or is_native_library(case):
        return quote(error.message, 80) or error.type
    return None


def _name_of_change(case: Case) -> Hit | None:
    asked = _asked_by_name(case) if case.raised_in_changed else None
    if asked is None:
        return None
    return Hit(
        suggestion=f"{_at(case)}, in a file that was changed, asks for {asked}, which is not here: "
        f"is the name right?",
        owner=_side_owner(case),
    )


def _lost_fixture(case: Case) -> Hit | None:
    error = case.error
    if error is None or not case.is_error(FIXTURE_LOOKUP) or not error.name or not case.tests_changed:
        return None
    if error.name in PLUGIN_OF_FIXTURE or error.name in case.evidence.known_fixtures:
        return None
    return Hit(
        suggestion=f"{_at(case)} asks for the fixture {error.name}, which nothing gives; files of the "
        "tests were changed: was it renamed or removed there?"
    )


def _mark_of_change(case: Case) -> Hit | None:
    mark = unknown_mark(case)
    if mark is None or mark in PLUGIN_OF_MARK or not case.tests_changed:
        return None
    return Hit(suggestion=f"{_at(case)} uses the mark {mark}, which is not registered: is it misspelt?")


def _coroutine_of_change(case: Case) -> Hit | None:
    nodeid = case.evidence.nodeid
    if not is_async_without_plugin(case) or nodeid is None or case.changed is None:
        return None
    if nodeid.partition("::")[0] not in case.changed:
        return None
    return Hit(
        suggestion=f"{nodeid} is an async function in a file that was changed, and no plugin runs those "
        "here: run it with asyncio.run, or add the plugin to what the project declares."
    )


def _program_fails(case: Case) -> Hit | None:
    """A program other than Python, started by code that nobody changed, ends with an error."""
    error = case.error
    if error is None or error.qualified != "subprocess.CalledProcessError":
        return None
    found = _RAN.match(error.message)
    fatal = bool(_GIT_FATAL.match(error.message)) and not case.raised_in_changed
    if not (case.way_unchanged or fatal):
        return None
    if found is None or _PYTHON.search(found["program"]) or "/" in found["program"]:
        return None
    return Hit(
        suggestion=f"{found['program']}, which {_at(case)} starts, fails here, and no code on the way to "
        f"it was changed: {said(error)} See what it printed, and how it is set up on this machine."
    )


def _refused_for_the_machine(case: Case) -> Hit | None:
    error, last = case.error, case.innermost
    if error is None or last is None or case.raised_in_changed:
        return None
    if (
        last.side not in (Side.PRODUCT, Side.THIRD_PARTY)
        or not raises_by_hand(last)
        or not _MACHINE_WORDS.search(error.message)
    ):
        return None
    return Hit(suggestion=f"{_at(case)} says by itself what the machine lacks: {said(error)}.")


def _refused_to_changed_code(case: Case) -> Hit | None:
    """The system refuses something to product code that was changed, in a test that was not."""
    error = case.error
    if error is None or not case.in_product or not case.raised_in_changed:
        return None
    own = error.errno in _OWN_DOING and case.is_error("builtins.OSError")
    if not (own or case.is_error("builtins.ConnectionError", *NAME_RESOLUTION)) or raises_by_hand(
        case.innermost
    ):
        return None
    if case.evidence.nodeid and case.is_changed(case.evidence.nodeid.partition("::")[0]):
        return None
    return Hit(
        suggestion=f"The system refuses what {_at(case)}, in a file that was changed, asks for: "
        f"{said(error)}. Is it asked for rightly, and given back?"
    )


def _unusable_variable(case: Case) -> Hit | None:
    frame = case.raised_at
    if frame is None or frame.source is None or case.raised_in_changed:
        return None
    if not case.is_error("builtins.ValueError") or not _READS_VARIABLE.search(frame.source):
        return None
    return Hit(
        suggestion=f"An environment variable that is read in {place(frame)} holds what cannot be used: "
        f"{said(case.error) if case.error else ''}."
    )


def _misled_by_tests(case: Case) -> Hit | None:
    """The product meets a value of the wrong kind, and only what the tests hand to it was changed."""
    if not case.in_product or not case.only_tests_changed or not case.tests_on_way_changed:
        return None
    if not case.is_error("builtins.TypeError", "builtins.AttributeError") or raises_by_hand(case.raised_at):
        return None
    return Hit(
        suggestion=f"{_at(case)} cannot work with what the tests hand to it, and only tests were "
        f"changed: {said(case.error) if case.error else ''}.",
        owner=Owner.TEST,
    )


def _database_not_opened(case: Case) -> Hit | None:
    error = case.error
    if error is None or error.qualified != "sqlite3.OperationalError" or case.raised_in_changed:
        return None
    if not _NO_DATABASE.match(error.message):
        return None
    return Hit(suggestion=f"The database file cannot be used here, in {_at(case)}: {said(error)}.")


def _second_of_its_name(case: Case) -> Hit | None:
    if not case.is_error("_pytest.pathlib.ImportPathMismatchError") or not case.tests_changed:
        return None
    return Hit(
        suggestion="A test file that was added or moved has the base name of another, and neither has a "
        "package: add __init__.py files, rename one, or use --import-mode=importlib."
    )


CHANGED_NAME_RULES: tuple[Rule, ...] = (
    Rule(
        id="name-of-change-not-found",
        because="A file that was changed asks for something by a name that nothing here has.",
        category=Category.TEST_REGRESSION,
        confidence=0.75,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.3),
        read=_name_of_change,
    ),
    Rule(
        id="refused-to-changed-code",
        about=frozenset({"builtins.OSError"}),
        because="The system refuses something to product code that was changed, in a test that was not.",
        category=Category.TEST_REGRESSION,
        confidence=0.65,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.35),
        read=_refused_to_changed_code,
    ),
    Rule(
        id="product-misled-by-tests",
        about=frozenset({"builtins.TypeError", "builtins.AttributeError"}),
        because="Unchanged product code cannot work with what changed tests hand to it.",
        category=Category.TEST_REGRESSION,
        owner=Owner.TEST,
        confidence=0.65,
        runner_up=(Category.TYPE_ERROR, 0.3),
        read=_misled_by_tests,
    ),
    Rule(
        id="variable-unusable",
        about=frozenset({"builtins.ValueError"}),
        because="The value of an environment variable cannot be used by unchanged code.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.7,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_unusable_variable,
    ),
    Rule(
        id="fixture-lost",
        about=frozenset({"_pytest.fixtures.FixtureLookupError"}),
        because="A fixture that is asked for is not there, and files of the tests were changed.",
        category=Category.TEST_REGRESSION,
        owner=Owner.TEST,
        confidence=0.8,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.2),
        read=_lost_fixture,
    ),
    Rule(
        id="mark-of-change-unknown",
        about=frozenset({"builtins.Failed", "_pytest.outcomes.Failed", "pytest.PytestUnknownMarkWarning"}),
        because="Tests that were changed use a mark that is neither registered nor a known plugin's.",
        category=Category.TEST_REGRESSION,
        owner=Owner.TEST,
        confidence=0.8,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.2),
        read=_mark_of_change,
    ),
    Rule(
        id="coroutine-of-change",
        about=frozenset({"builtins.Failed", "_pytest.outcomes.Failed"}),
        because="A test in a file that was changed is a coroutine, and nothing here runs those.",
        category=Category.TEST_REGRESSION,
        owner=Owner.TEST,
        confidence=0.65,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.35),
        read=_coroutine_of_change,
    ),
    Rule(
        id="second-file-of-its-name",
        about=frozenset({"_pytest.pathlib.ImportPathMismatchError"}),
        because="Test files were changed, and two of them have one base name and no package.",
        category=Category.TEST_REGRESSION,
        owner=Owner.TEST,
        confidence=0.8,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.2),
        read=_second_of_its_name,
    ),
    Rule(
        id="database-not-opened",
        about=frozenset({"sqlite3.OperationalError"}),
        because="A database file that unchanged code opens cannot be opened or written.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.75,
        runner_up=(Category.TEST_REGRESSION, 0.25),
        read=_database_not_opened,
    ),
    Rule(
        id="program-fails-here",
        about=frozenset({"subprocess.CalledProcessError"}),
        because="A program that unchanged code starts ends with an error.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.7,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_program_fails,
    ),
    Rule(
        id="refused-for-the-machine",
        because="Unchanged product code refuses to go on and says that the machine lacks something.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.7,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_refused_for_the_machine,
    ),
)
