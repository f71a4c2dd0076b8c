"""Memory on simulated histories: whether it chooses better roles and orders than without, and its speed.

Its thresholds were chosen on other seeds than those that are reported here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_worlds import NOW, Backlog, Truth, World
from table import Row

from planner.memory import Memory
from planner.model.past import PastRecords
from planner.model.plan import Todo

TUNING_SEEDS = range(1000, 1030)
"""The thresholds of ``planner.memory`` were compared on these. Never reported."""

SEEDS = range(30)
CASES = 80
REPAIRS = (300, 1500)
"""So many remembered repairs; of 24 families, over 60 days."""

REMEMBERED_TODOS = 600
OPEN_TODOS = 200
MANY_TODOS = 100_000
MANY_RECORDS = 10_000

LEAST_GAIN = 2.0
"""Points, for the lower end of the interval, with many repairs."""
MOST_LOSS = 0.5
"""Points, for the lower end where there is little or nothing to gain."""
MOST_BIAS = 10.0
MOST_TIMES_READING = 10.0
MOST_TIMES_RECORDS = 4.0


@dataclass(frozen=True, slots=True)
class Played:
    """What came of the choices in one world; shares of the cases."""

    static: float
    memory: float
    best: float
    changed: float
    confidence: float
    repaired: float


def rows(folder: Path, rounds: int) -> list[Row]:
    """Gains in percentage points, and times as ratios."""
    found = [_routing(truth, repairs) for truth in Truth for repairs in REPAIRS]
    found.append(_calibration())
    found += [_ordering(has_signal) for has_signal in (True, False)]
    return [*found, *_speed(max(rounds // 4, 1))]


def play(truth: Truth, seed: int, repairs: int) -> Played:
    """Who is chosen for each failure of a world, and what that is worth."""
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
    """The lower end, the mean and the upper end of the 95 % interval of the mean."""
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
    """How much more often the first half of the order goes well than all todos together."""
    todos = backlog.open_todos(OPEN_TODOS)
    now = NOW.timestamp()
    ordered = sorted(todos, key=lambda each: -backlog.memory.order_bias(each[0], now))
    first = statistics.fmean(well for _, well in ordered[: OPEN_TODOS // 2])
    return first - statistics.fmean(well for _, well in todos)


def _speed(rounds: int) -> list[Row]:
    """Every todo and every record has a title of its own."""
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
