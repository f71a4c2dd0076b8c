"""Small projects on disk with a plan, and the findings of the lint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from text_bundles import write_files

from planner.model.findings import PlanFinding
from planner.planfile.validation import validate_plan

GOOD_TEST = "from product import answer\n\n\ndef test_answer():\n    assert answer() == 42\n"
"""A test file without findings."""


def todo(todo_id: str = "a", *cmds: str, **keys: Any) -> dict[str, Any]:
    """Return a todo without findings, unless ``keys`` cause some."""
    made: dict[str, Any] = {"id": todo_id, "title": todo_id}
    criteria = dict(keys.pop("criteria", {}))
    if cmds:
        criteria["tests"] = [{"cmd": cmd, **keys.pop("spec", {})} for cmd in cmds]
    if criteria:
        made["acceptance_criteria"] = criteria
    return {**made, **keys}


def findings(
    folder: Path, *todos: dict[str, Any], files: dict[str, str | bytes] | None = None, **plan: Any
) -> tuple[PlanFinding, ...]:
    """Return the findings for a plan of these todos, in a project with these files."""
    write_files(folder, files or {})
    path = folder / "plan.json"
    path.write_text(json.dumps({"todo_list_id": "p", **plan, "items": list(todos)}))
    return validate_plan(path, boundary=folder)


def rules(*args: Any, **keys: Any) -> list[str]:
    """Return the rule ids of the findings."""
    return [finding.rule for finding in findings(*args, **keys)]


def only(rule: str, *args: Any, **keys: Any) -> PlanFinding:
    """Return the only finding of a rule."""
    (found,) = [finding for finding in findings(*args, **keys) if finding.rule == rule]
    return found
