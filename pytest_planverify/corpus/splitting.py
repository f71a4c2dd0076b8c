"""The split of the corpus into a part to develop on and a part to test on, made once and by chance alone.

A case belongs to the test part when its package is kept for testing, or its kind of fault is: rules that
were written on the other part have seen neither.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

SEED = "planverify-corpus-1"
"""What the chance was drawn from. Never changed: that would show the test part to the rules."""

TEST_SHARE = 3
"""One of so many small projects, and one of so many kinds of fault, is kept for testing."""

PACKAGES = (
    "cachetools",
    "funcy",
    "inflect",
    "jinja2",
    "markdown-it-py",
    "markupsafe",
    "python-slugify",
    "tabulate",
)
"""The published packages that faults are put into."""

TEST_PACKAGES = 3
"""So many of them are kept for testing: the first in the order of their digests."""


class Part(StrEnum):
    """The parts of the corpus."""

    DEVELOP = "develop"
    TEST = "test"


def part_of(package: str, kind: str) -> Part:
    """Which part a case of this package, or small project, and kind of fault belongs to."""
    return Part.TEST if is_test_package(package) or is_test_kind(kind) else Part.DEVELOP


def is_test_package(package: str) -> bool:
    """Whether a package is kept for testing."""
    if package in PACKAGES:
        ranked = sorted(PACKAGES, key=lambda name: _digest("package", name))
        return package in ranked[:TEST_PACKAGES]
    return _digest("package", package) % TEST_SHARE == 0


def is_test_kind(kind: str) -> bool:
    """Whether a kind of fault is kept for testing."""
    return _digest("kind", kind) % TEST_SHARE == 0


def _digest(unit: str, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{SEED}:{unit}:{name}".encode()).digest()[:8])
