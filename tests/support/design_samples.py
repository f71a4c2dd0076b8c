"""Sample design plans, and state directories at several phases of planning."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from planner.authoring.design.plan import DesignPlan, Overview, add_part, change_part
from planner.authoring.design.review import ReviewPhase
from planner.authoring.design.state_folder import StateFolder

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
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


def add(plan: DesignPlan, kind: str, *words: str, to: str | None = None) -> DesignPlan:
    return add_part(plan, kind, words, now=NOW, within=to)[0]


def complete(plan: DesignPlan) -> DesignPlan:
    """Return the plan with every part that planning requires: two milestones in successive waves."""
    plan = change_part(plan, "overview", ["problem=too many digits", "approach=round at the end"])
    plan = add(plan, "decision", "decision=Round half up", "reasoning_chain=the law -> half up")
    for number, (file, function) in enumerate((("shop/cart.py", "total"), ("shop/tax.py", "tax")), 1):
        milestone = f"M-{number:03d}"
        plan = add(
            plan,
            "milestone",
            f"name=Round {function}",
            f"files={file}",
            "requirements=two digits",
            "acceptance_criteria=halves go up",
            f"tests.files=tests/test_{function}.py",
            f"documentation.module_comment=Sums, by DL-001, of {function}",
        )
        plan = add(
            plan,
            "intent",
            f"file={file}",
            f"function={function}",
            "behavior=round",
            "decision_refs=DL-001",
            to=milestone,
        )
        plan = add(
            plan, "change", f"intent_ref=CI-{number:03d}", f"file={file}", f"diff={DIFF}", to=milestone
        )
        plan = add(plan, "wave", f"milestones={milestone}")
    return plan


def begin(path: Path) -> StateFolder:
    """Create a state directory with an empty plan."""
    return StateFolder.create(path, Overview(title="Round prices"), now=NOW)


def begin_complete(path: Path) -> StateFolder:
    """Create a state directory with a complete plan and a frozen context."""
    folder = begin(path)
    folder.edit_plan(complete)
    folder.context_file.write_text(json.dumps(CONTEXT))
    folder.freeze_context()
    return folder


def review(folder: StateFolder, phase: ReviewPhase, *words: str) -> str:
    """Add an item to the review of a phase, and return its id."""
    return folder.add_item(phase, ["check=Is it so?", *words]).id


def pass_gates(folder: StateFolder, *phases: ReviewPhase) -> None:
    """Review each of the phases with one item that passes, and pass its gate."""
    for phase in phases:
        review(folder, phase, "status=PASS")
        folder.decide_gate(phase, passed=True, now=NOW)


def begin_frozen(path: Path) -> StateFolder:
    """Create a state directory with a frozen plan."""
    folder = begin_complete(path)
    pass_gates(folder, *PLANNING)
    return folder
