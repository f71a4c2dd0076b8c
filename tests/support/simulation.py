"""Simulation of whole runs of the engine, with all events from a seeded random generator.

Plans, policies and outcomes are generated: valid for the models, ordinary, unusual and extreme. The driver
performs the requested actions sooner or later, and meanwhile makes every mistake that a driver can make: it
forgets its pending actions and resumes, sends events twice, late, or for the wrong todo, lets the clock
jump, and ignores work. In the end it is earnest: it answers everything, and its users give up rather than
retry. Each run therefore has to end within a bound that its limits determine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from planner.engine import start, step
from planner.errors import RefusedEvent
from planner.model.actions import AskHuman, Cancel, Finish, Halt, Implement, LoadSubPlan, Verify
from planner.model.events import (
    ApprovalGiven,
    BranchChanges,
    BudgetSpent,
    ClockTicked,
    ConflictFound,
    Decision,
    PlanSubmitted,
    QuestionAnswered,
    RunPolicy,
    RunResumed,
    RunStarted,
    StopRequested,
    SubPlanLoaded,
    Verified,
    WorkFinished,
    WorkStarted,
)
from planner.model.outcome import Check, Failure, Location, Outcome, OutcomeMetrics
from planner.model.past import Correction, PastRecords, PastRepair, PastTodo
from planner.model.plan import (
    AcceptanceCriteria,
    ArtifactSpec,
    Budget,
    CommandSpec,
    ControllerTaskSpec,
    FlakyRetry,
    HaltPolicy,
    ManualSpec,
    MetricSpec,
    Operator,
    Plan,
    Policy,
    RiskLevel,
    Todo,
    TodoStatus,
)
from planner.model.taxonomy import Category, Family, Owner, Role, RoutingKey
from planner.model.verdicts import CheckKind, Since, TodoState, Verdict
from planner.policy.criteria import criterion_ids, wants_convention

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event

START = datetime(2026, 1, 1, 10, 0, tzinfo=UTC)
FILES = ("src/a/x.py", "src/a/**", "src/a/*.py", "src/b/**", "docs/**", "README.md", "src/**")
"""Patterns that a todo may claim."""
MAX_LEVELS = 3
"""Maximum levels of sub-plans below the top-level plan."""
SIZES = (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 8, 12, 30)
"""Sizes of top-level plans; most are small."""
REPAIRABLE = tuple(
    each for each in Category if each.facts.family in (Family.TEST, Family.COMPILE, Family.CONTRACT)
)
_STOPPING = tuple(each for each in Category if each.facts.family in (Family.SANDBOX, Family.BUDGET))
_ENVIRONMENT = (Category.ENVIRONMENT_ERROR, Category.HARNESS_ERROR)
_YEAR = 365 * 24 * 3600


# -- plans and policies --------------------------------------------------------------------------------


def invent_submission(random: Random, *, sizes: Sequence[int] = SIZES) -> PlanSubmitted:
    """Return the first event of a run."""
    choose = random.choice
    return PlanSubmitted(
        at=START,
        plan=invent_plan(random, "plan", size=choose(sizes), level=0),
        digest=_digest(random),
        problems=("t1 has no way to be done",) if random.random() < 0.01 else (),
        policy=RunPolicy(
            jobs=choose((None, None, 1, 2, 1000)),
            environment_retries=choose((0, 1, 3)),
            environment_delay_seconds=choose((0.0, 30.0)),
            tools=choose(((), ("ruff", "mypy"))),
            allow_unproved=True,
        ),
        memory=_past(random) if random.random() < 0.2 else PastRecords(),
    )


def _past(random: Random) -> PastRecords:
    """Return records of a few weeks in the same repository."""
    choose, some = random.choice, random.randrange
    roles = (Role.CODER, Role.ARCHITECT, Role.DEBUGGER)
    best = choose(roles)

    def facts(**held: Any) -> dict[str, Any]:
        return {"at": START - timedelta(days=some(30)), "fingerprint": "here", **held}

    def work(text: str) -> dict[str, Any]:
        return facts(task_kind=choose(("fix_test", "add_feature", "refactor")), text=text)

    def failure() -> dict[str, Any]:  # also occurs in the runs
        return {"signature": f"{some(4):012x}", "category": choose(REPAIRABLE)}

    def repair(role: Role) -> PastRepair:
        text = choose(("Part 0 ValueError: it is 1", "Part 1", ""))
        return PastRepair(**work(text), **failure(), role=role, fixed=role is best or random.random() < 0.1)

    return PastRecords(
        fingerprint="here",
        repairs=tuple(repair(choose(roles)) for _ in range(some(20))),
        todos=tuple(
            PastTodo(
                **work(f"Part {some(5)}"),
                role=choose(roles),
                done=random.random() < 0.7,
                first_time=random.random() < 0.5,
                categories=tuple(random.sample(REPAIRABLE, 2)),
            )
            for _ in range(some(10))
        ),
        corrections=tuple(Correction(**facts(), **failure(), role=best, by="ada") for _ in range(some(3))),
    )


def invent_plan(random: Random, name: str, *, size: int, level: int) -> Plan:
    """Return a plan of ``size`` todos with acyclic dependencies in any order of the file."""
    order = random.sample(range(size), size)
    density = random.choice((0.0, 0.3, 0.6, 0.9))
    claiming = random.choice((0.0, 0.3, 0.9))
    items: list[Todo] = []
    for number in range(size):
        place = order.index(number)
        before = tuple(f"t{each}" for each in order[max(place - 3, 0) : place] if random.random() < density)
        items.append(_todo(random, number, before, claiming, level))
    return Plan(todo_list_id=name, metadata=_policy(random), items=tuple(items))


def _policy(random: Random) -> Policy:
    """Return a policy with limits of zero, one, the defaults, or large values."""
    choose = random.choice
    budget = Budget()
    if random.random() < 0.15:
        budget = Budget(
            wall_seconds=choose((None, 1.0, 600.0, 86_400.0)),
            tokens=choose((None, 0, 1, 5_000, 10**9)),
            cycles=choose((None, 0, 1, 10, 10**6)),
            new_files=choose((None, 0, 1, 5, 10**6)),
        )
    return Policy(
        auto_fix_mode=random.random() < 0.7,
        require_planner_approval=choose((None, None, None, False, True)),
        auto_approve_branches=random.random() < 0.3,
        max_branch_depth=choose((0, 1, 2, 2, 4)),
        max_debug_attempts=choose((0, 1, 3, 3, 6)),
        branch_timeout_seconds=choose((1.0, 600.0, 600.0, 86_400.0)),
        max_concurrent_branches=choose((0, 1, 1, 5, 1000)),
        notify_after_n_failures=choose((0, 1, 3, 1000)),
        flaky_retry=FlakyRetry(attempts=choose((0, 1, 2))),
        max_todo_seconds=choose((None, None, 100.0)),
        budget=budget,
        halt=HaltPolicy(
            consecutive_failures=choose((None, None, None, 1, 3, 3, 20)),
            identical_failures=choose((None, None, 1, 2, 2, 5, 20)),
            flaky_streak=choose((None, None, 1, 3, 3, 20)),
            file_growth=choose((None, 0, 5, 50, 50, 50, 50)),
            security=choose(("halt", "ask")),
            budget=choose(("halt", "ask")),
        ),
        protected_files=("src/a/y.py",) if random.random() < 0.1 else (),
    )


def _todo(random: Random, number: int, before: tuple[str, ...], claiming: float, level: int) -> Todo:
    choose, roll = random.choice, random.random
    criteria = AcceptanceCriteria(
        tests=(CommandSpec(cmd=f"pytest tests/test_t{number}.py -q", timeout_seconds=20.0),),
        expected_artifacts=(ArtifactSpec(path=f"out/t{number}.json"),) if roll() < 0.1 else (),
        metrics=(MetricSpec(name="rows", operator=Operator.GE, value=10.0),) if roll() < 0.05 else (),
        manual=(ManualSpec(question="Does it look right?"),) if roll() < 0.05 else (),
    )
    patch = ControllerTaskSpec(type="PATCH", target_file=f"lib/t{number}.py", hint="It is the last line.")
    sub_plan = choose(({"sub_plan": f"sub/t{number}.yaml"}, {"is_parent": True, "sub_project_id": "s"}))
    odd: tuple[tuple[float, dict[str, Any]], ...] = (
        (0.9, {"acceptance_criteria": criteria}),
        (0.1, {"contract_path": "contracts/all.json"}),
        (0.1, {"controller_task_spec": patch}),
        (0.3, {"intent": choose(("Fix the failing test.", "Add a feature.", "Tidy up."))}),
        (0.1, {"status": TodoStatus.CLAIMED}),
        (0.1, {"requires_testing": False}),
        (claiming, {"allowed_files": tuple(random.sample(FILES, choose((1, 1, 2))))}),
        (0.12, {"risk_level": choose(tuple(RiskLevel))}),
        (0.2, {"timeout_seconds": choose((1.0, 60.0))}),
        (0.2, {"failure_routing": {RoutingKey.IMPLEMENTATION_BUG: choose(tuple(Role))}}),
        (0.08 if level < MAX_LEVELS else 0.0, sub_plan),
    )
    fields: dict[str, Any] = {}
    for share, held in odd:
        if roll() < share:
            fields |= held
    return Todo(
        id=f"t{number}",
        title=f"Part {number}",
        dependencies=before,
        priority=choose((0, 0, 0, -1, 1, 2)),
        agent_role=choose((Role.CODER, Role.CODER, Role.ARCHITECT, Role.TESTER)),
        max_retries=choose((0, 0, 1, 2, 2, 5)),
        **fields,
    )


def _digest(random: Random) -> str:
    return f"sha256:{random.getrandbits(256):064x}"


# -- outcomes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Mood:
    """Parameters of a run: quality of the work, rate of faults, and decisions of users."""

    passing: float
    """Share of verifications that pass."""
    odd: float
    """Share of the other verifications that are no plain failure of the work."""
    faults: float
    """Share of turns with a mistake: events that are lost, late, doubled, or wrong."""
    agreeing: float
    """Share of proposals that a user approves."""
    working: float
    """Share of turns whose worker reports success."""


def passing(todo_id: str, random: Random) -> Outcome:
    """Return the outcome of a todo whose criteria pass, in full or minimal form."""
    if random.random() < 0.2:
        return Outcome(todo_id=todo_id, success=True, tests_passed=True)
    return _judged(todo_id, random, Verdict.PASSED, TodoState.DONE, verified=True)


def failing(todo_id: str, random: Random, category: Category, **fields: Any) -> Outcome:
    """Return the outcome of a todo that fails with that category."""
    number = random.randrange(4)
    said: dict[str, Any] = {
        "category": category,
        "owner": random.choice((category.facts.usual_owner, Owner.UNKNOWN)),
        "confidence": 0.9,
        "signature": f"{number:012x}" if random.random() < 0.95 else None,
        "check_id": "tests[0]",
    }
    if random.random() < 0.5:
        said |= {
            "stack_trace_head": f"{random.choice(('ValueError', 'AssertionError'))}: it is {number}",
            "top_failing_tests": (f"tests/test_all.py::test_{number}",),
            "tests": (f"tests/test_all.py::test_{number}",),
            "location": Location(path="src/a/x.py", line=number + 1, function="total"),
        }
    failure = Failure(**(said | fields))
    verdict = Verdict.FLAKY if category is Category.FLAKY_TEST else Verdict.FAILED
    return _judged(
        todo_id,
        random,
        verdict,
        TodoState.TEST_FAILED,
        verified=True,
        metrics=OutcomeMetrics(tokens_used=random.choice((None, None, 700)), patch_cycles=None),
        failure_evidence=failure,
        failures=(failure,),
    )


def _judged(todo_id: str, random: Random, verdict: Verdict, state: TodoState, **fields: Any) -> Outcome:
    is_done = state is TodoState.DONE
    return Outcome(
        todo_id=todo_id,
        state=state,
        success=is_done,
        tests_passed=is_done,
        checks=(Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict),),
        diff_hash=random.choice((None, "sha256:0", "sha256:0", f"sha256:{random.getrandbits(32):x}")),
        **fields,
    )


_ODD_KINDS = (
    *("stops", "nobody", "environment", "environment", "flaky", "flaky", "unknown", "older"),
    *("open", "open", "asks", "blocked", "brief", "contradicts"),
)


def _odd(todo_id: str, random: Random) -> Outcome:
    """Return an outcome that is no plain failure of the work."""
    choose = random.choice
    undecided = (Verdict.INCONCLUSIVE, Verdict.STALE, Verdict.NOT_RUN)
    nobodys = choose((Owner.ENVIRONMENT, Owner.HARNESS))
    kind = choose(_ODD_KINDS)
    match kind:
        case "stops":
            return failing(todo_id, random, choose(_STOPPING))
        case "environment":
            return failing(todo_id, random, choose(_ENVIRONMENT))
        case "nobody":
            return failing(todo_id, random, choose(REPAIRABLE), owner=nobodys)
        case "flaky":
            return failing(todo_id, random, Category.FLAKY_TEST)
        case "unknown":
            return failing(todo_id, random, Category.UNKNOWN)
        case "older":  # a failure from before the work, often beside a new one
            since = {"since": Since.PRE_EXISTING, "tests": ("old.py::t",)}
            old = failing(todo_id, random, choose(REPAIRABLE), **since)
            new = failing(todo_id, random, choose(REPAIRABLE), since=Since.NEW)
            both = new.model_copy(update={"failures": (*new.failures, *old.failures)})
            return choose((old, both))
        case "open":
            return _judged(todo_id, random, choose(undecided), TodoState.TESTING)
        case "asks":
            return _judged(todo_id, random, Verdict.NEEDS_HUMAN, TodoState.TESTING)
        case "blocked":
            return _judged(todo_id, random, Verdict.BLOCKED, choose((TodoState.BLOCKED, TodoState.PENDING)))
        case "brief":
            return Outcome(todo_id=todo_id, success=False, tests_passed=False)
        case _:
            good, bad = passing(todo_id, random), failing(todo_id, random, choose(REPAIRABLE))
            outcome, update = choose(
                (
                    (good, {"failure_evidence": bad.failure_evidence, "state": TodoState.DONE}),
                    (good, {"checks": bad.checks, "state": TodoState.DONE}),
                    (good, {"state": TodoState.TEST_FAILED}),
                    (good, {"state": None, "tests_passed": False}),
                    (bad, {"state": TodoState.DONE}),
                    (bad, {"state": None, "success": True}),
                )
            )
            return outcome.model_copy(update=update)


def _with_all_checks(outcome: Outcome, todo: Todo) -> Outcome:
    """Return the outcome with a check for every criterion of its todo, as a verification writes it."""
    if not outcome.checks:
        return outcome
    first = outcome.checks[0]
    ids = sorted(criterion_ids(todo)) or (["convention"] if wants_convention(todo) else [first.id])
    checks = tuple(first if name == first.id else first.model_copy(update={"id": name}) for name in ids)
    return outcome.model_copy(update={"checks": checks})


# -- the driver ----------------------------------------------------------------------------------------


class Watcher:
    """Observes every step, and raises ``AssertionError`` on an invalid one."""

    def began(self, event: PlanSubmitted, after: State, actions: Sequence[Action]) -> None:
        """Handle the submission of the plan."""

    def stepped(self, before: State, event: Event, after: State, actions: Sequence[Action]) -> None:
        """Handle an accepted event."""

    def refused(self, state: State, event: Event, refusal: RefusedEvent) -> None:
        """Handle a refused event."""

    def rested(self, simulation: Simulation) -> None:
        """Handle the driver's state after it has processed the actions."""


