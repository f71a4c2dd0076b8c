"""Execution of single pytest commands, each in a fork of a process that has imported only pytest.

The exit codes are those of an ordinary process, without the import of pytest each time, which is most of a
short run. Run as a program, this module is that process; it reads its commands from standard input.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A command to run alone."""

    arguments: Sequence[str]
    as_module: bool
    env: Mapping[str, str]
    """Variables in addition to the common environment."""


def exit_codes(commands: Sequence[Alone], cwd: Path, env: Mapping[str, str]) -> list[int]:
    """Return the exit code of each command; the negative signal number if a signal ended it."""
    done = subprocess.run(
        [sys.executable, __file__],
        cwd=cwd,
        env=env,
        input=json.dumps([asdict(command) for command in commands]),
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=True,
    )
    return json.loads(done.stdout)


def _main() -> None:
    import pytest.__main__
    from _pytest.config import default_plugins

    for name in default_plugins:  # pytest imports these when it is called
        importlib.import_module(f"_pytest.{name}")
    platform.platform()  # cached; a plugin asks for it each time, which runs another program
    gc.freeze()

    def start(arguments: list[str], as_module: bool, env: dict[str, str]) -> int:
        pid = os.fork()
        if pid:
            return pid
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nowhere, descriptor)
        os.environ.update(env)
        script = Path(sys.executable).with_name("pytest")
        sys.path[0] = os.getcwd() if as_module else str(script.parent)
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
