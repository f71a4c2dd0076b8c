"""Ends what a run had started when the process that supervised it is killed and can do nothing any more.

It is done by the process that forks the sessions, which imports nothing for it: what it imports is seen by
the sessions.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = 5.0
_TOKEN = b"PLANVERIFY_PROCESS_TOKEN="
"""Stands, with the number of the parent behind it, in the environment of every command that it runs."""


def end_orphans(parent: int) -> None:
    """Kill all descendants of this process, and what is left of the commands that the dead parent ran."""
    deadline = time.monotonic() + _SECONDS
    quiet = 0
    while time.monotonic() < deadline and quiet < 3:  # a process that is just being started is seen late
        living = dict(_living())
        found = _below({os.getpid()}, living) | _of_commands(parent, living)
        quiet = 0 if found else quiet + 1
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def children_of(pid: int) -> set[int]:
    """The processes that a process waits for, the dead among them not; none where there is no ``/proc``."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return set(map(int, file.read().split()))
    except OSError:  # a kernel without that list
        return {each for each, (parent, _) in _living() if parent == pid}


def _living() -> Iterator[tuple[int, tuple[int, int]]]:
    """Every process that is no zombie, with its parent and its session."""
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
            except (OSError, ValueError):  # gone by now
                continue
            if state not in b"ZX":
                yield int(name), (int(parent), int(session))


def _below(roots: set[int], living: dict[int, tuple[int, int]]) -> set[int]:
    found: set[int] = set()
    pending = set(roots)
    while pending:
        pending = {pid for pid, (parent, _) in living.items() if parent in pending} - found - roots
        found |= pending
    return found


def _of_commands(parent: int, living: dict[int, tuple[int, int]]) -> set[int]:
    marked = {pid for pid in living if _is_marked(pid, parent)}
    # The leader of a command's session is the process that waits for it, which bears no mark.
    leaders = marked | {living[pid][0] for pid in marked}
    sessions = {living[pid][1] for pid in marked if living[pid][1] in leaders}
    together = {pid for pid, (_, session) in living.items() if session in sessions}
    return (marked | together | _below(marked | together, living)) - {os.getpid()}


def _is_marked(pid: int, parent: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(each.startswith(b"%s%d-" % (_TOKEN, parent)) for each in file.read().split(b"\0"))
    except OSError:
        return False
