"""Measure the memory on simulated histories: quality of the chosen roles and orders, and its speed.

Its thresholds were chosen with other seeds than those of the reported figures.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from measuring import Row

from planner.memory import Memory, task_kind, text_of
from planner.model.outcome import Failure
from planner.model.past import PastRecords, PastRepair, PastTodo
from planner.model.plan import Todo
from planner.model.taxonomy import CATEGORIES, Category, Family, Role

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SPAN_DAYS = 60
OTHERS_ACT = 0.35
"""Share of the past turns of another role than that of the static table.

Reasons are a routing of the todo's own, branches that a person changed, and deeper branches.
"""

HERE, ELSEWHERE = "sha256:here", "sha256:elsewhere"
WORKERS = (Role.CODER, Role.ARCHITECT, Role.TESTER, Role.DEBUGGER)
ROUTED = tuple(
    category
    for category, facts in CATEGORIES.items()
    if facts.family not in (Family.SANDBOX, Family.BUDGET, Family.ENVIRONMENT)
)
DEEDS = ("Fix", "Add", "Refactor", "Implement", "Update the docs of", "Speed up")


class Truth(StrEnum):
    """The relation between failures and the role that can repair them."""

    FAMILIES = "families of failures have roles of their own"
    CATEGORIES = "categories have roles of their own"
    NO_RELATION = "the role does not matter"
    TABLE_IS_RIGHT = "the static table is right"


@dataclass(frozen=True)
class FailureFamily:
    """A family of similar failures, with the roles that can repair them."""

    category: Category
    words: tuple[str, ...]
    signatures: tuple[str, ...]
    chances: Mapping[Role, float]
    """Probability of each role to repair the failure in the first turn."""

    @property
    def static(self) -> Role:
        return CATEGORIES[self.category].default_role


@dataclass(frozen=True)
class World:
    """A truth, with the records of its past."""

    truth: Truth
    seed: int
    repairs: int

    @cached_property
    def families(self) -> tuple[FailureFamily, ...]:
        rng = random.Random(f"families {self.seed}")
        return tuple(self._family(rng, number) for number in range(24))

    @cached_property
    def memory(self) -> Memory:
        rng = random.Random(f"records {self.seed}")
        return Memory(
            PastRecords(fingerprint=HERE, repairs=tuple(self._repair(rng) for _ in range(self.repairs)))
        )

    def cases(self, number: int) -> list[tuple[FailureFamily, Failure, Todo]]:
        """Return failures of the days after the records."""
        rng = random.Random(f"cases {self.seed}")
        found: list[tuple[FailureFamily, Failure, Todo]] = []
        for _ in range(number):
            family = rng.choice(self.families)
            found.append((self._meant(rng, family), *self._failure(rng, family)))
        return found

    def _family(self, rng: random.Random, number: int) -> FailureFamily:
        category = rng.choice(ROUTED)
        static = CATEGORIES[category].default_role
        chances = self._chances(rng, category, static)
        return FailureFamily(
            category=category,
            words=tuple(_word(rng) for _ in range(8)),
            signatures=tuple(f"{self.seed}-{number}-{index}" for index in range(4)),
            chances=chances,
        )

    def _chances(self, rng: random.Random, category: Category, static: Role) -> dict[Role, float]:
        """Return the probability of each role; the static role is not the best in half of the families."""
        chances = {role: rng.uniform(0.1, 0.4) for role in WORKERS}
        whose = random.Random(f"{category} {self.seed}") if self.truth is Truth.CATEGORIES else rng
        best = static
        if self.truth is not Truth.TABLE_IS_RIGHT and whose.random() < 0.5:
            best = whose.choice([role for role in WORKERS if role is not static])
        chances[best] = rng.uniform(0.6, 0.9)
        return chances

    def _meant(self, rng: random.Random, family: FailureFamily) -> FailureFamily:
        """Return the family; without a relation, each failure has probabilities of its own."""
        if self.truth is not Truth.NO_RELATION:
            return family
        return replace(family, chances={role: rng.uniform(0.1, 0.9) for role in WORKERS})

    def _failure(self, rng: random.Random, family: FailureFamily) -> tuple[Failure, Todo]:
        words = rng.sample(family.words, 5)
        known = rng.random() < 0.6
        signature = rng.choice(family.signatures) if known else f"new-{rng.getrandbits(48):012x}"
        todo = Todo(id="t", title=f"{rng.choice(DEEDS)} {words[0]} {words[1]} {_word(rng)}")
        head = f"Error: {words[2]} {words[3]} {words[4]} {_word(rng)} {rng.randint(0, 99)}"
        return Failure(category=family.category, signature=signature, stack_trace_head=head), todo

    def _repair(self, rng: random.Random) -> PastRepair:
        family = rng.choice(self.families)
        failure, todo = self._failure(rng, family)
        acts = rng.choice(WORKERS) if rng.random() < OTHERS_ACT else family.static
        chance = self._meant(rng, family).chances[acts]
        first = rng.random() < chance
        later = not first and rng.random() < chance / 2
        return PastRepair(
            at=NOW - timedelta(days=rng.uniform(0, SPAN_DAYS)),
            fingerprint=HERE if rng.random() < 0.7 else ELSEWHERE,
            task_kind=task_kind(todo),
            text=text_of(todo, failure),
            signature=failure.signature,
            category=family.category,
            role=acts,
            fixed=first or later,
            attempts=1 if first else rng.randint(2, 3),
        )


@dataclass(frozen=True)
class Backlog:
    """Todos of which some kinds usually succeed at the first attempt, or none."""

    has_signal: bool
    seed: int
    todos: int

    @cached_property
    def sorts(self) -> tuple[tuple[str, tuple[str, ...], float], ...]:
        """Verb, vocabulary, and probability to succeed at the first attempt, of each kind."""
        rng = random.Random(f"sorts {self.seed}")
        return tuple(
            (
                rng.choice(DEEDS),
                tuple(_word(rng) for _ in range(6)),
                rng.uniform(0.1, 0.9) if self.has_signal else 0.5,
            )
            for _ in range(12)
        )

    @cached_property
    def memory(self) -> Memory:
        rng = random.Random(f"todos {self.seed}")
        return Memory(
            PastRecords(fingerprint=HERE, todos=tuple(self._past(rng) for _ in range(self.todos)))
        )

    def open_todos(self, number: int) -> list[tuple[Todo, bool]]:
        """Return todos, each with whether it would succeed at the first attempt."""
        rng = random.Random(f"open {self.seed}")
        return [self._todo(rng) for _ in range(number)]

    def _past(self, rng: random.Random) -> PastTodo:
        todo, well = self._todo(rng)
        return PastTodo(
            at=NOW - timedelta(days=rng.uniform(0, SPAN_DAYS)),
            fingerprint=HERE if rng.random() < 0.7 else ELSEWHERE,
            task_kind=task_kind(todo),
            text=text_of(todo),
            role=todo.agent_role,
            done=well or rng.random() < 0.5,
            first_time=well,
        )

    def _todo(self, rng: random.Random) -> tuple[Todo, bool]:
        deed, words, chance = rng.choice(self.sorts)
        title = f"{deed} {' '.join(rng.sample(words, 3))} {_word(rng)}"
        return Todo(id="t", title=title), rng.random() < chance


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("bcdfghklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 4)))


SEEDS = range(30)  # the thresholds of planner.memory were chosen with others: 1000 to 1029
CASES = 80
REPAIRS = (300, 1500)
"""Numbers of remembered repairs, of 24 families in 60 days."""

REMEMBERED_TODOS = 600
OPEN_TODOS = 200
MANY_TODOS = 100_000
MANY_RECORDS = 10_000

LEAST_GAIN = 2.0
"""Least lower end of the interval, in percentage points, with many repairs."""
MOST_LOSS = 0.5
"""Largest loss, in percentage points, where little or nothing can be gained."""
MOST_BIAS = 10.0
MOST_TIMES_READING = 10.0
MOST_TIMES_RECORDS = 4.0


@dataclass(frozen=True, slots=True)
class Played:
    """Results of the choices in one world, as shares of the cases."""

    static: float
    memory: float
    best: float
    changed: float
    confidence: float
    repaired: float


def rows(folder: Path, rounds: int) -> list[Row]:
    """Return gains in percentage points, and times as ratios."""
    found = [_routing(truth, repairs) for truth in Truth for repairs in REPAIRS]
    found.append(_calibration())
    found += [_ordering(has_signal) for has_signal in (True, False)]
    return [*found, *_speed(max(rounds // 4, 1))]


def play(truth: Truth, seed: int, repairs: int) -> Played:
    """Choose a role for each failure of a world, and return how good the choices were."""
    world = World(truth, seed, repairs)
    now = NOW.timestamp()
    cases = [
        (family, world.memory.route(failure, todo, family.static, now))
        for family, failure, todo in world.cases(CASES)
    ]
    chances = [family.chances[advice.role] for family, advice in cases]
    return Played(
        static=statistics.fmean(family.chances[family.static] for family, _ in cases),
        memory=statistics.fmean(chances),
        best=statistics.fmean(max(family.chances.values()) for family, _ in cases),
        changed=statistics.fmean(advice.changed for _, advice in cases),
        confidence=statistics.fmean(advice.confidence for _, advice in cases),
        repaired=statistics.fmean(chance + (1 - chance) * chance / 2 for chance in chances),
    )


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower end, the mean and the upper end of the 95 % interval of the mean."""
    mean = statistics.fmean(values)
    half = 1.96 * statistics.stdev(values) / len(values) ** 0.5
    return mean - half, mean, mean + half


