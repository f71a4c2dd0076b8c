"""The expected errors. Each is shown to the user as its message, never as a traceback.

::

    PlannerError
    ├── PlanFileError      the plan file cannot be used; lists all faults of the file
    ├── PlanTreeError      several files of a plan with sub-plans cannot be used
    ├── CommandSyntaxError a command of the plan cannot be run as an argument vector
    ├── ContractFileError  the contract file cannot be used; lists all faults of the file
    ├── DesignError        a design plan, or a file that belongs to it, cannot be used or changed
    ├── EditConflictError  an edit does not fit the plan that it should change
    ├── FileWriteError     a file cannot be written
    ├── BaselineError      the baseline cannot be created, read or trusted
    ├── OutcomeFileError   the outcome file cannot be read
    ├── RefusedEvent       the engine refuses an event; nothing has changed
    │   └── IllegalTransition     a todo, or the plan, cannot change from its state to another
    └── LogError           the log of a run cannot be read, continued or trusted
        └── StoreError            the index over logs and outcomes cannot be opened, read or written
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class PlannerError(Exception):
    """An error that the user can fix; ``str()`` is the message to show."""


class CommandSyntaxError(PlannerError):
    """A command cannot be run as an argument vector, or uses a tool or option that is not allowed.

    ``problem`` is what is wrong, ``remedy`` what to write instead.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a file. ``problem`` is the problem, and after a semicolon the remedy."""

    line: int | None = None
    column: int | None = None
    path: str = ""
    """Path in the plan, such as ``items[2].title``; empty for the document."""
    problem: str


class PlanFileError(PlannerError):
    """The plan file cannot be used.

    ``faults`` has one line for each fault, position first. The message has at most ``MOST`` of them, below
    a heading if there are several.
    """

    MOST = 50
    """Limit of faults in the message."""

    def __init__(self, path: str, faults: tuple[str, ...]) -> None:
        self.path = path
        self.faults = faults
        heading = [f"{path}: the plan cannot be used ({len(faults)} faults)"] if len(faults) != 1 else []
        rest = len(faults) - self.MOST
        more = [f"… and {rest} more; planner validate --json lists all"] if rest > 0 else []
        super().__init__("\n".join([*heading, *faults[: self.MOST], *more]))


class PlanTreeError(PlannerError):
    """Several files of a plan with sub-plans cannot be used. ``errors`` has the error of each file."""

    def __init__(self, errors: tuple[PlanFileError, ...]) -> None:
        super().__init__("\n\n".join(str(error) for error in errors))
        self.errors = errors


class OutcomeFileError(PlannerError):
    """The outcome file cannot be read."""


class EditConflictError(PlannerError):
    """An edit does not fit the current plan; nothing was changed, and it has to be decided again.

    ``edit`` is the kind of the edit (``narrow_files``), ``todo_id`` the todo that it should change,
    ``problem`` the reason.
    """

    def __init__(self, edit: str, todo_id: str, problem: str) -> None:
        super().__init__(f"{edit} of '{todo_id}' does not fit the plan: {problem}")
        self.edit = edit
        self.todo_id = todo_id
        self.problem = problem


class FileWriteError(PlannerError):
    """A file cannot be written; the message names it, and a remedy. An existing file is unchanged."""


class BaselineError(PlannerError):
    """The baseline cannot be created, read or trusted, or it is of another plan."""


class ContractFileError(PlannerError):
    """The contract file cannot be used. ``faults`` has one line for each fault, position first."""

    def __init__(self, path: str, faults: tuple[str, ...]) -> None:
        self.path = path
        self.faults = faults
        super().__init__("\n".join(faults))


class DesignError(PlannerError):
    """A design plan, or a file that belongs to it, cannot be used or changed as requested.

    Nothing was changed. ``faults`` has one line for each violation; the message lists all of them.
    """

    def __init__(self, about: object, *faults: str) -> None:
        self.faults = faults
        lines = (
            [f"{about}: {self.faults[0]}"]
            if len(self.faults) == 1
            else [f"{about}: {len(self.faults)} violations", *(f"  {each}" for each in self.faults)]
        )
        super().__init__("\n".join(lines))


class RefusedEvent(PlannerError):
    """The engine refuses an event; its state is unchanged.

    ``rule`` is the id of the refusing rule, ``problem`` what is wrong, ``remedy`` what to do instead.
    """

    def __init__(self, rule: str, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.rule = rule
        self.problem = problem
        self.remedy = remedy


class IllegalTransition(RefusedEvent):
    """A todo, or the plan, cannot change from its state to the one that an event requires.

    ``whose`` names the todo or plan in the message, ``before`` and ``after`` are the states, ``trigger`` is
    the event. The remedy lists the ``reachable`` states, unless a ``remedy`` is given.
    """

    def __init__(
        self,
        whose: str,
        before: str,
        after: str,
        trigger: str,
        reachable: Sequence[str] = (),
        *,
        remedy: str | None = None,
    ) -> None:
        if remedy is None:
            # A final state has no successors.
            ways = ", ".join(reachable) or "nothing, because it has ended"
            remedy = f"after {before} can come {ways}"
        super().__init__(
            "illegal-transition", f"{whose} cannot go from {before} to {after} by {trigger}", remedy
        )
        self.before = before
        self.after = after
        self.trigger = trigger


class LogError(PlannerError):
    """The log of a run cannot be read, continued or trusted."""


class StoreError(LogError):
    """The index over logs and outcomes cannot be opened, read or written."""
