"""The banner above the door."""

from __future__ import annotations

from collections.abc import Callable


def on_weekdays(make: Callable[[str], str]) -> Callable[[str], str]:
    """Leave the banner empty on Sundays."""

    def made(day: str) -> str:
        return "" if day == "sunday" else make(day)

    return made


@on_weekdays
def banner(day: str) -> str:
    """Return the text of the banner."""
    return f"Open this {day}!"
