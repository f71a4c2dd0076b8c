"""Totals of a run, and the review of a run against limits.

:func:`count_run` reads the steps of a run once and returns its :class:`Figures`. :func:`review` compares
them with :data:`LIMITS`, beyond which the way of working should be reconsidered. Everything is derived from
the recorded events and states; nothing is measured here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from planner.model.actions import Halt, Implement, Verify
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
from planner.model.taxonomy import Category
from planner.model.verdicts import TodoState, Verdict
from planner.policy.outcomes import UNDECIDED, failures_of, is_unowned, state_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.model.outcome import Failure, Outcome
    from planner.store.run_log import Step

_CONVENTION = "convention"
"""The id of a check whose tests were searched for by naming convention, as the plan names none."""


def verdict_of(outcome: Outcome) -> tuple[Verdict, Failure | None]:
    """Return the verdict of a verification of a todo, and the failure that decided it, if there is one.

    The verdict is ``passed``, ``failed``, ``flaky``, ``needs_human`` or ``inconclusive``. It is
    inconclusive where only the environment or the verifier failed, or the outcome contradicts itself.
    """
    state = state_of(outcome)
    if state is TodoState.DONE:
        return Verdict.PASSED, None
    failure = next(failures_of(outcome), None)
    if failure is not None and is_unowned(failure):
        return Verdict.INCONCLUSIVE, failure
    if state is TodoState.TEST_FAILED:
        is_flaky = failure is not None and failure.category is Category.FLAKY_TEST
        return (Verdict.FLAKY if is_flaky else Verdict.FAILED), failure
    verdicts = {check.counts_as for check in outcome.checks}
    if Verdict.NEEDS_HUMAN in verdicts and not verdicts & UNDECIDED:
        return Verdict.NEEDS_HUMAN, None
    return Verdict.INCONCLUSIVE, None


@dataclass(slots=True)
class Figures:
    """Totals of one run."""

    branches: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Verifications by verdict and category of the deciding failure, ``none`` where there is none."""
    halts: Counter[str] = field(default_factory=Counter[str])
    """Halts by the rule that decided them."""
    resolutions: list[tuple[bool, float]] = field(default_factory=list[tuple[bool, float]])
    """For each branch that ended: whether it passed, and the seconds since it was created."""
    repairs: int = 0
    """Repairs whose result is known, as ``planner history`` counts them."""
    fixed_repairs: int = 0
    work_seconds: float = 0.0
    verification_seconds: float = 0.0
    decisions: int = 0
    """Approvals, answers, edits and stops of people."""
    overrides: int = 0
    """Decisions against what the engine had proposed."""
    conventional_todos: int = 0
    """Todos whose tests were searched for by naming convention."""
    missed_todos: int = 0
    """Todos of these whose tests were not found."""
    levels: int = 0
    """Levels of nested plans; 1 is a plan without sub-plans."""


def count_run(steps: Iterable[Step]) -> tuple[Figures, State]:
    """Return the figures of a run and its last state.

    ``steps`` must not be empty. Errors of reading the log are raised by its iterator, and pass through.
    """
    from planner.store.run_rows import PASSED, RunRows  # SQLAlchemy takes long to import

    count, rows, after = _Count(), None, None
    for step in steps:
        event, actions, before, after = step
        if rows is None:
            assert isinstance(event, PlanSubmitted)  # a run begins with its submission
            rows = RunRows(event, "")
        rows.add(step)
        count.add_event(event, before, after)
        for action in actions:
            count.add_action(action, after)
    assert rows is not None
    assert after is not None
    figures = count.figures
    figures.conventional_todos, figures.missed_todos = len(count.missed), sum(count.missed.values())
    branches = [row for row in rows.repairs if "branch_id" in row]
    ended = [row for row in branches if "closed" in row]
    # Repairs whose verification is outstanding have no result yet.
    decided = [row["fixed"] for row in rows.repairs if row.get("fixed") is not None]
    figures.branches = len(branches)
    figures.resolutions = [(row["outcome"] == PASSED, row["duration_seconds"]) for row in ended]
    figures.repairs, figures.fixed_repairs = len(decided), sum(decided)
    return figures, after


