"""Rules for what the machine, its services and its plugins did not give, and who asked for it by name.

What is asked for and not there speaks against the machine, unless the very file that asks was changed: what
was committed is presumed to have found it.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import Phase, Side
from pytest_planverify.diagnosis.case import PROJECT_SIDES, Case, is_relative, raises_by_hand, top_level
from pytest_planverify.diagnosis.known import (
    EXHAUSTED,
    FORBIDDEN,
    FULL_DISK,
    HTTP_ERRORS,
    MACHINE_ERRORS,
    MACHINE_MESSAGES,
    NAME_RESOLUTION,
    PLUGIN_OF_FIXTURE,
    PLUGIN_OF_MARK,
    SERVICE_ERRORS,
    UNREACHABLE,
)
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.rules.imports import is_native_library
from pytest_planverify.diagnosis.wording import alike, place, quote, said

if TYPE_CHECKING:
    from collections.abc import Collection

_OVERLOADED = re.compile(r"\b50[234]\b")
_CLIENT_ERROR = re.compile(
    r"(?:Connection|Connect|Unreachable|ServiceUnavailable|NoBrokers\w*|NotConnected)"
    r"(?:Error|Exception|Timeout|Failed|Refused)?$"
)


def was_meant(case: Case) -> bool:
    """The project raised it on purpose, or a mock did."""
    last = case.innermost
    if last is None:
        return False
    return (last.side in PROJECT_SIDES and raises_by_hand(last)) or (last.module or "").startswith(
        "unittest.mock"
    )


def _at(case: Case) -> str:
    return f" in {place(case.raised_at)}" if case.raised_at else ""


def _system_error(numbers: Collection[int], sentence: str) -> Reader:
    def read(case: Case) -> Hit | None:
        error = case.error
        if (
            error is None
            or error.errno not in numbers
            or not case.is_error("builtins.OSError")
            or was_meant(case)
        ):
            return None
        return Hit(suggestion=sentence.format(said=said(error), at=_at(case), path=error.path or "a file"))

    return read


_full_disk = _system_error(FULL_DISK, "The disk is full{at}: {said}.")
_forbidden = _system_error(FORBIDDEN, "The system refuses access to {path}{at}: {said}.")
_exhausted = _system_error(EXHAUSTED, "The system has nothing more to give{at}: {said}.")


def _client_that_gave_up(case: Case) -> str | None:
    """The service that an installed client could not reach, or that answered that it cannot serve."""
    error, last = case.error, case.innermost
    if error is None or last is None:
        return None
    if error.qualified in HTTP_ERRORS and _OVERLOADED.search(error.message):
        return "an HTTP service"
    if last.side is Side.THIRD_PARTY and _CLIENT_ERROR.search(error.type):
        return f"the service that {top_level(last.module or error.qualified)} talks to"
    return None


def _is_absent_socket(case: Case) -> bool:
    """A socket in the file system, to which a connection was asked for, is not there."""
    last = case.innermost
    if case.error is None or case.error.path or last is None or last.source is None:
        return False
    return case.is_error("builtins.FileNotFoundError") and ".connect(" in last.source


def _unreachable(case: Case) -> Hit | None:
    error = case.error
    if error is None or was_meant(case):
        return None
    service = SERVICE_ERRORS.get(error.qualified) or _client_that_gave_up(case)
    by_number = error.errno in UNREACHABLE and case.is_error("builtins.OSError")
    if not (service or by_number or case.is_error(*NAME_RESOLUTION) or _is_absent_socket(case)):
        return None
    if error.errno == errno.EADDRINUSE:
        return Hit(
            suggestion=f"The address is in use already{_at(case)}: {said(error)}. End what listens there, "
            "or let the test take any free port."
        )
    early = case.evidence.phase in (Phase.SETUP, Phase.COLLECT, Phase.SESSION, None)
    return Hit(
        suggestion=f"{(service or 'a service or the network').capitalize()} could not be "
        f"reached{_at(case)}: "
        f"{said(error)}. Start it, or let the test do without it.",
        weight=1.0 if early else 0.87,
    )


def _machine(case: Case) -> Hit | None:
    error = case.error
    if error is None or was_meant(case):
        return None
    phrase = MACHINE_ERRORS.get(error.qualified)
    if phrase is None and not case.raised_in_changed:
        told = any(
            case.is_error(name) and error.message.startswith(start) for name, start in MACHINE_MESSAGES
        )
        phrase = "the machine lacks something" if told else None
    if phrase is None:
        return None
    return Hit(suggestion=f"{phrase[0].upper()}{phrase[1:]}{_at(case)}: {said(error)}.")


def program_that_was_started(case: Case) -> str | None:
    """The bare name of a program that could not be started because nothing of that name is there."""
    error = case.error
    if error is None or not case.is_error("builtins.FileNotFoundError") or case.innermost is None:
        return None
    started = (case.innermost.module or "") in ("subprocess", "os") or case.innermost.path.endswith(
        "/subprocess.py"
    )
    program = error.path
    if not started or not program or "/" in program or "\\" in program or "." in program[1:-3]:
        return None
    return program


def _program_not_on_path(case: Case) -> Hit | None:
    program = program_that_was_started(case)
    if program is None:
        return None
    return Hit(suggestion=f"The program {program} that is started{_at(case)} is not on PATH: install it.")


def variable_that_was_read(case: Case) -> str | None:
    """The environment variable that was read and is not set."""
    last = case.innermost
    if last is None or not case.is_error("builtins.KeyError") or last.function != "_Environ.__getitem__":
        return None
    return case.error.message.strip("'\"") if case.error else None


def _variable(case: Case) -> Hit | None:
    name = variable_that_was_read(case)
    if name is None:
        return None
    return Hit(suggestion=f"The environment variable {name} that is read{_at(case)} is not set here.")


def _memory(case: Case) -> Hit | None:
    if not case.is_error("builtins.MemoryError") or was_meant(case):
        return None
    return Hit(suggestion=f"Memory ran out{_at(case)}: give the run more, or make it ask for less.")


def _dependency_raised_at_import(case: Case) -> Hit | None:
    """An installed package that cannot even be imported here, for a reason of its own."""
    last = case.innermost
    if last is None or case.error is None or last.side is not Side.THIRD_PARTY:
        return None
    if case.evidence.phase is not Phase.COLLECT or not any(
        f.function == "<module>" for f in case.frames[-4:]
    ):
        return None
    if last.function != "<module>" or case.is_error("builtins.ImportError"):
        return None
    return Hit(
        suggestion=f"An installed package fails while it is imported, at {place(last)}: "
        f"{said(case.error)}. "
        "Check its version against this Python."
    )


_NETWORK_MODULES = (
    "socket",
    "ssl",
    "http",
    "urllib",
    "smtplib",
    "ftplib",
    "imaplib",
    "poplib",
    "telnetlib",
)
_MAIL_AND_FILES = (
    "smtplib.SMTPServerDisconnected",
    "smtplib.SMTPConnectError",
    "ftplib.error_temp",
    "http.client.RemoteDisconnected",
    "http.client.BadStatusLine",
)


def _from_network(case: Case) -> bool:
    last = case.innermost
    if last is None or last.side is not Side.STDLIB:
        return False
    module = last.module or last.path.rpartition("/")[2].removesuffix(".py")
    return module.partition(".")[0] in _NETWORK_MODULES


def _peer(case: Case) -> Hit | None:
    """A peer that answers too late, hangs up or talks nonsense, seen by the library that talks to it."""
    error = case.error
    if error is None or was_meant(case):
        return None
    slow = case.is_error("builtins.TimeoutError") and _from_network(case)
    gone = case.is_error("builtins.ConnectionError") and not case.is_error("builtins.BrokenPipeError")
    if not (slow or gone or case.is_error(*_MAIL_AND_FILES)):
        return None
    return Hit(suggestion=f"What the code talks to did not answer as it should{_at(case)}: {said(error)}.")


_FAILED = ("builtins.Failed", "_pytest.outcomes.Failed")
_UNKNOWN_MARK = re.compile(
    r"^(?:'(?P<strict>\w+)' not found in `markers` configuration option|"
    r"Unknown pytest\.mark\.(?P<warned>\w+) )"
)
_NO_ASYNC_PLUGIN = "async def functions are not natively supported"


def _asked_of_pytest(case: Case) -> tuple[str, str | None] | None:
    """Return what pytest was asked for and does not have, and the plugin that is known to bring it."""
    error = case.error
    if error is None:
        return None
    if case.is_error("_pytest.pathlib.ImportPathMismatchError"):
        return "a second file of this base name without a package", None
    if case.is_error("_pytest.fixtures.FixtureLookupError"):
        return f"the fixture {error.name or 'that is named'}", PLUGIN_OF_FIXTURE.get(error.name or "")
    if not case.is_error(*_FAILED, "pytest.PytestUnknownMarkWarning"):
        return None
    if error.message.startswith(_NO_ASYNC_PLUGIN):
        return "running an async function", "pytest-asyncio or anyio"
    if found := _UNKNOWN_MARK.match(error.message):
        mark = found["strict"] or found["warned"]
        return f"the mark {mark}", PLUGIN_OF_MARK.get(mark)
    return None


def _asked_by_changed_tests(case: Case) -> Hit | None:
    asked = _asked_of_pytest(case)
    if asked is None or case.error is None:
        return None
    what, plugin = asked
    near = alike(case.error.name, case.evidence.known_fixtures) if case.error.name else ()
    own = (case.evidence.nodeid or "").partition("::")[0]
    is_coroutine = what.startswith("running")
    by_tests = case.is_changed(own) if is_coroutine else case.tests_changed and plugin is None
    if not by_tests and not near:
        return None
    meant = f"; did you mean {near[0]}?" if near else ": is it misspelt, or was it renamed or removed?"
    return Hit(suggestion=f"{_place(case)} asks for {what}, which nothing here gives{meant}")


def _not_of_pytest(case: Case) -> Hit | None:
    asked = _asked_of_pytest(case)
    if asked is None:
        return None
    what, plugin = asked
    remedy = f"install {plugin}" if plugin else "install the plugin that brings it, or define it"
    return Hit(suggestion=f"pytest was asked for {what}{_at(case)}, which nothing here gives: {remedy}.")


_OF_PYTEST = (
    "_pytest.fixtures.FixtureLookupError",
    "_pytest.pathlib.ImportPathMismatchError",
    "pytest.PytestUnknownMarkWarning",
    *_FAILED,
)

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


def _place(case: Case) -> str:
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
        suggestion=f"{_place(case)}, in a file that was changed, asks for {asked}, which is not here: "
        f"is the name right?",
        owner=_side_owner(case),
    )


def _not_shipped(case: Case) -> Hit | None:
    """Unchanged code reads a file below the root that is not there: it was installed without it."""
    error = case.error
    if error is None or not error.path or case.changed != frozenset() or case.in_nobody or was_meant(case):
        return None
    frame = case.innermost
    if not is_relative(error.path) or error.path.startswith((".", "~")) or "/" not in error.path:
        return None
    if frame is not None and _WRITES.search(frame.source or ""):
        return None
    return Hit(
        suggestion=f"{error.path}, which {_place(case)} reads, is not here, and nothing was changed: "
        "was it left out of what is installed?"
    )


_WRITES = re.compile(
    r"\.(?:unlink|rmdir|remove|write_\w+|mkdir|touch|rename)\(|"
    r"\bopen\([^)]*[\"'][wax]b?\+?[\"']"
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
        suggestion=f"{found['program']}, which {_place(case)} starts, fails here, and no code on the way "
        f"to it was changed: {said(error)} See what it printed, and how it is set up on this machine."
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
    return Hit(suggestion=f"{_place(case)} says by itself what the machine lacks: {said(error)}.")


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
        suggestion=f"The system refuses what {_place(case)}, in a file that was changed, asks for: "
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
        suggestion=f"{_place(case)} cannot work with what the tests hand to it, and only tests were "
        f"changed: {said(case.error) if case.error else ''}.",
        owner=Owner.TEST,
    )


def _database_not_opened(case: Case) -> Hit | None:
    error = case.error
    if error is None or error.qualified != "sqlite3.OperationalError" or case.raised_in_changed:
        return None
    if not _NO_DATABASE.match(error.message):
        return None
    return Hit(suggestion=f"The database file cannot be used here, in {_place(case)}: {said(error)}.")


# fmt: off
MACHINE_RULES: tuple[Rule, ...] = (
    Rule("name-of-change-not-found", Category.TEST_REGRESSION, 0.75, _name_of_change,
         second=(Category.ENVIRONMENT_ERROR, 0.3),
         because="A file that was changed asks for something by a name that nothing here has."),
    Rule("refused-to-changed-code", Category.TEST_REGRESSION, 0.65, _refused_to_changed_code,
         about=("builtins.OSError",), second=(Category.ENVIRONMENT_ERROR, 0.35),
         because="The system refuses something to product code that was changed, in a test that was not."),
    Rule("product-misled-by-tests", Category.TEST_REGRESSION, 0.65, _misled_by_tests, owner=Owner.TEST,
         about=("builtins.AttributeError", "builtins.TypeError",), second=(Category.TYPE_ERROR, 0.3),
         because="Unchanged product code cannot work with what changed tests hand to it."),
    Rule("variable-unusable", Category.ENVIRONMENT_ERROR, 0.7, _unusable_variable,
         about=("builtins.ValueError",), second=(Category.TEST_REGRESSION, 0.3),
         because="The value of an environment variable cannot be used by unchanged code."),
    Rule("file-not-shipped", Category.ENVIRONMENT_ERROR, 0.65, _not_shipped,
         about=("builtins.FileNotFoundError",), second=(Category.ARTIFACT_MISSING, 0.3),
         because="Nothing was changed, and a file of the project that code reads is not here."),
    Rule("database-not-opened", Category.ENVIRONMENT_ERROR, 0.75, _database_not_opened,
         about=("sqlite3.OperationalError",), second=(Category.TEST_REGRESSION, 0.25),
         because="A database file that unchanged code opens cannot be opened or written."),
    Rule("program-fails-here", Category.ENVIRONMENT_ERROR, 0.7, _program_fails,
         about=("subprocess.CalledProcessError",), second=(Category.TEST_REGRESSION, 0.3),
         because="A program that unchanged code starts ends with an error."),
    Rule("refused-for-the-machine", Category.ENVIRONMENT_ERROR, 0.7, _refused_for_the_machine,
         second=(Category.TEST_REGRESSION, 0.3),
         because="Unchanged product code refuses to go on and says that the machine lacks something."),
    Rule("disk-full", Category.ENVIRONMENT_ERROR, 0.97, _full_disk,
         about=("builtins.OSError",),
         because="The system said that a disk or a quota is full."),
    Rule("permission-denied", Category.ENVIRONMENT_ERROR, 0.82, _forbidden,
         about=("builtins.OSError",), second=(Category.TEST_REGRESSION, 0.15),
         because="The system refused access."),
    Rule("resources-exhausted", Category.ENVIRONMENT_ERROR, 0.75, _exhausted,
         about=("builtins.OSError",), second=(Category.TEST_REGRESSION, 0.2),
         because="The system has no more files, processes or memory to give."),
    Rule("service-unreachable", Category.ENVIRONMENT_ERROR, 0.94, _unreachable,
         second=(Category.TEST_REGRESSION, 0.1),
         because="A service or the network could not be reached."),
    Rule("machine-lacks-something", Category.ENVIRONMENT_ERROR, 0.9, _machine,
         because="The exception's type speaks about the machine."),
    Rule("program-not-on-path", Category.ENVIRONMENT_ERROR, 0.94, _program_not_on_path,
         about=("builtins.FileNotFoundError",),
         because="A program that was to be started by its bare name is not on PATH."),
    Rule("variable-not-set", Category.ENVIRONMENT_ERROR, 0.82, _variable, about=("builtins.KeyError",),
         second=(Category.TEST_REGRESSION, 0.15),
         because="An environment variable that is read is not set."),
    Rule("out-of-memory", Category.ENVIRONMENT_ERROR, 0.65, _memory, about=("builtins.MemoryError",),
         second=(Category.TEST_REGRESSION, 0.3),
         because="Memory ran out."),
    Rule("dependency-fails-at-import", Category.ENVIRONMENT_ERROR, 0.75, _dependency_raised_at_import,
         second=(Category.IMPORT_ERROR, 0.25),
         because="An installed package fails while it is imported."),
    Rule("peer-fails", Category.ENVIRONMENT_ERROR, 0.8, _peer,
         about=("builtins.TimeoutError", "builtins.ConnectionError", *_MAIL_AND_FILES),
         second=(Category.TEST_REGRESSION, 0.2),
         because="A peer on the network did not answer, hung up, or answered nonsense."),
    Rule("asked-by-changed-tests", Category.TEST_REGRESSION, 0.8, _asked_by_changed_tests, about=_OF_PYTEST,
         owner=Owner.TEST, second=(Category.ENVIRONMENT_ERROR, 0.2),
         because="Tests that were changed ask pytest for a fixture, a mark or a plugin that is not there."),
    Rule("not-of-pytest", Category.ENVIRONMENT_ERROR, 0.85, _not_of_pytest, about=_OF_PYTEST,
         second=(Category.TEST_REGRESSION, 0.15),
         because="pytest is asked for a fixture, a mark or a plugin that nothing here gives."),
)
# fmt: on
