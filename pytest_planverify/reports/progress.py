"""Live progress of a run: on a terminal a redrawn block of running criteria, else one line for each todo.

The block is at the foot of the terminal; lines that stay are written above it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.verdicts import Verdict
from planner.text.display import cells, counted
from pytest_planverify.reports.screen import GAP, UNSIZED, ReportScreen, Style, StyledText
from pytest_planverify.reports.words import WORDS, duration, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _pytest._io import TerminalWriter

    from planner.model.outcome import Check

REDRAW_SECONDS = 0.5

_STYLES = {"passed": Style.GOOD, **dict.fromkeys(("failed", "error", "timeout", "crashed"), Style.BAD)}
_PYTEST_WORDS = {"xfailed": "XFAIL", "xpassed": "XPASS"}
"""Outcomes of tests that pytest prints in another form."""


@dataclass(slots=True)
class _RunningWorker:
    """A process that is running a criterion; ``started`` is a reading of the clock in seconds."""

    todo_id: str
    title: str
    limit_seconds: float | None
    confirming: bool
    started: float
    tests: int = 0
    ended: int = 0
    nodeid: str = ""


class Progress:
    """Shows which criteria are running and how many have a verdict.

    The methods may be called in any order and any number of times; unknown worker keys are ignored.
    """

    def __init__(
        self,
        tw: TerminalWriter,
        *,
        verbosity: int = 0,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the display; ``live`` allows a redrawn block, by default if ``tw`` is a capable terminal.

        It must be false if tests or a debugger write to the terminal themselves. With any verbosity but 0
        there is no block.
        """
        self._screen = ReportScreen(tw)
        self._verbosity = verbosity
        if live is None:  # a terminal that can move its cursor, and no CI log
            is_plain = os.environ.get("TERM", "dumb") == "dumb" or os.environ.get("CI")
            live = self._screen.terminal_size() is not None and not is_plain
        self._is_live = verbosity == 0 and live
        self._clock = clock
        self._criteria = self._passed = self._failed = self._other = 0
        self._most = 1
        """Number of workers that may run at once, and so are shown at most."""
        self._workers: dict[str, _RunningWorker] = {}
        self._started = self._due = clock()

    def run_started(self, plans: int, criteria: int, workers: int) -> None:
        """Print how many criteria are going to be verified, and by how many workers at once."""
        self._criteria = criteria
        self._most = max(workers, 1)
        self._started = self._clock()
        if self._verbosity >= 0:
            workers_at_once = f", {workers} at once" if workers > 1 else ""
            what = f"{counted(criteria, 'criterion')} of {counted(plans, 'plan')}"
            self._write(StyledText(f"verifying {what}{workers_at_once}"))

    def worker_started(
        self, key: str, todo_id: str, title: str, limit_seconds: float | None, *, confirming: bool = False
    ) -> None:
        """Record that a criterion starts in the worker ``key``; ``title`` is its command, path or question.

        ``limit_seconds`` is its time limit, ``None`` without one; ``confirming`` marks a repeated run.
        """
        self._workers[key] = _RunningWorker(todo_id, title, limit_seconds, confirming, self._clock())
        if confirming and self._verbosity > 0:
            self._write(StyledText(self._screen.text(f"confirming {todo_id}: {title}"), Style.QUIET))
        self.tick()

    def collected(self, key: str, count: int) -> None:
        """Record how many tests the worker will run."""
        if worker := self._workers.get(key):
            worker.tests = count
            self.tick()

    def test_started(self, key: str, nodeid: str) -> None:
        """Record that a test starts."""
        if worker := self._workers.get(key):
            worker.nodeid = nodeid
            self.tick()

    def test_finished(self, key: str, nodeid: str, outcome: str) -> None:
        """Record that a test finished. ``outcome`` is a value of ``TestOutcome``, or ``rerun``.

        After a ``rerun`` the same test runs again, so it is not counted yet.
        """
        worker = self._workers.get(key)
        if worker is None:
            return
        worker.nodeid = ""  # between tests the row shows the command again
        worker.ended += outcome != "rerun"
        if self._verbosity > 0:
            word = _PYTEST_WORDS.get(outcome, outcome.replace("_", " ").upper())
            style = _STYLES.get(outcome, Style.WARN)
            self._write(StyledText(f"{self._screen.text(nodeid)} "), StyledText(word, style))
        self.tick()

    def worker_finished(self, key: str) -> None:
        """Record that the criterion of the worker is no longer running."""
        self._workers.pop(key, None)
        self.tick()

    def check_decided(self, verdict: Verdict) -> None:
        """Count the verdict of a criterion."""
        if verdict is Verdict.PASSED:
            self._passed += 1
        elif verdict.is_red:
            self._failed += 1
        else:
            self._other += 1
        self.tick()

    def todo_decided(self, todo_id: str, title: str, verdict: Verdict, checks: Sequence[Check]) -> None:
        """Print the line of a todo whose criteria all have verdicts, unless there is a live block."""
        if self._is_live or self._verbosity < 0:
            return
        screen, word = self._screen, WORDS[verdict]
        taken = {check.taken_from for check in checks}
        facts = ["" if screen.text(title) == screen.text(todo_id) else screen.text(title)]
        if checks and word.style is not Style.QUIET:  # a todo that was blocked or left out has no counts
            passed = sum(check.counts_as is Verdict.PASSED for check in checks)
            facts.append(ratio(passed, len(checks), "check"))
            facts.append(duration(sum(check.duration_ms for check in checks)))
        if len(taken) == 1 and None not in taken:
            facts.append(f"from run {taken.pop()}")
        self._write(
            StyledText(word.mark(screen.glyphs) + " " + word.text.ljust(len("blocked")), word.style),
            StyledText(GAP + screen.text(todo_id), Style.STRONG),
            StyledText("".join(GAP + fact for fact in facts if fact)),
        )

    def tick(self) -> None:
        """Redraw the block if it is time; to be called regularly, so that the shown times advance."""
        if self._is_live and (moment := self._clock()) >= self._due:
            self._due = moment + REDRAW_SECONDS
            self._draw(moment)

    def finished(self) -> None:
        """Erase the block and forget the workers; the cursor is then at the beginning of a line."""
        self._screen.wipe()
        self._screen.tw.flush()
        self._workers.clear()

    # -- lines -----------------------------------------------------------------------------------

    def _write(self, *spans: StyledText) -> None:
        """Write a permanent line above the block."""
        self._screen.wipe()
        self._screen.line(*spans)
        self._screen.tw.flush()  # so that readers of a pipe get it at once
        self._due = self._clock()  # the next tick draws the block that was erased

    # -- the block -------------------------------------------------------------------------------

    def _draw(self, moment: float) -> None:
        """Draw counts of the criteria, and a row for each worker that there is room for."""
        screen = self._screen
        room = min((screen.terminal_size() or UNSIZED).columns, screen.width) - 1
        lines = [self._counts(moment)]
        for worker in list(self._workers.values())[: self._most]:
            limit = "" if worker.limit_seconds is None else f" of {worker.limit_seconds:g}s"
            todo_id = screen.clip_middle(screen.text(worker.todo_id), max(room // 3, 8))
            facts = f"{GAP}{int(moment - worker.started)}s{limit}{GAP}"
            facts += f"{worker.ended}/{worker.tests}{GAP}" if worker.tests else ""
            facts += "again: " if worker.confirming else ""
            name = screen.text(worker.nodeid or worker.title)
            left = max(room - cells(f"{GAP}{todo_id}{facts}"), 0)
            lines.append(
                [
                    StyledText(GAP + todo_id, Style.STRONG),
                    StyledText(facts),
                    StyledText(screen.clip_middle(name, left), Style.QUIET),
                ]
            )
        screen.draw(lines)

    def _counts(self, moment: float) -> list[StyledText]:
        minutes, seconds = divmod(int(moment - self._started), 60)
        total = counted(max(self._criteria, self._passed + self._failed + self._other), "criterion")
        spans = [StyledText(f"{self._passed} passed", Style.GOOD if self._passed else Style.QUIET)]
        for count, word, style in (self._failed, "failed", Style.BAD), (self._other, "open", Style.WARN):
            spans += [StyledText(", "), StyledText(f"{count} {word}", style)] if count else []
        return [*spans, StyledText(f" of {total}{GAP}{minutes}:{seconds:02}")]
