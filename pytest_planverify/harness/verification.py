"""Verifications of the loop: ``pytest --planverify`` in a child process, and its outcomes.

The verifier runs in a process of its own, so that the loop survives whatever the project's tests do.
"""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import BaselineError, OutcomeFileError, PlannerError
from planner.model.outcome import Failure, Outcome, OutcomeDocument
from planner.model.taxonomy import Category
from planner.model.verdicts import TodoState
from planner.planfile.file_writer import replace_file
from planner.planfile.loader import shown_path
from planner.planfile.record_files import baseline_bytes, read_baseline, read_outcomes
from planner.planfile.tree import load_flat
from planner.text.redaction import redact
from planner.text.sanitizing import one_line
from pytest_planverify import verify_command
from pytest_planverify.baseline import load_baseline
from pytest_planverify.baseline.kept_baseline import keep_contents, keep_outcomes, outcomes_of
from pytest_planverify.baseline.record import look, make_baseline
from pytest_planverify.checks.processes import run_process

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.model.baseline import Baseline
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.record import SeenTree

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
    copy, own = shown_path(verified), shown_path(plan)

    def renamed(failure: Failure | None) -> Failure | None:
        return failure and failure.model_copy(
            update={"rerun": failure.rerun and failure.rerun.replace(copy, own)}
        )

    def named(outcome: Outcome) -> Outcome:
        return outcome.model_copy(
            update={
                # The reason of a question has the command that answers it.
                "checks": tuple(
                    check.model_copy(update={"reason": check.reason and check.reason.replace(copy, own)})
                    for check in outcome.checks
                ),
                "failure_evidence": renamed(outcome.failure_evidence),
                "failures": tuple(filter(None, map(renamed, outcome.failures))),
            }
        )

    outcomes = (named(each) if each.todo_id in todo_ids else each for each in document.outcomes)
    return document.model_copy(update={"outcomes": tuple(outcomes)})


def record_baseline(plan: Path, path: Path) -> tuple[OutcomeDocument | None, str | None]:
    """Record the current results as a baseline in the file ``path``, unless the project has a baseline.

    Comparison with it detects product code written to trick the tests. A baseline that was recorded for
    exactly the current files is kept. Returns the outcomes of the recording, or ``None`` if they do not
    describe the current files, and the reason why there is no baseline, or ``None``.
    """
    flat = load_flat(plan)
    root, plan_id = flat.loaded.root, flat.loaded.plan.todo_list_id
    kept = load_baseline(root, plan_id)
    place, known = (path, None) if kept is None else (kept.path, kept.document)
    try:
        seen = look(root)  # before the tests are run, which may write files
        if kept is None and path.exists():
            with contextlib.suppress(BaselineError):
                known = read_baseline(path)[0]
        if known is not None and _is_of_now(known, flat, seen):
            return _first_look(flat, place, known), None
        if kept is not None:
            return None, None
        document, outcomes = make_baseline(flat, seen, directory=Path.cwd())
        # The baseline last: a kill in between must not leave one whose contents are missing.
        keep_contents(root, seen.contents)
        replace_file(path, baseline_bytes(document))
        keep_outcomes(path, outcomes)
    except PlannerError as error:
        return None, str(error)
    return _first_look(flat, path, document), None


def _is_of_now(known: Baseline, flat: FlatPlan, seen: SeenTree) -> bool:
    """Return whether a baseline matches the current files, plan, Python and pytest."""
    made_with = known.plan_digest, known.python, known.pytest
    return made_with == (flat.loaded.digest, platform.python_version(), metadata.version("pytest")) and {
        path: file.sha256 for path, file in known.files.items()
    } == {path: file.sha256 for path, file in seen.files.items()}


def _first_look(flat: FlatPlan, place: Path, baseline: Baseline) -> OutcomeDocument | None:
    """Return the outcomes of a baseline's recording; ``None`` if they are unknown or incomplete."""
    # Such todos are judged by comparison with the baseline, which its own recording cannot do.
    if any(todo.must_turn_green or todo.must_stay_green for todo in flat.loaded.plan.items):
        return None
    with contextlib.suppress(OutcomeFileError):
        document = read_outcomes(outcomes_of(place))
        if document.run.run_id == baseline.run_id:
            return document
    return None
