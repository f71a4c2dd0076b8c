"""Code that runs inside a worker. It observes the session and writes records; it never judges.

Nothing here may import pydantic or other libraries of the parent: the project under test may itself be one
of them.
"""

from __future__ import annotations

_is_worker = False


def in_worker() -> bool:
    """Return whether this process is a worker of a run."""
    return _is_worker


def become_worker() -> None:
    """Mark this process as a worker of a run."""
    global _is_worker
    _is_worker = True
