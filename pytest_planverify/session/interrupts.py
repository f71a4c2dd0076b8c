"""Requests to stop a run: Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

PATIENCE = 3
"""Number of stop requests that count as one; a further one ends the run immediately."""

_requests = 0
"""Stop requests so far. Global, as signal handlers are."""


@contextlib.contextmanager
def stop_in_order() -> Generator[None]:
    """Raise ``KeyboardInterrupt`` on the first stop request, even if its signal was inherited as ignored.

    The next requests are ignored, up to :data:`PATIENCE`: aborting the shutdown would leave processes
    behind and no outcomes written. Previous handlers are restored at the end.
    """
    global _requests
    _requests = 0  # a process may call pytest.main() more than once

    def interrupt(number: int, frame: object) -> None:
        global _requests
        _requests += 1
        if _requests == 1 or _requests > PATIENCE:
            raise KeyboardInterrupt

    previous: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, interrupt)
    except ValueError:  # not in the main thread: a program called pytest.main()
        pass
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def raise_if_requested() -> None:
    """Raise a ``KeyboardInterrupt`` that was lost in a finalizer or weak-reference callback.

    Python only prints exceptions that are raised there.
    """
    if _requests:
        raise KeyboardInterrupt
