"""The waves of 100,000 todos beside those of 10,000, for plans of different shapes.

Each plan of 10,000 is a tenth of the large one, and all ten are measured, so that either time is that of
todos which come from memory, not from what the processor has looked at a moment ago.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from table import Row

from planner.model.plan import Todo
from planner.rules.waves import waves

MANY = 100_000
FEW = 10_000
LAYER = 500
MOST_TIMES = 12.0


def rows(folder: Path, rounds: int) -> list[Row]:
    """How many times longer ten times as many todos take. No file is needed."""
    return [_row(name, shape, max(rounds // 2, 2)) for name, shape in SHAPES.items()]


def _row(name: str, shape: Callable[[int], Todo], rounds: int) -> Row:
    todos = [shape(number) for number in range(MANY)]
    parts = [todos[start : start + FEW] for start in range(0, MANY, FEW)]
    found = waves(todos)
    assert sum(map(len, found)) == MANY
    larges: list[float] = []
    smalls: list[float] = []
    for _ in range(rounds):
        smalls.append(statistics.mean(map(_seconds, parts)))
        larges.append(_seconds(todos))
    ratio = statistics.median(large / small for large, small in zip(larges, smalls, strict=True))
    return Row(
        name=f"waves of {MANY:,} todos / of {FEW:,}: {name}",
        figure=ratio,
        unit="x",
        at_most=MOST_TIMES,
        from_what=f"{statistics.median(larges):.3f} s, {statistics.median(smalls):.4f} s, "
        f"{len(found):,} waves",
    )


def _seconds(todos: Sequence[Todo]) -> float:
    """Processor time."""
    gc.collect()
    start = time.process_time()
    waves(todos)
    return time.process_time() - start


def _todo(number: int, *files: str, after: Sequence[int] = (), priority: int = 0) -> Todo:
    return Todo(
        id=f"t{number}",
        title="A todo",
        dependencies=tuple(f"t{each}" for each in after),
        allowed_files=files or None,
        priority=priority,
    )


def _chained(number: int) -> Todo:
    return _todo(number, f"src/mod_{number}.py", after=[number - 1] if number else [])


def _layered(number: int) -> Todo:
    """Each depends on three of the layer before; some share a file with a few others, all have a test."""
    chance = random.Random(number)
    start = number // LAYER * LAYER
    after = chance.sample(range(start - LAYER, start), 3) if start else []
    module = f"src/package_{number % 97}/mod_{chance.randrange(MANY)}.py"
    return _todo(number, module, f"tests/test_{number}.py", after=after, priority=chance.randrange(3))


def _globbed(number: int) -> Todo:
    if number % 10:
        return _todo(number, f"src/package_{number}/**", f"tests/test_{number}_*.py")
    return _todo(number, "src/package_1*/setup.py", "docs/**")


SHAPES: dict[str, Callable[[int], Todo]] = {
    "side by side": _todo,
    "one after the other": _chained,
    "random layers": _layered,
    "files of their own": lambda number: _todo(
        number, f"src/package_{number % 100}/mod_{number}.py", f"tests/test_{number}.py"
    ),
    "one file for all": lambda number: _todo(number, "CHANGELOG.md", f"src/mod_{number}.py"),
    "globs": _globbed,
    "exclusions": lambda number: _todo(
        number, f"src/package_{number}/**", f"!src/package_{number}/data/**"
    ),
}
"""By what the todos are like, how one is made by its number."""
