"""The qualification: the quality of each check, ``qualification.json`` in the plan's folder."""

from enum import StrEnum

from planner.model.base import ReadValue
from planner.model.verdicts import CheckKind, Verdict


class Quality(StrEnum):
    """The quality of a check."""

    RED_OK = "red_ok"
    """It fails before the work."""
    VACUOUS = "vacuous"
    """It passes before the work: it proves nothing."""
    UNRUNNABLE = "unrunnable"
    """It gave no result: its command, data file or environment is at fault."""
    UNSTABLE = "unstable"
    """It gave different results on the same tree."""


class QualifiedRun(ReadValue):
    """One run of a check."""

    verdict: Verdict
    signature: str | None = None


class QualifiedCheck(ReadValue):
    """The quality of one check."""

    todo_id: str
    check_id: str
    kind: CheckKind
    cmd: str | None = None
    quality: Quality
    because: str
    """One sentence."""
    remedy: str | None = None
    """Remedy; absent for a good check."""
    runs: tuple[QualifiedRun, ...] = ()


class Qualification(ReadValue):
    """The qualification file."""

    schema_version: int = 1
    plan: str
    plan_digest: str
    made_at: str
    """RFC 3339, UTC."""
    revision: str | None = None
    python: str
    pytest: str
    runs: int
    """Number of runs of each check."""
    checks: tuple[QualifiedCheck, ...] = ()
    skipped: tuple[str, ...] = ()
    """Todos that are not qualified, as they are claimed already."""

    @property
    def bad_checks(self) -> tuple[QualifiedCheck, ...]:
        """The checks because of which a plan is not ready.

        A command, such as a linter or build, may pass already if another check of its todo is good: it
        protects the existing quality.
        """
        proved = {check.todo_id for check in self.checks if check.quality is Quality.RED_OK}
        return tuple(
            check
            for check in self.checks
            if check.quality is not Quality.RED_OK
            and not (
                check.quality is Quality.VACUOUS
                and check.kind is CheckKind.COMMAND
                and check.todo_id in proved
            )
        )
