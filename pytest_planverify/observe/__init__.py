"""Everything that runs inside a worker: it observes and writes records, and never decides."""

from __future__ import annotations

_is_worker = False


def in_worker() -> bool:
    """Return whether this process runs tests for a parent."""
    return _is_worker


def become_worker() -> None:
    """Mark this process as one that runs tests for a parent."""
    global _is_worker
    _is_worker = True
