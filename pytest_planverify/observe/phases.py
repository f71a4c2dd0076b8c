"""The phase of the test that runs now, told through a byte of a file that the worker maps.

What ends a process leaves no time to write: a byte that is already there tells where the process stood.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NONE, SETUP, CALL, TEARDOWN = range(4)

NAMES = {SETUP: "setup", CALL: "call", TEARDOWN: "teardown"}

SLOTS = 256
"""So many workers may run at once."""


def prepare(path: str | Path) -> None:
    """Make the file, unless it is as it was made: what ran before may have emptied or removed it."""
    with suppress(OSError):
        if os.stat(path).st_size == SLOTS:
            return
    with suppress(OSError), open(path, "wb") as file:
        file.write(bytes(SLOTS))


class PhaseBoard:
    """This process's byte on the board of the run."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | bytearray = bytearray(SLOTS)
        self._slot = 0

    def open(self, path: str, slot: int) -> None:
        """Write to that slot of the board from now on; without the file nothing is told."""
        with suppress(OSError, ValueError), open(path, "r+b") as file:
            self._memory, self._slot = mmap.mmap(file.fileno(), SLOTS), slot
            if hasattr(os, "register_at_fork"):
                # A copy of this process, which a test forks and which goes on, writes nothing.
                os.register_at_fork(after_in_child=self._part)

    def _part(self) -> None:
        self._memory = bytearray(SLOTS)

    def put(self, phase: int) -> None:
        """Say which phase begins."""
        self._memory[self._slot] = phase


board = PhaseBoard()
"""This process's board."""
