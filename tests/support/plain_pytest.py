"""Execution of single pytest commands, each in a fork of a process that has imported only pytest.

The verdicts are those of an ordinary process, without the import of pytest each time, which is most of a
short run. Run as a program, this module is that process; it reads its commands from standard input.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import platform
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def verdicts_alone(commands: Sequence[tuple[Path, str]], env: Mapping[str, str]) -> list[str]:
    """Return `passed` for each command with exit code 0 and at least one passed test, else `failed`.

    Each command is given with the folder in which it runs.
    """
    with TemporaryDirectory() as folder:
        reports = [Path(folder) / f"{number}.xml" for number, _ in enumerate(commands)]
        jobs = [_job(*command, report) for command, report in zip(commands, reports, strict=True)]
        done = subprocess.run(
            [sys.executable, __file__],
            env=env,
            input=json.dumps(jobs),
            stdout=subprocess.PIPE,
            text=True,
            timeout=600,
            check=True,
        )
        codes: list[int] = json.loads(done.stdout)
        results = zip(codes, reports, strict=True)
        return ["passed" if code == 0 and _count_passed(report) else "failed" for code, report in results]


def _job(cwd: Path, command: str, report: Path) -> dict[str, Any]:
    """Return the arguments and variables of a command, as the program reads them."""
    words = shlex.split(command)
    env: dict[str, str] = {}
    while "=" in words[0]:
        variable, _, value = words.pop(0).partition("=")
        env[variable] = value
    as_module = words[:3] == ["python", "-m", "pytest"]
    arguments = [*words[3 if as_module else 1 :], f"--junitxml={report}"]
    return {"cwd": str(cwd), "arguments": arguments, "as_module": as_module, "env": env}


def _count_passed(report: Path) -> int:
    """Return the number of tests in a JUnit report without a failure, error, skip or expected failure.

    A process that died leaves no report; the number is 0, as no test is known to have passed.
    """
    if not report.exists():
        return 0
    cases = ET.parse(report).iter("testcase")
    return sum(not {child.tag for child in case} & {"failure", "error", "skipped"} for case in cases)


def _main() -> None:
    import pytest.__main__
    from _pytest.config import default_plugins

    for name in default_plugins:  # pytest imports these when it is called
        importlib.import_module(f"_pytest.{name}")
    platform.platform()  # cached; a plugin asks for it each time, which runs another program
    gc.freeze()

    def start(cwd: str, arguments: list[str], as_module: bool, env: dict[str, str]) -> int:
        pid = os.fork()
        if pid:
            return pid
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nowhere, descriptor)
        os.chdir(cwd)
        os.environ.update(env)
        script = Path(sys.executable).with_name("pytest")
        sys.path[0] = cwd if as_module else str(script.parent)
        sys.argv[:] = [pytest.__main__.__file__ if as_module else str(script), *arguments]
        sys.exit(pytest.console_main())

    jobs = json.load(sys.stdin)
    started: list[int] = []
    codes: dict[int, int] = {}
    while len(codes) < len(jobs):
        if len(started) < len(jobs) and len(started) - len(codes) < (os.cpu_count() or 1):
            started.append(start(**jobs[len(started)]))
        else:
            pid, status = os.wait()
            codes[pid] = os.waitstatus_to_exitcode(status)
    print(json.dumps([codes[pid] for pid in started]))


if __name__ == "__main__":
    _main()
