"""Progress while a run goes on: one rewritten line on a terminal, dots and letters elsewhere.

It is told of every test, so nothing is measured, cleaned or written more often than ten times a second.
"""

from __future__ import annotations

import time
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from planner.model.verdicts import TestOutcome, Verdict
from pytest_planverify.reports.screen import Screen, Span, Style, cells
from pytest_planverify.reports.words import TEST_WORDS, VERDICT_WORDS, TestWord, counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest._io import TerminalWriter

REDRAW_SECONDS = 0.1
PERCENT_CELLS = len(" [100%]")

Manner = Literal["live", "dots", "lines", "bare"]
"""A rewritten line; dots with a percentage a line; one line a test; dots alone."""

_UNKNOWN = "unknown"
_LETTERS = {outcome.value: word for outcome, word in TEST_WORDS.items()} | {
    "rerun": TestWord("R", "RERUN", Style.WARN),
    _UNKNOWN: TestWord("?", "UNKNOWN", Style.WARN),
}
_RED = frozenset(outcome.value for outcome in TestOutcome if outcome.is_red)


class Progress:
    """Shows how far the run has come. All methods may be called at any time and in any number."""

    def __init__(
        self,
        tw: TerminalWriter,
        *,
        verbosity: int = 0,
        is_terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._screen = Screen(tw)
        self._clock = clock
        if is_terminal is None:
            is_terminal = bool(getattr(tw._file, "isatty", lambda: False)())
        self._manner: Manner = _manner(verbosity, is_terminal)
        self._criteria = self._checks_done = 0
        self._sessions = self._sessions_started = 0
        self._expected = self._in_session = 0
        self._done = self._red = 0
        self._current = ""
        self._confirming = False
        self._check = ("", "")
        """The todo and title of the check that has been started."""
        self._pending: list[TestWord] = []
        self._width = self._screen.width
        self._marked = {
            outcome: (tw.markup(word.text, **word.style.markup), len(word.text))
            for outcome, word in _LETTERS.items()
        }
        self._column = 0
        self._drawn = 0
        self._started = self._due = clock()

    def run_started(self, plans: int, criteria_count: int, sessions: int) -> None:
        """``sessions`` is how many pytest sessions the run is going to have, as far as is known."""
        self._criteria = criteria_count
        self._sessions = sessions
        self._started = self._clock()
        if self._manner in ("dots", "lines"):
            what = f"{counted(criteria_count, 'criterion')} of {counted(plans, 'plan')}"
            self._screen.line(Span(f"verifying {what} in {counted(sessions, 'session')}"))

    def session_started(self, title: str, tests: int) -> None:
        """``tests`` is how many are expected before anything is collected, 0 where that is not known."""
        self._write_letters()
        self._sessions_started += 1
        self._sessions = max(self._sessions, self._sessions_started)
        self._in_session = 0
        self._confirming = False
        self._expected = tests
        self._current = title
        self._tick(now=True)

    def collected(self, count: int) -> None:
        """How many tests the session that has just started will run."""
        self._expected = count
        self._tick(now=True)

    def test_finished(self, nodeid: str, outcome: str, duration_ms: int) -> None:
        """``outcome`` is a value of ``TestOutcome``, or ``rerun``. Confirming runs are not counted."""
        if self._confirming:
            if self._manner == "lines":
                self._write_test(nodeid, outcome)
            return
        if outcome != "rerun":
            self._done += 1
            self._in_session += 1
            if outcome in _RED:
                self._red += 1
        if self._manner == "live":
            self._current = nodeid
        elif self._manner == "lines":
            self._write_test(nodeid, outcome)
        else:
            self._pending.append(_LETTERS.get(outcome) or _LETTERS[_UNKNOWN])
        if self._clock() >= self._due:
            self._tick(now=True)

    def check_started(self, todo_id: str, title: str) -> None:
        """A check that is no pytest test begins: a command, an artifact, a contract."""
        self._confirming = False
        self._check = (todo_id, f"{todo_id}: {title}")
        self._current = self._check[1]
        self._tick()

    def check_finished(self, todo_id: str, verdict: Verdict) -> None:
        """A criterion has its verdict."""
        self._checks_done += 1
        started, label = self._check
        if self._manner == "lines" and started == todo_id:  # of tests, every single one was shown
            word = VERDICT_WORDS[verdict]
            self._screen.line(Span(f"{self._screen.text(label)} "), Span(word.text.upper(), word.style))
            self._check = ("", "")
        self._tick()

    def note(self, text: str) -> None:
        """Something that a reader should know now; it stays on the screen."""
        if self._manner == "bare":
            return
        self._clear()
        self._screen.paragraph(self._screen.text(text), style=Style.WARN)
        self._tick(now=True)

    def confirming(self, nodeid_or_title: str, attempt: int, of: int) -> None:
        """A red check is run again on its own, until the next session or check begins."""
        self._confirming = True
        self._current = f"confirming {attempt}/{of}: {nodeid_or_title}"
        if self._manner == "lines":
            self._screen.line(Span(self._screen.text(self._current), Style.QUIET))
        self._tick()

    def tick(self) -> None:
        """To be called now and then while nothing happens, so that the time on the screen goes on."""
        self._tick()

    def finished(self) -> None:
        """Leaves the cursor at the beginning of a line, and nothing of the live line."""
        self._clear()

    def _tick(self, *, now: bool = False) -> None:
        moment = self._clock()
        if not now and moment < self._due:
            return
        self._due = moment + REDRAW_SECONDS
        self._width = self._screen.width  # asking the terminal for its size costs a system call
        if self._manner == "live":
            self._draw(moment)
            return
        self._write_letters()
        self._screen.tw.flush()

    def _clear(self) -> None:
        """Wipes the live line, or ends the line of dots."""
        tw = self._screen.tw
        if self._drawn:
            self._screen.raw("\r" + " " * min(self._drawn, tw.fullwidth - 1) + "\r", flush=True)
            self._drawn = 0
        self._write_letters()
        if self._column:
            self._end_of_dots()

    def _draw(self, moment: float) -> None:
        """Rewrites the live line. No escape sequence, so that it also works where colour is off."""
        screen = self._screen
        room = screen.tw.fullwidth - 1  # the last column would make some terminals wrap
        red = f"  {self._red} red" if self._red else ""
        is_over = self._checks_done >= self._criteria
        percent = min(self._percent(), 100 if is_over else 99)  # checks may last long after the tests
        left = screen.clip(f"{percent:3}%  {self._counts()}", room)
        red = screen.clip(red, room - cells(left))
        minutes, seconds = divmod(int(moment - self._started), 60)
        rest = f"  {minutes}:{seconds:02}  {screen.text(self._current)}"
        rest = screen.clip(rest, room - cells(left) - cells(red))
        used = cells(left) + cells(red) + cells(rest)
        line = left + _marked(screen.tw, red, Style.BAD) + _marked(screen.tw, rest, Style.QUIET)
        fill = min(max(self._drawn - used, 0), room - used)
        screen.raw(f"\r{line}{' ' * fill}", flush=True)
        self._drawn = used

    def _counts(self) -> str:
        left = max(self._expected - self._in_session, 0)
        tests = f"{self._done}/{counted(self._done + left, 'test')}" if self._done or left else ""
        checks = f"{self._checks_done}/{counted(self._criteria, 'check')}" if self._checks_done else ""
        return "  ".join(part for part in (tests, checks) if part) or "starting"

    def _percent(self, ahead: int = 0) -> int:
        """Of the tests, each session weighing the same, as those to come are not counted yet."""
        if not self._sessions_started:
            return min(100 * self._checks_done // max(self._criteria, 1), 100)
        finished = max(self._in_session - ahead, 0)
        share = min(finished / self._expected, 1.0) if self._expected else 0.0
        return int(100 * (self._sessions_started - 1 + share) / max(self._sessions, 1))

    def _write_test(self, nodeid: str, outcome: str) -> None:
        marked, taken = self._marked.get(outcome, self._marked[_UNKNOWN])
        node = self._screen.text(nodeid)
        fill = self._width - cells(node) - 1 - taken - PERCENT_CELLS
        end = f"{' ' * fill} [{self._percent():3}%]" if fill >= 0 else ""
        self._screen.raw(f"{node} {marked}{end}\n")

    def _write_letters(self) -> None:
        pending, self._pending = self._pending, []
        while pending:
            reserve = 0 if self._manner == "bare" else PERCENT_CELLS
            room = max(self._width - reserve, 1) - self._column
            for style, words in groupby(pending[:room], key=lambda word: word.style):
                self._screen.tw.write("".join(word.letter for word in words), **style.markup)
            self._column += len(pending[:room])
            pending = pending[room:]
            if pending:
                self._end_of_dots(len(pending))

    def _end_of_dots(self, ahead: int = 0) -> None:
        """Ends the line; ``ahead`` tests have finished whose letters stand on the next ones."""
        if self._manner == "bare":
            self._screen.tw.line()
        else:
            fill = max(self._width - self._column - PERCENT_CELLS, 0)
            self._screen.whole(Span(" " * fill + f" [{self._percent(ahead):3}%]", Style.QUIET))
        self._column = 0


def _marked(tw: TerminalWriter, text: str, style: Style) -> str:
    return tw.markup(text, **style.markup) if text else ""


def _manner(verbosity: int, is_terminal: bool) -> Manner:
    if verbosity > 0:
        return "lines"
    if verbosity < 0:
        return "bare"
    return "live" if is_terminal else "dots"
