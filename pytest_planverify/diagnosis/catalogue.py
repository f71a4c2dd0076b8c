"""Writes down what every rule of the diagnosis says, for programs that may not import the rules.

``python -m pytest_planverify.diagnosis.catalogue`` writes ``planner/edges/data/diagnosis_rules.json``.
"""

from __future__ import annotations

import json
from pathlib import Path

import planner.edges
from pytest_planverify.diagnosis.rules import RULES

FILE = Path(planner.edges.__file__).parent / "data" / "diagnosis_rules.json"
"""The generated file, in the package."""


def render() -> str:
    """The text of the file: every rule in the order in which they are asked."""
    rules = [
        {
            "id": rule.id,
            "because": rule.because,
            "category": rule.category.value,
            "owner": (rule.owner or rule.category.facts.usual_owner).value,
            "confidence": rule.confidence,
            **({"runner_up": rule.runner_up[0].value} if rule.runner_up is not None else {}),
        }
        for rule in RULES
    ]
    return json.dumps({"rules": rules}, indent=1, ensure_ascii=False) + "\n"


def write(file: Path = FILE) -> None:
    """Write the file."""
    file.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    write()
