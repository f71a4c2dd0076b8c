"""Invalid plans are refused on one screen: exit status 4, all faults, and no test runs.

Their messages are tested in `tests/planner/planfile`.
"""

from __future__ import annotations

import os
from pathlib import Path

from example_project import Example, Verified, todo
from text_bundles import read_bundle

PLANS = read_bundle(Path(__file__).parents[2] / "fixtures/plans/invalid.txt")
SCREEN = 60
"""Maximum number of lines of output."""


def assert_refused(run: Verified, *names: str) -> None:
    assert run.exit_code == 4, str(run)
    assert not [name for name in names if name not in run.output], str(run)
    assert "Traceback" not in run.output
    assert max(map(len, run.output.splitlines())) <= 1000


def test_a_plan_with_many_faults_is_refused_on_one_screen(tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": "open('ran', 'w')\ndef test_it(): pass\n"})
    example.write({"many_faults.yaml": PLANS["many_faults.yaml"]})

    run = example.verify("many_faults.yaml")

    assert_refused(run, "many_faults.yaml")
    assert len(run.output.splitlines()) <= SCREEN, str(run)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["many_faults.yaml", "test_it.py"]


def test_every_invalid_or_unreadable_plan_of_several_is_reported(tmp_path: Path):
    example = Example(tmp_path)
    for name, text in PLANS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "outside.yaml").write_text(
        "todo_list_id: p\n"
        "items: [{id: a, title: A, acceptance_criteria: {expected_artifacts: [link/passwd]}}]\n"
    )
    before = sorted(tmp_path.iterdir())
    names = ("missing.yaml", "folder.yaml", "pipe.yaml", "outside.yaml", *PLANS)

    run = example.verify(*names, "--planverify-outcomes=all.json", timeout_seconds=120)

    assert_refused(run, *names)
    assert sorted(tmp_path.iterdir()) == before


def test_a_run_of_a_plan_in_a_sub_folder_without_root_names_the_root(tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": "def test_it(): pass\n"})
    example.plan(todo("it", "pytest test_it.py"), path="plans/plan.yaml")

    run = example.verify("plans/plan.yaml", outcomes=tmp_path / "plans/.planverify/outcomes.json")

    assert run.exit_code == 1
    notes = " ".join(run.output.split())
    assert "but test_it.py does below ..; add root: .. to the plan" in notes
