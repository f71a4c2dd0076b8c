"""The qualification, is each check itself any good, ``qualification.json`` in the plan's folder."""

from enum import StrEnum
from typing import Literal

from planner.model.base import ReadValue
from planner.model.verdicts import CheckKind, Verdict

QUALIFICATION_VERSION: Literal[1] = 1


class Quality(StrEnum):
    """The quality of a check."""

    RED_OK = "red_ok"
    """Red before the work, and red on the broken tree where a control is declared."""
    VACUOUS = "vacuous"
    """Green before the work, or green on the broken tree: it proves nothing."""
    UNRUNNABLE = "unrunnable"
    """It could not be run to an answer: its command, data file or environment is at fault."""
    UNSTABLE = "unstable"
    """It gave different answers on the same tree."""


class QualifiedRun(ReadValue):
    """One run of a check."""

    tree: Literal["as_is", "broken"]
    """The tree as it is, or with the negative control applied."""
    verdict: Verdict
    signature: str | None = None


class QualifiedCheck(ReadValue):
    """One check and what it is worth."""

    todo_id: str
    check_id: str
    kind: CheckKind
    cmd: str | None = None
    quality: Quality
    because: str
    """One sentence."""
    remedy: str | None = None
    """What to do about it; absent for a good check."""
    runs: tuple[QualifiedRun, ...] = ()
    control: str | None = None
    """The patch or command that broke the tree."""


class Qualification(ReadValue):
    """The qualification file."""

    schema_version: int = QUALIFICATION_VERSION
    plan: str
    plan_digest: str
    made_at: str
    """RFC 3339, UTC."""
    revision: str | None = None
    python: str
    pytest: str
    runs: int
    """How often each check was run on the tree as it is."""
    checks: tuple[QualifiedCheck, ...] = ()
    skipped: tuple[str, ...] = ()
    """Todos that are claimed already, which are not qualified."""

    @property
    def bad_checks(self) -> tuple[QualifiedCheck, ...]:
        """The checks for which a plan is not ready.

        A linter, type checker or build that is green already is none of them, beside a check that is good:
        it holds what is there.
        """
        proved = {check.todo_id for check in self.checks if check.quality is Quality.RED_OK}
        return tuple(
            check
            for check in self.checks
            if check.quality is not Quality.RED_OK
            and not (
                check.quality is Quality.VACUOUS
                and check.kind is CheckKind.COMMAND
                and check.control is None
                and check.todo_id in proved
            )
        )
