"""Copies of memory pages made ahead of the process that will write to them.

A forked process shares its pages until one side writes, and each first write costs a fault. Workers of
one lane write to much the same pages. The first tells which ones; the next have them copied in a few
system calls, while they stand by and another works. Only Linux can do that; elsewhere nothing happens.
"""

from __future__ import annotations

import mmap
import os
import sys
from array import array
from contextlib import suppress

_MOST_RUNS = 8_192
"""Ranges of neighbouring pages that are kept."""
_POPULATE_WRITE = 23
_IS_OWN = (1 << 63) | (1 << 56)
"""An entry of ``/proc/PID/pagemap``: present, and mapped by this process only. See ``man 5 proc``."""


class PageCopies:
    """What the workers of one lane write to; made in the lane before it forks."""

    def __init__(self) -> None:
        self._written = mmap.mmap(-1, 8 * (1 + 2 * _MOST_RUNS))
        """Shared with the workers: how many ranges there are, and of each the address and the size."""
        self._spaces = _writable_spaces()

    def note(self) -> None:
        """In a worker at its end: tell the lane what was written to, unless another has."""
        view = memoryview(self._written).cast("Q")
        if view[0] or not self._spaces:
            return
        runs = array("Q")
        with suppress(OSError), open("/proc/self/pagemap", "rb", buffering=0) as file:
            for start, end in self._spaces:
                file.seek(start // mmap.PAGESIZE * 8)
                entries = array("Q", file.read((end - start) // mmap.PAGESIZE * 8))
                own = [index for index, entry in enumerate(entries) if entry & _IS_OWN == _IS_OWN]
                for first, last in _runs(own):
                    runs.extend((start + first * mmap.PAGESIZE, (last + 1 - first) * mmap.PAGESIZE))
        del runs[2 * _MOST_RUNS :]
        view[1 : 1 + len(runs)] = runs
        view[0] = len(runs) // 2

    def make(self) -> None:
        """In a process that was just forked: copy what the others wrote to."""
        view = memoryview(self._written).cast("Q")
        if not view[0]:
            return
        import ctypes

        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for index in range(1, 1 + 2 * min(view[0], _MOST_RUNS), 2):
            advise(view[index], view[index + 1], _POPULATE_WRITE)  # an error says that it is not mapped


def _runs(indexes: list[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each row of neighbours."""
    found: list[tuple[int, int]] = []
    for index in indexes:
        if found and index == found[-1][1] + 1:
            found[-1] = (found[-1][0], index)
        else:
            found.append((index, index))
    return found


def _writable_spaces() -> list[tuple[int, int]]:
    """Return the private parts of this process's memory that may be written to, but for its stack."""
    found: list[tuple[int, int]] = []
    if sys.platform.startswith("linux") and os.path.exists("/proc/self/pagemap"):
        with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                where, flags, *rest = line.split(None, 5)
                if flags.startswith("rw") and flags.endswith("p") and "[stack]" not in rest[-1]:
                    start, _, end = where.partition("-")
                    found.append((int(start, 16), int(end, 16)))
    return found
