"""Verifications of the loop: ``pytest --planverify`` in a child process, and its outcomes.

The verifier runs in a process of its own, so that the loop survives whatever the project's tests do.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import OutcomeFileError, PlannerError
from planner.model.outcome import Failure, Outcome, OutcomeDocument
from planner.model.taxonomy import Category
from planner.model.verdicts import TodoState
from planner.planfile.file_writer import replace_file
from planner.planfile.loader import shown_path
from planner.planfile.record_files import baseline_bytes, read_outcomes
from planner.planfile.tree import load_flat
from planner.text.redaction import redact
from planner.text.sanitizing import one_line
from pytest_planverify import verify_command
from pytest_planverify.baseline import load_baseline
from pytest_planverify.baseline.kept_baseline import keep_contents
from pytest_planverify.baseline.record import look, make_baseline
from pytest_planverify.checks.processes import run_process

if TYPE_CHECKING:
    from collections.abc import Collection

LIMIT_SECONDS = 86_400.0
"""Limit for a hanging verifier; criteria have their own limits."""


@dataclass(frozen=True, slots=True)
class VerificationRun:
    """Result of one run of the verifier."""

    document: OutcomeDocument | None
    exit_status: int | None
    """``None`` if a signal ended the process."""
    problem: str | None = None
    """Reason why there are no outcomes."""

    @property
    def is_green(self) -> bool:
        """Return whether every criterion of every todo passed and nothing else went wrong."""
        return self.exit_status == 0 and self.document is not None

    def outcome(self, todo_id: str, plan: str) -> Outcome:
        """Return a todo's outcome; if there is none, one that reports a failure of the harness."""
        if self.document is not None:
            for each in self.document.outcomes:
                if each.todo_id == todo_id:
                    return each
        problem = self.problem or "the verifier has no outcome of this todo"
        failure = Failure(category=Category.HARNESS_ERROR, stack_trace_head=problem, suggestion=problem)
        return failed_outcome(todo_id, failure, plan=plan)

    def causes(self) -> tuple[tuple[str, ...], ...]:
        """Return the groups of failure signatures that have a common root cause."""
        if self.document is None:
            return ()
        return tuple(each.signatures for each in self.document.causes if len(each.signatures) > 1)


def failed_outcome(todo_id: str, failure: Failure, **facts: Any) -> Outcome:
    """Return the outcome of a todo for a failure that no verifier found; ``facts`` are further fields."""
    return Outcome(
        todo_id=todo_id,
        state=TodoState.TEST_FAILED,
        success=False,
        tests_passed=False,
        failure_evidence=failure,
        failures=(failure,),
        **facts,
    )


def verify(
    plan: Path,
    todo_ids: Collection[str] = (),
    *,
    outcomes: Path,
    worked: Collection[str] = (),
    baseline: Path | None = None,
    cold: bool = False,
    confirms: bool = True,
) -> VerificationRun:
    """Verify the todos of a plan (all without ``todo_ids``) and return the outcomes.

    ``outcomes`` is the file that the verifier writes. ``worked`` are further todos whose work may be
    in the tree. ``baseline`` is a baseline file for projects that have none. ``cold`` starts
    a new interpreter for each command. Without ``confirms`` failures are not run again, for callers that
    only need to know whether everything passes.
    """
    target = f"{plan}::{','.join(todo_ids)}" if todo_ids else str(plan)
    command = verify_command(target, f"--planverify-outcomes={outcomes}", "-q")
    if worked:
        command.append(f"--planverify-worked={','.join(worked)}")
    if baseline is not None:
        command.append(f"--planverify-baseline-file={baseline}")
    if cold:
        command.append("--planverify-isolate")
    if not confirms:
        command.append("--planverify-confirm=0")
    # A verifier that crashes must not leave the outcomes of the previous run in place.
    outcomes.unlink(missing_ok=True)
    ended = run_process(command, cwd=Path.cwd(), env=os.environ, timeout_seconds=LIMIT_SECONDS)
    try:
        document = read_outcomes(outcomes)
    except OutcomeFileError:
        lines = [line for line in f"{ended.stdout}\n{ended.stderr}".splitlines() if line.strip()]
        last_line = one_line(redact(lines[-1]), limit=300) if lines else "it wrote nothing"
        problem = (
            f"the verifier ended with {ended.signal or ended.exit_code} and wrote no outcomes: {last_line}"
        )
        return VerificationRun(None, ended.exit_code, problem)
    return VerificationRun(document, ended.exit_code)


def with_commands_for(
    document: OutcomeDocument, verified: Path, plan: Path, todo_ids: Collection[str]
) -> OutcomeDocument:
    """Return the outcomes with commands that name the user's ``plan`` instead of the ``verified`` copy.

    Only for ``todo_ids``, the todos of the user's plan; others, such as branches, are in the copy only.
    """
    # Everywhere: not only the command to run again, but the reason of a question names the plan, too.
    copy, own = (json.dumps(shown_path(each), ensure_ascii=False)[1:-1] for each in (verified, plan))
    outcomes = (
        Outcome.model_validate_json(each.model_dump_json().replace(copy, own))
        if each.todo_id in todo_ids
        else each
        for each in document.outcomes
    )
    return document.model_copy(update={"outcomes": tuple(outcomes)})


def record_baseline(plan: Path, path: Path) -> tuple[OutcomeDocument | None, str | None]:
    """Record the current results as a baseline in the file ``path``, unless the project has a baseline.

    Comparison with it detects product code written to trick the tests. Returns the outcomes of the
    recording, or ``None`` if they do not show how each todo stands, and the reason why there is no
    baseline, or ``None``.
    """
    flat = load_flat(plan)
    root, todos = flat.loaded.root, flat.loaded.plan.items
    if load_baseline(root, flat.loaded.plan.todo_list_id) is not None:
        return None, None
    try:
        seen = look(root)  # before the tests are run, which may write files
        document, outcomes = make_baseline(flat, seen, directory=Path.cwd())
        # The baseline last: a kill in between must not leave one whose contents are missing.
        keep_contents(root, seen.contents)
        replace_file(path, baseline_bytes(document))
    except PlannerError as error:
        return None, str(error)
    # Such todos are judged by comparison with the baseline, which its own recording cannot do.
    is_compared = any(todo.must_turn_green or todo.must_stay_green for todo in todos)
    return None if is_compared else outcomes, None
