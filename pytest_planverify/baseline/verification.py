"""Verifies a plan in a process of its own that leaves no trace in the outcomes of the user."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import BaselineError, OutcomeFileError
from planner.planfile.record_files import read_outcomes
from pytest_planverify.checks.processes import run_process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planner.model.outcome import OutcomeDocument
    from pytest_planverify.baseline.record import BaselineRun

_GRACE_SECONDS = 20.0
"""How long an interrupted run may take to end its sessions in order."""

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
        argv = [sys.executable, "-m", "pytest", "--planverify", os.path.relpath(plan, directory)]
        argv += ["--planverify-recording", "--planverify-keep-going", "--color=no"]
        argv += ["--planverify-outcomes", str(outcomes), *options]
        whole = {**os.environ, **(env or {})}
        if whole.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):  # then nothing else loads this plugin
            argv += ["-p", "pytest_planverify.plugin"]
        ended = run_process(
            argv, cwd=directory, env=whole, timeout_seconds=math.inf, grace_seconds=_GRACE_SECONDS
        )
        if ended.exit_code == _INTERRUPTED or ended.signal == "SIGINT":
            raise KeyboardInterrupt
        how = ended.signal or f"status {ended.exit_code}"
        if ended.signal or ended.exit_code in (_INTERNAL_ERROR, _USAGE_ERROR) or not outcomes.exists():
            # The line that says why; what pytest prints around it does not.
            lines = [
                line.strip() for line in f"{ended.stdout}\n{ended.stderr}".splitlines() if line.strip()
            ]
            errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
            said = (errors or lines or ["it said nothing"])[-1]
            raise BaselineError(f"the plan could not be verified ({how}): {said}")
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
