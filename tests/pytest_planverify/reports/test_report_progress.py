"""The progress display of a run, on a terminal or through a pipe."""

from __future__ import annotations

import io
import os
import re

import pytest
from _pytest._io import TerminalWriter
from outcome_samples import check

from planner.model.verdicts import Verdict
from pytest_planverify.reports.progress import Progress

CONTROL = re.compile(r"\x1b\[(\d*)([AJm])|(.)", re.DOTALL)


class Terminal(io.StringIO):
    """The lines on the screen of a terminal, without styles; a line that would wrap is an error."""

    def __init__(self, columns: int = 60, lines: int = 24) -> None:
        super().__init__()
        self.rows = [""]
        self._row = self._column = 0
        self.resize(columns, lines)

    def fileno(self) -> int:
        return -1

    def resize(self, columns: int, lines: int = 24) -> None:
        self.size = os.terminal_size((columns, lines))

    def write(self, text: str) -> int:
        for count, command, char in CONTROL.findall(text):
            row = self.rows[self._row]
            if command == "A":
                self._row -= int(count)
            elif command == "J":
                self.rows[self._row :] = [row[: self._column]]
            elif char == "\r":
                self._column = 0
            elif char == "\n":
                self._row, self._column = self._row + 1, 0
                self.rows += [""] * (self._row == len(self.rows))
            elif char:
                assert self._column < self.size.columns, row
                self.rows[self._row] = row[: self._column] + char + row[self._column + 1 :]
                self._column += 1
        return super().write(text)

    def read_screen(self) -> list[str]:
        """Return the lines on the screen."""
        return [row.rstrip() for row in self.rows]


class Run:
    """A run with a clock that is advanced by hand, shown on the terminal or written to a pipe."""

    def __init__(self, terminal: Terminal | None = None, *, verbosity: int = 0) -> None:
        self.now = 100.0
        self.terminal = terminal
        self.stream = io.StringIO() if terminal is None else terminal
        tw = TerminalWriter(self.stream)
        tw.hasmarkup = False
        self.progress = Progress(tw, verbosity=verbosity, clock=lambda: self.now)

    def screen(self, *, after: float = 0.5) -> list[str]:
        """Advance the clock by ``after`` seconds, tick, and return the lines on the screen."""
        self.now += after
        self.progress.tick()
        return self.terminal.read_screen()

    @property
    def text(self) -> str:
        return self.stream.getvalue()


@pytest.fixture(autouse=True)
def a_person_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    monkeypatch.setattr(os, "get_terminal_size", lambda _: made.size)
    return made


def started(run: Run, workers: int = 2) -> Progress:
    run.progress.run_started(1, 21, workers)
    run.progress.worker_started("a", "t2_indicators", "pytest tests/test_rsi.py", 30)
    run.progress.collected("a", 5)
    return run.progress


def test_progress_block_shows_running_tests_with_time_and_limit(terminal: Terminal) -> None:
    run = Run(terminal)
    progress = started(run)
    progress.worker_started("b", "lint", "ruff check .", None)
    progress.check_decided(Verdict.PASSED)
    progress.check_decided(Verdict.FAILED)
    progress.check_decided(Verdict.NEEDS_HUMAN)
    progress.test_started("a", "t.py::test_0")
    progress.test_finished("a", "t.py::test_0", "passed")
    progress.test_started("a", "t.py::test_1")
    assert run.screen(after=12.3) == [
        "verifying 21 criteria of 1 plan, 2 at once",
        "1 passed, 1 failed, 1 open of 21 criteria  0:12",
        "  t2_indicators  12s of 30s  1/5  t.py::test_1",
        "  lint  12s  ruff check .",
    ]
    progress.test_finished("a", "t.py::test_1", "passed")
    assert "t.py::test_1" not in "".join(run.screen())  # it has finished
    progress.worker_finished("a")
    assert run.screen()[1:] == [
        "1 passed, 1 failed, 1 open of 21 criteria  0:13",
        "  lint  13s  ruff check .",
    ]


def test_progress_block_is_cleared_at_the_end(terminal: Terminal) -> None:
    run = Run(terminal)
    progress = started(run)
    run.screen()
    progress.todo_decided("t1", "One", Verdict.PASSED, [])
    progress.finished()
    progress.finished()
    assert terminal.read_screen() == ["verifying 21 criteria of 1 plan, 2 at once", ""]


def test_confirmation_is_marked_and_rows_without_room_on_the_terminal_are_left_out(
    terminal: Terminal,
) -> None:
    run = Run(terminal)
    run.progress.run_started(1, 21, 8)
    run.progress.worker_started("a", "t2", "pytest t.py", 30, confirming=True)
    run.progress.test_started("a", "t.py::test_0")
    assert run.screen()[-1] == "  t2  0s of 30s  again: t.py::test_0"
    terminal.resize(60, 6)
    for number in range(7):
        run.progress.worker_started(str(number), f"more_{number}", "pytest", 30)
    assert len(run.screen()) == 1 + 5


