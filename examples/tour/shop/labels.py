"""Shelf labels."""

import csv
import json


def label(name: str, price: str) -> str:
    """What stands on the shelf."""
    if price == None:
        return f"on request"
    return f"{name}: {price}"
