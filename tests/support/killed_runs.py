"""Runs of `planverify run` that are killed at random moments and resumed, and one that is not killed."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from module_project import write_module_project
from real_command import LEAN_TERMINAL, PYTHON, outer_environment, unmeasured, wait_until

AGENT = """\
import os, pathlib, time
todo = os.environ["PLANVERIFY_TODO"]
pathlib.Path(__file__).with_name("at_work").touch()
time.sleep(0.3)
path = pathlib.Path(f"shop/{todo}.py")
path.write_text("half = ")
time.sleep(0.3)
path.write_text(f"NAME = '{todo}'\\n")
"""
TODOS = ("left", "right")
WRITTEN_BY_TOOLS = {".planverify", "__pycache__", ".pytest_cache", "diagnostics"}
"""Folders that are not compared; a resumed run verifies more often, and writes reports of failed todos."""


@dataclass(frozen=True)
class Ended:
    """Exit status, files and logged events after a run."""

    status: int
    files: dict[str, str]
    finished: Counter[str]
    """Number of finished turns in the log, by todo."""
    done: Counter[str]
    """Number of successful verifications in the log, by todo."""


def make_project(root: Path) -> None:
    write_module_project(root, TODOS, {"../agent.py": AGENT})


def ended_normally(folder: Path) -> Ended:
    """Return what a run that is not killed ends with: each agent has done its work once."""
    root = folder / "project"
    make_project(root)
    for todo in TODOS:
        (root / f"shop/{todo}.py").write_text(f"NAME = '{todo}'\n")
    return replace(_look(root, 0), finished=Counter(TODOS), done=Counter(TODOS))


def run_killed(folder: Path, jobs: int, seconds: float, *, of_work: bool = False) -> tuple[Ended, bool]:
    """Kill a run after that many seconds and resume it; return the result, and whether it was killed.

    With ``of_work``, the seconds count from the beginning of the first turn. Raises ``AssertionError`` if
    an event recorded before the kill is missing from the log.
    """
    root = folder / "project"
    make_project(root)
    process = _start(root, jobs)
    if of_work:
        wait_until(lambda: (folder / "at_work").exists() or process.poll() is not None)
    try:
        status = process.wait(seconds)
        return _look(root, status), False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    if (root / ".planverify/harness/shop/ended").exists():  # killed after it reported its end
        assert "completed: " in (folder / "output.txt").read_text()
        return _look(root, 0), False
    recorded = _log(root)
    words = ("--resume",) if (root / ".planverify/harness/shop").is_dir() else ()
    status = _start(root, jobs, *words).wait(300)
    assert _log(root)[: len(recorded)] == recorded, "what was recorded is gone"
    return _look(root, status), True


def moments(number: int, seconds: float, seed: int) -> list[float]:
    """Return random moments of a run, one in each of ``number`` equal intervals."""
    chance = random.Random(seed)
    return [(at + chance.random()) * seconds / number for at in range(number)]


def fresh(folder: Path) -> Path:
    """Empty or create the folder, and return it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _start(root: Path, jobs: int, *words: str) -> subprocess.Popen[bytes]:
    inherited = unmeasured(outer_environment()) | LEAN_TERMINAL
    agent = f"{PYTHON} {root.parent / 'agent.py'}"
    options = ["--jobs", str(jobs), *words, "--agent", agent]
    command = [str(Path(sys.executable).with_name("planverify")), "run", "plan.yaml", *options]
    with (root.parent / "output.txt").open("ab") as output:
        return subprocess.Popen(
            command, cwd=root, env=inherited, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )


def _log(root: Path) -> list[str]:
    log = root / ".planverify/logs/shop.jsonl"
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    return [line for line in lines if line.endswith("\n")]  # a truncated line is no record


def _look(root: Path, status: int) -> Ended:
    files = {
        path.relative_to(root).as_posix(): path.read_text()
        for path in sorted(root.rglob("*.*"))
        if path.is_file() and not WRITTEN_BY_TOOLS & set(path.parts)
    }
    events = [json.loads(line)["event"] for line in _log(root)]
    finished = Counter(each["todo_id"] for each in events if each["event"] == "work_finished")
    verified = [each["outcome"] for each in events if each["event"] == "verified"]
    done = Counter(outcome["todo_id"] for outcome in verified if outcome.get("success"))
    return Ended(status, files, finished, done)