@dataclass(slots=True)
class Simulation:
    """A run, and the state of its driver, which knows only the actions it received."""

    random: Random
    mood: Mood
    state: State
    watchers: Sequence[Watcher] = ()
    now: datetime = datetime.min
    earnest: bool = False
    patience: int = 0
    """Number of turns in which the driver makes mistakes."""
    turns: int = 0
    refusals: int = 0
    mistakes: int = 0
    history: list[tuple[Event, tuple[Action, ...]]] = field(
        default_factory=list["tuple[Event, tuple[Action, ...]]"]
    )
    work: dict[str, Implement] = field(default_factory=dict[str, Implement])
    """Pending actions by todo, as in the next three attributes."""
    checks: dict[str, Verify] = field(default_factory=dict[str, Verify])
    """By todo; an action may verify several."""
    loads: dict[str, LoadSubPlan] = field(default_factory=dict[str, LoadSubPlan])
    asked: dict[str, AskHuman] = field(default_factory=dict[str, AskHuman])
    cancelled: set[str] = field(default_factory=set[str])
    """Todos with a cancelled action: an answer about them has to name its action."""
    lying: set[str] = field(default_factory=set[str])
    """Todos whose work or verification is ignored for now."""

    @classmethod
    def begin(cls, seed: int, *watchers: Watcher) -> Simulation:
        """Start the run that a seed determines."""
        random = Random(seed)
        submission = invent_submission(random)
        state, actions = start(submission)
        mood = Mood(
            passing=random.choice((0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)),
            odd=random.choice((0.0, 0.1, 0.3, 0.9)),
            faults=random.choice((0.0, 0.0, 0.05, 0.15, 0.4)),
            agreeing=random.choice((0.0, 0.5, 0.9, 0.9, 1.0, 1.0)),
            working=random.choice((1.0, 1.0, 0.9, 0.5)),
        )
        begun = cls(random, mood, state, watchers, submission.at)
        begun.patience = random.choice((20, 60, 60 + 20 * len(submission.plan.items)))
        for watcher in watchers:
            watcher.began(submission, state, actions)
        begun.history.append((submission, actions))
        if not state.plan_state.is_final:
            begun.tell(RunStarted(at=begun.later()), due=True)
        return begun

    @property
    def is_over(self) -> bool:
        return self.state.plan_state.is_final

    def run(self) -> Simulation:
        """Run to the end."""
        while not self.is_over:
            self.turn()
            assert self.turns <= self.patience + bound(self.state), f"{self.turns} turns, and no end"
        return self

    def turn(self) -> None:
        """Make a mistake, or answer a pending action."""
        self.turns += 1
        if self.turns > self.patience:
            self.earnest = True
            self.lying.clear()
        if not self.earnest and self.random.random() < self.mood.faults:
            self.mistakes += 1
            self.random.choice(MISTAKES)(self)
        else:
            self.answer()

    def answer(self) -> None:
        """Answer a pending action, or advance the clock if all of them are ignored."""
        due = [(self._work, name) for name in self.work if name not in self.lying]
        due += [(self._check, name) for name in self.checks if name not in self.lying]
        due += [(self._load, name) for name in self.loads]
        due += [(self._reply, name) for name in self.asked]
        if due:
            perform, name = self.random.choice(due)
            perform(name)
            return
        assert self.lying, f"nothing is asked for, and the plan is {self.state.plan_state}"
        self.tell(ClockTicked(at=self.later(self.random.choice((1, 60, 700, 100_000)))), due=True)

    def tell(self, event: Event, *, due: bool = False) -> bool:
        """Submit an event; return whether it was accepted. A ``due`` one must be, unless it is too late."""
        before = self.state
        try:
            self.state, actions = step(before, event)
        except RefusedEvent as refusal:
            if due and self._was_too_late(event):
                return False
            if due:
                said = f"{event!r} was asked for, and is refused: {refusal.rule}: {refusal}"
                raise AssertionError(said) from refusal
            self.refusals += 1
            for watcher in self.watchers:
                watcher.refused(before, event, refusal)
            return False
        for watcher in self.watchers:
            watcher.stepped(before, event, self.state, actions)
        self.history.append((event, actions))
        self._take(event, actions)
        for watcher in self.watchers:
            watcher.rested(self)
        return True

    def _was_too_late(self, event: Event) -> bool:
        """Return whether the action had expired by then, which only the clock can cause."""
        tick = ClockTicked(at=event.at)
        return bool(step(self.state, tick)[1]) and self.tell(tick)

    def later(self, seconds: float | None = None) -> datetime:
        """Advance the clock, by default a little, and return the time."""
        passed = self.random.choice((0, 0.5, 3, 20)) if seconds is None else seconds
        if self.now.year < 9000:
            self.now += timedelta(seconds=passed)
        return self.now

    def forget(self, after_seconds: float | None = None) -> None:
        """Restart the driver without its pending actions."""
        for known in (self.work, self.checks, self.loads, self.asked, self.lying):
            known.clear()
        self.tell(RunResumed(at=self.later(after_seconds)), due=True)

    def outcome_of(self, name: str) -> Outcome:
        """Return a random outcome of verifying a todo."""
        random = self.random
        if random.random() < self.mood.passing:
            outcome = passing(name, random)
        elif random.random() >= self.mood.odd:
            outcome = failing(name, random, random.choice(REPAIRABLE))
        else:
            outcome = _odd(name, random)
        record = self.state.records.get(name)
        return outcome if record is None else _with_all_checks(outcome, record.todo)

    def _work(self, name: str) -> None:
        roll = self.random.random
        answers = self.work[name].seq if roll() < 0.5 or name in self.cancelled else None
        if roll() < 0.2 and not self.tell(WorkStarted(at=self.later(), todo_id=name, answers=answers)):
            return
        if name not in self.work:  # its turn has expired
            return
        new = self.random.choice((0,) * 12 + (1, 1, 8))
        self.tell(
            WorkFinished(
                at=self.later(),
                todo_id=name,
                answers=answers,
                success=roll() < self.mood.working,
                tokens=self.random.choice((None, 10, 2_000)),
                cycles=self.random.choice((None, 1, 2)),
                touched_files=("src/a/x.py",),
                new_files=tuple(f"src/new{at}.py" for at in range(new)),
            ),
            due=True,
        )

    def _check(self, name: str) -> None:
        outcome, asked = self.outcome_of(name), self.checks[name]
        answers = asked.seq if self.random.random() < 0.5 or name in self.cancelled else None
        event = Verified(at=self.later(), outcome=outcome, answers=answers)
        self.tell(event, due=True)

    def _load(self, name: str) -> None:
        level = name.count("/")
        if self.random.random() < 0.1 or level >= MAX_LEVELS:
            problems = ("there is no such file",)
            self.tell(SubPlanLoaded(at=self.later(), todo_id=name, problems=problems), due=True)
            return
        size = self.random.choice((0, 1, 1, 2, 3))
        plan = invent_plan(self.random, f"sub-{level}", size=size, level=level + 1)
        self.tell(
            SubPlanLoaded(at=self.later(), todo_id=name, plan=plan, digest=f"sha256:{name}"), due=True
        )

    def _reply(self, name: str) -> None:
        asked = self.asked[name]
        if not asked.kind.is_approval:
            self.tell(
                QuestionAnswered(at=self.later(), question_id=name, answer=self._answer_to(asked)), due=True
            )
            return
        agrees = self.random.random() < self.mood.agreeing
        yes = (Decision.APPROVE, Decision.MODIFY, Decision.APPROVE_SIMILAR)
        decision = self.random.choice(yes) if agrees else Decision.REJECT
        if decision not in asked.options:
            decision = Decision.APPROVE if agrees else Decision.REJECT
        changes = self._changes() if decision is Decision.MODIFY else BranchChanges()
        plain = changes.allowed_files is None
        self.tell(
            ApprovalGiven(
                at=self.later(), approval_id=name, decision=decision, digest=asked.digest, changes=changes
            ),
            due=plain,  # other changes may be impossible
        )

    def _changes(self) -> BranchChanges:
        """Return the changes that a user makes to a proposed branch."""
        if self.earnest:
            return BranchChanges(instructions="Look again.")
        roll = self.random.random
        return BranchChanges(
            role=self.random.choice((None, Role.DEBUGGER)),
            instructions="Look again." if roll() < 0.5 else None,
            allowed_files=("src/a/x.py",) if roll() < 0.2 else None,
            max_debug_attempts=1 if roll() < 0.3 else None,
        )

    def _answer_to(self, asked: AskHuman) -> str:
        options = [each for each in asked.options if each != "stop"] or list(asked.options)
        if self.earnest and "give_up" in options:
            return "give_up"
        if self.random.random() < 0.05 and "stop" in asked.options:
            return "stop"
        again = [each for each in options if each != "give_up"]
        return self.random.choice(again if again and self.random.random() < 0.7 else options)

    def _take(self, event: Event, actions: Sequence[Action]) -> None:
        """Remove the answered action, and add the requested ones."""
        if isinstance(event, WorkFinished):
            self.work.pop(event.todo_id, None)
        elif isinstance(event, Verified):
            self.checks.pop(event.outcome.todo_id, None)
        elif isinstance(event, SubPlanLoaded):
            self.loads.pop(event.todo_id, None)
        elif isinstance(event, ApprovalGiven | QuestionAnswered):
            name = event.approval_id if isinstance(event, ApprovalGiven) else event.question_id
            self.asked.pop(name, None)
        for action in actions:
            if isinstance(action, Implement):
                self.work[action.todo_id] = action
            elif isinstance(action, Verify):
                self.checks |= dict.fromkeys(action.todo_ids, action)
            elif isinstance(action, Cancel):
                self.cancelled.add(action.todo_id)
                for due in (self.work, self.checks, self.loads):
                    due.pop(action.todo_id, None)
            elif isinstance(action, AskHuman):
                self.asked[action.question_id] = action
            elif isinstance(action, LoadSubPlan):
                self.loads[action.todo_id] = action
            elif isinstance(action, Halt | Finish):
                for due in (self.work, self.checks, self.loads, self.asked):
                    due.clear()
        for name in [name for name in self.asked if name not in self.state.questions]:
            del self.asked[name]  # the question is no longer open


