"""Execution of commands as reporters see a run of a plan: workers, then the reporting session."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import relay_plugin
from outcome_samples import PLAN, check, document, outcome
from real_command import Finished, run_pytest

from planner.model.outcome import Outcome, PlanRef, TestResult
from planner.model.verdicts import CheckKind, TestOutcome, TodoState, Verdict
from pytest_planverify.reports.reporter_session import ReportingResult, report_criteria
from pytest_planverify.reports.reporters import GivenOptions, confirmation_start, relay_file, worker_start


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Folder of the run, result of the reporting session, and those of the workers before it."""

    root: Path
    result: ReportingResult
    workers: list[Finished]

    @property
    def text(self) -> str:
        return self.result.text

    def __str__(self) -> str:
        return "\n".join(map(str, (self.result, self.text, *self.workers)))


def run_criteria(
    root: Path,
    given: GivenOptions,
    commands: Sequence[str],
    *,
    env: dict[str, str] | None = None,
    criteria: Sequence[Outcome] = (),
    crashed: str | None = None,
    confirm: bool = True,
) -> Reported:
    """Run each command in a separate process, run a failed one once more, and report all results.

    `criteria` are the criteria that are no tests. `crashed` is the test that kills its worker.
    """
    scratch = root / ".planverify" / "scratch"
    search_path = (str(Path(relay_plugin.__file__).parent), os.environ.get("PYTHONPATH"))
    workers: list[Finished] = []
    todos: list[Outcome] = []
    relays: dict[tuple[Path, str, str], Path] = {}
    died = () if crashed is None else ((crashed, "crashed", 0, ""),)
    path = root / "plan.yaml"
    for number, command in enumerate(commands):
        words, name = shlex.split(command), f"c{number}"
        first = worker_start(given, words, scratch=scratch, name=name)
        relayed = {
            **(env or {}),
            **first.env,
            "PYTHONPATH": os.pathsep.join(filter(None, search_path)),
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
        todos.append(criterion(f"t{number}", "test", command, verdict, tests=died))
        relays[path, f"t{number}", "it[0]"] = relay_file(scratch, name)
    todos += criteria
    plan = PlanRef(todo_list_id=PLAN, path="plan.yaml", digest="sha256:00")
    selections = [word for command in commands for word in shlex.split(command) if ".py" in word]
    with patch.dict(os.environ, env or {}):
        result = report_criteria(
            cast("Any", SimpleNamespace(given=given, relays=relays)),
            document(*todos).model_copy(update={"plans": (plan,)}),
            [flat_plan(path, selections)],
            scratch=scratch,
            script_paths=[str(root)],  # as `python -m pytest` has it
            color=False,
        )
    return Reported(root=root, result=result, workers=workers)


def flat_plan(path: Path, selections: Sequence[str] = ()) -> Any:
    """Return what reports need of a plan whose commands select these tests."""
    command = SimpleNamespace(pytest=SimpleNamespace(selections=selections))
    loaded = SimpleNamespace(
        path=path,
        root=path.parent,
        plan=SimpleNamespace(todo_list_id=PLAN),
        criteria={"t": [SimpleNamespace(command=command)]},
    )
    return SimpleNamespace(loaded=loaded, owner=lambda todo_id: loaded)


def criterion(
    todo: str,
    kind: str,
    text: str,
    verdict: str,
    reason: str | None = None,
    tests: tuple[tuple[str, str, int, str], ...] = (),
) -> Outcome:
    """Return the outcome of a todo with one criterion."""
    checked = check(
        "it[0]",
        CheckKind(kind),
        Verdict(verdict),
        title=text,
        cmd=text if kind == "test" else None,
        reason=reason,
        duration_ms=500,
        tests=tuple(
            TestResult(nodeid=nodeid, outcome=TestOutcome(outcome), duration_ms=spent, reason=why or None)
            for nodeid, outcome, spent, why in tests
        ),
    )
    return outcome(todo, todo, TodoState.TESTING, checked)
