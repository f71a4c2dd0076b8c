"""Opening hours."""

from __future__ import annotations

import json
from pathlib import Path

HOURS = Path(__file__).parents[1] / "data" / "opening_hours.json"


def is_open(day: str, hour: int) -> bool:
    """Return whether the shop is open at that full hour."""
    hours = json.loads(HOURS.read_text(encoding="utf-8"))
    opens, closes = hours.get(day, (0, 0))
    return opens <= hour < closes
