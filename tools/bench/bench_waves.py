"""The waves of a plan of as many todos as a plan may have, for plans of different shapes."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from table import Row

from planner.model.plan import MAX_TODOS, Todo
from planner.policy.dependencies import waves

LAYER = 50
MOST_SECONDS = 4.0


def rows(folder: Path, rounds: int) -> list[Row]:
    """How long the waves of the largest plan take. No file is needed."""
    return [_row(name, shape, max(rounds // 2, 2)) for name, shape in SHAPES.items()]


def _row(name: str, shape: Callable[[int], Todo], rounds: int) -> Row:
    todos = [shape(number) for number in range(MAX_TODOS)]
    found = waves(todos)
    assert sum(map(len, found)) == MAX_TODOS
    return Row(
        name=f"waves of {MAX_TODOS:,} todos: {name}",
        figure=statistics.median(_seconds(todos) for _ in range(rounds)),
        unit="s",
        at_most=MOST_SECONDS,
        from_what=f"{len(found):,} waves",
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
    module = f"src/package_{number % 97}/mod_{chance.randrange(MAX_TODOS)}.py"
    return _todo(number, module, f"tests/test_{number}.py", after=after, priority=chance.randrange(3))


def _globbed(number: int) -> Todo:
    if number % 10:
        return _todo(number, f"src/package_{number}/**", f"tests/test_{number}_*.py")
    return _todo(number, "src/package_1*/setup.py", "docs/**")


SHAPES: dict[str, Callable[[int], Todo]] = {
    "side by side": _todo,
    "one after the other": _chained,
    "random layers": _layered,
    "three files of their own": lambda number: _todo(
        number,
        f"src/package_{number % 100}/mod_{number}.py",
        f"tests/test_{number}.py",
        f"docs/{number}.md",
    ),
    "one file for all": lambda number: _todo(number, "CHANGELOG.md", f"src/mod_{number}.py"),
    "globs": _globbed,
    "exclusions": lambda number: _todo(
        number, f"src/package_{number}/**", f"!src/package_{number}/data/**"
    ),
}
"""By what the todos are like, how one is made by its number."""
