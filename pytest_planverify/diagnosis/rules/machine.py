"""Rules for failures of the machine: missing programs, services, permissions, resources and pytest plugins.

If unchanged code requests something that is missing, the machine is at fault, since committed code is
presumed to have worked. If the requesting file was changed, the requested name is probably wrong: the rules
for changed files therefore come before the others.
"""

from __future__ import annotations

import errno
import re

from planner.catalog.test_paths import is_test_path
from planner.model.outcome import Location
from planner.model.taxonomy import Owner
from planner.model.verdicts import Phase, Side
from planner.text.python_text import removed_definition
from pytest_planverify.diagnosis.case import Case, is_relative, raises_by_hand, top_level
from pytest_planverify.diagnosis.known import (
    ERRNOS,
    MACHINE_ERRORS,
    MACHINE_MESSAGES,
    MACHINE_WORDS,
    PLUGIN_OF_FIXTURE,
    PLUGIN_OF_MARK,
    SERVICE_OF_ERROR,
    names_in,
)
from pytest_planverify.diagnosis.messages import alike, error_text, names_file, place, quote, since
from pytest_planverify.diagnosis.rule import Hit
from pytest_planverify.diagnosis.rules.imports import is_native_library

_NAME_RESOLUTION = names_in("name_resolution")
_NETWORK_MODULES = frozenset(names_in("network_modules"))
_PEER_ERRORS = names_in("peer_errors")
_HTTP_ERRORS = frozenset(names_in("http_errors"))
_BY_NAME = frozenset(names_in("by_name"))
_OVERLOADED = re.compile(r"\b50[234]\b")
_CLIENT_ERROR = re.compile(
    r"(?:Connection|Connect|Unreachable|ServiceUnavailable|NoBrokers\w*|NotConnected)"
    r"(?:Error|Exception|Timeout|Failed|Refused)?$"
)
_UNKNOWN_MARK = re.compile(
    r"^(?:'(?P<strict>\w+)' not found in `markers` configuration option|"
    r"Unknown pytest\.mark\.(?P<warned>\w+) )"
)
_WRITES = re.compile(
    r"\.(?:unlink|rmdir|remove|write_\w+|mkdir|touch|rename)\(|\bopen\([^)]*[\"'][wax]b?\+?[\"']"
)
_NAMES_ENCODING = re.compile(r"ascii|encod|\.decode\(", re.IGNORECASE)
_READS_VARIABLE = re.compile(r"\b(?:environ\b|getenv\()")
_RAN = re.compile(r"^Command '?\[?'?(?P<program>[^'\s,\]]+)")
_GIT_FATAL = re.compile(r"^Command '?\[?'?git\b.* exit status 128\.$", re.DOTALL)


def _in(case: Case) -> str:
    """Return the raising project frame as `` in function (file:line)``; empty if there is none."""
    return f" in {place(case.raised_at)}" if case.raised_at else ""


def _started_program(case: Case) -> str | None:
    """Return the bare name of a program that could not be started because it was not found, or ``None``."""
    last, program = case.innermost, case.error.path
    if not program or last is None or not case.is_error("FileNotFoundError"):
        return None
    is_started = (last.module or "") in ("subprocess", "os") or last.path.endswith("/subprocess.py")
    is_path = "/" in program or "\\" in program or "." in program[1:-3]
    return program if is_started and not is_path else None


def _read_variable(case: Case) -> str | None:
    """Return the environment variable that was read by ``os.environ[...]`` and is not set, or ``None``."""
    last = case.innermost
    if last is None or last.function != "_Environ.__getitem__" or not case.is_error("KeyError"):
        return None
    return case.error.message.strip("'\"")


def name_of_change_not_found(case: Case) -> Hit | None:
    """A file that was changed asks for something by a name that nothing here has."""
    error = case.error
    is_by_name = error.qualified in _BY_NAME or is_native_library(case)
    if program := _started_program(case):
        asked = f"the program {program}"
    elif variable := _read_variable(case):
        asked = f"the environment variable {variable}"
    elif is_by_name and not (case.innermost is case.raised_at and case.is_by_hand):
        asked = f"something ({quote(error_text(error), 80)})"
    else:
        return None
    return Hit(
        suggestion=(
            f"{place(case.raised_at)}, in a changed file, needs {asked}, which is missing: is "
            "the name right?"
        ),
        owner=Owner.TEST if case.in_test else Owner.PRODUCT,
    )


