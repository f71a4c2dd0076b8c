"""What this process is: one that a person started, or one that runs tests for a parent."""

from __future__ import annotations

_in_session = False


def in_session() -> bool:
    """Whether this process runs tests for a parent."""
    return _in_session


def become_session() -> None:
    """From now on this process is a session."""
    global _in_session
    _in_session = True
