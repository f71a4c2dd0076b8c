"""A request to stop reaches the run, wherever the main thread was when it came."""

from __future__ import annotations

import os
import signal
import sys
import weakref

import pytest

from pytest_planverify.session.interrupts import PATIENCE, raise_if_requested, stop_in_order


class _Referent:
    pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_is_raised_once_and_again_when_it_is_repeated_often(number: signal.Signals):
    with stop_in_order():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        for _ in range(PATIENCE - 1):
            os.kill(os.getpid(), number)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_a_request_that_python_swallowed_is_raised_at_the_next_look(monkeypatch: pytest.MonkeyPatch):
    swallowed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: swallowed.append(found.exc_type))
    referent = _Referent()
    reference = weakref.ref(referent, lambda _: os.kill(os.getpid(), signal.SIGINT))

    with stop_in_order():
        raise_if_requested()
        del referent  # the handler runs in the callback, of which an exception is only printed
        assert reference() is None
        with pytest.raises(KeyboardInterrupt):
            raise_if_requested()
    assert swallowed == [KeyboardInterrupt]


def test_the_handlers_that_were_there_come_back():
    before = signal.getsignal(signal.SIGTERM)

    with stop_in_order():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
