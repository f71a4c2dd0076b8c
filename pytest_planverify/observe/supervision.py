"""Supervision by the parent: a shared byte for the test phase, and a signal for the soft time limit.

A dying process cannot write a record, but a byte in a mapped file is already there and shows the phase.
The soft limit raises pytest-timeout's failure on a signal from the parent, which ends the running test
body while the session continues. Until then nothing is visible to tests, neither a timer nor a marker.
Whatever it cannot interrupt (native code, fixtures, imports) the parent ends by killing the process.

The parent's side is in :mod:`pytest_planverify.session.workers`.
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
"""Real-time signal of the soft limit; ``None`` on platforms without such signals."""

NONE, SETUP, CALL, TEARDOWN = range(4)
"""Values of a byte on the board; ``NONE`` before the first test."""

PHASE_NAMES = {SETUP: "setup", CALL: "call", TEARDOWN: "teardown"}

SLOTS = 256
"""Number of slots on the board; concurrent workers use distinct ones up to this number."""


def prepare_board(path: str | Path) -> None:
    """Create the board file unless it is intact: earlier tests may have truncated or removed it."""
    with suppress(OSError):
        if os.stat(path).st_size == SLOTS:
            return
    with (
        suppress(OSError),
        open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file,
    ):
        file.write(bytes(SLOTS))


class PhaseBoard:
    """This process's byte on the board of the run: a mapped file with one byte for each worker."""

    def __init__(self) -> None:
        # Memory of its own until the board is open, so that put() needs no condition.
        self._memory: mmap.mmap | bytearray = bytearray(SLOTS)
        self._slot = 0

    def open(self, path: str, slot: int) -> None:
        """Write to that slot from now on; without the file, phases are not reported."""
        with suppress(OSError, ValueError), open(path, "r+b") as file:
            self._memory, self._slot = mmap.mmap(file.fileno(), SLOTS), slot
            if hasattr(os, "register_at_fork"):
                # A child that a test forks must not write to the parent's slot.
                os.register_at_fork(after_in_child=self._leave_board)

    def _leave_board(self) -> None:
        self._memory = bytearray(SLOTS)

    def put(self, phase: int) -> None:
        """Report the phase that begins, by a plain memory write: it must survive any death that follows."""
        self._memory[self._slot] = phase


board = PhaseBoard()
"""This process's board."""


class SoftLimits:
    """Plugin that ends the body of a test at the soft limit.

    Only the body: the signal would cut short a system call of a fixture, whose set-up would then pass.
    """

    def __init__(self) -> None:
        self._limit = 0.0
        self._item: pytest.Item | None = None

    @property
    def is_testing(self) -> bool:
        """Return whether the body of a test is running."""
        return self._item is not None

    def listen(self, seconds: float) -> bool:
        """Install the signal handler; return whether it was possible.

        ``seconds`` is the limit to report; the time is measured by the parent.
        """
        self._limit = seconds
        if SIGNAL is None:
            return False
        try:
            signal.signal(SIGNAL, self._end_test)
        except ValueError:  # signal handlers can only be set in the main thread
            return False
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Mark that a test body is running, which the signal may end."""
        self._item = item
        try:
            return (yield)
        finally:
            self._item = None

    def _end_test(self, number: int, frame: object) -> None:
        """Handle the signal: raise pytest-timeout's failure in the main thread; ignore it between tests."""
        __tracebackhide__ = True
        if self.is_testing:
            # Imported late, as pytest must import plugins first to rewrite their assertions.
            fail: Any = vars(import_module("pytest_timeout"))["timeout_sigalrm"]
            fail(self._item, SimpleNamespace(timeout=self._limit, disable_debugger_detection=False))
