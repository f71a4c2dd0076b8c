"""Execution of commands as reporters see a run of a plan: workers, then the reporting session."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import relay_plugin
from real_command import Finished, run_pytest

from pytest_planverify.reports.reporter_session import (
    CriterionResult,
    ReportingResult,
    run_reporting_session,
)
from pytest_planverify.reports.reporters import GivenOptions, confirmation_start, relay_file, worker_start


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Result of the reporting session, and of the workers before it."""

    result: ReportingResult
    workers: list[Finished]

    def __str__(self) -> str:
        return "\n".join(map(str, (self.result, self.result.text, *self.workers)))


def run_criteria(
    root: Path,
    given: GivenOptions,
    commands: Sequence[str],
    *,
    env: dict[str, str] | None = None,
    criteria: Sequence[CriterionResult] = (),
    confirm: bool = True,
) -> Reported:
    """Run each command in a separate process, run a failed one once more, and report all results.

    `criteria` are the criteria that are no tests.
    """
    scratch = root / ".planverify" / "scratch"
    workers: list[Finished] = []
    results: list[CriterionResult] = []
    for number, command in enumerate(commands):
        words, name = shlex.split(command), f"c{number}"
        first = worker_start(given, words, scratch=scratch, name=name)
        relayed = {
            **(env or {}),
            **first.env,
            "PYTHONPATH": str(Path(relay_plugin.__file__).parent),
            relay_plugin.VARIABLE: str(relay_file(scratch, name)),
        }
        arguments = ("-p", relay_plugin.__name__, *first.args)
        workers.append(run_pytest(*arguments, cwd=root, env=relayed, measured=False, as_module=True))
        if confirm and workers[-1].exit_code:
            again = confirmation_start(given, words, scratch=scratch)
            run_pytest(
                *again.args, cwd=root, env={**(env or {}), **again.env}, measured=False, as_module=True
            )
        verdict = "failed" if workers[-1].exit_code else "passed"
        results.append(
            criterion(f"t{number}", "test", command, verdict, relay=relay_file(scratch, name), root=root)
        )
    with patch.dict(os.environ, env or {}):
        result = run_reporting_session(
            given,
            root=root,
            selections=[word for command in commands for word in shlex.split(command) if ".py" in word],
            criteria=[*results, *criteria],
            scratch=scratch,
            python_path=[str(root)],  # as `python -m pytest` has it
        )
    return Reported(result=result, workers=workers)


def criterion(
    todo: str,
    kind: str,
    text: str,
    verdict: str,
    reason: str = "",
    *,
    root: Path = Path("/"),
    relay: Path | None = None,
    tests: tuple[tuple[str, str, float, str], ...] = (),
) -> CriterionResult:
    """Return a criterion as in an outcome document."""
    return CriterionResult(
        nodeid=f"plan.yaml::{todo}::{kind} {text}",
        kind=kind,
        verdict=verdict,
        outcome=verdict if verdict in ("passed", "failed") else "skipped",
        reason=reason or f"the verdict is {verdict}",
        details="",
        seconds=0.5,
        properties=(("todo", todo),),
        root=str(root),
        relay=None if relay is None else str(relay),
        tests=tests,
    )
