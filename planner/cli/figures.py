"""The figures of runs: what a run adds up to, and how well the way of working did in it.

:class:`RunCounter` is shown each step of a run, in order: an event, its actions, the states around it;
its :class:`Figures` of several runs can be added. :func:`review` holds them against the limits at which the
way of working should be looked at anew.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from planner.model.actions import AskHuman, Halt, Implement, PublishPlan, QuestionKind, Verify
from planner.model.edits import AddBranch
from planner.model.events import (
    ApprovalGiven,
    BudgetSpent,
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
from planner.model.ids import qualified
from planner.model.life import TodoLife
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import TodoState, Verdict
from planner.policy.outcomes import UNDECIDED, failures_of, is_unowned, sorted_failures, state_of
from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.model.outcome import Failure, Outcome

    Step: TypeAlias = tuple[Event, Sequence[Action], State | None, State]
    """An event, the actions that it called for, and the run before and after it."""

NO_CATEGORY = "none"
"""Of a verification that no failure decides."""

CONVENTION = "convention"
"""The id of a check whose tests were looked for by convention."""

_OVERRULING = frozenset((Decision.REJECT, Decision.MODIFY))
_OVERRULING_ANSWERS = frozenset(("give_up", "stop", "go_on"))
"""Answers that end what the engine would go on with, or go on with what it would end."""
_GIVING_UP = frozenset(("give_up", "stop"))


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
    """What one run, or several runs of one plan, add up to."""

    branches: int = 0
    turns: Counter[str] = field(default_factory=Counter[str])
    """By role."""
    retries: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By verdict and category."""
    halts: Counter[str] = field(default_factory=Counter[str])
    """By the rule that halted."""
    repairs: list[tuple[bool, float]] = field(default_factory=list[tuple[bool, float]])
    """Whether a branch passed, and how many seconds it took."""
    tokens: int = 0
    """As the drivers told them; 0 where nobody did. Likewise the cycles of patching."""
    cycles: int = 0
    work_seconds: float = 0.0
    verification_seconds: float = 0.0
    failed_todos: int = 0
    """Todos that failed a verification, and of which it is known how that ended."""
    recovered_todos: int = 0
    """Those that were done without a person."""
    failures: int = 0
    """Their different failures."""
    repaired_failures: int = 0
    """Those that were repaired without a person."""
    decisions: int = 0
    """What people have decided: approvals, answers, edits of their own, stops."""
    overrides: int = 0
    """Those that went against what the engine had proposed."""
    conventional_todos: int = 0
    """Todos whose tests were looked for by convention."""
    missed_todos: int = 0
    """Those whose tests were not found there."""
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


@dataclass(slots=True)
class _Story:
    """What is remembered of one todo while its run is counted."""

    failures: set[str] = field(default_factory=set[str])
    """By signature."""
    open: set[str] = field(default_factory=set[str])
    """Those that are not repaired yet."""
    repaired: int = 0
    by_person: bool = False
    """A person had a hand in its repair, or was asked for one."""
    red: bool = False
    """Its last verification had a red check."""
    told: bool = False
    """What its last turn has cost is counted."""
    missed: bool | None = None
    """Whether tests by convention were missing; ``None`` where it has none."""