class _Count:
    """Counters of one run, updated step by step while its log is read."""

    def __init__(self) -> None:
        self.figures = Figures(levels=1)
        self.missed: dict[str, bool] = {}
        """Whether the tests of a todo that were searched for by convention were missing."""
        self._work_since: dict[str, float] = {}
        self._verify_since: dict[str, float] = {}
        self._verified_until = 0.0

    def add_event(self, event: Event, before: State | None, after: State) -> None:
        """Count an event; ``before`` is ``None`` for the first event of a run."""
        figures = self.figures
        match event:
            case SubPlanLoaded(plan=plan) if plan is not None and not event.problems:
                # A todo at the top with a sub-plan has no slash in its id, and makes two levels.
                figures.levels = max(figures.levels, event.todo_id.count("/") + 2)
            case WorkStarted():
                self._work_since[event.todo_id] = after.now
            case WorkFinished():
                # Drivers may report how long they worked; else the time since the request counts.
                since = self._work_since.pop(event.todo_id, after.now)
                took = event.duration_ms
                figures.work_seconds += max(after.now - since, 0.0) if took is None else took / 1000
            case Verified():
                self._verify(event.outcome, before, after)
            case ApprovalGiven():
                self._decide(event.decision in (Decision.REJECT, Decision.MODIFY))
            case QuestionAnswered():
                # ``go_on`` continues a run that was about to end, for its budget is used up.
                self._decide(event.answer in ("give_up", "stop", "go_on"))
            case PlanRevised() | StopRequested():
                self._decide(True)
            case _:
                pass

    def add_action(self, action: Action, after: State) -> None:
        """Count an action."""
        figures = self.figures
        match action:
            case Verify():
                later = action.not_before
                # A verification that has to wait, for instance after a failed environment, begins later.
                start = max(after.now, 0.0 if later is None else datetime.fromisoformat(later).timestamp())
                self._verify_since |= dict.fromkeys(action.todo_ids, start)
            case Implement():
                self._work_since[action.todo_id] = after.now
            case Halt():
                figures.halts[action.rule] += 1
            case _:
                pass

    def _verify(self, outcome: Outcome, before: State | None, after: State) -> None:
        figures, name = self.figures, outcome.todo_id
        # A verification takes longer than its tests, and several todos can share one: the time during which
        # any verification was under way is counted once. Where the events carry no time difference, the
        # duration of the tests is used instead.
        since = self._verify_since.pop(name, after.now)
        if after.now > since:
            figures.verification_seconds += max(after.now - max(since, self._verified_until), 0.0)
            self._verified_until = after.now
        else:
            figures.verification_seconds += (outcome.metrics.duration_ms or 0) / 1000
        missed = any(
            each.category is Category.TEST_NOT_FOUND and each.check_id == _CONVENTION
            for each in failures_of(outcome)
        )
        if missed or any(check.id == _CONVENTION for check in outcome.checks):
            # A todo counts once, and as missed even if its tests were found later.
            self.missed[name] = missed or self.missed.get(name, False)
        verdict, failure = verdict_of(outcome)
        figures.verdicts[verdict.value, "none" if failure is None else failure.category.value] += 1

    def _decide(self, overruled: bool) -> None:
        self.figures.decisions += 1
        self.figures.overrides += overruled


# -- the review ----------------------------------------------------------------------------------------


class Reviewed(NamedTuple):
    """One figure compared with its limit."""

    id: str
    met: bool | None
    """Whether the goal is met; ``None`` where there is no figure yet."""
    sentence: str


class _Limit(NamedTuple):
    part: str
    """The field of :class:`Figures` that is limited."""
    whole: str | None
    """The field that ``part`` is a share of; ``None`` where the number itself is limited."""
    goal: str
    """``at least`` or ``at most``."""
    limit: float
    label: str


LIMITS: Mapping[str, _Limit] = {
    "recovery-rate": _Limit("fixed_repairs", "repairs", "at least", 0.5, "repairs that fixed the failure"),
    "verification-time": _Limit(
        "verification_seconds", "work_seconds", "at most", 0.3, "seconds of verification per second of work"
    ),
    "human-overrides": _Limit(
        "overrides", "decisions", "at most", 0.2, "decisions of people against the proposal"
    ),
    "convention-misses": _Limit(
        "missed_todos", "conventional_todos", "at most", 0.2, "todos whose conventional tests are missing"
    ),
    "hierarchy-depth": _Limit("levels", None, "at most", 3, "levels of nested plans"),
}
"""Every figure of the review by its id; ``planner explain ID`` prints what it means."""


def review(figures: Figures) -> Iterator[Reviewed]:
    """Compare every figure with its limit; yield the results in the order of :data:`LIMITS`."""
    for name, each in LIMITS.items():
        is_share = each.whole is not None
        part, whole = getattr(figures, each.part), getattr(figures, each.whole) if each.whole else 1
        goal = f"goal: {each.goal} {f'{each.limit:.0%}' if is_share else f'{each.limit:g}'}"
        # A share of nothing is unknown, neither met nor missed.
        if not whole:
            yield Reviewed(name, None, f"{each.label}: none yet ({goal})")
            continue
        value = part / whole
        figure = (
            f"{_number(part)} of {_number(whole)} ({value:.0%}; {goal})" if is_share else f"{part} ({goal})"
        )
        yield Reviewed(
            name,
            value >= each.limit if each.goal == "at least" else value <= each.limit,
            f"{each.label}: {figure}",
        )


def _number(value: float) -> str:
    """Return ``529``, ``0.089``, ``1,204.5``: integers in full, else three significant digits below 100."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"
