"""Sample design plans, and state directories at several phases of planning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.authoring.design.parts import add_part, change_part
from planner.authoring.design.plan import ReviewPhase
from planner.authoring.design.state_folder import StateFolder

CONTEXT_KEYS = (
    "task_spec",
    "constraints",
    "entry_points",
    "rejected_alternatives",
    "current_understanding",
    "assumptions",
    "invisible_knowledge",
    "user_quotes",
)
CONTEXT: dict[str, list[str]] = {**{key: [] for key in CONTEXT_KEYS}, "task_spec": ["goal: round prices"]}
DIFF = "--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -1 +1 @@\n-def total(): ...\n+def total(): return 2\n"
PLANNING = (ReviewPhase.PLAN_DESIGN, ReviewPhase.PLAN_CODE, ReviewPhase.PLAN_DOCS)


def complete(data: dict[str, Any]) -> None:
    """Add every part that planning requires: two milestones in successive waves."""
    change_part(data, "overview", ["problem=too many digits", "approach=round at the end"])
    add_part(data, "decision", ["decision=Round half up", "reasoning_chain=the law -> half up"])
    for number, (file, function) in enumerate((("shop/cart.py", "total"), ("shop/tax.py", "tax")), 1):
        words = [f"name=Round {function}", f"files={file}", "requirements=two digits"]
        words += ["acceptance_criteria=halves go up", f"tests.files=tests/test_{function}.py"]
        words += [f"documentation.module_comment=Sums, by DL-001, of {function}"]
        milestone = add_part(data, "milestone", words)
        words = [f"file={file}", f"function={function}", "behavior=round", "decision_refs=DL-001"]
        add_part(data, "intent", words, to=milestone)
        words = [
            f"intent_ref=CI-{number:03d}",
            f"file={file}",
            f"diff={DIFF.replace('shop/cart.py', file)}",
        ]
        add_part(data, "change", words, to=milestone)
        add_part(data, "wave", [f"milestones={milestone}"])


def begin(path: Path) -> StateFolder:
    """Create a state directory with an empty plan."""
    return StateFolder.create(path, ["title=Round prices"])


def begin_complete(path: Path) -> StateFolder:
    """Create a state directory with a complete plan and a frozen context."""
    folder = begin(path)
    with folder.edit() as data:
        complete(data)
    folder.context_file.write_text(json.dumps(CONTEXT))
    folder.freeze_context()
    return folder


def change(folder: StateFolder, part: str, *words: str, phase: ReviewPhase | None = None) -> None:
    """Change a part of the plan, or an item of the review of a phase."""
    with folder.edit(phase) as data:
        change_part(data, part, words)


def review(folder: StateFolder, phase: ReviewPhase, *words: str) -> str:
    """Add an item to the review of a phase, and return its id."""
    with folder.edit(phase) as data:
        return add_part(data, "item", ["check=Is it so?", *words])


def pass_gates(folder: StateFolder, *phases: ReviewPhase) -> None:
    """Review each of the phases with one item that passes, and pass its gate."""
    for phase in phases:
        review(folder, phase, "status=PASS")
        folder.decide_gate(phase, passed=True)


def begin_frozen(path: Path) -> StateFolder:
    """Create a state directory with a frozen plan."""
    folder = begin_complete(path)
    pass_gates(folder, *PLANNING)
    return folder
