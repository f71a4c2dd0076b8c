"""Invalid plans are refused on one screen: exit status 4, all faults, and no test runs."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from example_project import Example, Verified
from text_bundles import read_bundle

PLANS = read_bundle(Path(__file__).parents[2] / "fixtures/plans/invalid.txt")
ALONE = ["alias_bomb.yaml", "deep.json", "many_faults.yaml", "python_tags.yaml"]
"""Plans that are verified by one command each; a single command verifies all others.

Their messages are those of `tests/planner/planfile`.
"""

SCREEN = 60
"""Maximum number of lines of output."""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Example, Verified]]:
    examples: dict[str, Example] = {}
    for name in ALONE:
        folder = tmp_path_factory.mktemp("bad")
        examples[name] = Example(folder, {"test_it.py": "open('ran', 'w')\ndef test_it(): pass\n"})
        (folder / name).write_text(PLANS[name])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(lambda name: examples[name].verify(name), ALONE)
    return {name: (examples[name], run) for name, run in zip(ALONE, runs, strict=True)}


@pytest.mark.parametrize("name", ALONE)
def test_an_invalid_plan_is_refused_on_one_screen(name: str, refused: dict[str, tuple[Example, Verified]]):
    example, run = refused[name]

    assert run.exit_code == 4, str(run)
    assert name in run.output
    assert "Traceback" not in run.output
    assert len(run.output.splitlines()) <= SCREEN, str(run)
    assert max(map(len, run.output.splitlines())) <= 1000
    assert sorted(path.name for path in example.root.iterdir()) == sorted([name, "test_it.py"])


def test_unreadable_plan_files_are_refused(tmp_path: Path):
    example = Example(tmp_path)
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "outside.yaml").write_text(
        "todo_list_id: p\n"
        "items: [{id: a, title: A, acceptance_criteria: {expected_artifacts: [link/passwd]}}]\n"
    )
    names = ("missing.yaml", "folder.yaml", "pipe.yaml", "outside.yaml")

    run = example.verify(*names, "--planverify-outcomes=all.json", timeout_seconds=120)

    assert run.exit_code == 4, str(run)
    assert not [name for name in names if name not in run.output], str(run)
    assert "Traceback" not in run.output
    assert not (tmp_path / ".planverify").exists()


def test_every_invalid_plan_of_several_is_reported(tmp_path: Path):
    example = Example(tmp_path)
    names = [name for name in PLANS if name not in ALONE]
    for name in names:
        (tmp_path / name).write_text(PLANS[name])

    run = example.verify(*names, "--planverify-outcomes=all.json")

    assert run.exit_code == 4, str(run)
    assert not [name for name in names if name not in run.output]
    assert "Traceback" not in run.output
    assert sorted(path.name for path in tmp_path.iterdir()) == names
