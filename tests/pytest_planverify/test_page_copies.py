"""Pages that the workers of a lane write to are copied before they do."""

from __future__ import annotations

import mmap
import resource
import sys

import pytest
from forked import in_fork

from pytest_planverify.session import fork_server as page_copies
from pytest_planverify.session.fork_server import PageCopies

PAGES = 500

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can do that")


class Memory:
    """Pages that this process has, and that a copy of it writes to."""

    def __init__(self) -> None:
        self._pages = mmap.mmap(-1, PAGES * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.write(b"a")
        self.copies = PageCopies()

    def write(self, letter: bytes) -> None:
        for page in range(PAGES):
            self._pages[page * mmap.PAGESIZE] = letter[0]

    def faults(self) -> int:
        """Write to all; how many faults that costs."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self.write(b"b")
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@on_linux
def test_what_one_copy_of_a_process_wrote_to_costs_the_next_no_faults():
    memory = Memory()

    def first() -> None:
        assert memory.faults() >= PAGES
        memory.copies.note()

    def second() -> None:
        memory.copies.make()
        assert memory.faults() < PAGES // 10

    in_fork(first)
    in_fork(second)


@on_linux
def test_what_is_no_longer_mapped_is_passed_over():
    copies, gone = PageCopies(), mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def first() -> None:
        gone.write(b"x")
        copies.note()

    def second() -> str:
        copies.make()
        return "went on"

    in_fork(first)
    gone.close()
    assert in_fork(second) == "went on"


def test_where_the_system_tells_nothing_of_pages_nothing_is_copied(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page_copies.sys, "platform", "darwin")
    memory = Memory()

    def first() -> None:
        memory.write(b"b")
        memory.copies.note()

    def second() -> int:
        memory.copies.make()
        return memory.faults()

    in_fork(first)
    assert in_fork(second) >= PAGES
