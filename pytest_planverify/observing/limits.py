"""Soft time limits inside a session, by pytest-timeout's own marker.

A soft limit ends one test and lets the session go on. What it cannot end (C code that holds the
interpreter, fixtures, imports) the parent ends with the whole process.
"""

from __future__ import annotations

from functools import cache

import pytest


def set_soft_limit(item: pytest.Item, seconds: float) -> None:
    """Limit the test's call, unless the project itself sets a tighter limit."""
    has_plugin = item.config.pluginmanager.hasplugin
    if not has_plugin("timeout") and not has_plugin("pytest_timeout"):  # the latter is how -p names it
        return
    own = _own_limit(item)
    if own is not None and 0 < own <= seconds:
        return
    item.add_marker(_marker(seconds), append=False)


@cache
def _marker(seconds: float) -> pytest.MarkDecorator:
    """One marker for all tests of a limit: there may be very many."""
    return pytest.mark.timeout(seconds, method="signal", func_only=True)


def _own_limit(item: pytest.Item) -> float | None:
    marker = item.get_closest_marker("timeout")
    value: object = None
    if marker is not None:
        value = marker.kwargs.get("timeout", marker.args[0] if marker.args else None)
    if value is None:
        value = getattr(item.config, "_env_timeout", None)
    return float(value) if isinstance(value, (int, float)) else None
