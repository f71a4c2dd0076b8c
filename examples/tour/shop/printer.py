"""The receipt printer."""

from __future__ import annotations

from escpos.printer import Network

FEED = "\n\n\n"


def with_feed(receipt: str) -> str:
    """The receipt, with room to tear it off."""
    return receipt + FEED


def print_receipt(receipt: str, host: str) -> None:
    """Send it to the printer."""
    Network(host).text(with_feed(receipt))
