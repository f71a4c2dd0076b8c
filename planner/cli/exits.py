"""Exit statuses of the commands, and the conversion of every exception to one line on standard error.

:func:`guarded` runs a command; no exception leaves it with a traceback, unless :data:`TRACEBACK` is set
in the environment and the fault is in this program.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn, cast

from planner.planfile.file_writer import drop_output, open_closed_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import ParamSpec

    Given = ParamSpec("Given")

INTERRUPTED = 130
"""The status that shells expect of a program that was ended by Ctrl-C: 128 + SIGINT."""

TRACEBACK = "PLANNER_TRACEBACK"
"""The environment variable that makes an internal error print its traceback."""


# The name under which the program runs, and the names of planner's commands as a regular expression.
_program = ["planner", ""]


def program() -> str:
    """Return the name of the running program: ``planner`` or ``planverify``, which share their commands."""
    return _program[0]


def call_program(name: str, commands: Iterable[str]) -> None:
    """Set the name that messages use for the program; ``commands`` are the names of planner's commands."""
    _program[:] = [name, "|".join(commands)]


def as_called(text: str) -> str:
    """Return the text with ``planner COMMAND`` rewritten to the name under which the program was called."""
    name, commands = _program
    # Elsewhere the word is a module (python -m planner) or plain text, and stays.
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
    """The command line is wrong; ``str()`` is the one-line message to print. Exits with status 2."""


def ends(command: Callable[Given, int | None]) -> Callable[Given, None]:
    """Wrap a command for Typer: it runs under :func:`guarded`, and its result becomes the exit status.

    A command without a result has succeeded. In texts, which unlike paths and words of commands are written
    to files, bytes that cannot be decoded are replaced.
    """

    @functools.wraps(command)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> None:
        texts, call = {name: _as_text(value) for name, value in kwargs.items()}, cast("Any", command)
        guarded(lambda: sys.exit(call(*args, **texts) or Status.OK))

    return run


def _as_text(value: Any) -> Any:
    """Return a text without surrogates; any other argument unchanged."""
    from planner.text.sanitizing import without_surrogates

    return without_surrogates(value) if type(value) is str else value


def guarded(run: Callable[[], object]) -> None:
    """Call ``run``; turn every error into one line on standard error and an exit status."""
    # A caller may have closed standard streams (>&-): the next file opened would take the place of one.
    open_closed_streams()
    try:
        run()
    except SystemExit as leaving:
        leave(leaving.code)
    except BrokenPipeError:  # ``planner … | head`` is normal use
        drop_output()
        leave(Status.OK)
    except KeyboardInterrupt:
        complain("interrupted")
        leave(INTERRUPTED)
    except Exception as error:
        leave(_status_of(error))


def leave(status: object) -> NoReturn:
    """Flush standard output and exit with ``status``.

    A closed pipe is no error; any other failure to write replaces the status by ``UNREADABLE``.
    """
    try:
        # Not left to the end of the interpreter, which exits with status 120 if a flush fails.
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        status = _unwritable(error)
    sys.exit(status)  # pyright: ignore[reportArgumentType]


def _unwritable(error: OSError) -> Status:
    """Report that standard output cannot be written, a full disk for instance; return the status."""
    complain(f"the output cannot be written: {error.strerror}; write it elsewhere")
    drop_output()
    return Status.UNREADABLE


def _status_of(error: Exception) -> int:
    """Print the message of an error and return its exit status; re-raise what Typer handles itself."""
    import traceback

    from planner.errors import PlannerError

    if type(error).__module__.split(".")[0] in ("typer", "click"):
        raise error  # the library's own way to end a command
    if isinstance(error, UsageMistake):
        complain(str(error))
        return Status.USAGE
    if isinstance(error, PlannerError):
        complain(str(error), many=True)
        return Status.UNREADABLE
    if isinstance(error, OSError):
        if error.filename is None:  # no file was opened: the write to standard output failed
            return _unwritable(error)
        complain(f"{error.filename}: {error.strerror}; make it usable, or name another file")
        return Status.UNREADABLE
    if os.environ.get(TRACEBACK):
        raise error
    place = traceback.extract_tb(error.__traceback__)[-1]
    complain(
        f"this is a bug of {program()}, not a fault of your input: {type(error).__name__}: {error} "
        f"({os.path.basename(place.filename)}:{place.lineno}); please report it with the files (set "
        f"{TRACEBACK}=1 for the whole traceback)"
    )
    return Status.INTERNAL_ERROR


def say(text: str = "") -> None:
    """Write one line, sanitized, to standard output; escape characters that its encoding lacks."""
    from planner.cli.screen import write
    from planner.text.sanitizing import clean

    write(clean(text).replace("\n", " ") + "\n")


def complain(text: str, *, many: bool = False) -> None:
    """Write a message to standard error, sanitized and joined to one line; ``many`` keeps its lines."""
    from planner.cli.screen import write
    from planner.text.sanitizing import clean

    cleaned = clean(as_called(text), limit=20_000)
    shown = cleaned if many else " ".join(cleaned.split())
    with suppress(OSError):  # standard error is closed: there is nowhere left to report that
        write(f"{program()}: {shown}\n", sys.stderr)
        sys.stderr.flush()
