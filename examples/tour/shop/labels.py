"""Shelf labels."""

import csv
import json


def label(name: str, price: str) -> str:
    """Return the text of a label."""
    if price == None:
        return f"on request"
    return f"{name}: {price}"
