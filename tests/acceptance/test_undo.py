"""`planverify undo` restores the files that a run has changed, and loses nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from baseline_samples import commit_all
from test_run_with_agents import FILES, HONEST, PLAN, agent, project, run  # noqa: F401

from planner.planfile.tree import load_tree
from planner.planfile.versions import write_in_place

PRICE = ("--only", "price")
"""Options that limit a run to one todo, where two would show no more."""


def tree(root: Path) -> dict[str, str]:
    ours = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    left_out = (".", "__pycache__", "diagnostics")
    shown = [path for path in ours if not any(part.startswith(left_out) for part in path.parts)]
    return {str(path): (root / path).read_text() for path in shown}


def test_undo_restores_the_files_from_before_the_run_and_can_be_undone(project: Path):  # noqa: F811
    plan = PLAN.replace('/price.py"]', '/price.py", "shop/more.txt"]')
    (project / "plan.yaml").write_text(plan.replace('/basket.py"]', '/basket.py", "shop/more.txt"]'))
    (project / "shop/notes.txt").write_text("mine\n")
    commit_all(project)
    (project / "shop/price.py").write_text("def gross(net):\n    return net + 0\n")
    before = tree(project)
    makes_more = HONEST + 'pathlib.Path("shop/more.txt").write_text("more")\n'
    done = run(project, "run", "plan.yaml", "--dirty", "save", "--agent", agent(project, makes_more))
    assert done.exit_code == 0, str(done)
    assert "uncommitted work is kept: planverify undo restores it" in done.output
    after = tree(project)
    assert after["shop/more.txt"] == "more"
    (project / "shop/notes.txt").write_text("mine, and later\n")  # not changed by the run

    undone = run(project, "undo")
    assert undone.exit_code == 0, str(undone)
    assert "the run shop: 3 files, shop/basket.py, shop/more.txt, shop/price.py" in undone.output
    assert tree(project) == {**before, "shop/notes.txt": "mine, and later\n"}
    asked = run(project, "next")
    assert "changed since the run; the verdicts of price, basket are out of date" in asked.output
    assert run(project, "undo").exit_code == 4
    for words in (["status"], ["explain", "plan.yaml"], ["history"]):
        assert run(project, *words).exit_code == 0, words

    again = re.search(r"planverify (undo plan.yaml --to \w+)", undone.output)
    assert again is not None
    back = run(project, *again[1].split())
    assert back.exit_code == 0, back
    assert tree(project) == {**after, "shop/notes.txt": "mine, and later\n"}


def test_a_killed_run_can_be_undone_and_started_again(project: Path):  # noqa: F811
    before = tree(project)
    killer = HONEST + (
        "import psutil\n"
        "for process in psutil.Process().parents():\n"
        "    if process.cmdline()[-4:-1] == ['run', 'plan.yaml', '--agent']: process.kill()\n"
    )
    killed = run(project, "run", "plan.yaml", "--agent", agent(project, killer))
    assert killed.exit_code == -9, killed
    undone = run(project, "undo", "plan.yaml")
    assert undone.exit_code == 0, str(undone)
    assert tree(project) == before
    resumed = run(project, "run", "plan.yaml", "--agent", agent(project, HONEST), "--resume")
    assert (resumed.exit_code, "no run of this plan is unfinished" in resumed.output) == (2, True)
    assert run(project, "run", "plan.yaml", "--agent", agent(project, HONEST), *PRICE).exit_code == 0


def test_later_edits_are_undone_only_with_force_and_are_saved(project: Path):  # noqa: F811
    done = run(project, "run", "plan.yaml", "--agent", agent(project, HONEST), *PRICE)
    assert done.exit_code == 0, str(done)
    (project / "shop/price.py").write_text("mine\n")
    refused = run(project, "undo")
    assert (refused.exit_code, refused.output.count("\n")) == (4, 1)
    assert "shop/price.py: edited since the run" in refused.output
    assert (project / "shop/price.py").read_text() == "mine\n"

    forced = run(project, "undo", "--force")
    assert forced.exit_code == 0, forced
    assert (project / "shop/price.py").read_text() == FILES["shop/price.py"]
    assert run(project, *forced.output.split("planverify ")[-1].split()).exit_code == 0
    assert (project / "shop/price.py").read_text() == "mine\n"


def test_an_edit_of_the_plan_after_the_run_is_undone_first(project: Path):  # noqa: F811
    assert run(project, "run", "plan.yaml", "--agent", agent(project, HONEST), *PRICE).exit_code == 0
    plan = load_tree(project / "plan.yaml")
    write_in_place(plan, {"": plan.loaded.plan.model_copy(update={"workflow_name": "Later"})})
    revised = (project / "plan.yaml").read_text()
    (project / "plan.yaml").write_text("items: 7\n")  # with a broken plan, no run is looked for
    broken = run(project, "undo")
    assert (broken.exit_code, broken.output.count("\n")) == (4, 1)
    (project / "plan.yaml").write_text(revised)

    assert "plan.yaml: restored the previous version" in run(project, "undo").output
    assert (project / "plan.yaml").read_text() == PLAN
    assert "undid the run shop" in run(project, "undo").output
    assert (project / "shop/price.py").read_text() == FILES["shop/price.py"]


@pytest.mark.parametrize(
    "snapshot", ["0123456789ab", "HEAD", "--help=1", "refs/planverify/shop/before-run"]
)
def test_an_unknown_snapshot_is_reported_in_one_line(project: Path, snapshot: str):  # noqa: F811
    done = run(project, "undo", f"--to={snapshot}")
    assert (done.exit_code, done.output.count("\n")) == (4, 1)
    assert "unknown snapshot" in done.output


def test_undo_of_a_run_without_changes_leaves_it_resumable(project: Path):  # noqa: F811
    commit_all(project)
    idle = agent(project, "raise SystemExit(1)")
    waiting = run(project, "run", "plan.yaml", "--agent", idle, *PRICE)
    assert waiting.exit_code == 11, waiting

    undone = run(project, "undo", "plan.yaml")

    assert (undone.exit_code, "there is nothing to undo" in undone.output) == (0, True), str(undone)
    resumed = run(project, "run", "plan.yaml", "--agent", agent(project, HONEST), "--resume")
    assert "no run of this plan is unfinished" not in resumed.output