def refused_to_changed_code(case: Case) -> str | None:
    """The system refuses something to product code that was changed, in a test that was not."""
    # A library may wrap the error; the traceback of the wrapped one does not reach the product.
    errors, names = (case, *case.deeper), ("forbidden", "exhausted", "unreachable")
    is_own = any(each.error.errno in ERRNOS[name] for each in errors for name in names)
    if not (is_own or any(each.is_error("ConnectionError", *_NAME_RESOLUTION) for each in errors)):
        return None
    if case.is_changed((case.evidence.nodeid or "").partition("::")[0]):
        return None
    return (
        f"The system refuses what {place(case.raised_at)}, in a changed file, requests: "
        f"{error_text(case.error)}. Is the request right, and is the resource released?"
    )


def product_misled_by_tests(case: Case) -> str | None:
    """Unchanged product code cannot work with what changed tests hand to it."""
    if not case.only_tests_changed or not case.tests_on_way_changed or raises_by_hand(case.raised_at):
        return None
    return (
        f"{place(case.raised_at)} cannot work with what the tests pass to it, and only tests were "
        f"changed: {error_text(case.error)}."
    )


def variable_unusable(case: Case) -> str | None:
    """The value of an environment variable, or that it has none, cannot be used by unchanged code."""
    frame = case.raised_at
    if frame is None or not _READS_VARIABLE.search(frame.source or ""):
        return None
    if case.is_error("AttributeError", "TypeError") and "NoneType" not in case.error.message:
        return None
    reader = place(frame)
    return f"An environment variable that {reader} reads has an unusable value: {error_text(case.error)}."


def encoding_of_machine(case: Case) -> str | None:
    """Unchanged code that names no encoding gets that of the locale, which knows ASCII only."""
    source = (case.raised_at.source if case.raised_at is not None else None) or ""
    if not case.error.message.startswith("'ascii' codec"):
        return None
    if any(case.is_changed(frame.path) for frame in case.frames):  # a caller may have named the encoding
        return None
    if _NAMES_ENCODING.search(source):
        return None
    return (
        f"The locale of this machine supports only ASCII, and {place(case.raised_at)} names no encoding: "
        f"{error_text(case.error)}. Set LANG=C.UTF-8, or name the encoding in the code."
    )


def read_file_removed(case: Case) -> Hit | None:
    """Code reads a file of the project that a change removed."""
    path = case.error.path or ""
    # A file of that name may be looked for in another folder than the project's.
    if not is_relative(path) or not case.may_be_deleted(path):
        return None
    return Hit(
        suggestion=f"{path}, which {place(case.raised_at)} reads, was removed or renamed"
        f"{since(case.evidence)}: restore it.",
        location=Location(path=path),
        owner=Owner.TEST if is_test_path(path) else Owner.PRODUCT,
    )


def other_working_folder(case: Case) -> str | None:
    """An unchanged test reads a file relative to another folder than the one in which the command runs."""
    path, held = case.error.path or "", next(iter(case.error.nearest), None)
    if held is None:
        return None
    return (
        f"{path}, which {place(case.raised_at)} reads, is {held}: the test depends on the folder in which "
        "it runs. Let it find the file from its own path, or verify it by a plan whose root is "
        f"{held.removesuffix(f'/{path}')}."
    )


def file_not_shipped(case: Case) -> str | None:
    """Unchanged code reads a file of its own that is not here, and no change can have removed it."""
    path = case.error.path or ""
    reader = next((each for each in reversed(case.frames) if each.side is not Side.STDLIB), None)
    if reader is not None and reader.side is Side.THIRD_PARTY and not case.raised_in_changed:
        package, folder = top_level(reader.module or "it"), reader.path.rpartition("/")[0]
        lost = f"{path}, which {place(reader)} reads, is missing from the installation"
        if path.startswith(f"{folder}/"):
            return f"{lost}: install {package} again."
    is_of_tests = is_test_path(path) and case.in_test and case.changed is not None
    is_as_it_was = not case.raised_in_changed and path not in (case.changed or ())
    if not (case.nothing_changed or (is_of_tests and is_as_it_was)):
        return None
    if "/" not in path or not is_relative(path) or path.startswith((".", "~")):
        return None
    # Who writes a file misses its folder.
    if case.innermost is not None and _WRITES.search(case.innermost.source or ""):
        return None
    return (
        f"{path}, which {place(case.raised_at)} reads, is missing, and no change has removed it"
        f"{since(case.evidence)}: restore it, or add it to what is distributed."
    )