class RunCounter:
    """Counts over one run: :meth:`see` each step, then :meth:`figures`."""

    def __init__(self) -> None:
        self.submitted: PlanSubmitted | None = None
        self.state: State | None = None
        self._figures = Figures()
        self._todos: dict[str, _Story] = defaultdict(_Story)
        self._opened: dict[str, float] = {}
        """When each branch was made that has not come to its end."""
        self._verify_since: dict[str, float] = {}
        self._verified_until = 0.0
        self._work_since: dict[str, float] = {}

    def see(self, event: Event, actions: Iterable[Action], before: State | None, after: State) -> None:
        """Take in one step."""
        self.state = after
        self._happened(event, before, after)
        for action in actions:
            self._asked(action, before, after)
        for name in list(self._opened):
            record = after.records.get(name)
            if record is not None and record.life.is_final:
                took = after.now - self._opened.pop(name)
                self._figures.repairs.append((record.life is TodoLife.DONE, took))

    def figures(self) -> Figures:
        """Return what was counted up to the last step."""
        run = self.state
        if run is None:
            return Figures()
        done = {name for name, each in run.records.items() if each.life is TodoLife.DONE}
        failed = {name: each for name, each in self._todos.items() if each.failures}
        # It is known how a repair ended: by itself, by a person, or not at all.
        settled = {
            name: each
            for name, each in failed.items()
            if each.by_person or run.records[name].life.is_final or run.plan_state.is_final
        }
        found = Figures()
        found.add(self._figures)
        found.retries = sum(record.retries for record in run.records.values())
        found.failed_todos = len(settled)
        found.recovered_todos = sum(name in done and not each.by_person for name, each in settled.items())
        found.failures = sum(len(each.failures) for each in settled.values())
        found.repaired_failures = sum(each.repaired for each in settled.values())
        found.conventional_todos = sum(each.missed is not None for each in self._todos.values())
        found.missed_todos = sum(bool(each.missed) for each in self._todos.values())
        found.done_while_red = sum(
            each.red and name in done and not run.records[name].is_branch
            for name, each in self._todos.items()
        )
        return found

    def _happened(self, event: Event, before: State | None, after: State) -> None:
        figures = self._figures
        match event:
            case PlanSubmitted():
                self.submitted = event
                figures.levels = max(figures.levels, 1)
            case SubPlanLoaded(plan=plan) if plan is not None and not event.problems:
                figures.levels = max(figures.levels, event.todo_id.count("/") + 2)
            case WorkStarted():
                self._work_since[event.todo_id] = after.now
            case WorkFinished():
                since = self._work_since.pop(event.todo_id, after.now)
                took = event.duration_ms
                figures.work_seconds += max(after.now - since, 0.0) if took is None else took / 1000
                self._spent(event.tokens, event.cycles)
                is_told = event.tokens is not None or event.cycles is not None
                self._todos[event.todo_id].told = is_told
            case BudgetSpent():
                self._spent(event.tokens, event.cycles)
            case Verified():
                self._verified(event.outcome, after)
            case ApprovalGiven():
                self._decided(event.decision in _OVERRULING)
                if event.decision in _OVERRULING:
                    self._helped(_asked_about(event.approval_id, before), before)
            case QuestionAnswered():
                self._decided(event.answer in _OVERRULING_ANSWERS)
                if event.answer in _GIVING_UP:
                    self._helped(_asked_about(event.question_id, before), before)
            case PlanRevised():
                self._decided(True)
                for edit in event.edits:
                    if isinstance(name := getattr(edit, "todo_id", None), str):
                        self._helped(qualified(event.within, name), before)
            case StopRequested():
                self._decided(True)
            case _:
                pass

    def _verified(self, outcome: Outcome, after: State) -> None:
        name, story = outcome.todo_id, self._todos[outcome.todo_id]
        # A run takes longer than its tests: what counts is the time in which a verification was under way,
        # however many todos share it. The sum of the tests stands in where no time went by.
        since = self._verify_since.pop(name, after.now)
        if after.now > since:
            self._figures.verification_seconds += max(after.now - max(since, self._verified_until), 0.0)
            self._verified_until = after.now
        else:
            self._figures.verification_seconds += (outcome.metrics.duration_ms or 0) / 1000
        if not story.told:  # else the turn has told what it cost
            self._spent(outcome.metrics.tokens_used, outcome.metrics.patch_cycles)
        story.told = True
        missed = any(
            each.category is Category.TEST_NOT_FOUND and each.check_id == CONVENTION
            for each in failures_of(outcome)
        )
        if missed or any(check.id == CONVENTION for check in outcome.checks):
            story.missed = bool(story.missed) or missed
        story.red = any(check.counts_as.is_red for check in outcome.checks) or not outcome.success
        verdict, failure = verdict_of(outcome)
        category = NO_CATEGORY if failure is None else failure.category.value
        self._figures.verdicts[verdict.value, category] += 1
        record = after.records.get(name)
        if record is None or record.is_branch:
            return
        if verdict is Verdict.PASSED:
            story.repaired += 0 if story.by_person else len(story.open)
            story.open.clear()
        elif verdict.is_red:
            own, _ = sorted_failures(record.todo, outcome)
            if own:  # what is older than the work is not its failure
                signature = own[0].signature or own[0].category.value
                story.failures.add(signature)
                story.open.add(signature)

    def _asked(self, action: Action, before: State | None, after: State) -> None:
        figures = self._figures
        match action:
            case Verify():
                later = action.not_before
                start = max(after.now, 0.0 if later is None else datetime.fromisoformat(later).timestamp())
                self._verify_since |= dict.fromkeys(action.todo_ids, start)
            case Implement():
                self._work_since[action.todo_id] = after.now
                earlier = None if before is None else before.records.get(action.todo_id)
                # A driver that begins anew is asked again for the turn that is outstanding.
                is_new = earlier is None or after.records[action.todo_id].turns > earlier.turns
                figures.turns[action.role.value] += is_new
                if action.role is Role.HUMAN:
                    self._helped(action.todo_id, after)
            case AskHuman(kind=QuestionKind.REVIEW):
                self._helped(action.todo_id, after)
            case PublishPlan():
                made = [edit.todo.id for edit in action.edits if isinstance(edit, AddBranch)]
                figures.branches += len(made)
                self._opened |= {qualified(action.within, name): after.now for name in made}
            case Halt():
                figures.halts[action.rule] += 1
            case _:
                pass

    def _helped(self, todo_id: str, run: State | None) -> None:
        """Remember that a person had a hand in a repair: it is not the engine's doing."""
        record = None if run is None else run.records.get(todo_id)
        primary = todo_id if record is None or record.parent_id is None else record.parent_id
        story = self._todos.get(primary)
        if story is not None and story.failures:
            story.by_person = True

    def _spent(self, tokens: int | None, cycles: int | None) -> None:
        self._figures.tokens += max(tokens or 0, 0)
        self._figures.cycles += max(cycles or 0, 0)

    def _decided(self, overruled: bool) -> None:
        self._figures.decisions += 1
        self._figures.overrides += overruled


