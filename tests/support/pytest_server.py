"""Execution of pytest commands, each in a fork of a process that has imported pytest.

The results are those of an ordinary process, without the imports, which take most of a short run. Run as a
program, this module is that process; it reads jobs from standard input, one a line, each in JSON.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import platform
import runpy
import select
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an interpreter reads when it starts."""
    prefixes = ("PYTHON", "LC_", "LANG", "COVERAGE_")
    return {name: value for name, value in env.items() if name.startswith(prefixes)}


ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
ENVIRONMENT["PYTHONDONTWRITEBYTECODE"] = "1"
"""The variables with which the server of verifications starts."""

PROGRAM = (sys.executable, "-c", f"import runpy; runpy.run_path({__file__!r}, run_name='__main__')")
"""This module as a program. A script would count as one that calls pytest, whose forks are not used."""

VERIFICATION = (
    *("pytest_planverify.session.end", "pytest_planverify.session.plans", "pytest_planverify.session.run"),
    *("pytest_planverify.reports.terminal", "pytest_planverify.reports.failure_report"),
    "pytest_planverify.diagnosis.causes",
)
"""Modules that, with those they import, are all that a verification needs. The plugin is imported late:
pytest rewrites its assertions, and warns if it cannot."""


@functools.cache
def verification_server() -> subprocess.Popen[str]:
    """Return this process's server of verifications, which ends with it."""
    pipe = subprocess.PIPE
    command = [*PROGRAM, *VERIFICATION]
    server = subprocess.Popen(command, env=ENVIRONMENT, stdin=pipe, stdout=pipe, text=True)
    atexit.register(_end, server, os.getpid())
    return server


def _end(server: subprocess.Popen[str], owner: int) -> None:
    """End a server at the exit of its owner; in a fork of that process, do nothing."""
    if os.getpid() == owner:
        server.communicate()


def is_forkable(env: Mapping[str, str]) -> bool:
    """Return whether the server has started with these variables, as far as an interpreter reads them.

    With plugin autoloading, pytest would warn that it cannot rewrite the assertions of imported modules.
    """
    fits = _read_at_start(env) == _read_at_start(ENVIRONMENT) and "PYTEST_DISABLE_PLUGIN_AUTOLOAD" in env
    return fits and "PLANVERIFY_NO_FORK" not in env


def verify_in_fork(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_seconds: float
) -> tuple[int, str]:
    """Return exit status and output of `pytest ARGUMENTS` with exactly these variables."""
    server = verification_server()
    assert server.stdin is not None
    assert server.stdout is not None
    with TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        job = {"cwd": str(cwd), "arguments": list(arguments), "env": dict(env), "output": str(output)}
        print(json.dumps(job), file=server.stdin, flush=True)
        if not select.select([server.stdout], [], [], timeout_seconds)[0]:
            server.kill()
            verification_server.cache_clear()
            raise subprocess.TimeoutExpired(["pytest", *arguments], timeout_seconds)
        status = int(server.stdout.readline())
        return status, output.read_text(encoding="utf-8", errors="backslashreplace")


def verdicts_alone(commands: Sequence[tuple[Path, str]], env: Mapping[str, str]) -> list[str]:
    """Return `passed` for each command with exit code 0 and at least one passed test, else `failed`.

    Each command is given with the folder in which it runs.
    """
    with TemporaryDirectory() as folder:
        reports = [Path(folder) / f"{number}.xml" for number, _ in enumerate(commands)]
        jobs = [_job(*command, report, env) for command, report in zip(commands, reports, strict=True)]
        done = subprocess.run(
            PROGRAM,
            env=env,
            input="".join(json.dumps(job) + "\n" for job in jobs),
            stdout=subprocess.PIPE,
            text=True,
            timeout=600,
            check=True,
        )
        results = zip(map(int, done.stdout.split()), reports, strict=True)
        return ["passed" if code == 0 and _count_passed(report) else "failed" for code, report in results]


def _job(cwd: Path, command: str, report: Path, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments and variables of a command, as the program reads them."""
    words = shlex.split(command)
    variables = dict(env)
    while "=" in words[0]:
        variable, _, value = words.pop(0).partition("=")
        variables[variable] = value
    as_module = words[:3] == ["python", "-m", "pytest"]
    arguments = [*words[3 if as_module else 1 :], f"--junitxml={report}"]
    return {"cwd": str(cwd), "arguments": arguments, "as_module": as_module, "env": variables}


def _count_passed(report: Path) -> int:
    """Return the number of tests in a JUnit report without a failure, error, skip or expected failure.

    A process that died leaves no report; the number is 0, as no test is known to have passed.
    """
    if not report.exists():
        return 0
    cases = ET.parse(report).iter("testcase")
    return sum(not {child.tag for child in case} & {"failure", "error", "skipped"} for case in cases)


def _start(
    cwd: str, arguments: list[str], env: dict[str, str], as_module: bool = False, output: str = os.devnull
) -> int:
    """Start a command in a fork and return its process id."""
    pid = os.fork()
    if pid:
        return pid
    nowhere = os.open(os.devnull, os.O_RDONLY)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor, source in enumerate((nowhere, written, written)):
        os.dup2(source, descriptor)
    os.closerange(3, max(nowhere, written) + 1)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    script = Path(sys.executable).with_name("pytest")
    sys.path[0] = cwd if as_module else str(script.parent)
    sys.argv[:] = [str(script), *arguments]
    if as_module:
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)
    runpy.run_path(str(script), run_name="__main__")
    raise AssertionError("pytest ends its process")


def _main(modules: list[str]) -> None:
    from _pytest.config import default_plugins

    for name in default_plugins:  # pytest imports these when it is called
        importlib.import_module(f"_pytest.{name}")
    for name in modules:
        importlib.import_module(name)
    platform.platform()  # cached; a plugin asks for it each time, which runs another program
    gc.collect()
    gc.freeze()
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            _, status = os.waitpid(_start(**json.loads(line)), 0)
            print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1:])
