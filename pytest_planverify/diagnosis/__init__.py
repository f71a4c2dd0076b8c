"""Diagnosis of evidence by an ordered table of rules.

Imports no pytest, so that it also runs on recorded evidence.
"""

from __future__ import annotations

from pytest_planverify.diagnosis.decision import diagnose
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.rules import RULES
from pytest_planverify.diagnosis.signatures import signature

__all__ = ["RULES", "Hit", "Rule", "diagnose", "signature"]
