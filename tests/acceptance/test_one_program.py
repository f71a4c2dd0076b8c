"""``planverify`` verifies, and decides like ``planner``, in every folder of a project."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from example_project import Example, todo
from real_command import LEAN_TERMINAL, planverify, wait_until
from real_planner import planner

from pytest_planverify.cli import app

FILES = {
    "test_it.py": "def test_it(): pass\n",
    "test_red.py": "def test_red(): assert False\n",
    "pytest.ini": "[pytest]\n",
    "src/deep/module.py": "",
}


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return an_example(tmp_path)


def an_example(folder: Path) -> Example:
    example = Example(folder, FILES)
    example.plan(
        todo("draw", "pytest test_red.py"),
        todo("paint", "pytest test_it.py", after=("draw",)),
        todo("hang", "pytest test_it.py"),
    )
    return example


@pytest.fixture(scope="module")
def verified_once(tmp_path_factory: pytest.TempPathFactory) -> Example:
    example = an_example(tmp_path_factory.mktemp("verified") / "project")
    assert example.verify("--planverify-confirm=0").exit_code == 1
    return example


@pytest.fixture
def verified(verified_once: Example, tmp_path: Path) -> Example:
    """Return a copy of the project after a run."""
    return verified_once.copied_to(tmp_path / "verified")


def test_options_are_passed_through_and_only_the_selected_todos_run(example: Example) -> None:
    green = planverify("plan.yaml::paint,hang", "-q", "--planverify-confirm", "0", cwd=example.root)
    assert green.returncode == 0, green.stdout + green.stderr
    outcomes = json.loads(example.outcome_file.read_text())["outcomes"]
    states = {outcome["todo_id"]: outcome["state"] for outcome in outcomes}
    assert states == {"draw": "pending", "paint": "done", "hang": "done"}


def test_configuration_that_pytest_cannot_use_is_an_error_without_traceback(
    example: Example, tmp_path: Path
) -> None:
    filters = "error\n  ignore::not_installed.SomeWarning"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nfilterwarnings =\n  {filters}\n")

    found = planverify("verify", cwd=tmp_path)

    assert (found.returncode, found.stdout) == (4, "")
    if pytest.version_tuple >= (9,):  # before, the message of pytest itself has a traceback
        assert "Traceback" not in found.stderr
        assert "pytest cannot start with this configuration" in found.stderr
    assert "not_installed" in found.stderr


@pytest.mark.parametrize(
    ("command", "stream", "status"),
    [
        ("verify plan.yaml::draw --planverify-confirm=0", "/dev/full", 1),
        ("verify plan.yaml::draw --planverify-confirm=0", "&-", 1),
        ("next plan.yaml", "&-", 0),
    ],
)
def test_outcomes_are_kept_if_the_output_cannot_be_written(
    example: Example, tmp_path: Path, command: str, stream: str, status: int
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m pytest_planverify {command} >{stream}', sys.executable],
        cwd=tmp_path,
        env={**os.environ, **LEAN_TERMINAL},
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )

    is_full = stream == "/dev/full"
    assert ("the output cannot be written: No space left on device" in done.stderr) is is_full
    assert done.stderr.count("\n") == is_full, done.stderr
    assert done.returncode == status
    assert example.outcome_file.exists() is command.startswith("verify")


def test_every_listed_command_can_be_loaded() -> None:
    group: Any = typer.main.get_command(app)

    for name in group.list_commands(None):
        assert group.get_command(None, name) is not None, name


def test_a_plan_names_the_program_that_made_it(verified: Example) -> None:
    assert planverify("iterate", "-o", "next.yaml", cwd=verified.root).returncode == 0

    assert (verified.root / "next.yaml").read_text().startswith("# Made by planverify iterate.")


def test_todos_selected_after_the_plan_are_shown_alone(verified: Example) -> None:
    shown = planner("status", "plan.yaml::draw,hang", cwd=verified.root).out
    assert "draw" in shown
    assert "hang" in shown
    assert "Todo paint" not in shown
    unknown = planner("status", "plan.yaml::darw", cwd=verified.root)
    assert (unknown.status, "did you mean 'draw'?" in unknown.err) == (2, True)
    whole = planner("validate", "plan.yaml::draw", cwd=verified.root)
    assert (whole.status, "the command needs a whole plan" in whole.err) == (2, True)


@pytest.mark.parametrize("is_named", [False, True])
def test_in_a_subfolder_the_planner_finds_the_plan_that_pytest_verifies(
    verified: Example, is_named: bool
) -> None:
    here = verified.root / "src/deep"
    if is_named:
        verified.write({"pytest.ini": "[pytest]\nplanverify_plan = plans/mine.yaml\n"})
        mine = todo("draw", "pytest test_red.py")
        verified.plan(mine, path="plans/mine.yaml", root="..", todo_list_id="mine")
        run = verified.verify("--planverify-confirm=0", cwd=here)
        assert run.tests("draw") == {"test_red.py::test_red": "failed"}, str(run)
        assert run.document is not None
        assert [plan["path"] for plan in run.document["plans"]] == ["../../plans/mine.yaml"]

    for words in (("status",), ("next",), ("validate",)):
        ran = planner(*words, cwd=here)
        assert ran.status in (0, 1, 11), ran.err
        assert "not verified" not in ran.out
    assert "✗ failed" in planner("status", cwd=here).out


def test_several_plans_in_the_ini_file_must_be_chosen_from(example: Example, tmp_path: Path) -> None:
    example.write({"pytest.ini": "[pytest]\nplanverify_plan = a.yaml::t1 a.yaml::t2 b.yaml\n"})

    ran = planner("status", cwd=tmp_path)

    assert ran.status == 2
    assert ran.err == "planner: the ini file names a.yaml::t1, a.yaml::t2, b.yaml; name one\n"


def test_a_request_to_stop_reaches_the_run_which_writes_its_outcomes(
    example: Example, tmp_path: Path
) -> None:
    example.write({"test_it.py": "import time\ndef test_it(): time.sleep(60)\n"})
    process = subprocess.Popen(
        [sys.executable, "-c", "from pytest_planverify.cli import main; main()", "verify"],
        cwd=tmp_path,
        env={**os.environ, **LEAN_TERMINAL},
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: list(tmp_path.glob(".planverify/runs/*/w*.log")))
    process.send_signal(signal.SIGTERM)

    assert process.wait(60) == 2
    assert json.loads(example.outcome_file.read_text())["run"]["interrupted"] is True
