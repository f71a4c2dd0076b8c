"""The errors that a user may meet. Each is shown as its message, never as a traceback.

::

    PlannerError
    ├── PlanFileError      the plan file cannot be used; carries every fault of the file
    ├── CommandSyntaxError a command of the plan cannot be run as an argument vector
    └── OutcomeFileError   the outcome file cannot be read
"""

from __future__ import annotations


class PlannerError(Exception):
    """Something that the user can mend; ``str()`` is what to show."""


class CommandSyntaxError(PlannerError):
    """A command cannot be run as an argument vector, or no tool of the catalog answers to it.

    ``problem`` says what is wrong, ``remedy`` what to write instead.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy


class PlanFileError(PlannerError):
    """The plan file cannot be used. ``faults`` holds one line a fault, position first."""

    def __init__(self, path: str, faults: tuple[str, ...]) -> None:
        self.path = path
        self.faults = faults
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__("\n".join([f"{path}: the plan cannot be used ({count})", *faults]))


class OutcomeFileError(PlannerError):
    """The outcome file cannot be read."""
