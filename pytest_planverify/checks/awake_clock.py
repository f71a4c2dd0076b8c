"""A clock for time limits: it does not count the time in which nothing could run."""

from __future__ import annotations

import time

LONGEST_GAP = 1.0
"""Between two looks at most so many seconds count. Who watches a process looks many times a second; where
more has passed, the machine slept, or the container or the virtual machine stood still, and what is watched
stood still with it."""


class AwakeClock:
    """Seconds since it was made, without the gaps. The wall clock may be set; this one may not."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._looked = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds that count so far; to be called many times a second."""
        looked = time.monotonic()
        self._seconds += min(looked - self._looked, LONGEST_GAP)
        self._looked = looked
        return self._seconds
