"""Hygiene: comparison of two snapshots of a tree for signals of tampering."""

from __future__ import annotations

from pytest_planverify.guards.hygiene.compare import compare, violations
from pytest_planverify.guards.hygiene.grants import Grants

__all__ = ["Grants", "compare", "violations"]