def _routing(truth: Truth, repairs: int) -> Row:
    played = [play(truth, seed, repairs) for seed in SEEDS]
    low, mean, high = (100 * end for end in interval([each.memory - each.static for each in played]))
    has_signal = truth in (Truth.FAMILIES, Truth.CATEGORIES)
    about = {
        True: (low, "lower end of the gain", LEAST_GAIN if repairs == max(REPAIRS) else -MOST_LOSS),
        False: (high, "upper end of the gain", 0.0),
    }
    if truth is Truth.TABLE_IS_RIGHT:
        about[False] = (low, "lower end of the gain", -MOST_LOSS)
    figure, what, at_least = about[has_signal]
    shares = {name: statistics.fmean(getattr(each, name) for each in played) for name in Played.__slots__}
    return Row(
        name=f"routing, {truth.value}, {repairs} repairs: {what}",
        figure=figure,
        unit="points",
        at_least=at_least,
        from_what=f"fixed at the first attempt {100 * shares['static']:.1f} % by the table, "
        f"{100 * shares['memory']:.1f} % with memory ({mean:+.1f}, {low:+.1f} to {high:+.1f}), "
        f"{100 * shares['best']:.1f} % by the best role; changed {100 * shares['changed']:.0f} %",
    )


def _calibration() -> Row:
    played = [
        play(truth, seed, REPAIRS[-1]) for truth in (Truth.FAMILIES, Truth.CATEGORIES) for seed in SEEDS
    ]
    said = 100 * statistics.fmean(each.confidence for each in played)
    true = 100 * statistics.fmean(each.repaired for each in played)
    return Row(
        name="routing, confidence beside the true chance of a repair",
        figure=abs(said - true),
        unit="points",
        at_most=MOST_BIAS,
        from_what=f"said {said:.1f} %, true {true:.1f} %",
    )


