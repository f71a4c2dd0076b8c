"""Supervision of a test by the parent: a byte for the phase, a signal for the soft limit.

What ends a process leaves no time to write: a byte of a mapped file, which is already there, tells where
the process stood. The soft limit is pytest-timeout's failure, raised when the parent sends a signal: it
ends the test whose body runs, and the session goes on. Nothing of it is to be seen before, neither a timer
nor a mark. What it cannot end (C code that holds the interpreter, fixtures, imports) the parent ends with
the whole process.
"""

from __future__ import annotations

import mmap
import os
import signal
from contextlib import suppress
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

SIGNAL: int | None = signal.SIGRTMIN + 11 if hasattr(signal, "SIGRTMIN") else None
"""Meant for nothing else; ``None`` where the platform has no signals to spare."""

NONE, SETUP, CALL, TEARDOWN = range(4)

PHASE_NAMES = {SETUP: "setup", CALL: "call", TEARDOWN: "teardown"}

SLOTS = 256
"""Workers that run at once have slots of their own, as long as these are not more."""


def prepare_board(path: str | Path) -> None:
    """Make the file, unless it is as it was made: what ran before may have emptied or removed it."""
    with suppress(OSError):
        if os.stat(path).st_size == SLOTS:
            return
    with suppress(OSError), open(path, "wb") as file:
        file.write(bytes(SLOTS))


class PhaseBoard:
    """This process's byte on the board of the run."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | bytearray = bytearray(SLOTS)
        self._slot = 0

    def open(self, path: str, slot: int) -> None:
        """Write to that slot of the board from now on; without the file nothing is told."""
        with suppress(OSError, ValueError), open(path, "r+b") as file:
            self._memory, self._slot = mmap.mmap(file.fileno(), SLOTS), slot
            if hasattr(os, "register_at_fork"):
                # A copy of this process, which a test forks and which goes on, writes nothing.
                os.register_at_fork(after_in_child=self._leave_board)

    def _leave_board(self) -> None:
        self._memory = bytearray(SLOTS)

    def put(self, phase: int) -> None:
        """Say which phase begins."""
        self._memory[self._slot] = phase


board = PhaseBoard()
"""This process's board."""


class SoftLimits:
    """Ends the body of the test that runs too long; a plugin of pytest."""

    def __init__(self) -> None:
        self._limit = 0.0
        self._item: pytest.Item | None = None

    def listen(self, seconds: float) -> bool:
        """Listen to the parent; ``seconds`` is the limit to be told of. Return whether that is possible."""
        self._limit = seconds
        if SIGNAL is None:
            return False
        try:
            signal.signal(SIGNAL, self._end_test)
        except ValueError:  # not the main thread
            return False
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note that the body of a test runs."""
        self._item = item
        try:
            return (yield)
        finally:
            self._item = None

    def _end_test(self, number: int, frame: object) -> None:
        __tracebackhide__ = True
        if self._item is not None:
            # Not before: pytest wants to be the first to import its plugins.
            fail: Any = vars(import_module("pytest_timeout"))["timeout_sigalrm"]
            fail(self._item, SimpleNamespace(timeout=self._limit, disable_debugger_detection=False))
