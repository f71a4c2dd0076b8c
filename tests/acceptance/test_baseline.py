"""Baselines: their content, their effect on a run, and the detection of later changes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import commit_all, git
from example_project import ONLY_THIS_PLUGIN, RUN_MARK, Example, processes_of
from real_command import LEAN_TERMINAL, wait_until
from real_planner import Ran, forked

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n\ndef mul(a, b):\n    return a * b\n",
    "tests/test_add.py": """
        import calc
        def test_add(): assert calc.add(1, 2) == 3
        def test_zero(): assert calc.add(0, 0) == 0
    """,
    "tests/test_mul.py": "import calc\ndef test_mul(): assert calc.mul(2, 3) == 6\n",
    "tests/test_old.py": "def test_legacy(): assert [] == [1]\ndef test_fine(): pass\n",
    "tests/test_power.py": "from calc import power\ndef test_power(): assert power(2, 3) == 8\n",
    "tests/test_skip.py": "import pytest\ndef test_skip(): pytest.skip('not today')\n",
    "tests/test_flaky.py": """
        import pathlib
        def test_flaky():
            count = pathlib.Path(__file__).parents[2] / "count"  # beside the project
            seen = int(count.read_text() or 0) if count.exists() else 0
            count.write_text(str(seen + 1))
            assert seen % 2
    """,
    "tests/data.json": "{}",
    "conftest.py": "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n",
    "pytest.ini": "[pytest]\naddopts = --planverify-confirm=0\n",
    "old/unused.py": "import os\n",
    "build/made.txt": "by hand\n",
    ".gitignore": "build/\n",
}
TODOS: dict[str, dict[str, Any]] = {
    "turns": {"must_turn_green": ["tests/test_add.py::test_add"]},
    "turns-importable": {"must_turn_green": ["tests/test_power.py::test_power"]},
    "turns-up": {"must_turn_green": ["tests/test_new.py::test_new"]},
    "was-green": {"must_turn_green": ["tests/test_mul.py::test_mul"]},
    "was-skipped": {"must_turn_green": ["tests/test_skip.py::test_skip"]},
    "still-red": {"must_turn_green": ["tests/test_old.py::test_legacy"]},
    "flickers": {"must_turn_green": ["tests/test_flaky.py"]},
    "stays": {"must_stay_green": ["tests/test_mul.py", "tests/test_old.py"]},
    "all-stay": {"must_stay_green": "all"},
    "old-stay": {"must_stay_green": ["tests/test_old.py"]},
    "none-stay": {"must_stay_green": ["tests/test_add.py::test_add"]},
    "legacy": {"verify": "pytest tests/test_old.py"},
    "adds": {"verify": "pytest tests/test_add.py"},
    "lints": {"verify": "ruff check calc.py --select F"},
    "old-finding": {"verify": "ruff check old/unused.py --select F"},
    "new-finding": {"verify": "ruff check old --select F"},
}
WORK = {
    "calc.py": "def add(a, b):\n    return a + b\n\ndef mul(a, b):\n    return a * b\n\n"
    "def power(a, b):\n    return a ** b\n",
    "tests/test_new.py": "import calc\ndef test_new(): assert calc.add(2, 2) == 4\n"
    "def test_later(): assert calc.mul(2, 2) == 5\n",
    "tests/test_skip.py": "def test_skip(): pass\n",
    "old/unused.py": "# It is used.\nimport os\n",
    "old/new.py": "import os\n",
}


class Project(Example):
    """A project, with or without git, and the commands that run in it."""

    def choose(self, *todos: str) -> None:
        """Write a plan of these todos."""
        items = [{"id": name, "title": name, **TODOS[name]} for name in todos]
        self.plan(*items, todo_list_id="calc", metadata={"protected_files": []})

    def planverify(self, *words: str) -> Ran:
        """Run a command; its errors are in its output."""
        ran = forked(words, self.root, program="planverify", merged=True)
        assert "Traceback" not in ran.out, ran.out
        return ran

    @property
    def baseline_file(self) -> Path:
        return self.root / ".planverify/plans/calc/baseline.json"

    @property
    def baseline(self) -> dict[str, Any]:
        return json.loads(self.baseline_file.read_text(encoding="utf-8"))


def made(root: Path, *todos: str, under_git: bool = True) -> Project:
    """Return a new project with a plan of these todos."""
    project = Project(root, FILES)
    project.choose(*todos)
    if under_git:
        commit_all(root)
    return project


def verdict(outcome: dict[str, Any]) -> tuple[str, str]:
    (check,) = (check for check in outcome["checks"] if check["kind"] != "guard")
    return check["verdict"], check["reason"] or ""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """Return a project with a baseline, and the output of its recording. Tests must not change it."""
    project = made(tmp_path_factory.mktemp("baseline") / "calc", *TODOS)
    said = project.planverify("baseline", "plan.yaml")
    assert said.status == 0, said
    return project, said.out


@pytest.fixture
def project(recorded: tuple[Project, str], tmp_path: Path) -> Project:
    """Return a copy of the project with the same baseline."""
    return Project(shutil.copytree(recorded[0].root, tmp_path / "calc", symlinks=True))


def test_a_baseline_records_every_test_outcome_and_the_kind_of_every_file(
    recorded: tuple[Project, str],
) -> None:
    project, said = recorded
    assert "tests/test_old.py::test_legacy" in said
    held = project.baseline
    assert held["schema_version"] == 1
    assert held["revision"] == git(project.root, "rev-parse", "HEAD")
    tests = {name: (test["outcome"], test.get("flaky", False)) for name, test in held["tests"].items()}
    assert tests.pop("tests/test_flaky.py::test_flaky")[1]
    assert tests == {
        "tests/test_add.py::test_add": ("failed", False),
        "tests/test_add.py::test_zero": ("passed", False),
        "tests/test_mul.py::test_mul": ("passed", False),
        "tests/test_old.py::test_fine": ("passed", False),
        "tests/test_old.py::test_legacy": ("failed", False),
        "tests/test_power.py": ("error", False),
        "tests/test_skip.py::test_skip": ("skipped", False),
    }
    kinds = {name: file.get("kind", "product") for name, file in held["files"].items()}
    assert kinds["calc.py"] == "product"
    assert kinds["tests/test_add.py"] == "test"
    assert kinds["tests/data.json"] == "fixture"
    assert kinds["conftest.py"] == "conftest"
    assert kinds["pytest.ini"] == "config"
    assert kinds["plan.yaml"] == "plan"
    assert "build/made.txt" not in kinds
    assert all(file["committed"] for file in held["files"].values())


def test_recording_a_baseline_writes_no_outcomes_and_leaves_git_status_clean(
    recorded: tuple[Project, str],
) -> None:
    project, _ = recorded
    assert not project.outcome_file.exists()
    assert not (project.root / "diagnostics").exists()
    assert git(project.root, "status", "--porcelain") == ""
    kept = git(project.root, "cat-file", "blob", "refs/planverify/calc")
    assert json.loads(kept) == project.baseline


def test_verdicts_take_the_baseline_into_account(project: Project) -> None:
    project.write(WORK)
    run = project.verify()
    assert run.exit_code == 1, str(run)
    found = run.outcomes
    verdicts = {name: verdict(outcome)[0] for name, outcome in found.items()}
    verdicts.pop("flickers")
    assert verdicts == {
        "turns": "passed",
        "turns-importable": "passed",
        "turns-up": "passed",
        "was-green": "inconclusive",
        "was-skipped": "inconclusive",
        "still-red": "failed",
        "stays": "passed",
        "all-stay": "passed",
        "old-stay": "passed",
        "none-stay": "inconclusive",
        "legacy": "failed",
        "adds": "passed",
        "lints": "passed",
        "old-finding": "failed",
        "new-finding": "failed",
    }
    assert "passed at the baseline already" in verdict(found["was-green"])[1]
    assert "skipped at the baseline" in verdict(found["was-skipped"])[1]
    assert "none of its tests passed" in verdict(found["none-stay"])[1]
    assert "1 failing test did not pass at the baseline, and is not counted" in verdict(found["stays"])[1]
    since = {
        test["nodeid"]: test["since"]
        for outcome in found.values()
        for check in outcome["checks"]
        for test in check["tests"]
    }
    assert since == {
        "tests/test_add.py::test_add": "fixed",
        "tests/test_add.py::test_zero": "unknown",
        "tests/test_flaky.py::test_flaky": "flaky_at_base",
        "tests/test_mul.py::test_mul": "unknown",
        "tests/test_new.py::test_later": "new",
        "tests/test_new.py::test_new": "unknown",
        "tests/test_old.py::test_fine": "unknown",
        "tests/test_old.py::test_legacy": "pre_existing",
        "tests/test_power.py::test_power": "fixed",
        "tests/test_skip.py::test_skip": "unknown",
    }
    assert run.document is not None
    assert run.document["summary"]["tests_since"] == Counter(since.values())
    assert found["legacy"]["failure_evidence"]["since"] == "pre_existing"
    assert found["old-finding"]["failure_evidence"]["since"] == "pre_existing"
    assert found["new-finding"]["failure_evidence"]["since"] == "new"
    assert found["legacy"]["at_base"] == "open"
    assert found["legacy"]["checks"][0]["at_base"] == "mixed"
    assert found["still-red"]["checks"][0]["at_base"] == "red"
    *_, old, remarks = run.document["causes"]
    assert old["because"] == "it failed before the work began"
    assert [each["todo_id"] for each in remarks["todos"]] == ["old-finding", "new-finding"]
    assert "1 newly red, 1 red before, 1 flaky before, 2 fixed" in run.output


def test_a_git_revision_can_serve_as_the_baseline(tmp_path: Path) -> None:
    project = made(tmp_path / "calc", "turns", "turns-importable", "legacy")
    project.write(WORK)
    commit_all(project.root)
    branch = git(project.root, "symbolic-ref", "HEAD")
    index = git(project.root, "write-tree")
    found = project.verify("--planverify-baseline", "HEAD~1").outcomes
    assert verdict(found["turns"])[0] == "passed"
    assert verdict(found["turns-importable"])[0] == "passed"
    assert found["legacy"]["failure_evidence"]["since"] == "pre_existing"
    assert git(project.root, "worktree", "list").count("\n") == 0
    assert git(project.root, "symbolic-ref", "HEAD") == branch
    assert git(project.root, "write-tree") == index
    assert "the baseline of earlier runs is gone" not in project.verify().output


def test_a_baseline_is_replaced_only_with_a_reason(project: Project) -> None:
    project.choose("stays")
    project.write({"pytest.ini": "[pytest]\naddopts = --no-such-option\n"})  # so that no test can run
    refused = project.planverify("baseline")
    assert refused.status == 2
    assert "there is a baseline of 'calc'" in refused.out
    assert project.planverify("baseline", "--reason", " ").status == 2
    said = project.planverify("baseline", "--reason", "another machine")
    assert said.status == 0, said
    assert "tests     none was run" in said.out
    (entry,) = project.baseline["remade"]
    assert entry["reason"] == "another machine"
    assert entry["replaced"].startswith("sha256:")
    assert "another machine" in project.planverify("baseline", "show").out


def test_changed_tests_are_accepted_into_the_baseline_with_a_reason(project: Project) -> None:
    assert project.planverify("baseline", "accept", "turns").status == 2
    assert project.planverify("baseline", "accept", "nobody", "--reason", "x").status == 2
    assert project.planverify("baseline", "accept", "turns", "--reason", "x").status == 1
    named = project.planverify("baseline", "accept", "turns", "--reason", "x", "--file", "gone.py")
    assert (named.status, "not accepted: gone.py does not exist" in named.out) == (1, True)
    project.write({**WORK, "tests/test_mul.py": "def test_mul(): pass\n"})
    (project.root / "tests" / "data.json").unlink()
    done = project.planverify("baseline", "accept", "turns", "--reason", "the rule has changed")
    assert done.status == 0, done
    (accepted,) = project.baseline["accepted"]
    assert accepted["reason"] == "the rule has changed"
    assert accepted["files"]["tests/data.json"] is None
    names = ("data.json", "test_mul.py", "test_new.py", "test_skip.py")
    assert set(accepted["files"]) == {f"tests/{name}" for name in names}
    assert "accepted" in project.planverify("baseline", "show").out
    assert json.loads(git(project.root, "cat-file", "blob", "refs/planverify/calc")) == project.baseline


def test_an_unusable_baseline_is_refused_in_one_line(project: Project) -> None:
    git(project.root, "update-ref", "-d", "refs/planverify/calc")
    text = project.baseline_file.read_text()
    project.baseline_file.write_text(text.replace('"plan": "calc"', '"plan": "other"'))
    shown, run = project.planverify("baseline", "show"), project.verify()
    assert (shown.status, run.exit_code) == (4, 4), str(run)
    for output in (shown.out, run.output):
        (line,) = (line for line in output.splitlines() if "baseline" in line)
        assert "this is the baseline of the plan 'other', not of 'calc'" in line


def test_a_baseline_file_that_differs_from_the_copy_in_git_is_refused(project: Project) -> None:
    text = project.baseline_file.read_text()
    project.baseline_file.write_text(text.replace('"failed"', '"passed"'))
    shown = project.planverify("baseline", "show")
    assert shown.status == 4
    file = ".planverify/plans/calc/baseline.json"
    assert f"{file} differs from the copy of the baseline that git keeps" in shown.out
    assert "tests/test_old.py::test_legacy" in shown.out
    assert project.planverify("baseline", "accept", "turns", "--reason", "x").status == 4
    project.baseline_file.unlink()
    assert project.planverify("baseline", "show").status == 0


@pytest.mark.parametrize(
    ("revision", "under_git", "said"),
    [("--output=x", True, "unknown revision"), ("HEAD", False, "is not in a git repository")],
)
def test_an_unknown_baseline_revision_is_refused(
    tmp_path: Path, revision: str, under_git: bool, said: str
) -> None:
    project = made(tmp_path / "calc", "turns", under_git=under_git)
    run = project.verify(f"--planverify-baseline={revision}")
    assert run.exit_code == 4, str(run)
    assert said in run.output
    assert "Traceback" not in run.output


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("-c", "from pytest_planverify.cli import main; main()", "baseline"), 130),
        (("-m", "pytest", *ONLY_THIS_PLUGIN, "--planverify", "--planverify-baseline=HEAD"), 2),
    ],
    ids=["recording", "revision"],
)
def test_ctrl_c_while_a_baseline_is_recorded_leaves_nothing_behind(
    tmp_path: Path, words: tuple[str, ...], status: int
) -> None:
    begun = tmp_path / "begun"
    project = made(tmp_path / "calc", "stays", under_git=False)
    body = f"pathlib.Path({str(begun)!r}).touch(); time.sleep(600)"
    project.write({"tests/test_mul.py": f"import pathlib, time\ndef test_mul(): {body}\n"})
    commit_all(project.root)
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=project.root,
        env={**os.environ, **LEAN_TERMINAL, RUN_MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    wait_until(begun.exists)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == status, said
    assert "interrupted" in said
    assert "Traceback" not in said
    assert not list(project.root.glob(".planverify/baseline*"))
    assert git(project.root, "worktree", "list").count("\n") == 0
    assert processes_of(mark) == ()


def test_a_plan_that_cannot_be_verified_has_no_baseline(tmp_path: Path) -> None:
    project = made(tmp_path / "calc", "stays")
    project.write({"pytest.ini": "[pytest]\naddopts = --planverify-confirm=-1\n"})
    said = project.planverify("baseline")
    assert said.status == 4, said
    assert "the plan could not be verified (status 4)" in said.out
    assert "--planverify-confirm: -1 is negative" in said.out
    project.write({"plan.yaml": "items: []\n"})
    assert project.planverify("baseline").status == 4
    assert not project.baseline_file.exists()
