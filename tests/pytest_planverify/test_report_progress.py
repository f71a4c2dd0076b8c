from __future__ import annotations

import io
import sys
import time

import pytest
from _pytest._io import TerminalWriter

from planner.model.outcome import TestOutcome, Verdict
from pytest_planverify.reports.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Screen:
    """A progress on a terminal of 40 columns whose clock stands still."""

    def __init__(
        self, *, verbosity: int = 0, live: bool = False, width: int = 40, color: bool = False
    ) -> None:
        self.stream = io.StringIO()
        self.clock = Clock()
        tw = TerminalWriter(self.stream)
        tw.fullwidth = width
        tw.hasmarkup = color
        self.progress = Progress(tw, verbosity=verbosity, is_terminal=live, clock=self.clock)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    def run(self, *outcomes: str, sessions: int = 1) -> None:
        self.progress.run_started(1, 3, sessions)
        self.progress.session_started("session 1", 0)
        self.progress.collected(len(outcomes))
        for index, outcome in enumerate(outcomes):
            self.progress.test_finished(f"t.py::test_{index}", outcome, 1)


def test_off_a_terminal_dots_are_wrapped_with_a_percentage_a_line() -> None:
    screen = Screen()
    screen.run(
        *["passed"] * 40, "failed", "error", "skipped", "xfailed", "xpassed", "timeout", "crashed", "rerun"
    )
    screen.progress.finished()
    assert screen.text == (
        f"verifying 3 criteria of 1 plan in 1 ses…\n{'.' * 33} [ 66%]\n{'.......FEsxXTCR':33} [ 97%]\n"
    )


def test_quiet_is_nothing_but_dots() -> None:
    screen = Screen(verbosity=-1, live=True)
    screen.run(*["passed"] * 45)
    screen.progress.note("not for quiet ears")
    screen.progress.finished()
    assert screen.text == "." * 40 + "\n" + "." * 5 + "\n"


def test_verbose_is_one_line_a_test_and_a_check() -> None:
    screen = Screen(verbosity=1, live=True, width=60)
    screen.run("passed", "failed", "unheard-of")
    screen.progress.check_started("t1", "ruff check .")
    screen.progress.check_finished("t1", Verdict.FAILED)
    screen.progress.confirming("t.py::test_1", 1, 2)
    screen.progress.finished()
    assert screen.text.splitlines()[1:] == [
        "t.py::test_0 PASSED".ljust(53) + " [ 33%]",
        "t.py::test_1 FAILED".ljust(53) + " [ 66%]",
        "t.py::test_2 UNKNOWN".ljust(53) + " [100%]",
        "t1: ruff check . FAILED",
        "confirming 1/2: t.py::test_1",
    ]


def test_the_verdict_of_a_check_that_nobody_saw_begin_is_not_a_line() -> None:
    screen = Screen(verbosity=1, width=60)
    screen.run("passed")
    screen.progress.check_started("t1", "ruff check .")
    for todo_id in ("t2", "t1", "t1"):
        screen.progress.check_finished(todo_id, Verdict.PASSED)
    assert screen.text.splitlines()[2:] == ["t1: ruff check . PASSED"]


def test_a_verbose_node_id_is_never_cut() -> None:
    screen = Screen(verbosity=1)
    screen.progress.test_finished("t.py::" + "x" * 100, "passed", 1)
    assert screen.text == "t.py::" + "x" * 100 + " PASSED\n"


def test_the_live_line_counts_and_stays_narrower_than_the_terminal() -> None:
    screen = Screen(live=True, width=60)
    screen.run("passed", "failed", sessions=2)
    screen.clock.now += 75
    screen.progress.test_finished("t.py::test_with_a_very_long_name_that_does_not_fit", "timeout", 1)
    last = screen.text.rsplit("\r", 1)[1]
    assert last == " 50%  3/3 tests  2 red  1:15  t.py::test_with_a_very_long_…"
    assert all(len(drawn.rstrip("\n")) <= 59 for drawn in screen.text.split("\r"))


def test_the_live_line_is_wiped_at_the_end() -> None:
    screen = Screen(live=True)
    screen.run("passed")
    screen.progress.finished()
    drawn, blank, rest = screen.text.rsplit("\r", 2)
    assert blank == " " * len(drawn.rsplit("\r", 1)[-1])
    assert rest == ""