def _asked_about(question_id: str, before: State | None) -> str:
    question = None if before is None else before.questions.get(question_id)
    return question_id if question is None else question.todo_id


class Reviewed(NamedTuple):
    """One figure and its limit."""

    id: str
    figure: float | None
    """A share from 0, or a number; ``None`` where there is none yet."""
    limit: float
    met: bool | None
    """Whether the figure keeps its limit."""
    sentence: str
    is_share: bool


class _Limit(NamedTuple):
    """How one figure is made, what is asked of it, and when to act, for ``planner explain``."""

    part: str
    """The field of :class:`Figures`."""
    whole: str | None
    """Of a share, the field that it is a share of."""
    keeps: Callable[[float, float], bool]
    limit: float
    label: str
    means: str


_GOALS: Mapping[Callable[[float, float], bool], str] = {
    operator.ge: "at least",
    operator.gt: "more than",
    operator.le: "at most",
}

_LIMITS: Mapping[str, _Limit] = {
    "recovery-rate": _Limit(
        *("recovered_todos", "failed_todos", operator.ge, 0.5),
        "todos that failed and were done without a person",
        "The share of todos that failed a verification and were done without a person having repaired or "
        "decided anything; plain approvals do not count. Below 50 % the repairs are not worth their cost.",
    ),
    "verification-time": _Limit(
        *("verification_seconds", "work_seconds", operator.le, 0.3),
        "verification to work, in seconds",
        "The time of verification in relation to that of work. Above 30 % the criteria are too slow.",
    ),
    "human-overrides": _Limit(
        *("overrides", "decisions", operator.le, 0.2),
        "decisions of people against the proposal",
        "The share of what people decided that went against the engine: rejections, modifications, todos "
        "given up, edits of their own, stops. Above 20 % it proposes the wrong things.",
    ),
    "convention-misses": _Limit(
        *("missed_todos", "conventional_todos", operator.le, 0.2),
        "todos without the tests of the convention",
        "The share of todos whose tests were looked for by convention and not found. Above 20 % the plan "
        "should name them.",
    ),
    "hierarchy-depth": _Limit(
        *("levels", None, operator.le, 3),
        "levels of plans within plans",
        "How many levels of plans within plans were used. With more than 3 the plan is cut into the wrong "
        "pieces.",
    ),
    "repaired-alone": _Limit(
        *("repaired_failures", "failures", operator.gt, 0.8),
        "failures repaired without a person",
        "The share of different failures whose todo holds in the end without a person having repaired or "
        "decided anything. The goal is more than 80 %.",
    ),
    "done-while-red": _Limit(
        *("done_while_red", None, operator.le, 0),
        "done todos whose last verification was red",
        "How many todos are done though a check of their last verification was red. There must be none.",
    ),
}

REVIEW_FIGURES: Mapping[str, str] = {name: each.means for name, each in _LIMITS.items()}
"""Every figure of the review, each in one or two sentences."""


def review(figures: Figures) -> Iterator[Reviewed]:
    """Hold every figure against its limit, in the order of :data:`REVIEW_FIGURES`."""
    for name, each in _LIMITS.items():
        part = getattr(figures, each.part)
        whole = 1 if each.whole is None else getattr(figures, each.whole)
        value = part / whole if whole else None
        limit = f"{each.limit:g}" if each.whole is None else f"{100 * each.limit:.0f} %"
        goal = f"goal: {_GOALS[each.keeps]} {limit}"
        if value is None:
            said = f"none yet ({goal})"
        elif each.whole is None:
            said = f"{_number(part)} ({goal})"
        else:
            said = f"{_number(part)} of {_number(whole)} ({100 * value:.0f} %; {goal})"
        met = None if value is None else each.keeps(value, each.limit)
        yield Reviewed(name, value, each.limit, met, f"{each.label}: {said}", each.whole is not None)


def spent(figures: Figures) -> str:
    """Return ``1200 tokens and 3 cycles`` as drivers told them; empty where none did."""
    known = ((figures.tokens, "token"), (figures.cycles, "cycle"))
    return " and ".join(counted(count, noun) for count, noun in known if count)


def _number(value: float) -> str:
    """Return ``529``, ``0.089``, ``1,204.5``: whole where it is whole, else three digits that count."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"
