"""Budget guard: checks the limits on time, memory and new files while the run proceeds."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

from planner.model.verdicts import EvidenceKind
from planner.planfile.project_files import is_cache_or_report
from planner.text.glob_patterns import matches
from pytest_planverify.guards import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    import psutil

    from planner.model.evidence import BudgetFact
    from planner.model.plan import Budget

MEMORY_SECONDS = 0.2
"""Interval, in seconds, of memory measurements."""

FILES_SECONDS = 1.0
"""Minimum interval, in seconds, of searches for new files; it grows with the size of the tree."""

_REPORTS = ("coverage.xml", "coverage.json", "coverage.lcov", ".report.json")
"""Names of files that test tools write, beside the caches of all tools."""

_MIB = 1024 * 1024
_EXAMPLES = 5
_MESSAGES = {
    "wall_seconds": "the run took {used:.1f} s, more than budget.wall_seconds ({limit:g} s)",
    "memory_mb": "its processes used {used:.0f} MiB, more than budget.memory_mb ({limit:g} MiB)",
    "new_files": "there are {used:g} new files, more than budget.new_files ({limit:g})",
}


class BudgetExceeded(Exception):
    """A limit is exceeded, which ends the run; ``fact`` has the limit and the use."""

    def __init__(self, fact: BudgetFact) -> None:
        super().__init__(said_of(fact))
        self.fact = fact


class BudgetWatch:
    """Watch over the budget of one plan."""

    def __init__(
        self,
        budget: Budget,
        root: Path,
        *,
        spared: Callable[[], Collection[int]] = frozenset,
        expected: Sequence[str] = (),
    ) -> None:
        """Create the watch for the files below ``root``.

        ``spared`` returns the ids of our own processes, whose memory does not count. ``expected`` are globs
        of files that the plan expects, which do not count as new.
        """
        self._budget = budget
        self._root = root
        self._spared = spared
        self._expected = tuple(expected)
        self._started = time.monotonic()
        # Times of the next measurement and the next search
        self._memory_at = self._files_at = 0.0
        self._before: frozenset[str] = frozenset()
        self._added: frozenset[str] = frozenset()

    def start(self, added: Iterable[str] = ()) -> None:
        """Start the clock and store the existing files. Raises :class:`BudgetExceeded`.

        ``added`` are files that the work had added before the run; they count as new.
        """
        self._started = time.monotonic()
        if self._budget.new_files is not None:
            self._added = frozenset(file for file in added if not is_expected(file, self._expected))
            self._before = frozenset(self._files())
            self.finish()

    def check(self) -> None:
        """Raise :class:`BudgetExceeded` if a limit is exceeded. Called many times a second."""
        now = time.monotonic()
        self._check_limit("wall_seconds", now - self._started)
        if self._budget.memory_mb is not None and now >= self._memory_at:
            self._memory_at = now + MEMORY_SECONDS
            self._check_memory(self._budget.memory_mb)
        if self._budget.new_files is not None and now >= self._files_at:
            self.finish()
            # At most about a twentieth of the time is spent on searches, so that they do not dominate the
            # run in a large tree.
            self._files_at = now + max(FILES_SECONDS, 20 * (time.monotonic() - now))

    def finish(self) -> None:
        """Check the number of new files, which the run may have exceeded after the last regular check.

        Time and memory are not checked again. Raises :class:`BudgetExceeded`.
        """
        if self._budget.new_files is not None:
            new = self._added | (frozenset(self._files()) - self._before)
            self._check_limit("new_files", len(new), sorted(new))

    def _check_limit(self, name: str, used: float, examples: Sequence[str] = ()) -> None:
        """Raise :class:`BudgetExceeded` if ``used`` exceeds the limit of that name in the budget."""
        limit = getattr(self._budget, name)
        if limit is not None and used > limit:
            # Imported late, to start the first worker sooner.
            from planner.model.evidence import BudgetFact

            raise BudgetExceeded(
                BudgetFact(name=name, limit=limit, used=used, examples=tuple(examples[:_EXAMPLES]))
            )

    def _check_memory(self, limit: float) -> None:
        """Check the memory of all child processes, except our own, against ``limit``, in MiB."""
        import psutil

        try:
            below = psutil.Process().children(recursive=True)
        except psutil.Error:
            return
        spared = self._spared()  # our own processes run no tests
        processes = [process for process in below if process.pid not in spared]
        sizes = {process: _memory(process) for process in processes}
        if sum(sizes.values()) > limit * _MIB:
            # The sum counts shared memory once for each process. The exact measurement takes ten times as
            # long, so it is made only if the rough one exceeds the limit.
            sizes = {process: _memory(process, exact=True) for process in processes}
        if sum(sizes.values()) > limit * _MIB:
            largest = sorted(sizes, key=lambda each: -sizes[each])[:_EXAMPLES]
            examples = [f"{_describe(each)}: {sizes[each] / _MIB:.0f} MiB" for each in largest]
            self._check_limit("memory_mb", sum(sizes.values()) / _MIB, examples)

    def _files(self) -> Iterator[str]:
        """Yield the files below the root, without caches and expected ones."""
        from planner.planfile.project_files import walk

        return (file for file in walk(self._root) if not is_expected(file, self._expected))


def is_expected(file: str, expected: Iterable[str]) -> bool:
    """Return whether a file is nobody's work: a tool's cache or report, or an artifact of the plan."""
    return (
        is_cache_or_report(file)
        or ".egg-info/" in f"{file}/"
        or file.rpartition("/")[2] in _REPORTS
        or any(matches(file, pattern) for pattern in expected)
    )


def said_of(fact: BudgetFact) -> str:
    """Return one sentence on an exceeded limit, with examples."""
    text = _MESSAGES[fact.name].format(used=fact.used, limit=fact.limit)
    return f"{text}: {', '.join(fact.examples)}" if fact.examples else text


def violation(todo_id: str, fact: BudgetFact) -> Violation:
    """Return the violation for a todo that was being verified when a limit was exceeded."""
    from planner.model.evidence import Evidence

    return Violation(todo_id, Evidence(kind=EvidenceKind.BUDGET, headline=said_of(fact), budget=fact))


def _memory(process: psutil.Process, *, exact: bool = False) -> int:
    """Return a process's memory in bytes; 0 if it has ended.

    With ``exact``, memory shared between processes is counted proportionally (PSS), where the platform
    reports it.
    """
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        info = process.memory_full_info() if exact else process.memory_info()
        return int(getattr(info, "pss", info.rss))
    return 0


def _describe(process: psutil.Process) -> str:
    """Return a process's id with the first words of its command line, for people."""
    import psutil

    with contextlib.suppress(psutil.Error):
        words = process.cmdline()
        return f"{process.pid} {' '.join(map(os.path.basename, words[:3]))}"
    return str(process.pid)
