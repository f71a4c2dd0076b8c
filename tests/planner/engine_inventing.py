"""Invents plans, policies and outcomes from a seeded source of chance: ordinary, odd and extreme ones.

Whatever is invented is valid for the models; what an engine makes of it is for the engine to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from planner.model.outcome import Check, Failure, Location, Outcome, OutcomeMetrics
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
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

START = datetime(2026, 1, 1, 10, 0, tzinfo=UTC)

FILES: Mapping[str, frozenset[str]] = {
    "src/a/x.py": frozenset(("src/a/x.py",)),
    "src/a/**": frozenset(("src/a/x.py", "src/a/y.py", "src/a/deep/z.py")),
    "src/a/*.py": frozenset(("src/a/x.py", "src/a/y.py")),
    "src/b/**": frozenset(("src/b/x.py",)),
    "docs/**": frozenset(("docs/index.md",)),
    "README.md": frozenset(("README.md",)),
    "src/**": frozenset(("src/a/x.py", "src/a/y.py", "src/a/deep/z.py", "src/b/x.py")),
}
"""Every pattern that a todo may claim, and what it matches of the few files that there are."""

MAX_LEVELS = 3
"""Of sub-plans below the plan at the top."""

SIZES = (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 8, 12, 30)
"""Of plans at the top; most are small."""
_SUB_SIZES = (0, 1, 1, 2, 3)
REPAIRABLE = tuple(
    each for each in Category if each.facts.family in (Family.TEST, Family.COMPILE, Family.CONTRACT)
)
"""What a role can mend."""
_ENVIRONMENT = (Category.ENVIRONMENT_ERROR, Category.HARNESS_ERROR)
_STOPPING = tuple(each for each in Category if each.facts.family in (Family.SANDBOX, Family.BUDGET))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mood:
    """What a run is like: how well the work goes, how much goes wrong around it, and who is asked."""

    passing: float
    """The share of verifications that pass."""
    odd: float
    """Of the others, the share that is no plain failure of the work."""
    faults: float
    """The share of events that nobody asked for: lost, late, doubled, mistaken."""
    agreeing: float
    """The share of proposals that a person agrees to."""
    working: float
    """The share of turns whose worker says that it is done."""


def invent_mood(random: Random) -> Mood:
    """A run of its own kind."""
    return Mood(
        passing=random.choice((0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)),
        odd=random.choice((0.0, 0.1, 0.3, 0.9)),
        faults=random.choice((0.0, 0.0, 0.05, 0.15, 0.4)),
        agreeing=random.choice((0.0, 0.5, 0.9, 0.9, 1.0, 1.0)),
        working=random.choice((1.0, 1.0, 0.9, 0.5)),
    )


def invent_sub_plan(random: Random, level: int) -> Plan:
    """The sub-plan of a parent that stands on that level, the top being 0."""
    return invent_plan(random, f"sub-{level}", size=random.choice(_SUB_SIZES), level=level + 1)


def invent_plan(random: Random, name: str, *, size: int, level: int) -> Plan:
    """A plan of so many todos, whose dependencies run in no circle and in no order of the file."""
    order = list(range(size))
    random.shuffle(order)
    place = {number: at for at, number in enumerate(order)}
    density = random.choice((0.0, 0.3, 0.6, 0.9))
    claims_files = random.choice((0.0, 0.3, 0.9))
    items = tuple(
        _todo(
            random,
            number,
            before=tuple(f"t{other}" for other in order[max(place[number] - 3, 0) : place[number]]),
            density=density,
            claims_files=claims_files,
            level=level,
        )
        for number in range(size)
    )
    return Plan(todo_list_id=name, metadata=invent_policy(random), items=items)


def invent_policy(random: Random) -> Policy:
    """Limits at nothing, at one, as they are by default, and large."""
    choose = random.choice
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
        budget=_budget(random) if random.random() < 0.15 else Budget(),
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


def invent_outcome(random: Random, todo_id: str, mood: Mood) -> Outcome:
    """What a verification of a todo may have found."""
    if random.random() < mood.passing:
        return passing(todo_id, random)
    if random.random() >= mood.odd:
        return failing(todo_id, random, random.choice(REPAIRABLE))
    return random.choice(_ODD)(todo_id, random)


def with_all_checks(outcome: Outcome, todo: Todo) -> Outcome:
    """The outcome with a check of every criterion of its todo, as a verification writes it."""
    if not outcome.checks:
        return outcome
    known = {check.id: check for check in outcome.checks}
    ids = sorted(criterion_ids(todo)) or (["convention"] if wants_convention(todo) else list(known))
    checks = tuple(known.get(name, outcome.checks[0].model_copy(update={"id": name})) for name in ids)
    return outcome.model_copy(update={"checks": checks})


def passing(todo_id: str, random: Random) -> Outcome:
    """Its criteria hold; said in full, or as briefly as may be."""
    if random.random() < 0.2:
        return Outcome(todo_id=todo_id, success=True, tests_passed=True)
    return Outcome(
        todo_id=todo_id,
        state=TodoState.DONE,
        verified=True,
        success=True,
        tests_passed=True,
        checks=(Check(id="tests[0]", kind=CheckKind.TEST, verdict=Verdict.PASSED),),
        diff_hash=_hash(random),
    )


def failing(todo_id: str, random: Random, category: Category, **fields: Any) -> Outcome:
    """Its criteria do not hold, for that reason."""
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
    return Outcome(
        todo_id=todo_id,
        state=TodoState.TEST_FAILED,
        verified=True,
        success=False,
        tests_passed=False,
        checks=(Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict),),
        diff_hash=_hash(random),
        metrics=OutcomeMetrics(tokens_used=random.choice((None, None, 700)), patch_cycles=None),
        failure_evidence=failure,
        failures=(failure,),
    )


def claims(patterns: Sequence[str] | None) -> frozenset[str] | None:
    """The files that patterns of :data:`FILES` match; ``None`` where nothing is claimed."""
    if patterns is None:
        return None
    return frozenset(name for pattern in patterns for name in FILES.get(pattern, frozenset((pattern,))))


def digest_of(random: Random) -> str:
    """What looks like the digest of a file."""
    return f"sha256:{random.getrandbits(256):064x}"


def _todo(
    random: Random, number: int, *, before: tuple[str, ...], density: float, claims_files: float, level: int
) -> Todo:
    choose, roll = random.choice, random.random
    fields: dict[str, Any] = {
        "id": f"t{number}",
        "title": f"Part {number}",
        "dependencies": tuple(name for name in before if roll() < density),
        "priority": choose((0, 0, 0, -1, 1, 2)),
        "agent_role": choose((Role.CODER, Role.CODER, Role.ARCHITECT, Role.TESTER)),
        "max_retries": choose((0, 0, 1, 2, 2, 5)),
    }
    if roll() < 0.9:
        fields["acceptance_criteria"] = AcceptanceCriteria(
            tests=(CommandSpec(cmd=f"pytest tests/test_t{number}.py -q", timeout_seconds=20.0),),
            expected_artifacts=(ArtifactSpec(path=f"out/t{number}.json"),) if roll() < 0.1 else (),
            metrics=(MetricSpec(name="rows", operator=Operator.GE, value=10.0),) if roll() < 0.05 else (),
            manual=(ManualSpec(question="Does it look right?"),) if roll() < 0.05 else (),
        )
    if roll() < 0.1:
        fields["contract_path"] = "contracts/all.json"
    if roll() < 0.1:
        fields["controller_task_spec"] = ControllerTaskSpec(
            type="PATCH", target_file=f"lib/t{number}.py", hint="It is the last line."
        )
    if roll() < 0.3:
        fields["intent"] = choose(("Fix the failing test.", "Add a feature.", "Tidy up."))
    if roll() < 0.1:
        fields["status"] = TodoStatus.CLAIMED
    if roll() < 0.1:
        fields["requires_testing"] = False
    if roll() < claims_files:
        fields["allowed_files"] = tuple(random.sample(tuple(FILES), choose((1, 1, 2))))
    if roll() < 0.12:
        fields["risk_level"] = choose(tuple(RiskLevel))
    if roll() < 0.2:
        fields["timeout_seconds"] = choose((1.0, 60.0))
    if roll() < 0.2:
        fields["failure_routing"] = {RoutingKey.IMPLEMENTATION_BUG: choose(tuple(Role))}
    if level < MAX_LEVELS and roll() < 0.08:
        fields |= choose(({"sub_plan": f"sub/t{number}.yaml"}, {"is_parent": True, "sub_project_id": "s"}))
    return Todo(**fields)


def _budget(random: Random) -> Budget:
    choose = random.choice
    return Budget(
        wall_seconds=choose((None, 1.0, 600.0, 86_400.0)),
        tokens=choose((None, 0, 1, 5_000, 10**9)),
        cycles=choose((None, 0, 1, 10, 10**6)),
        new_files=choose((None, 0, 1, 5, 10**6)),
    )


def _hash(random: Random) -> str | None:
    """Of the product: often the same as before."""
    return random.choice((None, "sha256:0", "sha256:0", f"sha256:{random.getrandbits(32):x}"))


def _stopping(todo_id: str, random: Random) -> Outcome:
    return failing(todo_id, random, random.choice(_STOPPING))


def _environment(todo_id: str, random: Random) -> Outcome:
    return failing(todo_id, random, random.choice(_ENVIRONMENT))


def _nobodys(todo_id: str, random: Random) -> Outcome:
    owner = random.choice((Owner.ENVIRONMENT, Owner.HARNESS))
    return failing(todo_id, random, random.choice(REPAIRABLE), owner=owner)


def _flaky(todo_id: str, random: Random) -> Outcome:
    return failing(todo_id, random, Category.FLAKY_TEST)


def _unknown(todo_id: str, random: Random) -> Outcome:
    return failing(todo_id, random, Category.UNKNOWN)


def _older(todo_id: str, random: Random) -> Outcome:
    """It failed before the work began; often beside a failure of the work."""
    old = failing(
        todo_id, random, random.choice(REPAIRABLE), since=Since.PRE_EXISTING, tests=("old.py::t",)
    )
    if random.random() < 0.5:
        return old
    new = failing(todo_id, random, random.choice(REPAIRABLE), since=Since.NEW)
    return new.model_copy(update={"failures": (*new.failures, *old.failures)})


def _undecided(todo_id: str, random: Random) -> Outcome:
    verdict = random.choice((Verdict.INCONCLUSIVE, Verdict.STALE, Verdict.NOT_RUN))
    return _open(todo_id, verdict, TodoState.TESTING)


def _asking(todo_id: str, random: Random) -> Outcome:
    return _open(todo_id, Verdict.NEEDS_HUMAN, TodoState.TESTING)


def _blocked(todo_id: str, random: Random) -> Outcome:
    return _open(todo_id, Verdict.BLOCKED, random.choice((TodoState.BLOCKED, TodoState.PENDING)))


def _open(todo_id: str, verdict: Verdict, state: TodoState) -> Outcome:
    return Outcome(
        todo_id=todo_id,
        state=state,
        success=False,
        tests_passed=False,
        checks=(Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict),),
    )


def _brief(todo_id: str, random: Random) -> Outcome:
    """Red, and nothing else is said."""
    return Outcome(todo_id=todo_id, success=False, tests_passed=False)


def _contradictory(todo_id: str, random: Random) -> Outcome:
    """It says one thing here and another there."""
    good = passing(todo_id, random)
    bad = failing(todo_id, random, random.choice(REPAIRABLE))
    return random.choice(
        (
            good.model_copy(update={"failure_evidence": bad.failure_evidence, "state": TodoState.DONE}),
            good.model_copy(update={"checks": bad.checks, "state": TodoState.DONE}),
            good.model_copy(update={"state": TodoState.TEST_FAILED}),
            good.model_copy(update={"state": None, "tests_passed": False}),
            bad.model_copy(update={"state": TodoState.DONE}),
            bad.model_copy(update={"state": None, "success": True}),
        )
    )


_ODD: tuple[Callable[[str, Random], Outcome], ...] = (
    _stopping,
    _environment,
    _environment,
    _nobodys,
    _flaky,
    _flaky,
    _unknown,
    _older,
    _undecided,
    _undecided,
    _asking,
    _blocked,
    _brief,
    _contradictory,
)