def bound(state: State) -> int:
    """Return the maximum number of turns of an earnest driver, by the limits of the remaining work."""
    again = state.policy.environment_retries + 3
    total = 100
    for record in state.todos.values():
        policy = state.parts[record.within].plan.metadata
        if record.is_branch:
            attempts = record.todo.max_debug_attempts
            total += 2 + (1 + again) * (1 + (policy.max_debug_attempts if attempts is None else attempts))
        else:
            branches = policy.max_branch_depth + 1
            repair = 3 + again + (1 + again) * (1 + max(policy.max_debug_attempts, 3))
            total += 10 + (1 + again) * (2 + record.todo.max_retries) + branches * repair
    return total


# -- mistakes of the driver, and other random events ---------------------------------------------------


def begin_anew(run: Simulation) -> None:
    run.forget()


def say_again(run: Simulation) -> None:
    """Repeat an earlier event, with the current time or its old one."""
    event, _ = run.random.choice(run.history)
    run.tell(event.model_copy(update={"at": run.later()}) if run.random.random() < 0.7 else event)


def leave_lying(run: Simulation) -> None:
    """Ignore a pending action, however much time passes."""
    if due := (*run.work, *run.checks):
        run.lying.add(run.random.choice(due))


def name_nobody(run: Simulation) -> None:
    at = run.later()
    events: tuple[Event, ...] = (
        WorkFinished(at=at, todo_id="nobody"),
        WorkStarted(at=at, todo_id="t1/nobody"),
        Verified(at=at, outcome=passing("nobody", run.random)),
        ConflictFound(at=at, todo_ids=("nobody", "t0")),
        SubPlanLoaded(at=at, todo_id="nobody", problems=("no",)),
        BudgetSpent(at=at, todo_id="nobody", tokens=1),
    )
    run.tell(run.random.choice(events))


