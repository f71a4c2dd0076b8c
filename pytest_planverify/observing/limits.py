"""Soft time limits inside a session: pytest-timeout's failure, at the cost of a timer a test.

A soft limit ends one test and lets the session go on. What it cannot end (C code that holds the
interpreter, fixtures, imports) the parent ends with the whole process.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from signal import ITIMER_REAL, SIGALRM, setitimer
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_SIGNAL = vars(import_module("_signal"))
"""Of the module behind ``signal``, which would make an enumeration of each handler."""
_set_handler: Any = _SIGNAL["signal"]
_handler_of: Any = _SIGNAL["getsignal"]
_DEFAULT: Any = _SIGNAL["SIG_DFL"]


class SoftLimits:
    """Ends the call of tests that take too long; a plugin of pytest."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._item: pytest.Item | None = None

    def set(self, item: pytest.Item, seconds: float) -> None:
        """Limit the test's call, unless the project itself sets a tighter limit."""
        has_plugin = item.config.pluginmanager.hasplugin
        if not has_plugin("timeout") and not has_plugin("pytest_timeout"):  # the latter is how -p names it
            return
        marker, setting = item.get_closest_marker("timeout"), getattr(item.config, "_env_timeout", None)
        if marker is None and setting is None:
            self._seconds[item.nodeid] = seconds
        elif not 0 < (_own_limit(marker, setting) or 0) <= seconds:
            item.add_marker(_marker(seconds), append=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run the call with a timer, as pytest-timeout would."""
        seconds = self._seconds.get(item.nodeid)
        if seconds is None:
            return (yield)
        if _handler_of(SIGALRM) != _DEFAULT:  # the project has a use of its own for it
            return (yield)
        try:
            _set_handler(SIGALRM, self._ring)
        except ValueError:  # not the main thread: the parent's limit remains
            return (yield)
        self._item = item
        setitimer(ITIMER_REAL, seconds)
        try:
            return (yield)
        finally:
            self._item = None  # first: a timer that runs out now must not keep the rest from being done
            setitimer(ITIMER_REAL, 0)
            _set_handler(SIGALRM, _DEFAULT)

    def _ring(self, number: int, frame: object) -> None:
        __tracebackhide__ = True
        if self._item is not None:
            fail: Any = vars(sys.modules["pytest_timeout"])["timeout_sigalrm"]
            seconds = self._seconds[self._item.nodeid]
            fail(self._item, SimpleNamespace(timeout=seconds, disable_debugger_detection=False))


@cache
def _marker(seconds: float) -> pytest.MarkDecorator:
    """One marker for all tests of a limit: there may be very many."""
    return pytest.mark.timeout(seconds, method="signal", func_only=True)


def _own_limit(marker: pytest.Mark | None, setting: object) -> float | None:
    """What the project says by a mark of the test, or else for all tests."""
    value: object = None
    if marker is not None:
        value = marker.kwargs.get("timeout", marker.args[0] if marker.args else None)
    if value is None:
        value = setting
    return float(value) if isinstance(value, (int, float)) else None
