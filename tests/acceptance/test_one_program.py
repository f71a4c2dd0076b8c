"""``planverify`` verifies, and decides like ``planner``, in every folder of a project."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from example_project import Example, todo
from real_command import LEAN_TERMINAL, planverify, run_pytest

from pytest_planverify.cli import app

FILES = {
    "test_it.py": "def test_it(): pass\n",
    "test_red.py": "def test_red(): assert False\n",
    "pytest.ini": "[pytest]\n",
    "src/deep/module.py": "",
}


def planner(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return planverify(*words, cwd=cwd, program="planner.cli")


@pytest.fixture
def example(tmp_path: Path) -> Example:
    example = Example(tmp_path, FILES)
    example.plan(
        todo("draw", "pytest test_red.py"),
        todo("paint", "pytest test_it.py", after=("draw",)),
        todo("hang", "pytest test_it.py"),
    )
    return example


def test_verify_passes_options_through_and_ends_with_the_status_of_pytest(
    example: Example, tmp_path: Path
) -> None:
    assert planverify("verify", cwd=tmp_path).returncode == 1
    green = planverify("plan.yaml::paint,hang", "-q", "--planverify-confirm", "0", cwd=tmp_path)
    assert green.returncode == 0, green.stdout + green.stderr
    refused = planverify("verify", "--planverify-scope=sometimes", cwd=tmp_path)
    assert refused.returncode == 4
    assert "--planverify-scope" in refused.stderr
    assert planverify("plan.yaml::pant", cwd=tmp_path).returncode == 4


def test_configuration_that_pytest_cannot_use_is_an_error_without_traceback(
    example: Example, tmp_path: Path
) -> None:
    filters = "error\n  ignore::not_installed.SomeWarning"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nfilterwarnings =\n  {filters}\n")

    found = planverify("verify", cwd=tmp_path)

    assert (found.returncode, found.stdout) == (4, "")
    assert "Traceback" not in found.stderr
    assert "pytest cannot start with this configuration" in found.stderr
    assert "not_installed" in found.stderr


@pytest.mark.parametrize("stream", ["/dev/full", "&-"])
@pytest.mark.parametrize(("command", "status"), [("verify", 1), ("next", None)])
def test_outcomes_are_kept_if_the_output_cannot_be_written(
    example: Example, tmp_path: Path, command: str, status: int | None, stream: str
) -> None:
    if command == "next":
        example.verify()
    start = "from pytest_planverify.cli import main; main()"
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "{start}" {command} plan.yaml >{stream}', sys.executable],
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
    assert done.returncode == (status or (4 if is_full else 0))
    assert (tmp_path / ".planverify/outcomes.json").exists()


def test_every_listed_command_can_be_loaded() -> None:
    group: Any = typer.main.get_command(app)

    for name in group.list_commands(None):
        assert group.get_command(None, name) is not None, name


def test_todos_selected_after_the_plan_are_run_and_shown_alone(example: Example, tmp_path: Path) -> None:
    run = example.verify("plan.yaml::paint,hang")

    assert run.exit_code == 0, str(run)
    assert run.states == {"draw": "pending", "paint": "done", "hang": "done"}
    assert example.verify().exit_code == 1
    shown = planner("status", "plan.yaml::draw,hang", cwd=tmp_path).stdout
    assert "draw" in shown
    assert "hang" in shown
    assert "Todo paint" not in shown
    unknown = planner("status", "plan.yaml::darw", cwd=tmp_path)
    assert (unknown.returncode, "did you mean 'draw'?" in unknown.stderr) == (2, True)
    whole = planner("validate", "plan.yaml::draw", cwd=tmp_path)
    assert (whole.returncode, "the command needs a whole plan" in whole.stderr) == (2, True)


@pytest.mark.parametrize("ini", ["[pytest]\n", "[pytest]\nplanverify_plan = plans/mine.yaml\n"])
def test_in_a_subfolder_the_planner_finds_the_plan_that_pytest_verifies(
    example: Example, tmp_path: Path, ini: str
) -> None:
    example.write({"pytest.ini": ini})
    example.plan(todo("draw", "pytest test_red.py"), path="plans/mine.yaml", root="..", todo_list_id="mine")
    here = tmp_path / "src/deep"
    assert run_pytest("--planverify", cwd=here).exit_code == 1

    for words in (("status",), ("next",), ("validate",)):
        ran = planner(*words, cwd=here)
        assert ran.returncode in (0, 1, 11), ran.stderr
        assert "not verified" not in ran.stdout
    assert "✗ failed" in planner("status", cwd=here).stdout


def test_several_plans_in_the_ini_file_must_be_chosen_from(example: Example, tmp_path: Path) -> None:
    example.write({"pytest.ini": "[pytest]\nplanverify_plan = a.yaml b.yaml\n"})

    ran = planner("status", cwd=tmp_path)

    assert ran.returncode == 2
    assert ran.stderr == "planner: the ini file names 2 plans, a.yaml, b.yaml; name one\n"


def test_outcomes_of_another_plan_do_not_stop_commands_that_need_none(
    example: Example, tmp_path: Path
) -> None:
    assert example.verify().exit_code == 1
    example.plan(todo("other", "pytest test_it.py"), path="b.yaml", todo_list_id="b")
    broken = tmp_path / ".planverify/plans/b/outcomes.json"
    broken.parent.mkdir()
    broken.write_bytes(example.outcome_file.read_bytes())

    ran = planner("status", "b.yaml", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "other" in ran.stdout
    assert "not of 'b'" in ran.stdout


def test_a_request_to_stop_reaches_the_run(example: Example, tmp_path: Path) -> None:
    example.write({"test_it.py": "import time\ndef test_it(): time.sleep(60)\n"})
    process = subprocess.Popen(
        [sys.executable, "-c", "from pytest_planverify.cli import main; main()", "verify"],
        cwd=tmp_path,
        env={**os.environ, **LEAN_TERMINAL},
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".planverify/runs/*/w*.log")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)

    assert process.wait(60) == 2
