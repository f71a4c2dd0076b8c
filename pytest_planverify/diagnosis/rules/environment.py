"""Rules for what the machine, its services and its plugins did not give; never the fault of the code."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from planner.model.kinds import Phase, Side
from planner.model.taxonomy import Category
from pytest_planverify.diagnosis.known import (
    EXHAUSTED,
    FORBIDDEN,
    FULL_DISK,
    HTTP_ERRORS,
    MACHINE_ERRORS,
    NAME_RESOLUTION,
    SERVICE_ERRORS,
    UNREACHABLE,
)
from pytest_planverify.diagnosis.reading import PROJECT_SIDES, Case, raises_by_hand, top_level
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.wording import place, said

if TYPE_CHECKING:
    from collections.abc import Collection

_NO_SHELL_PROGRAM = re.compile(r"^Command .* returned non-zero exit status 127\.$", re.DOTALL)
_OVERLOADED = re.compile(r"\b50[234]\b")
_CLIENT_ERROR = re.compile(
    r"(?:Connection|Connect|Unreachable|ServiceUnavailable|NoBrokers\w*|NotConnected)"
    r"(?:Error|Exception|Timeout|Failed|Refused)?$"
)
_NO_THREAD = "can't start new thread"


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
    if error is None or was_meant(case) or not (phrase := MACHINE_ERRORS.get(error.qualified)):
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


def _shell_found_no_program(case: Case) -> Hit | None:
    if case.error is None or case.error.qualified != "subprocess.CalledProcessError":
        return None
    if not _NO_SHELL_PROGRAM.match(case.error.message):
        return None
    return Hit(
        suggestion=f"A shell did not find the program that is started{_at(case)}: {said(case.error)}"
    )


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


def _threads(case: Case) -> Hit | None:
    if not case.is_error("builtins.RuntimeError") or case.error is None or case.error.message != _NO_THREAD:
        return None
    return Hit(suggestion=f"The system allows no more threads{_at(case)}.")


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


ENVIRONMENT_RULES: tuple[Rule, ...] = (
    Rule(
        id="disk-full",
        about=frozenset({"builtins.OSError"}),
        because="The system said that a disk or a quota is full.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.97,
        read=_system_error(FULL_DISK, "The disk is full{at}: {said}."),
    ),
    Rule(
        id="permission-denied",
        about=frozenset({"builtins.OSError"}),
        because="The system refused access.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.82,
        runner_up=(Category.TEST_REGRESSION, 0.15),
        read=_system_error(FORBIDDEN, "The system refuses access to {path}{at}: {said}."),
    ),
    Rule(
        id="resources-exhausted",
        about=frozenset({"builtins.OSError"}),
        because="The system has no more files, processes or memory to give.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.75,
        runner_up=(Category.TEST_REGRESSION, 0.2),
        read=_system_error(EXHAUSTED, "The system has nothing more to give{at}: {said}."),
    ),
    Rule(
        id="service-unreachable",
        because="A service or the network could not be reached.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.94,
        runner_up=(Category.TEST_REGRESSION, 0.1),
        read=_unreachable,
    ),
    Rule(
        id="machine-lacks-something",
        because="The exception's type speaks about the machine.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        read=_machine,
    ),
    Rule(
        id="program-not-on-path",
        about=frozenset({"builtins.FileNotFoundError"}),
        because="A program that was to be started by its bare name is not on PATH.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.94,
        read=_program_not_on_path,
    ),
    Rule(
        id="shell-found-no-program",
        about=frozenset({"subprocess.CalledProcessError"}),
        because="A shell said that a program does not exist.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.8,
        read=_shell_found_no_program,
    ),
    Rule(
        id="variable-not-set",
        about=frozenset({"builtins.KeyError"}),
        because="An environment variable that is read is not set.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.82,
        runner_up=(Category.TEST_REGRESSION, 0.15),
        read=_variable,
    ),
    Rule(
        id="out-of-memory",
        about=frozenset({"builtins.MemoryError"}),
        because="Memory ran out.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.65,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_memory,
    ),
    Rule(
        id="no-more-threads",
        about=frozenset({"builtins.RuntimeError"}),
        because="The system allows no more threads.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.8,
        read=_threads,
    ),
    Rule(
        id="dependency-fails-at-import",
        because="An installed package fails while it is imported.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.75,
        runner_up=(Category.IMPORT_ERROR, 0.25),
        read=_dependency_raised_at_import,
    ),
)