def _ordering(has_signal: bool) -> Row:
    gains = [100 * _gain_of_order(Backlog(has_signal, seed, REMEMBERED_TODOS)) for seed in SEEDS]
    low, mean, high = interval(gains)
    return Row(
        name=f"order, {'sorts go unlike well' if has_signal else 'no sort goes better'}: "
        f"{'lower' if has_signal else 'upper'} end of the gain",
        figure=low if has_signal else high,
        unit="points",
        at_least=5.0 if has_signal else 0.0,
        from_what=f"the first half of the order is done at the first attempt {mean:+.1f} points more often "
        f"than all todos ({low:+.1f} to {high:+.1f})",
    )


def _gain_of_order(backlog: Backlog) -> float:
    """Return by how much the first half of the order succeeds more often than all todos."""
    todos = backlog.open_todos(OPEN_TODOS)
    now = NOW.timestamp()
    ordered = sorted(todos, key=lambda each: -backlog.memory.order_bias(each[0], now))
    first = statistics.fmean(well for _, well in ordered[: OPEN_TODOS // 2])
    return first - statistics.fmean(well for _, well in todos)


def _speed(rounds: int) -> list[Row]:
    """Measure the speed with a different title for every todo and record."""
    backlog = Backlog(True, SEEDS[0], MANY_RECORDS)
    records = backlog.memory.records
    fewer = records.model_copy(update={"todos": records.todos[: MANY_RECORDS // 10]})
    todos = [todo for todo, _ in backlog.open_todos(MANY_TODOS)]
    held = [todo.model_dump() for todo in todos]
    seconds = {
        "reading": min(
            _seconds(lambda: [Todo.model_validate(each) for each in held]) for _ in range(rounds)
        ),
        "many": min(_seconds(lambda: _biases(records, todos)) for _ in range(rounds)),
        "fewer": min(_seconds(lambda: _biases(fewer, todos)) for _ in range(rounds)),
    }
    how = f"{seconds['many'] / MANY_TODOS * 1e6:.0f} us each, indexing included"
    return [
        Row(
            name=f"order of {MANY_TODOS} todos, {MANY_RECORDS} remembered / reading the todos",
            figure=seconds["many"] / seconds["reading"],
            unit="x",
            at_most=MOST_TIMES_READING,
            from_what=f"{seconds['many']:.2f} s, {how}; reading {seconds['reading']:.2f} s",
        ),
        Row(
            name=f"order of {MANY_TODOS} todos, {MANY_RECORDS} / {MANY_RECORDS // 10} remembered",
            figure=seconds["many"] / seconds["fewer"],
            unit="x",
            at_most=MOST_TIMES_RECORDS,
            from_what=f"{seconds['fewer']:.2f} s with fewer",
        ),
    ]


def _biases(records: PastRecords, todos: Sequence[Todo]) -> list[float]:
    memory = Memory(records)
    return [memory.order_bias(todo, NOW.timestamp()) for todo in todos]


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
