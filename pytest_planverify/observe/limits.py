"""The soft time limit of a criterion: pytest-timeout's failure, raised when the parent asks for it.

The parent sends a signal when the criterion's time is over. It ends the test whose body runs and lets the
session go on; nothing of it is to be seen before, neither a timer nor a mark. What it cannot end (C code
that holds the interpreter, fixtures, imports) the parent ends with the whole process.
"""

from __future__ import annotations

import signal
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

SIGNAL: int | None = signal.SIGRTMIN + 11 if hasattr(signal, "SIGRTMIN") else None
"""Meant for nothing else; ``None`` where the platform has no signals to spare."""


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
