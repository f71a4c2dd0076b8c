"""Validating a design plan of many milestones, beside parsing its JSON alone."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from table import Row

sys.path.insert(0, str(Path(__file__).parents[2]))
from planner.authoring.design.plan import DesignPlan

if TYPE_CHECKING:
    from collections.abc import Callable

MILESTONES = 1_000
MOST_TIMES = 4.0


def rows(folder: Path, rounds: int) -> list[Row]:
    """One row: how many times the time of :func:`json.loads` the validation takes."""
    text = plan_text()
    assert len(DesignPlan.model_validate_json(text).milestones) == MILESTONES
    ours = statistics.median(_seconds(lambda: DesignPlan.model_validate_json(text)) for _ in range(rounds))
    theirs = statistics.median(_seconds(lambda: json.loads(text)) for _ in range(rounds))
    how = f"{1000 * ours:.0f} ms, json.loads {1000 * theirs:.0f} ms"
    name = f"validating a design plan of {MILESTONES} milestones / parsing its JSON"
    return [Row(name=name, figure=ours / theirs, unit="x", at_most=MOST_TIMES, from_what=how)]


def plan_text() -> str:
    """Return the text of a plan in which each milestone has an intent, a change and a decision."""
    numbers = range(1, MILESTONES + 1)
    plan = {
        "schema_version": 2,
        "plan_id": "00000000-0000-4000-8000-000000000000",
        "created_at": "2026-01-02T03:04:05Z",
        "overview": {"title": "Rounding", "problem": "too many digits", "approach": "round at the end"},
        "planning_context": {"decision_log": [_decision(number) for number in numbers]},
        "milestones": [_milestone(number) for number in numbers],
        "milestone_dependencies": {
            "waves": [{"wave": number, "milestones": [f"M-{number:03d}"]} for number in numbers]
        },
    }
    return json.dumps(plan)


def _decision(number: int) -> dict[str, object]:
    return {
        "id": f"DL-{number:03d}",
        "timestamp": "2026-01-02T03:04:05Z",
        "decision": f"Round half up in part {number}",
        "reasoning_chain": "the law asks for it -> half up everywhere",
    }


def _milestone(number: int) -> dict[str, object]:
    file, decision = f"shop/part_{number}.py", f"DL-{number:03d}"
    change = {
        "id": f"CC-{number:03d}",
        "intent_ref": f"CI-{number:03d}",
        "file": file,
        "diff": f"--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-def total(): ...\n+def total(): return 2\n",
    }
    intent = {
        "id": f"CI-{number:03d}",
        "file": file,
        "function": "total",
        "behavior": "round half up, two digits",
        "decision_refs": [decision],
    }
    return {
        "id": f"M-{number:03d}",
        "number": number,
        "name": f"Round part {number}",
        "files": [file],
        "requirements": ["two digits", "halves go up"],
        "acceptance_criteria": ["tests pass"],
        "tests": {"files": [f"tests/test_part_{number}.py"]},
        "code_intents": [intent],
        "code_changes": [change],
    }


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
