"""Rules for what the machine, its services and its plugins did not give; never the fault of the code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.kinds import Phase, Side
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.known import (
    EXHAUSTED,
    FORBIDDEN,
    FULL_DISK,
    MACHINE_ERRORS,
    NAME_RESOLUTION,
    PLUGIN_OF_FIXTURE,
    PLUGIN_OF_MARK,
    SERVICE_ERRORS,
    UNREACHABLE,
)
from pytest_planverify.diagnosis.reading import PROJECT_SIDES, Case, raises_by_hand
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.wording import alike, place, quote, said

if TYPE_CHECKING:
    from collections.abc import Collection

FIXTURE_LOOKUP = "_pytest.fixtures.FixtureLookupError"
_NO_ASYNC_PLUGIN = "async def functions are not natively supported"
_UNKNOWN_MARK = re.compile(
    r"^(?:'(?P<strict>\w+)' not found in `markers` configuration option|Unknown "
    r"pytest\.mark\.(?P<warned>\w+) )"
)
_NO_SHELL_PROGRAM = re.compile(r"^Command .* returned non-zero exit status 127\.$", re.DOTALL)
_NO_THREAD = "can't start new thread"


def _meant(case: Case) -> bool:
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
            or _meant(case)
        ):
            return None
        return Hit(suggestion=sentence.format(said=said(error), at=_at(case), path=error.path or "a file"))

    return read


def _unreachable(case: Case) -> Hit | None:
    error = case.error
    if error is None or _meant(case):
        return None
    service = SERVICE_ERRORS.get(error.qualified)
    by_number = error.errno in UNREACHABLE and case.is_error("builtins.OSError")
    if not (service or by_number or case.is_error(*NAME_RESOLUTION)):
        return None
    early = case.evidence.phase in (Phase.SETUP, Phase.COLLECT, Phase.SESSION, None)
    return Hit(
        suggestion=f"{(service or 'a service or the network').capitalize()} could not be "
        f"reached{_at(case)}: "
        f"{said(error)}. Start it, or let the test do without it.",
        weight=1.0 if early else 0.87,
    )


def _machine(case: Case) -> Hit | None:
    error = case.error
    if error is None or _meant(case) or not (phrase := MACHINE_ERRORS.get(error.qualified)):
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
    if not case.is_error("builtins.MemoryError") or _meant(case):
        return None
    return Hit(suggestion=f"Memory ran out{_at(case)}: give the run more, or make it ask for less.")


def _threads(case: Case) -> Hit | None:
    if not case.is_error("builtins.RuntimeError") or case.error is None or case.error.message != _NO_THREAD:
        return None
    return Hit(suggestion=f"The system allows no more threads{_at(case)}.")


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
        because="The system said that a disk or a quota is full.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.97,
        read=_system_error(FULL_DISK, "The disk is full{at}: {said}."),
    ),
    Rule(
        id="permission-denied",
        because="The system refused access.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.82,
        runner_up=(Category.TEST_REGRESSION, 0.15),
        read=_system_error(FORBIDDEN, "The system refuses access to {path}{at}: {said}."),
    ),
    Rule(
        id="resources-exhausted",
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
        because="A program that was to be started by its bare name is not on PATH.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.94,
        read=_program_not_on_path,
    ),
    Rule(
        id="shell-found-no-program",
        because="A shell said that a program does not exist.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.8,
        read=_shell_found_no_program,
    ),
    Rule(
        id="variable-not-set",
        because="An environment variable that is read is not set.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.82,
        runner_up=(Category.TEST_REGRESSION, 0.15),
        read=_variable,
    ),
    Rule(
        id="out-of-memory",
        because="Memory ran out.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.65,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_memory,
    ),
    Rule(
        id="no-more-threads",
        because="The system allows no more threads.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.8,
        read=_threads,
    ),
    Rule(
        id="fixture-of-absent-plugin",
        because="A fixture that a well-known plugin brings is not there.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.95,
        read=_fixture_of_plugin,
    ),
    Rule(
        id="fixture-recursion",
        because="A fixture depends on itself.",
        category=Category.TEST_REGRESSION,
        confidence=0.85,
        owner=Owner.TEST,
        read=_fixture_recursion,
    ),
    Rule(
        id="fixture-misspelt",
        because="An unknown fixture looks like one that exists.",
        category=Category.TEST_REGRESSION,
        confidence=0.7,
        owner=Owner.TEST,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.3),
        read=_fixture_misspelt,
    ),
    Rule(
        id="fixture-unknown",
        because="Nothing here gives a fixture that is asked for.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.75,
        runner_up=(Category.TEST_REGRESSION, 0.25),
        read=_fixture_unknown,
    ),
    Rule(
        id="async-plugin-absent",
        because="An async test needs a plugin that is not installed.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.95,
        read=_async_plugin,
    ),
    Rule(
        id="mark-unknown",
        because="A mark that no plugin and no configuration registers is an error here.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        runner_up=(Category.TEST_REGRESSION, 0.3),
        read=_mark,
    ),
    Rule(
        id="two-files-one-name",
        because="Two test files of one base name cannot be imported together.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.9,
        read=_two_files_one_name,
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
