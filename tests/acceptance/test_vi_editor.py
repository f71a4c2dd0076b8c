"""A plan of 29 todos is carried to done by an agent that repairs what it is told."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documented_commands import PLUGINS_OF_A_READER
from real_command import FULL, PLAIN_TERMINAL, PYTHON, Finished, unmeasured
from text_bundles import read_bundle

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git keeps the files of each turn")

CHECKOUT = Path(__file__).resolve().parents[2]
AGENT = CHECKOUT / "tests/support/vi_editor/agent.py"
SOLUTION = read_bundle(AGENT.parent / "solution.txt")
PART = () if FULL else ("--only", "files")
TODOS, MISTAKES, OPTIONS = (29, 24, "") if FULL else (7, 4, "--half ")
"""So many todos are worked on, and so many of them are wrong at first."""


def run(root: Path, *words: str, limit: float) -> Finished:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    scripts = str(Path(sys.executable).parent)
    only_required = {
        "PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": ",".join(PLUGINS_OF_A_READER),
    }
    done = subprocess.run(
        [str(Path(scripts) / "planverify"), *words],
        cwd=root,
        env=unmeasured(inherited) | PLAIN_TERMINAL | only_required,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=limit,
        check=False,
    )
    return Finished(exit_code=done.returncode, output=done.stdout)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns(".planverify", "diagnostics", "__pycache__", ".pytest_cache")
    return Path(shutil.copytree(CHECKOUT / "examples/vi_editor", tmp_path / "vi_editor", ignore=ignored))


def test_an_agent_that_repairs_what_its_brief_tells_ends_all_todos(example: Path):
    command = f"{PYTHON} {shlex.quote(str(AGENT))} {OPTIONS}{{json}}"
    done = run(example, "run", "plan.yaml", "--json", "--agent", command, *PART, limit=900)
    assert done.exit_code == 0, done
    told = [json.loads(line) for line in done.output.splitlines()]
    seen: dict[str, bool] = {}
    for each in told:
        if each["event"] == "verified":
            seen.setdefault(each["todo_id"], each["success"])
    first = [success for todo_id, success in seen.items() if "/" in todo_id and "_branch_" not in todo_id]

    assert (len(first), sum(first)) == (TODOS, TODOS - MISTAKES)
    assert [each["text"] for each in told[-2:]] == [
        f"completed: {TODOS} of {TODOS} todos done, {TODOS + MISTAKES} turns",
        f"recovered {MISTAKES} of {MISTAKES} failed todos",
    ]
    worked_on = [name for name in SOLUTION if FULL or name.split("/")[1] in ("buffer", "files")]
    written = {name: (example / name).read_text(encoding="utf-8") for name in worked_on}
    assert written == {name: SOLUTION[name] for name in worked_on}


def test_the_solution_fulfils_the_whole_plan_which_has_no_findings(example: Path):
    checked = run(example, "validate", "plan.yaml", limit=60)
    assert (checked.exit_code, checked.output) == (0, "ready: no findings\n")

    for name, text in SOLUTION.items():
        (example / name).write_text(text, encoding="utf-8")
    solved = run(example, "verify", "plan.yaml", limit=120)
    assert (solved.exit_code, "37 done" in solved.output) == (0, True), solved
