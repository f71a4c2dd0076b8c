"""Progress while a run goes on: a block of what runs now on a terminal, one line a todo elsewhere."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.verdicts import Verdict
from planner.text.display import cells, counted, padded
from pytest_planverify.reports.screen import GAP, UNSIZED, ReportScreen, Style, StyledText, widest
from pytest_planverify.reports.words import TEST_WORDS, Word, duration, word_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _pytest._io import TerminalWriter

    from planner.model.outcome import Check

REDRAW_SECONDS = 0.5

ROOM_FOR_COUNTS = 48
"""In fewer cells than this the name of the test is worth more than how many there are."""

_WORDS = {outcome.value: word for outcome, word in TEST_WORDS.items()} | {
    "rerun": Word("", "RERUN", Style.WARN)
}
_UNKNOWN = Word("", "UNKNOWN", Style.WARN)


@dataclass(slots=True)
class _RunningWorker:
    """A process that runs a criterion now."""

    todo_id: str
    title: str
    limit_seconds: float | None
    confirming: bool
    started: float
    tests: int = 0
    ended: int = 0
    nodeid: str = ""


class Progress:
    """Shows what runs now and how far the run has come.

    All methods may be called at any time and in any number; keys of workers that are not known are ignored.
    """

    def __init__(
        self,
        tw: TerminalWriter,
        *,
        verbosity: int = 0,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``live`` says whether a block may be rewritten; by default the stream and the environment do.

        It must be false where tests write to the terminal themselves, or a debugger does.
        """
        self._screen = ReportScreen(tw)
        self._verbosity = verbosity
        if live is None:  # a person watches, at a terminal that can move its cursor
            is_plain = os.environ.get("TERM", "dumb") == "dumb" or os.environ.get("CI")
            live = self._screen.terminal_size() is not None and not is_plain
        self._is_live = verbosity == 0 and live
        self._clock = clock
        self._criteria = self._passed = self._failed = self._other = 0
        self._most = 1
        """The most workers that are shown."""
        self._workers: dict[str, _RunningWorker] = {}
        self._started = self._due = clock()

    def run_started(self, plans: int, criteria: int, workers: int) -> None:
        """Say what is going to be verified, and by how many workers at once."""
        self._criteria = criteria
        self._most = max(workers, 1)
        self._started = self._clock()
        if self._verbosity >= 0:
            company = f", {workers} at once" if workers > 1 else ""
            what = f"{counted(criteria, 'criterion')} of {counted(plans, 'plan')}"
            self._write(StyledText(f"verifying {what}{company}"))

    def worker_started(
        self, key: str, todo_id: str, title: str, limit_seconds: float | None, *, confirming: bool = False
    ) -> None:
        """Note that a criterion begins to run; ``title`` is its command, path or question."""
        self._workers[key] = _RunningWorker(todo_id, title, limit_seconds, confirming, self._clock())
        if confirming and self._verbosity > 0:
            self._write(StyledText(self._screen.text(f"confirming {todo_id}: {title}"), Style.QUIET))
        self.tick()

    def collected(self, key: str, count: int) -> None:
        """Note how many tests will run in that worker."""
        if worker := self._workers.get(key):
            worker.tests = count
            self.tick()

    def test_started(self, key: str, nodeid: str) -> None:
        """Note that a test begins."""
        if worker := self._workers.get(key):
            worker.nodeid = nodeid
            self.tick()

    def test_finished(self, key: str, nodeid: str, outcome: str, duration_ms: int) -> None:
        """Note that a test has ended. ``outcome`` is a value of ``TestOutcome``, or ``rerun``."""
        worker = self._workers.get(key)
        if worker is None:
            return
        worker.nodeid = ""
        worker.ended += outcome != "rerun"
        if self._verbosity > 0:
            word = _WORDS.get(outcome, _UNKNOWN)
            self._write(StyledText(f"{self._screen.text(nodeid)} "), StyledText(word.text, word.style))
        self.tick()

    def worker_finished(self, key: str) -> None:
        """Note that a criterion runs no more."""
        self._workers.pop(key, None)
        self.tick()

    def check_decided(self, todo_id: str, check_id: str, verdict: Verdict) -> None:
        """Count the verdict of a criterion."""
        if verdict is Verdict.PASSED:
            self._passed += 1
        elif verdict.is_red:
            self._failed += 1
        else:
            self._other += 1
        self.tick()

    def todo_decided(self, todo_id: str, title: str, state: str, checks: Sequence[Check] = ()) -> None:
        """Tell of a todo whose criteria all have verdicts; ``state`` is one of a todo, or a verdict."""
        if self._is_live or self._verbosity < 0:
            return
        screen, word = self._screen, word_of(state)
        taken = {check.taken_from for check in checks}
        facts = ["" if screen.text(title) == screen.text(todo_id) else screen.text(title)]
        if checks and word.style is not Style.QUIET:  # else it was blocked or left out: nothing counts
            passed = sum(check.counts_as is Verdict.PASSED for check in checks)
            total = counted(len(checks), "check")
            facts.append(total if passed == len(checks) else f"{passed}/{total}")
            facts.append(duration(sum(check.duration_ms for check in checks)))
        if len(taken) == 1 and None not in taken:
            facts.append(f"from run {taken.pop()}")
        self._write(
            StyledText(word.mark(screen.glyphs) + " " + word.text.ljust(len("blocked")), word.style),
            StyledText(GAP + screen.text(todo_id), Style.STRONG),
            StyledText("".join(GAP + fact for fact in facts if fact)),
        )

    def tick(self) -> None:
        """Redraw the block where it is time to; to be called now and then while nothing happens."""
        if self._is_live and (moment := self._clock()) >= self._due:
            self._due = moment + REDRAW_SECONDS
            self._draw(moment)

    def finished(self) -> None:
        """Wipe the block; the cursor is at the beginning of a line."""
        self._screen.wipe()
        self._screen.tw.flush()
        self._workers.clear()

    # -- lines -----------------------------------------------------------------------------------

    def _write(self, *spans: StyledText) -> None:
        """Write a line that stays, above the block. Readers of a pipe get it at once."""
        self._screen.wipe()
        self._screen.line(*spans)
        self._screen.tw.flush()
        self._due = self._clock()

    # -- the block -------------------------------------------------------------------------------

    def _draw(self, moment: float) -> None:
        size = self._screen.terminal_size() or UNSIZED
        room = min(size.columns, self._screen.width) - 1
        running = list(self._workers.values())[: self._most]
        most = size.lines - 2
        shown = running if len(running) <= most else running[: max(most - 1, 0)]
        lines = [self._counts(moment), *self._rows(shown, moment, room)]
        if len(shown) < len(running):
            lines.append([StyledText(f"{GAP}and {len(running) - len(shown)} more", Style.QUIET)])
        self._screen.draw(lines)

    def _counts(self, moment: float) -> Sequence[StyledText]:
        minutes, seconds = divmod(int(moment - self._started), 60)
        decided = self._passed + self._failed + self._other
        total = counted(max(self._criteria, decided), "criterion")
        return [
            StyledText(f"{self._passed} passed", Style.GOOD if self._passed else Style.QUIET),
            *([StyledText(", "), StyledText(f"{self._failed} failed", Style.BAD)] if self._failed else []),
            *([StyledText(", "), StyledText(f"{self._other} open", Style.WARN)] if self._other else []),
            StyledText(f" of {total}{GAP}{minutes}:{seconds:02}"),
        ]

    def _rows(
        self, workers: Sequence[_RunningWorker], moment: float, room: int
    ) -> Sequence[Sequence[StyledText]]:
        """Return a row a worker: the todo, its time against the limit, how many tests ended, which runs."""
        screen = self._screen
        longest = max(room // 3, 8)
        ids = [screen.clip_middle(screen.text(each.todo_id), longest) for each in workers]
        times = [_time(each, moment) for each in workers]
        counts = [f"{each.ended}/{each.tests}" if each.tests else "" for each in workers]
        column = widest(counts) if room >= ROOM_FOR_COUNTS else 0
        rows: list[list[StyledText]] = []
        for worker, todo_id, spent, count in zip(workers, ids, times, counts, strict=True):
            head = [
                StyledText(GAP + padded(todo_id, widest(ids)), Style.STRONG),
                StyledText(GAP + padded(spent, widest(times), right=True)),
                StyledText(GAP + padded(count, column, right=True) if column else "", Style.QUIET),
                StyledText(f"{GAP}again:" if worker.confirming else "", Style.WARN),
            ]
            left = room - sum(cells(span.text) for span in head)
            gap = " " if worker.confirming else GAP
            what = screen.clip_middle(screen.text(worker.nodeid or worker.title), max(left - len(gap), 0))
            rows.append([*head, StyledText(gap + what, Style.QUIET)])
        return rows


def _time(worker: _RunningWorker, moment: float) -> str:
    limit = "" if worker.limit_seconds is None else f" of {worker.limit_seconds:g}s"
    return f"{int(moment - worker.started)}s{limit}"
