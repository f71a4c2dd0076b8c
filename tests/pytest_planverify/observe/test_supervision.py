"""The soft limit of a criterion ends a test by a signal of the parent."""

from __future__ import annotations

import signal
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from pytest_planverify.observe.supervision import SIGNAL, SoftLimits

if TYPE_CHECKING:
    from types import ModuleType


def test_the_limit_ends_a_test_only_while_its_body_runs(monkeypatch: pytest.MonkeyPatch):
    asked: list[float] = []
    plugin = SimpleNamespace(timeout_sigalrm=lambda item, settings: asked.append(settings.timeout))
    monkeypatch.setitem(sys.modules, "pytest_timeout", cast("ModuleType", plugin))
    assert SIGNAL is not None
    before, limits = signal.getsignal(SIGNAL), SoftLimits()
    try:
        assert limits.listen(7.5)
        signal.raise_signal(SIGNAL)
        body = limits.pytest_runtest_call(cast("pytest.Item", object()))
        next(body)
        signal.raise_signal(SIGNAL)
        with pytest.raises(StopIteration):
            body.send(None)
        signal.raise_signal(SIGNAL)
    finally:
        signal.signal(SIGNAL, before)

    assert asked == [7.5]
