"""Hygiene by comparison: two snapshots of a tree in, the signals of tampering out."""

from __future__ import annotations

from pytest_planverify.guards.hygiene.compare import compare
from pytest_planverify.guards.hygiene.grants import Grants
from pytest_planverify.guards.hygiene.signals import violations

__all__ = ["Grants", "compare", "violations"]
