"""Runs of pytest as by a user: the installed command, in a separate process, in a chosen folder."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pytest_server import is_forkable, verify_in_fork

MEASURING = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")
"""Variables that enable coverage in child processes, which takes a third of a short run."""

TEMPORARY_FOLDERS = "PYTEST_DEBUG_TEMPROOT"
"""Variable that names the folder in which pytest keeps its sessions' temporary folders."""

PYTHON = shlex.quote(sys.executable)
"""This interpreter, quoted for a command line."""

FULL = os.environ.get("PLANVERIFY_TESTS") == "full"
"""Whether to run the longest tests in full, instead of a part that covers each case once."""

WORKER = "cold" if "PLANVERIFY_NO_FORK" in os.environ else "worker"
"""How a worker is started; ``PLANVERIFY_NO_FORK=1`` tests the behaviour on platforms that cannot fork."""

PLAIN_TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
LEAN_TERMINAL = {**PLAIN_TERMINAL, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Environment without plugin autoloading, which takes most of a short run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Exit code and output of a command."""

    exit_code: int
    output: str

    def __str__(self) -> str:
        return f"exit code {self.exit_code}\n{self.output}"


def null_device(folder: Path) -> Path:
    """Return a null device to write to; a new one for root, who could replace ``/dev/null``."""
    if os.geteuid() != 0:
        return Path(os.devnull)
    device = folder / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.stat(os.devnull).st_rdev)
        device.write_text("")
    except OSError as error:
        pytest.skip(f"no device can be made here: {error}")
    return device


def outer_environment() -> dict[str, str]:
    """Return the environment without the variables of the current pytest session, but for its folders."""
    return {
        name: value
        for name, value in os.environ.items()
        if name == TEMPORARY_FOLDERS or not name.startswith("PYTEST_")
    }


def wait_until(holds: Callable[[], object], seconds: float = 300) -> None:
    """Wait until the condition holds; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def run_pytest(
    *args: str,
    cwd: Path,
    as_module: bool = False,
    env: dict[str, str] | None = None,
    timeout_seconds: float = 300,
    forked: bool = False,
) -> Finished:
    """Run `pytest ARGS` (or `python -m pytest ARGS`) in `cwd`, as in an activated environment.

    Variables of the current pytest session are removed. Coverage is measured only if the command verifies a
    plan, as the plugin is inactive otherwise. ``forked`` saves the imports of a verification that is not
    measured.
    """
    scripts = str(Path(sys.executable).parent)
    script = shutil.which("pytest", path=scripts)
    launcher = [script] if script and not as_module else [sys.executable, "-m", "pytest"]
    inherited = outer_environment()
    if "--planverify" not in args:
        inherited = unmeasured(inherited)
    path = {"PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])}
    env = inherited | path | PLAIN_TERMINAL | (env or {})
    if forked and not as_module and is_forkable(env):
        status, output = verify_in_fork(args, cwd=cwd, env=env, timeout_seconds=timeout_seconds)
        return Finished(exit_code=status, output=output)
    done = subprocess.run(
        [*launcher, *args],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="backslashreplace",
        timeout=timeout_seconds,
        check=False,
    )
    return Finished(exit_code=done.returncode, output=done.stdout)


def planverify_words(*words: str) -> list[str]:
    """Return the command line of `planverify WORDS`, with coverage of the first process only.

    Its child processes verify plans, as `run_pytest` does.
    """
    start = (
        f"import os; [os.environ.pop(name, None) for name in {MEASURING}]; "
        "from pytest_planverify.cli import main; main()"
    )
    return [sys.executable, "-c", start, *words]


def planverify(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `planverify WORDS` in a separate process, without plugin autoloading."""
    return subprocess.run(
        planverify_words(*words),
        cwd=cwd,
        env={**os.environ, **LEAN_TERMINAL},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def unmeasured(env: dict[str, str]) -> dict[str, str]:
    """Return the environment without coverage, for a process whose code other tests cover."""
    return {name: value for name, value in env.items() if name not in MEASURING}


def read_outcomes(root: Path) -> dict[str, Any]:
    """Return the outcome document of the last run of the plan with this root."""
    return json.loads((root / ".planverify" / "outcomes.json").read_text(encoding="utf-8"))
