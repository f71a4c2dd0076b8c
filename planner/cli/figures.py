"""The figures of runs: what a run adds up to, and how well the way of working did in it.

:func:`count_run` goes once through a run; the :class:`Figures` of several runs can be added.
:func:`review` holds them against the limits at which the way of working should be looked at again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from planner.model.actions import AskHuman, Halt, Implement, PublishPlan, QuestionKind, Verify
from planner.model.base import qualified
from planner.model.edits import AddBranch
from planner.model.events import (
    ApprovalGiven,
    BudgetSpent,
    Decision,
    PlanRevised,
    QuestionAnswered,
    StopRequested,
    SubPlanLoaded,
    Verified,
    WorkFinished,
    WorkStarted,
)
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import TodoLife, TodoState, Verdict
from planner.policy.outcomes import UNDECIDED, failures_of, is_unowned, sorted_failures, state_of
from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.model.outcome import Failure, Outcome
    from planner.store.run_log import Step

_CONVENTION = "convention"
"""The id of a check whose tests were looked for by convention."""


def verdict_of(outcome: Outcome) -> tuple[Verdict, Failure | None]:
    """Return what a verification said of a todo, and the failure that decides.

    ``passed``, ``failed``, ``flaky``, ``needs_human`` or ``inconclusive``. Where only the environment or
    the verifier failed, or where the outcome contradicts itself, it is inconclusive.
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
    """Totals of one run, or of several runs of one plan."""

    branches: int = 0
    turns: Counter[str] = field(default_factory=Counter[str])
    """By role."""
    retries: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By verdict and category."""
    halts: Counter[str] = field(default_factory=Counter[str])
    """By the rule that halted."""
    resolutions: list[tuple[bool, float]] = field(default_factory=list[tuple[bool, float]])
    """Of each branch that ended: it passed, and its seconds."""
    repairs: int = 0
    """Verifications of a todo after a retry, and of branches, that came to a verdict."""
    passed_repairs: int = 0
    tokens: int = 0
    """As drivers told them; 0 where none did. Likewise the cycles of patching."""
    cycles: int = 0
    work_seconds: float = 0.0
    verification_seconds: float = 0.0
    failed_todos: int = 0
    """Todos that failed a verification, and of which it is known how that ended."""
    recovered_todos: int = 0
    """Failed todos that were done without a person."""
    decisions: int = 0
    """Approvals, answers, edits and stops of people."""
    overrides: int = 0
    """Decisions against what the engine had proposed."""
    conventional_todos: int = 0
    """Todos whose tests were looked for by convention."""
    missed_todos: int = 0
    """Todos whose tests were not found there."""
    levels: int = 0
    """Of plans within plans; 1 is a plan without sub-plans. Of several runs the most."""
    done_while_red: int = 0
    """Done todos with a red check in their last verification."""

    def add(self, other: Figures) -> None:
        """Add the figures of another run."""
        levels = max(self.levels, other.levels)
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        self.levels = levels


def count_run(steps: Iterable[Step]) -> tuple[Figures, State]:
    """Return the figures of a run and its last state. Raises what ``steps`` raises; it is not empty."""
    count, after = _Count(), None
    for event, actions, before, after in steps:
        count.add_event(event, before, after)
        for action in actions:
            count.add_action(action, before, after)
        for name in list(count.opened):
            record = after.records.get(name)
            if record is not None and record.life.is_final:
                took = after.now - count.opened.pop(name)
                count.figures.resolutions.append((record.life is TodoLife.DONE, took))
    assert after is not None  # a run begins with its submission
    return count.finish(after), after


class _Count:
    """Counts of one run, kept while its log is read."""

    def __init__(self) -> None:
        self.figures = Figures(levels=1)
        self.opened: dict[str, float] = {}  # when each branch was made that has not come to its end
        self._failed: set[str] = set()
        self._helped: set[str] = set()  # todos in whose repair a person had a hand, or was asked for one
        self._red: dict[str, bool] = {}  # the last verification of a todo had a red check
        self._cost_told: set[str] = set()  # todos whose last turn has told what it cost
        self._missed: dict[str, bool] = {}  # the tests of a convention were missing
        self._work_since: dict[str, float] = {}
        self._verify_since: dict[str, float] = {}
        self._verified_until = 0.0

    def finish(self, run: State) -> Figures:
        """Return the figures, with what only the end of a run tells."""
        done = {name for name, each in run.records.items() if each.life is TodoLife.DONE}
        # It is known how a repair ended: by a person, by itself, or not at all.
        ended = {
            name
            for name in self._failed
            if name in self._helped or run.records[name].life.is_final or run.plan_state.is_final
        }
        red = {name for name, is_red in self._red.items() if is_red and not run.records[name].is_branch}
        figures = self.figures
        figures.retries = sum(record.retries for record in run.records.values())
        figures.failed_todos = len(ended)
        figures.recovered_todos = len((ended & done) - self._helped)
        figures.conventional_todos, figures.missed_todos = len(self._missed), sum(self._missed.values())
        figures.done_while_red = len(red & done)
        return figures

    def add_event(self, event: Event, before: State | None, after: State) -> None:
        """Count an event."""
        figures = self.figures
        match event:
            case SubPlanLoaded(plan=plan) if plan is not None and not event.problems:
                figures.levels = max(figures.levels, event.todo_id.count("/") + 2)
            case WorkStarted():
                self._work_since[event.todo_id] = after.now
            case WorkFinished():
                since = self._work_since.pop(event.todo_id, after.now)
                took = event.duration_ms
                figures.work_seconds += max(after.now - since, 0.0) if took is None else took / 1000
                self._spend(event.tokens, event.cycles)
                self._cost_told.discard(event.todo_id)
                if event.tokens is not None or event.cycles is not None:
                    self._cost_told.add(event.todo_id)
            case BudgetSpent():
                self._spend(event.tokens, event.cycles)
            case Verified():
                self._verify(event.outcome, before, after)
            case ApprovalGiven():
                overruled = event.decision in (Decision.REJECT, Decision.MODIFY)
                self._decide(before, overruled, [event.approval_id] if overruled else [])
            case QuestionAnswered():
                gave_up = event.answer in ("give_up", "stop")
                overruled = gave_up or event.answer == "go_on"  # or went on with what was to end
                self._decide(before, overruled, [event.question_id] if gave_up else [])
            case PlanRevised():
                names = [getattr(edit, "todo_id", "") for edit in event.edits]
                self._decide(before, True, [qualified(event.within, each) for each in names])
            case StopRequested():
                self._decide(before, True, [])
            case _:
                pass

    def add_action(self, action: Action, before: State | None, after: State) -> None:
        """Count an action."""
        figures = self.figures
        match action:
            case Verify():
                later = action.not_before
                start = max(after.now, 0.0 if later is None else datetime.fromisoformat(later).timestamp())
                self._verify_since |= dict.fromkeys(action.todo_ids, start)
            case Implement():
                self._work_since[action.todo_id] = after.now
                earlier = None if before is None else before.records.get(action.todo_id)
                # A driver that begins again is asked again for the turn that is outstanding.
                is_new = earlier is None or after.records[action.todo_id].turns > earlier.turns
                figures.turns[action.role.value] += is_new
                if action.role is Role.HUMAN:
                    self._help(action.todo_id, after)
            case AskHuman(kind=QuestionKind.REVIEW):
                self._help(action.todo_id, after)
            case PublishPlan():
                made = [edit.todo.id for edit in action.edits if isinstance(edit, AddBranch)]
                figures.branches += len(made)
                self.opened |= {qualified(action.within, name): after.now for name in made}
            case Halt():
                figures.halts[action.rule] += 1
            case _:
                pass

    def _verify(self, outcome: Outcome, before: State | None, after: State) -> None:
        figures, name = self.figures, outcome.todo_id
        # A run takes longer than its tests: what counts is the time in which a verification was under way,
        # however many todos share it. The sum of the tests stands in where no time went by.
        since = self._verify_since.pop(name, after.now)
        if after.now > since:
            figures.verification_seconds += max(after.now - max(since, self._verified_until), 0.0)
            self._verified_until = after.now
        else:
            figures.verification_seconds += (outcome.metrics.duration_ms or 0) / 1000
        if name not in self._cost_told:
            self._spend(outcome.metrics.tokens_used, outcome.metrics.patch_cycles)
        self._cost_told.add(name)
        missed = any(
            each.category is Category.TEST_NOT_FOUND and each.check_id == _CONVENTION
            for each in failures_of(outcome)
        )
        if missed or any(check.id == _CONVENTION for check in outcome.checks):
            self._missed[name] = missed or self._missed.get(name, False)
        self._red[name] = any(check.counts_as.is_red for check in outcome.checks) or not outcome.success
        verdict, failure = verdict_of(outcome)
        figures.verdicts[verdict.value, "none" if failure is None else failure.category.value] += 1
        record = None if before is None else before.records.get(name)
        if record is None:
            return
        if (record.is_branch or record.retries) and (verdict is Verdict.PASSED or verdict.is_red):
            figures.repairs += 1
            figures.passed_repairs += verdict is Verdict.PASSED
        # What is older than the work is not the todo's failure.
        if verdict.is_red and not record.is_branch and sorted_failures(record.todo, outcome)[0]:
            self._failed.add(name)

    def _spend(self, tokens: int | None, cycles: int | None) -> None:
        self.figures.tokens += max(tokens or 0, 0)
        self.figures.cycles += max(cycles or 0, 0)

    def _decide(self, before: State | None, overruled: bool, helped: Iterable[str]) -> None:
        self.figures.decisions += 1
        self.figures.overrides += overruled
        for name in helped:
            question = None if before is None else before.questions.get(name)
            self._help(name if question is None else question.todo_id, before)

    def _help(self, todo_id: str, run: State | None) -> None:
        """Remember that a person had a hand in a repair: it is not the engine's doing."""
        record = None if run is None else run.records.get(todo_id)
        primary = todo_id if record is None or record.parent_id is None else record.parent_id
        if primary in self._failed:
            self._helped.add(primary)


