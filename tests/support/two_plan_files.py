"""A plan with a sub-plan in a file of its own, both with a comment that every revision has to keep."""

from __future__ import annotations

from pathlib import Path

PLAN = """\
todo_list_id: shop  # mine
items:
  - {id: t1, title: One, requires_testing: false}
  - {id: t2, title: Two, requires_testing: false}
  - {id: phase, title: Phase, sub_plan: phases/two.yaml}
"""
SUB = """\
todo_list_id: two  # the second
root: ..
items:
  - {id: s1, title: First, requires_testing: false}
  - {id: s2, title: Second, requires_testing: false}
"""


def write_plans(folder: Path) -> Path:
    """Write both files, and return the path of the plan."""
    (folder / "phases").mkdir()
    (folder / "phases/two.yaml").write_text(SUB)
    (folder / "plan.yaml").write_text(PLAN)
    return folder / "plan.yaml"
