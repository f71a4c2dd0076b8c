"""Watches what the plan's budget limits while the run goes on: time, memory of its processes, new files."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

from planner.model.verdicts import EvidenceKind
from pytest_planverify.guards import Guard, Violation
from pytest_planverify.guards.allowlist import is_expected

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    import psutil

    from planner.model.evidence import BudgetFact
    from planner.model.plan import Budget

MEMORY_SECONDS = 0.2
"""How often the memory of the processes is looked at."""

FILES_SECONDS = 1.0
"""How often new files are looked for; less often where looking takes long."""

_MIB = 1024 * 1024
_EXAMPLES = 5
_SAID = {
    "wall_seconds": "the run took {used:.1f} s of the {limit:g} s that budget.wall_seconds grants",
    "memory_mb": "its processes used {used:.0f} MiB of the {limit:g} MiB that budget.memory_mb grants",
    "new_files": "there are {used:g} new files where budget.new_files grants {limit:g}",
}


class BudgetExceeded(Exception):
    """A limit was passed; the run ends."""

    def __init__(self, fact: BudgetFact) -> None:
        super().__init__(said_of(fact))
        self.fact = fact


class BudgetWatch:
    """The budget of one plan of the run."""

    def __init__(
        self,
        budget: Budget,
        root: Path,
        *,
        spared: Callable[[], Collection[int]] = frozenset,
        expected: Sequence[str] = (),
    ) -> None:
        """``spared`` gives processes of our own; ``expected`` are globs of files that the plan asks for."""
        self._budget = budget
        self._root = root
        self._spared = spared
        self._expected = tuple(expected)
        self._started = time.monotonic()
        self._memory_at = self._files_at = 0.0
        self._before: frozenset[str] = frozenset()
        self._added: frozenset[str] = frozenset()

    def start(self, added: Iterable[str] = ()) -> None:
        """The run begins now. ``added`` are the files that the work has added before it."""
        self._started = time.monotonic()
        if self._budget.new_files is not None:
            self._added = frozenset(file for file in added if not is_expected(file, self._expected))
            self._before = frozenset(self._files())
            self._look_for_files()

    def check(self) -> None:
        """Raises :class:`BudgetExceeded` when a limit is passed. Called again and again."""
        now = time.monotonic()
        budget = self._budget
        if budget.wall_seconds is not None and now - self._started > budget.wall_seconds:
            raise BudgetExceeded(
                _fact(name="wall_seconds", limit=budget.wall_seconds, used=now - self._started)
            )
        if budget.memory_mb is not None and now >= self._memory_at:
            self._memory_at = now + MEMORY_SECONDS
            self._look_at_memory(budget.memory_mb)
        if budget.new_files is not None and now >= self._files_at:
            self._look_for_files()
            taken = time.monotonic() - now
            self._files_at = now + max(FILES_SECONDS, 20 * taken)

    def finish(self) -> None:
        """The run is over: look once more at what lasts. Raises :class:`BudgetExceeded`."""
        if self._budget.new_files is not None:
            self._look_for_files()

    # -- memory ----------------------------------------------------------------------------------

    def _look_at_memory(self, limit: float) -> None:
        processes = self._processes()
        sizes = {process: _resident(process) for process in processes}
        if sum(sizes.values()) > limit * _MIB:  # with what they share counted for each of them
            sizes = {process: _proportional(process) for process in processes}
        used = sum(sizes.values())
        if used > limit * _MIB:
            largest = sorted(sizes, key=lambda each: -sizes[each])[:_EXAMPLES]
            examples = tuple(f"{_named(each)}: {sizes[each] / _MIB:.0f} MiB" for each in largest)
            raise BudgetExceeded(_fact(name="memory_mb", limit=limit, used=used / _MIB, examples=examples))

    def _processes(self) -> list[psutil.Process]:
        """Return what runs for the project below this process; those of ours have no tests in them."""
        import psutil

        try:
            below = psutil.Process().children(recursive=True)
        except psutil.Error:
            return []
        spared = self._spared()
        return [process for process in below if process.pid not in spared]

    # -- new files -------------------------------------------------------------------------------

    def _look_for_files(self) -> None:
        limit = self._budget.new_files
        assert limit is not None
        new = self._added | (frozenset(self._files()) - self._before)
        if len(new) > limit:
            examples = tuple(sorted(new)[:_EXAMPLES])
            raise BudgetExceeded(_fact(name="new_files", limit=limit, used=len(new), examples=examples))

    def _files(self) -> Iterator[str]:
        from planner.planfile.project_files import walk

        return (file for file in walk(self._root) if not is_expected(file, self._expected))


def _fact(*, name: str, limit: float, used: float, examples: tuple[str, ...] = ()) -> BudgetFact:
    from planner.model.evidence import BudgetFact  # only once something is spent: a run begins sooner

    return BudgetFact(name=name, limit=limit, used=used, examples=examples)


def said_of(fact: BudgetFact) -> str:
    """One sentence on a limit that was passed."""
    said = _SAID.get(fact.name, "{used:g} of {limit:g}").format(used=fact.used, limit=fact.limit)
    return f"{said}: {', '.join(fact.examples)}" if fact.examples else said


def violation(todo_id: str, fact: BudgetFact) -> Violation:
    """Return what is held against a todo that was being verified when a limit was passed."""
    reason = said_of(fact)
    from planner.model.evidence import Evidence

    evidence = Evidence(kind=EvidenceKind.BUDGET, headline=reason, budget=fact)
    return Violation(todo_id=todo_id, guard=Guard.BUDGET, reason=reason, evidence=evidence)


def _resident(process: psutil.Process) -> int:
    import psutil

    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _proportional(process: psutil.Process) -> int:
    """Its own memory, and its part of what it shares, where the system tells that."""
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        info = process.memory_full_info()
        return int(getattr(info, "pss", info.rss))
    return 0


def _named(process: psutil.Process) -> str:
    import psutil

    with contextlib.suppress(psutil.Error):
        words = process.cmdline()
        return f"{process.pid} {' '.join(map(os.path.basename, words[:3]))}"
    return str(process.pid)