# -- the review ----------------------------------------------------------------------------------------


class Reviewed(NamedTuple):
    """One figure held against its limit."""

    id: str
    met: bool | None
    """``None`` where there is no figure yet."""
    sentence: str


class _Limit(NamedTuple):
    part: str
    """The field of :class:`Figures`."""
    whole: str | None
    """Of a share, the field that it is a share of."""
    goal: str
    """``at least``, ``more than`` or ``at most``."""
    limit: float
    label: str


LIMITS: Mapping[str, _Limit] = {
    "recovery-rate": _Limit("passed_repairs", "repairs", "at least", 0.5, "repairs that passed"),
    "verification-time": _Limit(
        "verification_seconds", "work_seconds", "at most", 0.3, "verification to work, in seconds"
    ),
    "human-overrides": _Limit(
        "overrides", "decisions", "at most", 0.2, "decisions of people against the proposal"
    ),
    "convention-misses": _Limit(
        "missed_todos", "conventional_todos", "at most", 0.2, "todos without the tests of the convention"
    ),
    "hierarchy-depth": _Limit("levels", None, "at most", 3, "levels of plans within plans"),
    "repaired-alone": _Limit(
        "recovered_todos",
        "failed_todos",
        "more than",
        0.8,
        "todos that failed and were done without a person",
    ),
    "done-while-red": _Limit(
        "done_while_red", None, "at most", 0, "done todos whose last verification was red"
    ),
}
"""Every figure of the review; ``planner explain`` says what each means."""