def act_unasked(run: Simulation) -> None:
    """Work on, verify or load any todo, whatever its state."""
    name, at = _any_todo(run), run.later()
    good = run.random.random() < 0.7
    plan = invent_plan(run.random, "unasked", size=2, level=3)
    events: tuple[Event, ...] = (
        WorkStarted(at=at, todo_id=name),
        WorkFinished(at=at, todo_id=name),
        Verified(at=at, outcome=passing(name, run.random) if good else run.outcome_of(name)),
        SubPlanLoaded(at=at, todo_id=name, plan=plan),
    )
    run.tell(run.random.choice(events))


def answer_what_was_asked_before(run: Simulation) -> None:
    """Answer a pending action with the number of an earlier one."""
    asked = (*run.work.values(), *run.checks.values())
    if not asked:
        return
    action = run.random.choice(asked)
    answers = run.random.randrange(action.seq)
    if isinstance(action, Implement):
        event = WorkFinished(at=run.later(), todo_id=action.todo_id, answers=answers)
    else:
        event = Verified(at=run.later(), outcome=passing(action.todo_ids[0], run.random), answers=answers)
    if run.tell(event):  # its turn is over: only the cost in the late answer counts
        told = run.history[-1][1]
        assert any(isinstance(each, Cancel) for each in told), "the answer to an earlier action counts"


