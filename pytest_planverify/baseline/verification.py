"""Verifies a plan in a process of its own that leaves no trace in the outcomes of the user."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import BaselineError, OutcomeFileError
from planner.planfile.record_files import read_outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planner.model.outcome import OutcomeDocument
    from pytest_planverify.baseline.record import BaselineRun

_GRACE_SECONDS = 20.0
_MOST_SAID = 4_000

_INTERRUPTED, _INTERNAL_ERROR, _USAGE_ERROR = 2, 3, 4


def verify_apart(
    plan: Path,
    *,
    directory: Path,
    env: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
) -> OutcomeDocument:
    """Verify every todo of a plan, whatever its dependencies say, and compare with no baseline.

    The outcomes go to a temporary file. Raises :class:`planner.errors.BaselineError` in one line where the
    run does not come to its end.
    """
    with tempfile.TemporaryDirectory(prefix="planverify-") as folder:
        outcomes = Path(folder) / "outcomes.json"
        # -P: a pytest.py of the project must not stand in for the one that judges it.
        argv = [sys.executable, "-P", "-m", "pytest", "--planverify", os.path.relpath(plan, directory)]
        argv += ["--planverify-recording", "--planverify-keep-going", "--color=no"]
        argv += ["--planverify-outcomes", str(outcomes), *options]
        whole = {**os.environ, **(env or {})}
        if whole.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):  # then nothing else loads this plugin
            argv += ["-p", "pytest_planverify.plugin"]
        code, said = _run(argv, directory, whole, Path(folder) / "said.log")
        if code in (_INTERRUPTED, -signal.SIGINT):
            raise KeyboardInterrupt
        if code < 0 or code in (_INTERNAL_ERROR, _USAGE_ERROR) or not outcomes.exists():
            raise BaselineError(f"the plan could not be verified (status {code}): {_last_line(said)}")
        try:
            return read_outcomes(outcomes)
        except OutcomeFileError as error:
            raise BaselineError(str(error)) from None


def verify_often(
    plan: Path,
    root: Path,
    *,
    directory: Path,
    runs: int,
    env: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[BaselineRun]:
    """Verify a plan below its root so many times. Raises :class:`planner.errors.BaselineError`."""
    from pytest_planverify.baseline.record import run_of

    found: list[BaselineRun] = []
    for number in range(1, runs + 1):
        if runs > 1:
            say(f"verifying it, {number} of {runs}")
        found.append(run_of(verify_apart(plan, directory=directory, env=env), root))
    return found


def _run(argv: Sequence[str], directory: Path, env: Mapping[str, str], log: Path) -> tuple[int, str]:
    """Run it to its end, its output in a file; an interruption ends it and its sessions in order."""
    with (
        open(log, "wb") as output,
        subprocess.Popen(
            list(argv),
            cwd=directory,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C comes here, and is passed on once
        ) as process,
    ):
        try:
            process.wait()
        except BaseException:
            _end(process)
            raise
    with open(log, "rb") as stream:
        stream.seek(max(0, log.stat().st_size - _MOST_SAID))
        return process.returncode, stream.read().decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    from pytest_planverify.checks.processes import end_process_tree

    process.send_signal(signal.SIGINT)
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        end_process_tree(process.pid)


def _last_line(said: str) -> str:
    """The line that says why; what pytest prints around it does not."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it said nothing"])[-1]
