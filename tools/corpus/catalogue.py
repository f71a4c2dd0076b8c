"""Export the rules of the diagnosis, for programs that may not import them.

``python -m tools.corpus.catalogue`` writes ``planner/cli/data/diagnosis_rules.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import planner.cli
from pytest_planverify.diagnosis.decision import calibrated, diagnose
from pytest_planverify.diagnosis.messages import quote
from pytest_planverify.diagnosis.rules import RULES
from tools.corpus.case import RECORDED, Part, read_cases

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tools.corpus.case import Case

FILE = Path(planner.cli.__file__).parent / "data" / "diagnosis_rules.json"
"""The generated file, in the package."""


CORPUS = RECORDED
"""The corpus of the checkout; the examples are taken from its part ``develop``."""

MOST_EXAMPLES = 2
_LONGEST_SAYING = 110


def examples_of(cases: Iterable[Case]) -> Mapping[str, list[str]]:
    """Return, by rule, a few cases that it diagnoses correctly, each of another package or project."""
    found: dict[str, dict[str, str]] = {}
    for case in cases:
        if case.evidence is None or case.label is None:
            continue
        diagnosis = diagnose(case.evidence)
        seen = found.setdefault(diagnosis.rule, {})
        if len(seen) < MOST_EXAMPLES and case.label.accepts(diagnosis.category, diagnosis.owner):
            said = quote(case.evidence.headline, _LONGEST_SAYING) or "nothing was said"
            seen.setdefault(case.origin.package, f"{case.origin.package}, {case.origin.kind}: {said}")
    return {rule: list(seen.values()) for rule, seen in found.items() if seen}


def render(corpus: Path = CORPUS) -> str:
    """Return the text of the file, with the rules in the order of their evaluation."""
    cases = read_cases(corpus, Part.DEVELOP) if (corpus / Part.DEVELOP).is_dir() else ()
    examples = examples_of(cases)
    rules = [
        {
            "id": rule.id,
            "because": rule.because,
            "category": rule.category.value,
            "owner": (rule.owner or rule.category.facts.usual_owner).value,
            "confidence": round(calibrated(rule.id, rule.confidence), 3),
            **({"runner_up": rule.second.value} if rule.second is not None else {}),
            **({"examples": examples[rule.id]} if rule.id in examples else {}),
        }
        for rule in RULES
    ]
    return json.dumps({"rules": rules}, indent=1, ensure_ascii=False) + "\n"


def write(file: Path = FILE) -> None:
    """Write the file."""
    file.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    write()
