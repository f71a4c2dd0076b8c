"""Baselines: their content, their effect on a run, and the detection of later changes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import commit_all, git
from example_project import RUN_MARK, processes_of
from real_command import PLAIN_TERMINAL, Finished, run_pytest
from real_planner import forked

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
        import os, pathlib
        def test_flaky():
            count = pathlib.Path(os.environ["COUNT"])
            seen = int(count.read_text() or 0) if count.exists() else 0
            count.write_text(str(seen + 1))
            assert seen % 2
    """,
    "tests/data.json": "{}",
    "conftest.py": "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n",
    "pytest.ini": "[pytest]\n",
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
    "legacy": {
        "acceptance_criteria": {"tests": [{"cmd": "pytest tests/test_old.py", "timeout_seconds": 30}]}
    },
    "adds": {
        "acceptance_criteria": {"tests": [{"cmd": "pytest tests/test_add.py", "timeout_seconds": 30}]}
    },
    "lints": {
        "acceptance_criteria": {"tests": [{"cmd": "ruff check calc.py --select F", "timeout_seconds": 30}]}
    },
}
WORK = {
    "calc.py": "def add(a, b):\n    return a + b\n\ndef mul(a, b):\n    return a * b\n\n"
    "def power(a, b):\n    return a ** b\n",
    "tests/test_new.py": "import calc\ndef test_new(): assert calc.add(2, 2) == 4\n"
    "def test_later(): assert calc.mul(2, 2) == 5\n",
    "tests/test_skip.py": "def test_skip(): pass\n",
}
HARM = {
    "calc.py": "import os\n" + WORK["calc.py"].replace("a * b", "a + a * b"),
    "tests/test_old.py": "def test_legacy(): assert [] == [1]\n",
}


LEAN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0"}
"""Variables that shorten runs: no loading of plugins, and no reruns of failures with other hash seeds."""

UNCONFIRMED = "--planverify-confirm=0"


