"""Hygiene by comparison: two snapshots of a tree in, the signs of a verdict that was bought out."""

from __future__ import annotations

from pytest_planverify.guards.hygiene.blaming import violations
from pytest_planverify.guards.hygiene.comparing import compare
from pytest_planverify.guards.hygiene.grants import Grants

__all__ = ["Grants", "compare", "violations"]
