"""Verifications of the loop: ``pytest --planverify`` in a child process, and its outcomes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import PlannerError
from planner.model.outcome import Failure, Outcome, OutcomeDocument
from planner.model.taxonomy import Category
from planner.model.verdicts import TodoState
from planner.planfile.file_writer import replace_file
from planner.planfile.loader import shown_path
from planner.planfile.record_files import baseline_bytes
from planner.planfile.tree import load_flat
from pytest_planverify.baseline import load_baseline
from pytest_planverify.baseline.kept_baseline import keep_contents
from pytest_planverify.baseline.record import failure_reason, look, make_baseline, run_verifier

if TYPE_CHECKING:
    from collections.abc import Collection


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
    words = [target, "-q", *(["--planverify-isolate"] if cold else [])]
    words += [f"--planverify-worked={','.join(worked)}"] if worked else []
    words += [f"--planverify-baseline-file={baseline}"] if baseline is not None else []
    words += [] if confirms else ["--planverify-confirm=0"]
    document, ended = run_verifier(words, outcomes, directory=Path.cwd())
    problem = f"the verifier wrote no outcomes {failure_reason(ended)}" if document is None else None
    return VerificationRun(document, ended.exit_code, problem)


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