@pytest.mark.parametrize("columns", [45, 60, 120])
def test_long_name_is_shortened_in_the_middle_and_cannot_control_the_terminal(
    columns: int, terminal: Terminal
) -> None:
    terminal.resize(columns)
    run = Run(terminal)
    progress = started(run, workers=1)
    progress.test_started("a", f"tests/test_a.py::test_{'long_' * 30}end[\x1b[2J\x07]")
    lines = run.screen()
    assert "\x07" not in "".join(lines)
    assert "\x1b[2J" not in terminal.getvalue()
    assert len(lines[-1]) < columns
    assert lines[-1].startswith("  t2_")
    assert "0s of 30s" in lines[-1]
    assert "…" in lines[-1]
    assert lines[-2].startswith("0 passed of 21 criteria")


def test_progress_is_redrawn_at_most_twice_a_second(terminal: Terminal) -> None:
    run = Run(terminal)
    progress = started(run)
    run.screen()
    before = terminal.getvalue().count("criteria  0:")
    for index in range(1000):
        run.now += 0.01
        progress.test_finished("a", f"t.py::{index}", "passed")
    assert 19 <= terminal.getvalue().count("criteria  0:") - before <= 21


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("CI", "true")])
def test_nothing_is_rewritten_on_dumb_terminals_and_in_ci(
    name: str, value: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    run = Run(terminal)
    started(run)
    assert run.screen() == ["verifying 21 criteria of 1 plan, 2 at once", ""]


def test_each_decided_todo_is_one_line_without_a_terminal() -> None:
    run = Run()
    progress = started(run, workers=1)
    progress.test_finished("a", "t.py::test_0", "failed")
    green = check("tests[0]", duration_ms=105)
    red = check("tests[0]", verdict=Verdict.FAILED, duration_ms=75_000)
    kept = check("tests[0]", duration_ms=30, taken_from="20261122T0327")
    progress.todo_decided("t1", "One", Verdict.PASSED, [green, green])
    progress.todo_decided("t2", "Two " * 40 + "end", Verdict.FAILED, [red])
    progress.todo_decided("t3", "t3", Verdict.BLOCKED, [green])
    progress.todo_decided("t4", "Four", Verdict.PASSED, [kept])
    progress.tick()
    progress.finished()
    assert run.text.splitlines() == [
        "verifying 21 criteria of 1 plan",
        "✓ passed   t1  One  2 checks  0.21s",
        f"✗ failed   t2  {'Two ' * 40}end  0/1 check  1m 15s",
        "– blocked  t3",
        "✓ passed   t4  Four  1 check  0.03s  from run 20261122T0327",
    ]


def test_each_line_is_flushed_to_a_pipe() -> None:
    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as stream:
        progress = Progress(TerminalWriter(stream))
        progress.todo_decided("t1", "One", Verdict.PASSED, [])
        assert os.read(reading, 1000).decode() == "✓ passed   t1  One\n"
    os.close(reading)


def test_verbose_progress_is_one_line_per_test() -> None:
    run = Run(verbosity=1)
    progress = started(run, workers=1)
    nodeid = "t.py::" + "x" * 100
    for outcome in ("passed", "failed", "rerun", "xfailed", "not_run"):
        progress.test_finished("a", nodeid, outcome)
    progress.worker_started("a", "t2", "pytest t.py", 30, confirming=True)
    assert run.text.splitlines()[1:] == [
        f"{nodeid} PASSED",
        f"{nodeid} FAILED",
        f"{nodeid} RERUN",
        f"{nodeid} XFAIL",
        f"{nodeid} NOT RUN",
        "confirming t2: pytest t.py",
    ]


@pytest.mark.parametrize("at_terminal", [True, False])
def test_quiet_progress_prints_nothing(at_terminal: bool, terminal: Terminal) -> None:
    run = Run(terminal if at_terminal else None, verbosity=-1)
    progress = started(run)
    progress.test_finished("a", "t.py::test_0", "failed")
    progress.todo_decided("t1", "One", Verdict.FAILED, [])
    progress.tick()
    progress.finished()
    assert (terminal.read_screen() if at_terminal else run.text) == ([""] if at_terminal else "")


@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_events_of_unknown_workers_are_ignored(verbosity: int, terminal: Terminal) -> None:
    run = Run(terminal, verbosity=verbosity)
    progress = run.progress
    progress.collected("x", 3)
    progress.test_started("x", "t.py::test_0")
    progress.test_finished("x", "t.py::test_0", "passed")
    progress.worker_finished("x")
    assert "test_0" not in "".join(run.screen())
