"""What one event changes in the store beside the log: plain values, made by a pure function of the engine's
states and written by the store in the transaction of the event."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """How a run stands now."""

    state: str
    closed: bool
    blocked: tuple[str, ...] = ()
    """The todos that are blocked, in the order of their ids."""
    waiting: int = 0
    """So many questions wait for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchOpened:
    """A branch was made."""

    branch_id: str
    parent_id: str
    depth: int
    via: str | None
    role: str
    category: str
    signature: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchMoved:
    """A branch has gone on. What is ``None`` stays as it was."""

    branch_id: str
    attempts: int | None = None
    role: str | None = None
    outcome: str | None = None
    """``passed``, ``failed``, ``skipped`` or ``halted``: it is closed."""
    resolution: str | None = None
    """What came of it, a word of :data:`RESOLUTIONS`."""


PASSED = "passed"
FIXED = "parent_done"
GONE = "failure_gone"
NOT_FIXED = "parent_still_red"
RESOLUTIONS: dict[str, str] = {
    FIXED: "its todo is done",
    GONE: "then its todo failed otherwise",
    NOT_FIXED: "its todo still failed",
    "attempts_used_up": "its attempts were used up",
    "lifetime_over": "its time was up",
    "given_up": "a person gave it up",
    "run_halted": "the run was halted",
    "failed": "it failed",
}
"""What can come of a branch, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisRow:
    """One failure that a verification found."""

    todo_id: str
    decides: bool
    """Whether it is the one that decides the route."""
    category: str
    owner: str | None
    repeatability: str | None
    confidence: float | None
    rule: str | None
    signature: str | None
    role: str | None
    check_id: str | None
    since: str
    head: str | None
    path: str | None
    line: int | None
    function: str | None
    suggestion: str | None
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """A person is asked."""

    question_id: str
    kind: str
    todo_id: str
    question: str
    rule: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """A question is answered, or nobody waits for the answer any more."""

    question_id: str
    decision: str
    """A :class:`planner.model.events.Decision`, an option, or one of :data:`UNANSWERED`."""
    by: str | None = None
    because: str | None = None


SIMILAR = "approved_as_similar"
WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRow:
    """What a turn of work, or a verification after it, says of the files."""

    todo_id: str
    turn: int
    role: str
    source: str
    """``work`` or ``verification``."""
    success: bool
    files: tuple[str, ...]
    new_files: tuple[str, ...] = ()
    diff_hash: str | None = None
    tokens: int | None = None
    cycles: int | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOpened:
    """Somebody begins to repair: a turn of the todo's own role, or a branch."""

    subject: str
    """The todo, or the branch, that is worked on. At most one repair of each is open."""
    todo_id: str
    """What is repaired."""
    task_kind: str
    text: str
    signature: str | None
    category: str
    strategy: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairClosed:
    """How a repair went. Where none is open, it says nothing new."""

    subject: str
    fixed: bool
    attempts: int | None = None
    """So many turns of work it took, of a branch; those of a todo's own role are counted as they begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoClosed:
    """How a todo went in all."""

    todo_id: str
    task_kind: str
    text: str
    role: str
    done: bool
    first_time: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """All that one event changes."""

    kind: str
    """Of the event."""
    at: str
    """The time of the run after it, as :func:`moment_of` writes it."""
    run: RunRow
    branches: tuple[BranchOpened, ...] = ()
    moves: tuple[BranchMoved, ...] = ()
    diagnoses: tuple[DiagnosisRow, ...] = ()
    questions: tuple[QuestionRow, ...] = ()
    answers: tuple[AnswerRow, ...] = ()
    artifacts: tuple[ArtifactRow, ...] = ()
    repairs: tuple[RepairOpened, ...] = ()
    repaired: tuple[RepairClosed, ...] = ()
    todos: tuple[TodoClosed, ...] = ()