class Project:
    """A project, with or without git, and the commands that run in it."""

    def __init__(
        self, root: Path, todos: tuple[str, ...] = tuple(TODOS), *, under_git: bool = True
    ) -> None:
        self.root = root
        root.mkdir(parents=True)
        self.write(FILES)
        self.plan(todos)
        self.env = {"COUNT": str(root.parent / f"{root.name}.count"), **LEAN}
        if under_git:
            self.commit()

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = text.strip("\n").split("\n")
            indent = len(lines[0]) - len(lines[0].lstrip())
            path.write_text("\n".join(line[indent:] for line in lines) + "\n", encoding="utf-8")

    def plan(self, todos: tuple[str, ...]) -> None:
        items = [{"id": name, "title": name, **TODOS[name]} for name in todos]
        plan = {"todo_list_id": "calc", "metadata": {"protected_files": []}, "items": items}
        self.write({"plan.yaml": json.dumps(plan, indent=1)})

    def git(self, *words: str) -> str:
        return git(self.root, *words)

    def commit(self) -> None:
        commit_all(self.root)

    def planverify(self, *words: str) -> Finished:
        done = subprocess.run(
            [sys.executable, "-c", "from pytest_planverify.cli import main; main()", *words],
            cwd=self.root,
            env={**os.environ, **PLAIN_TERMINAL, **self.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        assert "Traceback" not in done.stdout, done.stdout
        return Finished(exit_code=done.returncode, output=done.stdout)

    def forked(self, *words: str) -> Finished:
        """Run a command that verifies nothing."""
        ran = forked(words, self.root, program="planverify")
        assert "Traceback" not in ran.err, ran.err
        return Finished(exit_code=ran.status, output=ran.out + ran.err)

    def verify(
        self, *words: str, todos: tuple[str, ...] = ()
    ) -> tuple[Finished, dict[str, dict[str, Any]]]:
        done = run_pytest(
            *("-p", "pytest_planverify.plugin", "--planverify", "--planverify-confirm", "1"),
            *([f"plan.yaml::{name}" for name in todos] or ["plan.yaml"]),
            *words,
            cwd=self.root,
            env=self.env,
        )
        path = self.root / ".planverify" / "outcomes.json"
        if not path.exists():
            return done, {}
        document = json.loads(path.read_text(encoding="utf-8"))
        self.document = document
        return done, {outcome["todo_id"]: outcome for outcome in document["outcomes"]}

    @property
    def journals(self) -> list[Path]:
        return list(self.root.glob(".planverify/runs/*/journal.jsonl"))

    @property
    def baseline(self) -> dict[str, Any]:
        return json.loads((self.root / ".planverify/plans/calc/baseline.json").read_text(encoding="utf-8"))


def verdict(outcome: dict[str, Any]) -> tuple[str, str]:
    (check,) = (check for check in outcome["checks"] if check["kind"] != "guard")
    return check["verdict"], check["reason"] or ""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with a baseline. Tests must copy it, not change it."""
    project = Project(tmp_path_factory.mktemp("baseline") / "calc")
    project.env["PYTEST_ADDOPTS"] = UNCONFIRMED
    project.said = project.planverify("baseline", "plan.yaml")  # type: ignore[attr-defined]
    return project


@pytest.fixture
def project(recorded: Project, tmp_path: Path) -> Project:
    """Return a copy of the project with the same baseline."""
    copy = Project.__new__(Project)
    copy.root = tmp_path / "calc"
    copy.env = {"COUNT": str(tmp_path / "count"), **LEAN}
    shutil.copytree(recorded.root, copy.root, symlinks=True)
    return copy


def test_a_baseline_records_every_test_outcome_and_the_kind_of_every_file(recorded: Project) -> None:
    said = recorded.said  # type: ignore[attr-defined]
    assert said.exit_code == 0, said
    assert "tests/test_old.py::test_legacy" in said.output
    held = recorded.baseline
    assert held["schema_version"] == 1
    assert held["revision"] == recorded.git("rev-parse", "HEAD")
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


def test_recording_a_baseline_writes_no_outcomes_and_leaves_git_status_clean(recorded: Project) -> None:
    assert not (recorded.root / ".planverify" / "outcomes.json").exists()
    assert not (recorded.root / "diagnostics").exists()
    assert recorded.git("status", "--porcelain") == ""
    kept = recorded.git("cat-file", "blob", "refs/planverify/calc")
    assert json.loads(kept) == recorded.baseline


def test_verdicts_take_the_baseline_into_account(project: Project) -> None:
    project.write(WORK)
    done, found = project.verify()
    assert done.exit_code == 1, done
    assert {name: verdict(found[name])[0] for name in TODOS} == {
        "turns": "passed",
        "turns-importable": "passed",
        "turns-up": "passed",
        "was-green": "inconclusive",
        "was-skipped": "inconclusive",
        "still-red": "failed",
        "flickers": verdict(found["flickers"])[0],
        "stays": "passed",
        "all-stay": "passed",
        "old-stay": "passed",
        "none-stay": "inconclusive",
        "legacy": "failed",
        "adds": "passed",
        "lints": "passed",
    }
    assert "passed at the baseline already" in verdict(found["was-green"])[1]
    assert "skipped at the baseline" in verdict(found["was-skipped"])[1]
    assert "none of its tests passed" in verdict(found["none-stay"])[1]
    assert "are not counted" in verdict(found["stays"])[1]
    since = {
        test["nodeid"]: test["since"]
        for outcome in found.values()
        for check in outcome["checks"]
        for test in check["tests"]
    }
    flaky = since.pop("tests/test_flaky.py::test_flaky")
    assert flaky == "flaky_at_base"
    assert since == {
        "tests/test_add.py::test_add": "fixed",
        "tests/test_add.py::test_zero": "unknown",
        "tests/test_mul.py::test_mul": "unknown",
        "tests/test_new.py::test_later": "new",
        "tests/test_new.py::test_new": "unknown",
        "tests/test_old.py::test_fine": "unknown",
        "tests/test_old.py::test_legacy": "pre_existing",
        "tests/test_power.py::test_power": "fixed",
        "tests/test_skip.py::test_skip": "unknown",
    }
    assert project.document["summary"]["tests_since"] == {
        "fixed": 2,
        "flaky_at_base": 1,
        "new": 1,
        "pre_existing": 1,
        "unknown": 5,
    }
    assert found["legacy"]["failure_evidence"]["since"] == "pre_existing"
    assert found["legacy"]["at_base"] == "open"
    assert found["legacy"]["checks"][0]["at_base"] == "mixed"
    assert found["still-red"]["checks"][0]["at_base"] == "red"
    assert "1 newly red, 1 red before, 1 flaky before, 2 fixed" in done.output


def test_tests_green_at_the_baseline_must_neither_fail_nor_vanish_nor_skip(project: Project) -> None:
    project.write({**WORK, **HARM})
    asked = ("all-stay", "stays", "old-stay", "lints")
    _, found = project.verify(UNCONFIRMED, todos=asked)
    assert verdict(found["all-stay"])[0] == "failed"
    assert verdict(found["stays"])[0] == "failed"
    red = [tuple(failure["tests"]) for failure in found["stays"]["failures"] if failure["tests"]]
    assert red == [("tests/test_mul.py::test_mul",)]
    assert found["lints"]["failure_evidence"]["since"] == "new"
    assert verdict(found["old-stay"]) == (
        "failed",
        "tests/test_old.py::test_fine: passed at the baseline, but missing now",
    )
    assert found["old-stay"]["failure_evidence"]["since"] == "new"


def test_criteria_that_need_a_missing_baseline_are_inconclusive(project: Project) -> None:
    shutil.rmtree(project.root / ".planverify")
    project.git("update-ref", "-d", "refs/planverify/calc")
    project.write(WORK)
    done, found = project.verify(UNCONFIRMED, todos=("turns", "all-stay", "still-red", "stays"))
    for name in ("turns", "all-stay"):
        assert verdict(found[name]) == (
            "inconclusive",
            "there is no baseline to compare with; record one before the work starts: planverify "
            "baseline PLAN",
        ), done
    assert verdict(found["still-red"])[0] == "failed"
    assert verdict(found["stays"])[0] == "failed"
    assert project.document["summary"]["tests_since"] == {}
    assert not any(line.startswith("baseline") for line in done.output.splitlines())


def test_a_git_revision_can_serve_as_the_baseline(tmp_path: Path) -> None:
    project = Project(tmp_path / "calc", ("turns", "turns-importable", "legacy"))
    project.write(WORK)
    project.commit()
    branch, index = project.git("symbolic-ref", "HEAD"), project.git("write-tree")
    done, found = project.verify(UNCONFIRMED, "--planverify-baseline", "HEAD~1")
    assert verdict(found["turns"])[0] == "passed", done
    assert verdict(found["turns-importable"])[0] == "passed"
    assert found["legacy"]["failure_evidence"]["since"] == "pre_existing"
    assert project.git("worktree", "list").count("\n") == 0
    assert (project.git("symbolic-ref", "HEAD"), project.git("write-tree")) == (branch, index)


def test_a_baseline_is_replaced_only_with_a_reason(project: Project) -> None:
    project.plan(("stays",))
    refused = project.forked("baseline")
    assert refused.exit_code == 2
    assert "there is a baseline of 'calc'" in refused.output
    assert project.forked("baseline", "--reason", " ").exit_code == 2
    said = project.planverify("baseline", "--reason", "another machine")
    assert said.exit_code == 0, said
    (entry,) = project.baseline["remade"]
    assert entry["reason"] == "another machine"
    assert entry["replaced"].startswith("sha256:")
    shown = project.forked("baseline", "show")
    assert "another machine" in shown.output


def test_changed_tests_are_accepted_into_the_baseline_with_a_reason(project: Project) -> None:
    assert project.forked("baseline", "accept", "turns").exit_code == 2
    assert project.forked("baseline", "accept", "nobody", "--reason", "x").exit_code == 2
    assert project.forked("baseline", "accept", "turns", "--reason", "x").exit_code == 1
    project.write({**WORK, "tests/test_mul.py": "def test_mul(): pass\n"})
    (project.root / "tests" / "data.json").unlink()
    done = project.forked("baseline", "accept", "turns", "--reason", "the rule has changed")
    assert done.exit_code == 0, done
    (accepted,) = project.baseline["accepted"]
    assert accepted["reason"] == "the rule has changed"
    assert accepted["files"]["tests/data.json"] is None
    names = ("data.json", "test_mul.py", "test_new.py", "test_skip.py")
    assert set(accepted["files"]) == {f"tests/{name}" for name in names}
    assert "accepted" in project.forked("baseline", "show").output
    assert json.loads(project.git("cat-file", "blob", "refs/planverify/calc")) == project.baseline


def test_an_unusable_baseline_is_refused_in_one_line(project: Project) -> None:
    project.git("update-ref", "-d", "refs/planverify/calc")
    path = project.root / ".planverify/plans/calc/baseline.json"
    path.write_text(path.read_text().replace('"plan": "calc"', '"plan": "other"'))
    for done in (project.forked("baseline", "show"), project.verify()[0]):
        assert done.exit_code == 4, done
        (line,) = (line for line in done.output.splitlines() if "baseline" in line)
        assert "this is the baseline of the plan 'other', not of 'calc'" in line


def test_a_baseline_file_that_differs_from_the_copy_in_git_is_refused(project: Project) -> None:
    path = project.root / ".planverify/plans/calc/baseline.json"
    path.write_text(path.read_text().replace('"failed"', '"passed"'))
    shown = project.forked("baseline", "show")
    assert shown.exit_code == 4
    assert (
        ".planverify/plans/calc/baseline.json differs from the copy of the baseline that git keeps"
        in shown.output
    )
    assert "tests/test_old.py::test_legacy" in shown.output
    refused = project.forked("baseline", "accept", "turns", "--reason", "x")
    assert refused.exit_code == 4
    path.unlink()
    assert project.forked("baseline", "show").exit_code == 0


@pytest.mark.parametrize(
    ("revision", "under_git", "said"),
    [
        ("--output=x", True, "unknown revision"),
        ("HEAD", False, "is not in a git repository"),
    ],
)
def test_an_unknown_baseline_revision_is_refused(
    project: Project, revision: str, under_git: bool, said: str
) -> None:
    if not under_git:
        shutil.rmtree(project.root / ".git")
    done, _ = project.verify(f"--planverify-baseline={revision}")
    assert done.exit_code == 4, done
    assert said in done.output
    assert "Traceback" not in done.output


def test_a_project_without_git_can_have_a_baseline(tmp_path: Path) -> None:
    project = Project(tmp_path / "calc", ("turns",), under_git=False)
    said = project.planverify("baseline")
    assert said.exit_code == 0, said
    assert "no git revision" in said.output
    held = project.baseline
    assert not any(file.get("committed") for file in held["files"].values())
    objects = project.root / ".planverify" / "baseline" / "objects"
    assert {path.name for path in objects.iterdir()} == {file["sha256"] for file in held["files"].values()}
    project.write(WORK)
    _, found = project.verify(UNCONFIRMED)
    assert verdict(found["turns"])[0] == "passed"
    assert found["turns"]["touched_files"] == ["calc.py", "tests/test_new.py", "tests/test_skip.py"]
    assert found["turns"]["diff_hash"].startswith("sha256:")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("-c", "from pytest_planverify.cli import main; main()", "baseline"), 130),
        (
            (
                "-m",
                "pytest",
                "-p",
                "pytest_planverify.plugin",
                "--planverify",
                "--planverify-baseline=HEAD",
            ),
            2,
        ),
    ],
    ids=["recording", "revision"],
)
def test_ctrl_c_while_a_baseline_is_recorded_leaves_nothing_behind(
    tmp_path: Path, words: tuple[str, ...], status: int
) -> None:
    project = Project(tmp_path / "calc", ("stays",))
    begun = Path(project.env["COUNT"])
    body = "pathlib.Path(os.environ['COUNT']).write_text('x'); time.sleep(600)"
    project.write({"tests/test_mul.py": f"import os, pathlib, time\ndef test_mul(): {body}\n"})
    project.commit()
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=project.root,
        env={**os.environ, **PLAIN_TERMINAL, **project.env, RUN_MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    give_up = time.monotonic() + 300
    while not begun.exists():
        assert time.monotonic() < give_up
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == status, said
    assert "interrupted" in said
    assert "Traceback" not in said
    assert not list(project.root.glob(".planverify/baseline*"))
    assert project.git("worktree", "list").count("\n") == 0
    assert processes_of(mark) == ()


def test_a_plan_that_cannot_be_verified_has_no_baseline(tmp_path: Path) -> None:
    project = Project(tmp_path / "calc", ("stays",))
    project.env["PYTEST_ADDOPTS"] = "--planverify-confirm=-1"
    said = project.planverify("baseline")
    assert said.exit_code == 4, said
    assert "the plan could not be verified (status 4)" in said.output
    assert "--planverify-confirm: -1 is not a number" in said.output
    project.write({"pytest.ini": "[pytest]\naddopts = --no-such-option\n"})
    del project.env["PYTEST_ADDOPTS"]
    said = project.planverify("baseline")
    assert "tests     none was run" in said.output
    (project.root / ".planverify/plans/calc/baseline.json").unlink()
    project.write({"plan.yaml": "items: []\n"})
    assert project.forked("baseline").exit_code == 4
    assert not (project.root / ".planverify/plans/calc/baseline.json").exists()
