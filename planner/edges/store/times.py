"""Times as the store writes them: RFC 3339 in UTC, and the order of the texts is that of the times."""

from __future__ import annotations

from datetime import UTC, datetime

_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def moment_of(seconds: float) -> str:
    """A time in epoch seconds; the first or last that can be written where it lies beyond."""
    known = min(max(seconds, _FIRST.timestamp()), _LAST.timestamp())
    text = datetime.fromtimestamp(known, UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def moment(at: datetime) -> str:
    """A time that knows its offset."""
    return moment_of(at.timestamp())


def seconds_between(opened: str, closed: str) -> float:
    """How long it took."""
    return (datetime.fromisoformat(closed) - datetime.fromisoformat(opened)).total_seconds()
