"""The banner above the door."""

from __future__ import annotations

from collections.abc import Callable


def on_weekdays(make: Callable[[str], str]) -> Callable[[str], str]:
    """Nothing is shown on a Sunday."""

    def made(day: str) -> str:
        return "" if day == "sunday" else make(day)

    return made


@on_weekdays
def banner(day: str) -> str:
    """What stands above the door."""
    return f"Open this {day}!"