def program_fails_here(case: Case) -> str | None:
    """A program other than Python that unchanged code starts ends with an error."""
    message = case.error.message
    found = _RAN.match(message)
    if found is None or "/" in found["program"] or found["program"].startswith("python"):
        return None
    # That nothing changed is known, or git says that it cannot work in this folder.
    if case.changed is None and not _GIT_FATAL.match(message):
        return None
    if any(names_file(message, path) for path in case.changed or ()):
        return None
    return (
        f"{found['program']}, which {place(case.raised_at)} starts, fails here, and no code in the "
        f"traceback was changed: {error_text(case.error)} Check its output and its configuration on this "
        "machine."
    )


def refused_for_the_machine(case: Case) -> str | None:
    """Unchanged product code refuses to go on and says that the machine lacks something."""
    last = case.innermost
    is_meant = last is not None and last.side in (Side.PRODUCT, Side.THIRD_PARTY)
    message = case.error.message
    if not is_meant or not MACHINE_WORDS.search(message):
        return None
    return f"{place(case.raised_at)} reports what the machine lacks: {error_text(case.error)}."


def system_refuses(case: Case) -> Hit | str | None:
    """The system refused access, or has no more space, memory, files or processes to give."""
    number, error = case.error.errno, error_text(case.error)
    if case.is_error("MemoryError"):
        memory = f"Memory ran out{_in(case)}: give the run more, or make it use less."
        return Hit(suggestion=memory, weight=0.78)  # the code may ask for too much
    if number in ERRNOS["forbidden"]:
        return (
            f"The system refuses access to {case.error.path or 'a file'}{_in(case)}: {error}. "
            "Change its permissions, or use another place."
        )
    if number in ERRNOS["full_disk"]:
        return f"The disk is full{_in(case)}: {error}. Make room, or use another disk."
    if number in ERRNOS["exhausted"]:
        return f"A resource of the system is exhausted{_in(case)}: {error}. Raise its limit, or free it."
    return None


def client_gave_up(case: Case) -> Hit | None:
    """The client library of a service raised that it cannot reach it."""
    last, error = case.innermost, case.error
    if last is None or not _CLIENT_ERROR.search(error.type):
        return None
    service = SERVICE_OF_ERROR.get(error.qualified)
    return _unreachable(
        case, service or f"the service that {top_level(last.module or error.qualified)} talks to"
    )


def service_unreachable(case: Case) -> Hit | None:
    """A service or the network could not be reached, or did not answer as it should."""
    error = case.error
    if case.server_error:  # the project is the service
        return None
    service = SERVICE_OF_ERROR.get(error.qualified)
    if error.qualified in _HTTP_ERRORS and _OVERLOADED.search(error.message):
        service = "an HTTP service"
    is_away = error.errno in ERRNOS["unreachable"] and case.is_error("OSError")
    if service or is_away or case.is_error(*_NAME_RESOLUTION) or _is_absent_socket(case):
        return _unreachable(case, service or "a service or the network")
    is_slow = case.is_error("TimeoutError") and _is_from_network(case)
    is_gone = case.is_error(*_PEER_ERRORS) and not case.is_error("BrokenPipeError")
    if not (is_slow or is_gone):
        return None
    answer = f"A service did not answer correctly{_in(case)}: {error_text(error)}."
    return Hit(suggestion=answer, weight=0.85)


def _unreachable(case: Case, service: str) -> Hit:
    """Return the hit for a service that cannot be reached, given as a phrase, or for an address in use."""
    if case.error.errno == errno.EADDRINUSE:
        taken = f"The address is already in use{_in(case)}: {error_text(case.error)}."
        return Hit(suggestion=f"{taken} Stop the program that uses it, or let the test use any free port.")
    is_early = case.evidence.phase in (Phase.SETUP, Phase.COLLECT, Phase.SESSION, None)
    return Hit(
        suggestion=f"{service.capitalize()} could not be reached{_in(case)}: {error_text(case.error)}. "
        "Start it, or make the test independent of it.",
        weight=1.0 if is_early else 0.87,
    )


def _is_absent_socket(case: Case) -> bool:
    """Return whether code connects to a Unix domain socket that does not exist."""
    # Unlike open(), connect() raises a FileNotFoundError without a file name.
    last = case.innermost
    is_unnamed = case.is_error("FileNotFoundError") and not case.error.path
    return is_unnamed and last is not None and ".connect(" in (last.source or "")


