"""Requests to stop a run: Ctrl-C, and the signal that asks a process to terminate."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

PATIENCE = 3
"""So many requests to stop are one; who asks more often is not listened to, and the run ends at once."""

_requests = 0
"""How often the run has been asked to stop. Global as the handlers of signals are."""


@contextlib.contextmanager
def stop_in_order() -> Generator[None]:
    """Raise ``KeyboardInterrupt`` at the first request to stop, whatever the run was started under.

    Asked again while it stops, it goes on stopping: it would leave processes behind, write nothing.
    """
    global _requests
    _requests = 0

    def interrupt(number: int, frame: object) -> None:
        global _requests
        _requests += 1
        if _requests == 1 or _requests > PATIENCE:
            raise KeyboardInterrupt

    previous: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, interrupt)
    except ValueError:  # not the main thread of a program that called pytest.main()
        pass
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def raise_if_requested() -> None:
    """Raise ``KeyboardInterrupt`` if it was raised before where Python lets nothing be raised.

    That is in a finalizer or in the callback of a weak reference, which print it and go on.
    """
    if _requests:
        raise KeyboardInterrupt
