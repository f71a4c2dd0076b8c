"""Standard streams that are closed, or that cannot be written: a full disk, a reader that has ended."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable


def open_closed_streams() -> None:
    """Connect standard streams that are closed (``>&-``) to the null device.

    Otherwise Python has no object for the stream, and the next file that is opened gets its descriptor:
    what a child process prints would be written into that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle == number:
                os.set_inheritable(handle, True)
            else:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def drop_output() -> None:
    """Connect standard output to the null device, so that what is buffered fails no more."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


class OptionalOutput:
    """Standard output that is dropped from the first failure to write on; a run must not end for it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure: OSError | None = None
        """The failure; ``None`` as long as everything was written. A reader that ended is no failure."""

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        self._attempt(self._stream.flush)

    def _attempt(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            if error.errno != errno.EPIPE:
                self.failure = error
            drop_output()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
