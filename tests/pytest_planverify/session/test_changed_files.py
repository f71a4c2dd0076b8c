"""What evidence says of the files that are not as they were."""

from __future__ import annotations

import subprocess
from pathlib import Path

from planner.model.verdicts import Side
from pytest_planverify.baseline.changes import Changes
from pytest_planverify.session.outcomes import MOST_CHANGED, changed_files


def _repository(root: Path) -> None:
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "green"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], cwd=root, check=True)


def test_changed_files_say_whose_they_are_and_leave_plans_out(tmp_path: Path):
    (tmp_path / "tests").mkdir()
    files = ("cart.py", "tests/test_cart.py", "notes.md", "plan.json")
    for name in files:
        (tmp_path / name).write_text("{}\n")
    _repository(tmp_path)
    for name in files:
        (tmp_path / name).write_text("{} \n")

    found = changed_files(tmp_path, Changes(tmp_path, [tmp_path / "plan.json"]))

    assert found is not None
    assert [(each.path, each.side) for each in found] == [
        ("cart.py", Side.PRODUCT),
        ("tests/test_cart.py", Side.TEST),
        ("notes.md", None),
    ]


def test_without_a_commit_nothing_is_said_of_changes(tmp_path: Path):
    (tmp_path / "cart.py").write_text("")

    assert changed_files(tmp_path, Changes(tmp_path)) is None


def test_code_comes_first_where_too_much_has_changed(tmp_path: Path):
    (tmp_path / "a.md").write_text("")
    _repository(tmp_path)
    for number in range(MOST_CHANGED):
        (tmp_path / f"a{number:02}.md").write_text("")
    (tmp_path / "z.py").write_text("")

    found = changed_files(tmp_path, Changes(tmp_path))

    assert found is not None
    assert (len(found), found[0].path) == (MOST_CHANGED, "z.py")
