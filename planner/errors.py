"""The errors that a user may meet. Each is shown as its message, never as a traceback.

::

    PlannerError
    ├── PlanFileError      the plan file cannot be used; carries every fault of the file
    ├── PlanTreeError      several files of a plan with sub-plans cannot be used
    ├── CommandSyntaxError a command of the plan cannot be run as an argument vector
    ├── ContractFileError  the contract file cannot be used; carries every fault of the file
    ├── ModuleSourceError  the interface of a module cannot be told from its source
    ├── EditConflictError  an edit does not fit the plan that it should change
    ├── BaselineError      the baseline cannot be made, read or trusted
    ├── QualificationError the qualification cannot be read
    └── OutcomeFileError   the outcome file cannot be read
        ├── NoOutcomesError       nothing was verified yet
        ├── ForeignOutcomesError  they are of another plan
        └── StaleOutcomesError    the plan has changed since
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


class PlanTreeError(PlannerError):
    """Several files of a plan with sub-plans cannot be used. ``errors`` holds the error of each."""

    def __init__(self, errors: tuple[PlanFileError, ...]) -> None:
        super().__init__("\n\n".join(str(error) for error in errors))
        self.errors = errors


class OutcomeFileError(PlannerError):
    """The outcome file cannot be read."""


class NoOutcomesError(OutcomeFileError):
    """There are no outcomes of the plan yet."""


class ForeignOutcomesError(OutcomeFileError):
    """The outcomes are of another plan."""


class StaleOutcomesError(OutcomeFileError):
    """The outcomes are of another version of the plan."""


class EditConflictError(PlannerError):
    """An edit does not fit the plan as it is; nothing was changed.

    ``edit`` is the kind of the edit (``narrow_files``), or ``undo``; ``todo_id`` says whom it concerns,
    ``problem`` what was found, ``remedy`` what to do instead.
    """

    def __init__(self, edit: str, todo_id: str, problem: str, remedy: str) -> None:
        super().__init__(f"{edit} of '{todo_id}' does not fit the plan: {problem}; {remedy}")
        self.edit = edit
        self.todo_id = todo_id
        self.problem = problem
        self.remedy = remedy


class BaselineError(PlannerError):
    """The baseline cannot be made, read or trusted, or it is of another plan."""


class QualificationError(PlannerError):
    """The qualification cannot be read, or it is of another plan."""


class ContractFileError(PlannerError):
    """The contract file cannot be used. ``faults`` holds one line a fault, position first."""

    def __init__(self, path: str, faults: tuple[str, ...]) -> None:
        self.path = path
        self.faults = faults
        super().__init__("\n".join(faults))


class ModuleSourceError(PlannerError):
    """There is no such module below the root, or its interface cannot be told from its source."""