def decide_something_else(run: Simulation) -> None:
    """Approve a branch that was not proposed, and give an answer that was not offered."""
    name = run.random.choice((*run.asked, "t0_branch_01", "nobody"))
    decision, digest = run.random.choice(tuple(Decision)), _digest(run.random)
    event = ApprovalGiven(at=run.later(), approval_id=name, decision=decision, digest=digest)
    _is_refused(run, event, "what was not proposed is approved")
    event = QuestionAnswered(at=run.later(), question_id=name, answer="perhaps")
    if not run.is_over:
        _is_refused(run, event, "an answer that was not offered counts")


def turn_the_clock(run: Simulation) -> None:
    """Advance the clock far, or set it back to the start of the run or before it."""
    back = START - timedelta(days=run.random.choice((0, 1, 4000)))
    on = run.later(run.random.choice((1, 30, 700, 90_000, _YEAR, 10 * _YEAR)))
    run.tell(ClockTicked(at=run.random.choice((back, on))), due=True)


def spend(run: Simulation) -> None:
    amount = run.random.choice((0, 1, 1_000))
    new = run.random.choice((0, 0, 1))
    run.tell(BudgetSpent(at=run.later(), tokens=amount, cycles=amount % 7, new_files=new), due=True)


def collide(run: Simulation) -> None:
    """Report a conflict between two todos."""
    names = sorted(run.state.todos)
    if len(names) > 1:
        run.tell(ConflictFound(at=run.later(), todo_ids=tuple(run.random.sample(names, 2))))


def begin_again(run: Simulation) -> None:
    again = run.random.choice((RunStarted(at=run.later()), invent_submission(run.random, sizes=(1,))))
    _is_refused(run, again, "a run begins once")


def stop(run: Simulation) -> None:
    """Request a stop; rarely, so that other runs reach their ends."""
    if run.random.random() < 0.1:
        run.tell(StopRequested(at=run.later(), by="somebody"), due=True)


MISTAKES: tuple[Callable[[Simulation], None], ...] = (
    begin_anew,
    say_again,
    leave_lying,
    name_nobody,
    act_unasked,
    answer_what_was_asked_before,
    decide_something_else,
    turn_the_clock,
    spend,
    collide,
    begin_again,
    stop,
)


def _is_refused(run: Simulation, event: Event, otherwise: str) -> None:
    """Submit an event that must be refused, unless its time has ended the turn or the run."""
    if run.tell(event) and not run.is_over:
        rules = {action.rule for action in run.history[-1][1]}
        assert rules & {"turn-timed-out", "branch-lifetime"}, otherwise


def _any_todo(run: Simulation) -> str:
    return run.random.choice((*sorted(run.state.todos), "nobody"))
