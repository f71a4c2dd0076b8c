"""Export the rules of the diagnosis, for programs that may not import them.

``python -m tools.corpus.catalogue`` writes ``planner/cli/data/diagnosis_rules.json``.
"""

from __future__ import annotations

import json
from pathlib import Path

import planner.cli
from pytest_planverify.diagnosis.decision import calibrated
from pytest_planverify.diagnosis.rules import RULES

FILE = Path(planner.cli.__file__).parent / "data" / "diagnosis_rules.json"
"""The generated file, in the package."""


def render() -> str:
    """Return the text of the file, with the rules in the order of their evaluation."""
    rules = [
        {
            "id": rule.id,
            "because": rule.because,
            "category": rule.category.value,
            "owner": (rule.owner or rule.category.facts.usual_owner).value,
            "confidence": round(calibrated(rule.id, rule.confidence), 3),
            **({"runner_up": rule.second.value} if rule.second is not None else {}),
        }
        for rule in RULES
    ]
    return json.dumps({"rules": rules}, indent=1, ensure_ascii=False) + "\n"


def write(file: Path = FILE) -> None:
    """Write the file."""
    file.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    write()
