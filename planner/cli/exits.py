"""Exit statuses; errors as one line, and no traceback whatever happens."""

from __future__ import annotations

import functools
import os
import re
import sys
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import ParamSpec

    Given = ParamSpec("Given")

INTERRUPTED = 130
"""The status that shells expect of a program that Ctrl-C ended."""

TRACEBACK = "PLANNER_TRACEBACK"
"""An environment variable: set, a fault of this program shows where it happened."""


_program = ["planner", ""]


def program() -> str:
    """Return what the command was called: ``planner``, or ``planverify``, which has the same commands."""
    return _program[0]


def call_program(name: str, commands: Iterable[str]) -> None:
    """Have messages speak of the program by that name; ``commands`` are those of ``planner``."""
    _program[:] = [name, "|".join(commands)]


def as_called(text: str) -> str:
    """Return a text of ours that names commands of ``planner``, by the name that the user has called."""
    name, commands = _program
    return re.sub(rf"\bplanner (?=(?:{commands})\b)", f"{name} ", text) if commands else text


class Status(IntEnum):
    """The exit statuses of all commands, in the numbers that ``pytest --planverify`` uses."""

    OK = 0
    FOUND = 1
    USAGE = 2
    INTERNAL_ERROR = 3
    UNREADABLE = 4
    ENVIRONMENT = 10
    HUMAN_NEEDED = 11
    BUDGET_HALT = 12
    SECURITY_HALT = 13


class UsageMistake(Exception):
    """A word of the command line that means nothing here; ``str()`` is the line to show."""


def ends(command: Callable[Given, int]) -> Callable[Given, None]:
    """Return the command as Typer runs it: its result becomes the exit status."""

    @functools.wraps(command)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> None:
        guarded(lambda: sys.exit(command(*args, **kwargs)))

    return run


def guarded(run: Callable[[], object]) -> None:
    """Run it; every error becomes one line on standard error and an exit status."""
    try:
        run()
    except SystemExit as leaving:
        leave(leaving.code)
    except BrokenPipeError:
        _drop_output()
        leave(Status.OK)
    except KeyboardInterrupt:
        complain("interrupted")
        leave(INTERRUPTED)
    except Exception as error:
        leave(_status_of(error))


def leave(status: object) -> NoReturn:
    """End the process. That the reader of a pipe went away is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        status = _unwritable(error)
    sys.exit(status)  # pyright: ignore[reportArgumentType]


def _unwritable(error: OSError) -> Status:
    complain(f"the output cannot be written: {error.strerror}; give it another place")
    _drop_output()
    return Status.UNREADABLE


def _drop_output() -> None:
    # What is still buffered would be complained about once more when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _status_of(error: Exception) -> int:
    import traceback

    from planner.errors import PlanFileError, PlannerError

    if type(error).__module__.split(".")[0] in ("typer", "click"):
        raise error  # the library's own way to end a command
    if isinstance(error, UsageMistake):
        complain(str(error))
        return Status.USAGE
    if isinstance(error, PlanFileError) and len(error.faults) == 1:
        complain(error.faults[0])
        return Status.UNREADABLE
    if isinstance(error, PlannerError):
        complain(str(error), many=True)
        return Status.UNREADABLE
    if isinstance(error, OSError):
        if error.filename is None:
            return _unwritable(error)
        complain(f"{error.filename}: {error.strerror}; name a file that can be used")
        return Status.UNREADABLE
    if os.environ.get(TRACEBACK):
        raise error
    places = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(places[-1].filename)}:{places[-1].lineno})" if places else ""
    complain(
        f"this is a fault of {program()} itself, not of your input: {type(error).__name__}: {error}{where};"
        f" please report it with the files (set {TRACEBACK}=1 to see all of it)"
    )
    return Status.INTERNAL_ERROR


def say(text: str = "") -> None:
    """Write one line on standard output; what its encoding lacks is written as an escape."""
    from planner.cli.screen import write

    write(f"{text}\n")


def complain(text: str, *, many: bool = False) -> None:
    """Tell it on standard error: one line, or as many as the text has."""
    from planner.cli.screen import write
    from planner.text.sanitizing import clean

    cleaned = clean(as_called(text), limit=20_000)
    shown = cleaned if many else " ".join(cleaned.split())
    with suppress(OSError):  # nobody reads it
        write(f"{program()}: {shown}\n", sys.stderr)
        sys.stderr.flush()
