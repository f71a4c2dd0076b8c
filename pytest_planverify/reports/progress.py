"""Progress while a run goes on: a block of what runs now on a terminal, one line a todo elsewhere."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.verdicts import Verdict
from planner.text.display import cells, counted, cut, padded
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
        self._drawn: list[int] = []
        """The cells of each line of the block on the screen."""
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
        """A criterion begins to run; ``title`` is its command, path or question."""
        self._workers[key] = _RunningWorker(todo_id, title, limit_seconds, confirming, self._clock())
        if confirming and self._verbosity > 0:
            self._write(StyledText(self._screen.text(f"confirming {todo_id}: {title}"), Style.QUIET))
        self.tick()

    def collected(self, key: str, count: int) -> None:
        """So many tests will run in that worker."""
        if worker := self._workers.get(key):
            worker.tests = count
            self.tick()

    def test_started(self, key: str, nodeid: str) -> None:
        """A test begins."""
        if worker := self._workers.get(key):
            worker.nodeid = nodeid
            self.tick()

    def test_finished(self, key: str, nodeid: str, outcome: str, duration_ms: int) -> None:
        """A test came to an end. ``outcome`` is a value of ``TestOutcome``, or ``rerun``."""
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
        """A criterion runs no more."""
        self._workers.pop(key, None)
        self.tick()

    def check_decided(self, todo_id: str, check_id: str, verdict: Verdict) -> None:
        """A criterion has its verdict."""
        if verdict is Verdict.PASSED:
            self._passed += 1
        elif verdict.is_red:
            self._failed += 1
        else:
            self._other += 1
        self.tick()

    def todo_decided(self, todo_id: str, title: str, state: str, checks: Sequence[Check] = ()) -> None:
        """Every criterion of a todo has its verdict; ``state`` is one of a todo, or a verdict."""
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
        self._wipe()
        self._workers.clear()

    # -- lines -----------------------------------------------------------------------------------

    def _write(self, *spans: StyledText) -> None:
        """Write a line that stays, above the block. Readers of a pipe get it at once."""
        self._wipe()
        self._screen.line(*spans)
        self._screen.tw.flush()
        self._due = self._clock()

    # -- the block -------------------------------------------------------------------------------

    def _draw(self, moment: float) -> None:
        size = self._screen.terminal_size() or UNSIZED
        room = min(size.columns, self._screen.width) - 1  # the last column would make some terminals wrap
        running = list(self._workers.values())[: self._most]
        most = size.lines - 2  # what has scrolled away cannot be wiped
        shown = running if len(running) <= most else running[: max(most - 1, 0)]
        lines = [self._counts(moment), *self._rows(shown, moment, room)]
        if len(shown) < len(running):
            lines.append([StyledText(f"{GAP}and {len(running) - len(shown)} more", Style.QUIET)])
        tw = self._screen.tw
        text = self._wiping(size.columns)
        drawn: list[int] = []
        for line in lines:
            left = room
            text += "\n" if drawn else ""
            for span in line:
                part = cut(span.text, left)
                left -= cells(part)
                text += tw.markup(part, **span.style.markup) if part else ""
            drawn.append(room - left)
        self._drawn = drawn
        self._screen.raw(text)

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
        """The todo, the time against the limit, the tests that ended, and the test that runs."""
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

    def _wipe(self) -> None:
        if self._drawn:
            self._screen.raw(self._wiping((self._screen.terminal_size() or UNSIZED).columns))
            self._drawn = []

    def _wiping(self, columns: int) -> str:
        """Return what moves the cursor to the beginning of the block and erases all below.

        A terminal that has become narrower since has wrapped the lines of the block.
        """
        rows = sum(max(-(-taken // columns), 1) for taken in self._drawn)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + ("\x1b[J" if rows else "")


def _time(worker: _RunningWorker, moment: float) -> str:
    limit = "" if worker.limit_seconds is None else f" of {worker.limit_seconds:g}s"
    return f"{int(moment - worker.started)}s{limit}"
