"""Hygiene by comparison: two snapshots of a tree in, the signals of tampering out."""

from __future__ import annotations

from pytest_planverify.guards.hygiene.compare import compare, violations
from pytest_planverify.guards.hygiene.grants import Grants

__all__ = ["Grants", "compare", "violations"]
