"""`planner undo` puts a plan back as it was before it was revised."""

from __future__ import annotations

from pathlib import Path

from real_planner import planner

from planner.planfile.tree import load_tree
from planner.planfile.versions import write_in_place

PLAN = """\
todo_list_id: shop  # mine
items:
  - {id: t1, title: One, requires_testing: false}
"""


def revise(path: Path, title: str) -> None:
    tree = load_tree(path)
    first = tree.loaded.plan.items[0].model_copy(update={"title": title})
    write_in_place(tree, {"": tree.loaded.plan.model_copy(update={"items": (first,)})})


def test_each_call_goes_back_by_one_version(tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    revise(plan, "Uno")
    revise(plan, "Due")

    first = planner("undo", "plan.yaml", cwd=tmp_path)
    assert (first.status, first.out) == (
        0,
        "plan.yaml: restored the previous version\nolder versions: 1\n",
    )
    assert "Uno" in plan.read_text()
    assert planner("undo", cwd=tmp_path).status == 0
    assert plan.read_text() == PLAN

    last = planner("undo", "plan.yaml", cwd=tmp_path)
    assert last.status == 4
    assert "there is no previous version" in last.err
    assert last.err.count("\n") == 1


def test_edits_by_hand_are_lost_only_by_force(tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    revise(plan, "Uno")
    plan.write_text(plan.read_text() + "# by hand\n")

    refused = planner("undo", "plan.yaml", cwd=tmp_path)
    assert refused.status == 4
    assert refused.err.count("\n") == 1
    assert "was edited since it was revised" in refused.err
    assert "# by hand" in plan.read_text()

    assert planner("undo", "plan.yaml", "--force", cwd=tmp_path).status == 0
    assert plan.read_text() == PLAN
