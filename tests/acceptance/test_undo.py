"""`planverify undo` restores the files that a run has changed, and loses nothing."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from baseline_samples import commit_all
from real_command import Finished
from test_run_with_agents import FILES, HONEST, agent, carry_out, project, run, run_forked  # noqa: F401
from text_bundles import write_files

from planner.planfile.tree import load_tree
from planner.planfile.versions import write_in_place
from pytest_planverify.harness.snapshots import Snapshots
from pytest_planverify.harness.undo import AFTER_RUN, BEFORE_RUN


def tree(root: Path) -> dict[str, str]:
    ours = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    left_out = (".", "__pycache__", "diagnostics")
    shown = [path for path in ours if not any(part.startswith(left_out) for part in path.parts)]
    return {str(path): (root / path).read_text() for path in shown}


@dataclass(frozen=True)
class Worked:
    """A project after a run, with its files before and after the run."""

    root: Path
    before: dict[str, str]
    after: dict[str, str]

    def undo(self, *words: str) -> Finished:
        return run_forked(self.root, "undo", *words)

    @property
    def price(self) -> str:
        return (self.root / "shop/price.py").read_text()


PLAN = """\
todo_list_id: shop
items:
  - id: price
    title: The price has the tax in it
    allowed_files: ["shop/price.py", "shop/basket.py", "shop/more.txt"]
    acceptance_criteria: {tests: [pytest tests/test_price.py]}
"""
UNCOMMITTED = "def gross(net):\n    return net + 0\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Worked:
    """Return a project after a run that changed two files and made one, on top of uncommitted work."""
    root = tmp_path_factory.mktemp("finished") / "project"
    write_files(root, {**FILES, "plan.yaml": PLAN, "shop/notes.txt": "mine\n"})
    commit_all(root)
    (root / "shop/price.py").write_text(UNCOMMITTED)
    before = tree(root)
    work = HONEST
    for name in ("basket.py", "more.txt"):
        work += f"pathlib.Path('shop/{name}').write_text('# more')\n"
    done = carry_out(root, work, "--dirty", "save")
    assert done.exit_code == 0, str(done)
    assert "uncommitted work is kept: planverify undo restores it" in done.output
    assert tree(root)["shop/more.txt"] == "# more"
    return Worked(root, before, tree(root))


@pytest.fixture
def worked(finished: Worked, tmp_path: Path) -> Worked:
    """Return a copy of the project for one test."""
    root = shutil.copytree(finished.root, tmp_path / "project", symlinks=True)
    return replace(finished, root=root)


def test_undo_restores_the_files_from_before_the_run_and_can_be_undone(worked: Worked):
    (worked.root / "shop/notes.txt").write_text("mine, and later\n")  # not changed by the run

    undone = worked.undo()
    assert undone.exit_code == 0, str(undone)
    assert "the run shop: 3 files, shop/basket.py, shop/more.txt, shop/price.py" in undone.output
    assert tree(worked.root) == {**worked.before, "shop/notes.txt": "mine, and later\n"}
    asked = run_forked(worked.root, "next")
    assert "changed since the run; the verdicts of price are out of date" in asked.output
    assert "executing: 0 of 1 todo done" in asked.output
    assert "3 verifications, 1 run," in run_forked(worked.root, "history").output  # next has begun no other
    assert worked.undo().exit_code == 4
    for words in (["status"], ["explain", "plan.yaml"], ["history"]):
        assert run_forked(worked.root, *words).exit_code == 0, words

    again = re.search(r"planverify undo (plan.yaml --to \w+)", undone.output)
    assert again is not None
    back = worked.undo(*again[1].split())
    assert back.exit_code == 0, back
    assert tree(worked.root) == {**worked.after, "shop/notes.txt": "mine, and later\n"}


def test_later_edits_are_undone_only_with_force_and_are_saved(worked: Worked):
    (worked.root / "shop/price.py").write_text("mine\n")
    refused = worked.undo()
    assert (refused.exit_code, refused.output.count("\n")) == (4, 1)
    assert "shop/price.py: edited since the run" in refused.output
    assert worked.price == "mine\n"

    forced = worked.undo("--force")
    assert forced.exit_code == 0, forced
    assert worked.price == UNCOMMITTED
    assert worked.undo(*forced.output.split("planverify undo ")[-1].split()).exit_code == 0
    assert worked.price == "mine\n"


def test_an_edit_of_the_plan_after_the_run_is_undone_first(worked: Worked):
    file = worked.root / "plan.yaml"
    original = file.read_text()
    plan = load_tree(file)
    write_in_place(plan, {"": plan.loaded.plan.model_copy(update={"workflow_name": "Later"})})
    revised = file.read_text()
    file.write_text("items: 7\n")  # with a broken plan, no run is looked for
    broken = worked.undo()
    assert (broken.exit_code, broken.output.count("\n")) == (4, 1)
    file.write_text(revised)

    assert "plan.yaml: restored the previous version" in worked.undo().output
    assert file.read_text() == original
    assert "undid the run shop" in worked.undo().output
    assert worked.price == UNCOMMITTED


def test_a_run_that_changed_no_file_hides_no_earlier_run(worked: Worked):
    idle = Snapshots(worked.root, "shop.2")
    (worked.root / ".planverify/harness/shop.2").mkdir()
    (worked.root / ".planverify/logs/shop.2.jsonl").write_text("{}\n")
    for label in (BEFORE_RUN, AFTER_RUN):
        idle.take(label)

    assert "undid the run shop:" in worked.undo().output
    assert worked.price == UNCOMMITTED
    assert "the run shop.2 changed no file" in worked.undo().output


def test_an_unknown_snapshot_is_reported_in_one_line(finished: Worked):
    for snapshot in ("0123456789ab", "HEAD", "--help=1", "refs/planverify/shop/before-run"):
        done = finished.undo(f"--to={snapshot}")
        assert (done.exit_code, done.output.count("\n")) == (4, 1)
        assert "unknown snapshot" in done.output


def test_a_killed_run_is_undone_and_a_run_without_changes_stays_resumable(project: Path):  # noqa: F811
    before = tree(project)
    only = ("--only", "price", "--agent")
    killer = HONEST + (
        "import psutil\n"
        "for process in psutil.Process().parents():\n"
        f"    if process.cmdline()[-6:-1] == ['run', 'plan.yaml', *{only}]: process.kill()\n"
    )
    killed = run(project, "run", "plan.yaml", *only, agent(project, killer))
    assert killed.exit_code == -9, killed
    undone = run_forked(project, "undo", "plan.yaml")
    assert undone.exit_code == 0, str(undone)
    assert tree(project) == before
    idle = ("--agent", agent(project, "raise SystemExit(1)"))
    refused = run_forked(project, "run", "plan.yaml", *idle, "--resume")
    assert (refused.exit_code, "no run of this plan is unfinished" in refused.output) == (2, True)

    waiting = run_forked(project, "run", "plan.yaml", "--only", "price", *idle)
    assert waiting.exit_code == 11, waiting
    undone = run_forked(project, "undo", "plan.yaml")
    assert (undone.exit_code, "there is nothing to undo" in undone.output) == (0, True), str(undone)
    resumed = run_forked(project, "run", "plan.yaml", *idle, "--resume")
    assert resumed.exit_code == 11, resumed
    assert "no run of this plan is unfinished" not in resumed.output
