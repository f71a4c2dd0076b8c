"""Exchange rates, fetched once and then kept."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path

CACHE = Path(__file__).parents[1] / "cache" / "rates.json"
LAST_YEAR = {"EUR": "1.10"}


def rate(currency: str) -> Decimal:
    """Return the price of a pound in the currency."""
    if CACHE.exists():
        return Decimal(json.loads(CACHE.read_text(encoding="utf-8"))[currency])
    _fetch()
    return Decimal(LAST_YEAR[currency])


def clear() -> None:
    """Forget the rates, as the shop does every morning."""
    CACHE.unlink(missing_ok=True)


def _fetch() -> None:
    """Ask the bank."""
    CACHE.parent.mkdir(exist_ok=True)
    CACHE.write_text(json.dumps({"EUR": "1.20"}), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--clear"]:
        sys.exit("usage: python -m shop.rates --clear")
    clear()
    print("rates cleared")
