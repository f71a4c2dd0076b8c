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
    """Raise ``KeyboardInterrupt`` on the first stop request; no signal stays ignored that was inherited so.

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

    handlers: dict[signal.Signals, Any] = {signal.SIGINT: interrupt, signal.SIGTERM: interrupt}
    # Where the kernel discards the exit status of children, each failure of one would be taken for success.
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        handlers[signal.SIGCHLD] = signal.SIG_DFL
    previous: dict[signal.Signals, Any] = {}
    try:
        for number, handler in handlers.items():
            previous[number] = signal.signal(number, handler)
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
