"""What the commands of ``planverify`` share: the plan that is meant, completion, and how a command ends."""

from __future__ import annotations

import functools
import os
import signal
import sys
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    from planner.planfile.tree import FlatPlan

    Given = ParamSpec("Given")

USUAL_NAMES = ("planverify.yaml", "plan.yaml", "todo.yaml")
"""The plan that is meant where none is named, the first that is there."""

INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended."""


class Status(IntEnum):
    """The exit statuses of the commands, in the numbers that ``pytest --planverify`` uses."""

    OK = 0
    FOUND = 1
    USAGE = 2
    INTERNAL_ERROR = 3
    UNREADABLE = 4


class UsageMistake(Exception):
    """What the command line asks for cannot be meant; ``str()`` is the line to show."""


def command_app(**settings: Any) -> typer.Typer:
    """An application for a command or a group of commands, in the manner of all of them."""
    return typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )


def complete_plan(ctx: Any, incomplete: str) -> list[str]:
    """Folders, and files that may be plans."""
    from planner.edges.offering import plan_files

    return plan_files(incomplete)


def complete_todo(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """The ids of the todos of the plan that was named or is the usual one, with their titles."""
    from planner.edges.offering import PLAN_ENDINGS, todo_ids
    from planner.errors import PlannerError

    words = [*sys.argv, *os.environ.get("COMP_WORDS", "").split()]
    named = (word for word in words if word.endswith(PLAN_ENDINGS) and Path(word).is_file())
    try:
        return todo_ids(
            flat_plan(Path(next(named, None) or plan_or_usual(None))).loaded.plan.items, incomplete
        )
    except (PlannerError, UsageMistake, OSError):
        return []


PlanArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="PLAN",
        help="The plan file. Default: planverify.yaml, plan.yaml or todo.yaml here.",
        autocompletion=complete_plan,
    ),
]


def plan_or_usual(plan: Path | None) -> Path:
    """The plan that was named, else the usual one here. Raises :class:`UsageMistake`."""
    usual = plan or next((Path(name) for name in USUAL_NAMES if Path(name).is_file()), None)
    if usual is None:
        raise UsageMistake(
            f"there is no {', '.join(USUAL_NAMES[:-1])} or {USUAL_NAMES[-1]} here; name the plan"
        )
    return usual


def flat_plan(path: Path) -> FlatPlan:
    """The plan with its sub-plans. Raises :class:`planner.errors.PlannerError`."""
    from planner.planfile.tree import load_tree

    here = Path.cwd()
    whole = Path(os.path.abspath(path))
    return load_tree(whole, boundary=here if here in whole.parents else None).load_all().flat()


def ends(command: Callable[Given, int]) -> Callable[Given, None]:
    """The command as Typer runs it: what it returns becomes the exit status."""

    @functools.wraps(command)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> None:
        guarded(lambda: sys.exit(command(*args, **kwargs)))

    return run


def guarded(run: Callable[[], object]) -> None:
    """Run it; every error becomes one line on standard error and an exit status."""
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        run()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Status.OK)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(INTERRUPTED)
    except Exception as error:
        sys.exit(_status_of(error))
    finally:
        signal.signal(signal.SIGTERM, previous)


def complain(text: str) -> None:
    """Tell it on standard error."""
    from planner.text.sanitizing import clean

    sys.stderr.write(f"planverify: {clean(text, limit=20_000)}\n".encode("utf-8", "replace").decode())
    sys.stderr.flush()


def say(text: str = "") -> None:
    """One line on standard output; what its encoding lacks is written as an escape."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))


def _status_of(error: Exception) -> int:
    from planner.errors import PlannerError

    if type(error).__module__.split(".")[0] in ("typer", "click"):
        raise error  # the library's own way to end a command
    if isinstance(error, UsageMistake):
        complain(str(error))
        return Status.USAGE
    if isinstance(error, PlannerError):
        complain(str(error))
        return Status.UNREADABLE
    if isinstance(error, OSError) and error.filename is not None:
        complain(f"{error.filename}: {error.strerror}; name a file that can be used")
        return Status.UNREADABLE
    complain(f"this is a fault of planverify itself, not of your input: {type(error).__name__}: {error}")
    return Status.INTERNAL_ERROR


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
