"""How well the way of working did in a run: the figures by which it should be looked at anew.

:class:`Reviewing` is shown each step of a run and counts; :func:`judge` holds the counts against limits.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING

from planner.model.actions import AskHuman, Implement, QuestionKind, Verify
from planner.model.events import (
    ApprovalGiven,
    Decision,
    PlanRevised,
    PlanSubmitted,
    QuestionAnswered,
    StopRequested,
    SubPlanLoaded,
    Verified,
    WorkFinished,
    WorkStarted,
)
from planner.model.life import TodoLife
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import Verdict
from planner.policy.outcomes import failures_of, sorted_failures
from planner.rules.run_view import primary, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.model.outcome import Outcome
    from planner.rules.run_view import RunView

CONVENTION = "convention"
"""The id of a check whose tests were looked for by convention."""

OVERRULING = frozenset((Decision.REJECT, Decision.MODIFY))
OVERRULING_ANSWERS = frozenset(("give_up", "stop", "go_on"))
"""Answers that end what the engine would go on with, or go on with what it would end."""

GIVING_UP = frozenset(("give_up", "stop"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What was counted in a run, or in several."""

    failed_todos: int = 0
    """Todos that failed a verification, and of which it is known how that ended."""
    recovered_todos: int = 0
    """Those that were done without a person."""
    failures: int = 0
    """Their different failures."""
    repaired_failures: int = 0
    """Those that were repaired without a person."""
    verification_seconds: float = 0.0
    work_seconds: float = 0.0
    decisions: int = 0
    """What persons have decided: approvals, answers, edits of their own, stops."""
    overrides: int = 0
    """Those that went against what the engine had proposed."""
    conventional_todos: int = 0
    """Todos whose tests were looked for by convention."""
    missed_todos: int = 0
    """Those whose tests were not found there."""
    levels: int = 0
    """Of plans within plans; 1 is a plan without sub-plans. Of several runs the most."""
    done_todos: int = 0
    done_while_red: int = 0
    """Done todos with a red check in their last verification."""

    def __add__(self, other: Tally) -> Tally:
        both = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return Tally(**both | {"levels": max(self.levels, other.levels)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One figure and its limit."""

    id: str
    figure: float | None
    """A share from 0, or a number; ``None`` where there is nothing to measure yet."""
    limit: float
    met: bool | None
    """Whether the figure keeps its limit."""
    sentence: str
    is_share: bool


class Reviewing:
    """Counts over one run: :meth:`see` each step, in their order, then :meth:`tally`."""

    def __init__(self) -> None:
        self._failed: dict[str, set[str]] = {}
        """The failures of each primary todo that failed, by their signatures."""
        self._repaired: dict[str, int] = {}
        """So many of them were repaired without a person."""
        self._open: dict[str, set[str]] = {}
        """Those that are not repaired yet."""
        self._by_person: set[str] = set()
        """Todos in whose repair a person had a hand, or was asked for one."""
        self._red: dict[str, bool] = {}
        """Whether the last verification had a red check."""
        self._conventional: dict[str, bool] = {}
        """Todos with tests by convention, and whether these were missing."""
        self._verify_since: dict[str, tuple[float, int]] = {}
        self._work_since: dict[str, float] = {}
        self._seconds = {"work": 0.0, "verification": 0.0}
        self._decisions = 0
        self._overrides = 0
        self._levels = 0

    def see(self, event: Event, actions: Iterable[Action], before: RunView | None, after: RunView) -> None:
        """Take in one event, the actions that it called for, and the run before and after it."""
        counting = _COUNTING.get(type(event))
        if counting is not None:
            counting(self, event, before, after)
        for action in actions:
            self._asked(action, after)

    def tally(self, run: RunView) -> Tally:
        """What was counted up to this state of the run."""
        settled = [name for name in self._failed if self._is_settled(run, name)]
        recovered = [
            name
            for name in settled
            if name not in self._by_person and run.records[name].life is TodoLife.DONE
        ]
        done = [name for name, record in run.records.items() if record.life is TodoLife.DONE]
        primaries = [name for name in done if not run.records[name].is_branch]
        return Tally(
            failed_todos=len(settled),
            recovered_todos=len(recovered),
            failures=sum(len(self._failed[name]) for name in settled),
            repaired_failures=sum(self._repaired.get(name, 0) for name in settled),
            verification_seconds=self._seconds["verification"],
            work_seconds=self._seconds["work"],
            decisions=self._decisions,
            overrides=self._overrides,
            conventional_todos=len(self._conventional),
            missed_todos=sum(self._conventional.values()),
            levels=self._levels,
            done_todos=len(primaries),
            done_while_red=sum(self._red.get(name, False) for name in primaries),
        )

    def _is_settled(self, run: RunView, todo_id: str) -> bool:
        """Whether it is known how the repair of a todo ended: by itself, by a person, or not at all."""
        life = run.records[todo_id].life
        return todo_id in self._by_person or life.is_final or run.plan_state.is_final

    def _asked(self, action: Action, run: RunView) -> None:
        if isinstance(action, Verify):
            start = max(run.now, _epoch(action.not_before))
            self._verify_since |= {name: (start, len(action.todo_ids)) for name in action.todo_ids}
        elif isinstance(action, Implement):
            self._work_since[action.todo_id] = run.now
            if action.role is Role.HUMAN:
                self._helped(action.todo_id, run)
        elif isinstance(action, AskHuman) and action.kind is QuestionKind.REVIEW:
            self._helped(action.todo_id, run)

    def _helped(self, todo_id: str, run: RunView | None) -> None:
        """A person repairs, decides, or has to: what becomes of the failure is not the engine's doing."""
        name = todo_id if run is None else primary(run, todo_id)
        if name in self._failed:
            self._by_person.add(name)

    def _submitted(self, event: PlanSubmitted, before: RunView | None, after: RunView) -> None:
        self._levels = max(self._levels, 1)

    def _loaded(self, event: SubPlanLoaded, before: RunView | None, after: RunView) -> None:
        if event.plan is not None and not event.problems:
            self._levels = max(self._levels, event.todo_id.count("/") + 2)

    def _work_started(self, event: WorkStarted, before: RunView | None, after: RunView) -> None:
        self._work_since[event.todo_id] = after.now

    def _work_finished(self, event: WorkFinished, before: RunView | None, after: RunView) -> None:
        since = self._work_since.pop(event.todo_id, after.now)
        if event.duration_ms is not None:
            self._seconds["work"] += event.duration_ms / 1000
        else:
            self._seconds["work"] += max(after.now - since, 0.0)

    def _verified(self, event: Verified, before: RunView | None, after: RunView) -> None:
        outcome = event.outcome
        name = outcome.todo_id
        since, shared = self._verify_since.pop(name, (after.now, 1))
        spent = outcome.metrics.duration_ms
        # Todos that are verified together share the time of that run.
        took = max(after.now - since, 0.0) / shared if spent is None else max(spent, 0) / 1000
        self._seconds["verification"] += took
        self._count_convention(outcome)
        self._red[name] = any(check.counts_as.is_red for check in outcome.checks) or not outcome.success
        record = after.records.get(name)
        if record is None or record.is_branch:
            return
        verdict, _ = said(outcome)
        if verdict is Verdict.PASSED:
            mended = self._open.pop(name, set())
            if name not in self._by_person:
                self._repaired[name] = self._repaired.get(name, 0) + len(mended)
        elif verdict.is_red:
            own, _ = sorted_failures(record.todo, outcome)
            if own:  # what is older than the work is not its failure
                signature = own[0].signature or own[0].category.value
                self._failed.setdefault(name, set()).add(signature)
                self._open.setdefault(name, set()).add(signature)

    def _count_convention(self, outcome: Outcome) -> None:
        missed = any(
            failure.category is Category.TEST_NOT_FOUND and failure.check_id == CONVENTION
            for failure in failures_of(outcome)
        )
        if missed or any(check.id == CONVENTION for check in outcome.checks):
            name = outcome.todo_id
            self._conventional[name] = self._conventional.get(name, False) or missed

    def _approval(self, event: ApprovalGiven, before: RunView | None, after: RunView) -> None:
        overruled = event.decision in OVERRULING
        self._decided(overruled=overruled)
        if overruled:
            self._helped(_asked_about(event.approval_id, before), before)

    def _answered(self, event: QuestionAnswered, before: RunView | None, after: RunView) -> None:
        self._decided(overruled=event.answer in OVERRULING_ANSWERS)
        if event.answer in GIVING_UP:
            self._helped(_asked_about(event.question_id, before), before)

    def _revised(self, event: PlanRevised, before: RunView | None, after: RunView) -> None:
        self._decided(overruled=True)
        for edit in event.edits:
            name = getattr(edit, "todo_id", None)
            if isinstance(name, str):
                self._helped(f"{event.within}/{name}" if event.within else name, before)

    def _stopped(self, event: StopRequested, before: RunView | None, after: RunView) -> None:
        self._decided(overruled=True)

    def _decided(self, *, overruled: bool) -> None:
        self._decisions += 1
        self._overrides += overruled


_COUNTING: Mapping[type[Event], Callable[..., None]] = {
    PlanSubmitted: Reviewing._submitted,
    SubPlanLoaded: Reviewing._loaded,
    WorkStarted: Reviewing._work_started,
    WorkFinished: Reviewing._work_finished,
    Verified: Reviewing._verified,
    ApprovalGiven: Reviewing._approval,
    QuestionAnswered: Reviewing._answered,
    PlanRevised: Reviewing._revised,
    StopRequested: Reviewing._stopped,
}


def _asked_about(question_id: str, before: RunView | None) -> str:
    question = None if before is None else before.questions.get(question_id)
    return question_id if question is None else question.todo_id


def _epoch(moment: str | None) -> float:
    return 0.0 if moment is None else datetime.fromisoformat(moment).timestamp()


@dataclass(frozen=True, slots=True)
class _Figure:
    """How one figure is made of the counts, and what is asked of it."""

    parts: Callable[[Tally], tuple[float, float | None]]
    """The part and the whole; of a plain number, without a whole."""
    keeps: Callable[[float, float], bool]
    limit: float
    words: str
    """What was counted: ``{part}`` and ``{whole}`` stand for the numbers."""
    nothing: str
    """What is said where the whole is nothing."""
    asks: str
    means: str
    """What it is and when to act, for ``planner explain``."""


_FIGURES: Mapping[str, _Figure] = {
    "recovery-rate": _Figure(
        lambda tally: (tally.recovered_todos, tally.failed_todos),
        operator.ge,
        0.5,
        "{part} of {whole} todos that failed a verification were done without a person",
        "no todo has failed a verification and come to an end",
        "at least 50 %",
        "The share of todos that failed a verification and were done without a person having repaired or "
        "decided anything; plain approvals do not count. Below 50 % the repairs are not worth their cost.",
    ),
    "verification-time": _Figure(
        lambda tally: (tally.verification_seconds, tally.work_seconds),
        operator.le,
        0.3,
        "{part} s of verification were spent on {whole} s of work",
        "no time of work is known",
        "at most 30 %",
        "The time of verification in relation to that of work. Above 30 % the criteria are too slow.",
    ),
    "human-overrides": _Figure(
        lambda tally: (tally.overrides, tally.decisions),
        operator.le,
        0.2,
        "{part} of {whole} decisions of persons went against what was proposed",
        "no person has decided anything",
        "at most 20 %",
        "The share of what persons decided that went against the engine: rejections, modifications, todos "
        "given up, edits of their own, stops. Above 20 % it proposes the wrong things.",
    ),
    "convention-misses": _Figure(
        lambda tally: (tally.missed_todos, tally.conventional_todos),
        operator.le,
        0.2,
        "{part} of {whole} todos whose tests were looked for by convention had none there",
        "no todo had its tests looked for by convention",
        "at most 20 %",
        "The share of todos whose tests were looked for by convention and not found. Above 20 % the plan "
        "should name them.",
    ),
    "hierarchy-depth": _Figure(
        lambda tally: (tally.levels, None),
        operator.le,
        3,
        "plans within plans go {part} deep",
        "",
        "at most 3",
        "How many levels of plans within plans were used. With more than 3 the plan is cut into the wrong "
        "pieces.",
    ),
    "repaired-alone": _Figure(
        lambda tally: (tally.repaired_failures, tally.failures),
        operator.gt,
        0.8,
        "{part} of {whole} failures were repaired without a person",
        "no failure has come to an end",
        "more than 80 %",
        "The share of different failures whose todo holds in the end without a person having repaired or "
        "decided anything. The goal is more than 80 %.",
    ),
    "done-while-red": _Figure(
        lambda tally: (tally.done_while_red, None),
        operator.le,
        0,
        "todos that are done though their last verification was red: {part}",
        "",
        "none",
        "How many todos are done though a check of their last verification was red. There must be none.",
    ),
}

REVIEW_FIGURES: Mapping[str, str] = {name: figure.means for name, figure in _FIGURES.items()}
"""Every figure, each in one or two sentences."""


def judge(tally: Tally) -> tuple[Review, ...]:
    """Every figure with its limit, in the order of :data:`REVIEW_FIGURES`."""
    return tuple(_judged(name, figure, tally) for name, figure in _FIGURES.items())


def overdue(reviews: Sequence[Review]) -> tuple[Review, ...]:
    """Those that do not keep their limits."""
    return tuple(each for each in reviews if each.met is False)


def _judged(name: str, figure: _Figure, tally: Tally) -> Review:
    part, whole = figure.parts(tally)
    value = part if whole is None else part / whole if whole else None
    met = None if value is None else figure.keeps(value, figure.limit)
    if value is None:
        text = f"{figure.nothing} (asked for is {figure.asks})"
    else:
        text = figure.words.format(part=f"{part:.10g}", whole="" if whole is None else f"{whole:.10g}")
        shown = "" if whole is None else f"{100 * value:.0f} %; "
        text = f"{text} ({shown}asked for is {figure.asks})"
    return Review(
        id=name,
        figure=value,
        limit=figure.limit,
        met=met,
        sentence=f"{text[0].upper()}{text[1:]}.",
        is_share=whole is not None,
    )