def test_a_shorter_live_line_leaves_nothing_of_a_longer_one() -> None:
    screen = Screen(live=True)
    screen.progress.session_started("a long title of a session", 0)
    screen.progress.session_started("b", 0)
    first, second = screen.text.split("\r")[1:]
    assert len(second) == len(first)


def test_a_note_stays_above_the_live_line() -> None:
    screen = Screen(live=True)
    screen.run("passed")
    screen.progress.note("the session died: it is run again")
    assert "\rthe session died: it is run again\n\r" in screen.text


def test_the_live_line_is_redrawn_at_most_ten_times_a_second() -> None:
    screen = Screen(live=True)
    screen.run()
    before = screen.text.count("\r")
    for index in range(100):
        screen.clock.now += 0.01
        screen.progress.test_finished(f"t.py::{index}", "passed", 1)
    assert 9 <= screen.text.count("\r") - before <= 11


def test_time_goes_on_while_nothing_happens() -> None:
    screen = Screen(live=True)
    screen.run("passed")
    screen.clock.now += 5
    screen.progress.tick()
    assert screen.text.rsplit("\r", 1)[1].startswith(" 99%  1/1 test  0:05")


def test_checks_are_the_measure_where_there_is_no_session() -> None:
    screen = Screen(live=True, width=80)
    screen.progress.run_started(1, 4, 0)
    screen.progress.check_started("t1", "ruff check .")
    screen.clock.now += 1
    screen.progress.check_finished("t1", Verdict.PASSED)
    assert screen.text.rsplit("\r", 1)[1] == " 25%  1/4 checks  0:01  t1: ruff check ."


def test_what_is_run_to_confirm_does_not_count() -> None:
    live, dots, lines = Screen(live=True, width=80), Screen(), Screen(verbosity=1)
    for screen in (live, dots, lines):
        screen.run("failed")
        screen.progress.confirming("t.py::test_0", 1, 2)
        screen.progress.test_finished("t.py::test_0", "failed", 1)
        screen.progress.check_started("t1", "ruff check .")
        screen.clock.now += 1
        screen.progress.tick()
    assert "  1/1 test  1 red  0:01  t1: ruff check ." in live.text
    assert dots.text.count("F") == 1
    assert lines.text.count("t.py::test_0 FAILED") == 2


def test_nothing_is_complete_before_the_last_check() -> None:
    screen = Screen(live=True, width=80)
    screen.run("passed")
    for share in (" 99%", " 99%", "100%"):
        screen.clock.now += 1
        screen.progress.check_finished("t1", Verdict.PASSED)
        assert screen.text.rsplit("\r", 1)[1].startswith(share)


def test_a_confirmation_is_shown_live() -> None:
    screen = Screen(live=True, width=80)
    screen.run("failed")
    screen.clock.now += 1
    screen.progress.confirming("t.py::test_0", 1, 2)
    assert screen.text.endswith("confirming 1/2: t.py::test_0")


def test_colour_adds_nothing_but_escapes() -> None:
    plain, coloured = Screen(), Screen(color=True)
    for screen in (plain, coloured):
        screen.run("passed", "passed", "failed")
        screen.progress.finished()
    assert "\x1b[32m..\x1b[0m\x1b[31m\x1b[1mF\x1b[0m" in coloured.text
    assert "..F" in plain.text


def test_a_terminal_is_recognized_by_its_stream() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    progress = Progress(TerminalWriter(stream))
    progress.session_started("s", 1)
    assert stream.getvalue().startswith("\r")


def test_what_a_test_is_called_cannot_steer_the_terminal() -> None:
    for verbosity in (0, 1):
        screen = Screen(live=True, verbosity=verbosity)
        screen.run()
        screen.clock.now += 1
        screen.progress.test_finished("t.py::\x1b[2J[\x07]", "passed", 1)
        assert "\x1b" not in screen.text
        assert "\x07" not in screen.text


@pytest.mark.skipif(sys.gettrace() is not None, reason="tracing costs more than what is measured")
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_ten_thousand_tests_cost_almost_nothing(live: bool, verbosity: int) -> None:
    tw = TerminalWriter(io.StringIO())
    tw.fullwidth = 80
    best = 1.0
    for _ in range(3):
        progress = Progress(tw, verbosity=verbosity, is_terminal=live)
        progress.session_started("s", 10_000)
        started = time.process_time()
        for _ in range(10_000):
            progress.test_finished("tests/test_a.py::test_b", TestOutcome.PASSED, 1)
        best = min(best, time.process_time() - started)
    assert best < 0.05
