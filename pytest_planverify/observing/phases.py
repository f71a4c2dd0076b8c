"""The phase of the test that runs now, told through memory which a session shares with its parent.

What ends a process leaves no time to write: a byte that is already there tells where the process stood.
"""

from __future__ import annotations

import mmap
import os

NONE, SETUP, CALL, TEARDOWN = range(4)

NAMES = {SETUP: "setup", CALL: "call", TEARDOWN: "teardown"}

_SIZE = 16


def after(phase: str | None, *, passed: bool) -> int:
    """What begins after a set-up or a teardown; a test that is run again begins with its set-up."""
    if phase == "setup":
        return CALL if passed else TEARDOWN
    return SETUP


class PhaseBoard:
    """One byte of memory that processes share which were forked after it was made."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | bytearray = mmap.mmap(-1, _SIZE)

    def put(self, phase: int) -> None:
        """Say which phase begins."""
        self._memory[0] = phase

    def leave_to_this_process(self) -> None:
        """Let no copy of this process write, which a test forks and which goes on with the session."""
        os.register_at_fork(after_in_child=self._part)

    def _part(self) -> None:
        self._memory = bytearray(_SIZE)

    def read(self) -> str | None:
        """``setup``, ``call`` or ``teardown``; ``None`` outside of tests."""
        return NAMES.get(self._memory[0])


board = PhaseBoard()
"""This process's board: of a session, the one that its parent made before it forked."""