def review(figures: Figures) -> Iterator[Reviewed]:
    """Hold every figure against its limit, in the order of :data:`LIMITS`."""
    for name, each in LIMITS.items():
        is_share = each.whole is not None
        part, whole = getattr(figures, each.part), getattr(figures, each.whole) if each.whole else 1
        goal = f"goal: {each.goal} {f'{each.limit:.0%}' if is_share else f'{each.limit:g}'}"
        if not whole:
            yield Reviewed(name, None, f"{each.label}: none yet ({goal})")
            continue
        value = part / whole
        keeps = {"at least": value >= each.limit, "more than": value > each.limit}
        said = (
            f"{_number(part)} of {_number(whole)} ({value:.0%}; {goal})" if is_share else f"{part} ({goal})"
        )
        yield Reviewed(name, keeps.get(each.goal, value <= each.limit), f"{each.label}: {said}")


def spent(figures: Figures) -> str:
    """Return ``1200 tokens and 3 cycles`` as drivers told them; empty where none did."""
    known = ((figures.tokens, "token"), (figures.cycles, "cycle"))
    return " and ".join(counted(count, noun) for count, noun in known if count)


def _number(value: float) -> str:
    """Return ``529``, ``0.089``, ``1,204.5``: whole where it is whole, else three digits that count."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"
