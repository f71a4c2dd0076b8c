"""Hygiene: compares two snapshots of a tree for signals of tampering.

:func:`compare` returns the signals, :func:`violations` the todos that are responsible for them.
"""

from __future__ import annotations

from pytest_planverify.guards.hygiene.compare import compare, violations
from pytest_planverify.guards.hygiene.grants import Grants

__all__ = ["Grants", "compare", "violations"]