def _is_from_network(case: Case) -> bool:
    """Return whether a network module of the standard library raised."""
    last = case.innermost
    if last is None or last.side is not Side.STDLIB:
        return False
    module = last.module or last.path.rpartition("/")[2].removesuffix(".py")
    return top_level(module) in _NETWORK_MODULES


def machine_lacks_something(case: Case) -> str | None:
    """The exception's type, or how its message begins, speaks about the machine."""
    error = case.error
    phrase = MACHINE_ERRORS.get(error.qualified)
    if phrase is None and not case.raised_in_changed:
        known = (
            error.message.startswith(text) and not case.classes.isdisjoint(types)
            for text, types in MACHINE_MESSAGES
        )
        phrase = "the machine lacks something" if any(known) else None
    if phrase is None:
        return None
    return f"{phrase[0].upper()}{phrase[1:]}: {error_text(error)}{_in(case)}."


def program_not_on_path(case: Case) -> str | None:
    """A program that was to be started by its bare name is not on PATH."""
    program = _started_program(case)
    return program and f"The program {program} that is started{_in(case)} is not on PATH: install it."


def variable_not_set(case: Case) -> str | None:
    """An environment variable that is read is not set."""
    name = _read_variable(case)
    return name and f"The environment variable {name} that is read{_in(case)} is not set: set it."


def dependency_fails_at_import(case: Case) -> str | None:
    """An installed package fails while it is imported, for a reason of its own."""
    last = case.innermost
    if last is None or last.function != "<module>" or case.is_error("ImportError"):
        return None
    return (
        f"An installed package fails during its import, at {place(last)}: {error_text(case.error)}. "
        "Check its version against this Python."
    )


def _asked_of_pytest(case: Case) -> tuple[str, str | None] | None:
    """Return what pytest was asked for and lacks, and the plugin that is known to provide it.

    ``None`` if the failure is none of pytest about a fixture, a mark or an async test.
    """
    error = case.error
    if case.is_error("_pytest.fixtures.FixtureLookupError"):
        return f"the fixture {error.name or 'that is named'}", PLUGIN_OF_FIXTURE.get(error.name or "")
    if error.message.startswith("async def functions are not natively supported"):
        return "running an async function", "pytest-asyncio or anyio, or mark the test for it"
    if found := _UNKNOWN_MARK.match(error.message):
        mark = found["strict"] or found["warned"]
        return f"the mark {mark}", PLUGIN_OF_MARK.get(mark)
    return None


def second_file_of_its_name(case: Case) -> str:
    """Two test files have one base name, and no packages that distinguish them."""
    name = (case.evidence.nodeid or "").rpartition("/")[2] or "file of its base name"
    return f"There is a second {name}: give one another name, or add an __init__.py to each one's folder."


def asked_by_changed_tests(case: Case) -> Hit | str | None:
    """Tests that were changed ask pytest for a fixture, a mark or a plugin that is not there."""
    asked = _asked_of_pytest(case)
    if asked is None:
        return None
    what, plugin = asked
    uses = f"{place(case.raised_at)} uses {what}"
    name = case.error.name if case.is_error("_pytest.fixtures.FixtureLookupError") else None
    for hunk in case.evidence.hunks if name else ():
        if name and removed_definition(name, hunk.text):
            return Hit(
                suggestion=f"{uses}, which was removed or renamed in {hunk.path}{since(case.evidence)}: "
                "restore it, or correct the name.",
                location=Location(path=hunk.path, line=hunk.line, function=hunk.function),
            )
    near = alike(case.error.name, case.evidence.known_fixtures) if case.error.name else None
    is_coroutine = what.startswith("running")
    own_file = (case.evidence.nodeid or "").partition("::")[0]
    by_tests = case.is_changed(own_file) if is_coroutine else case.tests_on_way_changed and plugin is None
    if not by_tests and not near:
        return None
    meant = f"; did you mean {near}?" if near else ": is it misspelt, or was it renamed or removed?"
    return f"{uses}, which is not defined{meant}"


def not_of_pytest(case: Case) -> str | None:
    """pytest is asked for a fixture, a mark or a plugin that nothing here gives."""
    asked = _asked_of_pytest(case)
    if asked is None:
        return None
    what, plugin = asked
    remedy = f"install {plugin}" if plugin else "install the plugin that defines it, or define it"
    return f"the test needs {what}{_in(case)}, which is not defined: {remedy}."
