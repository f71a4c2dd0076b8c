"""Totals of a run, for metrics: derived from its recorded events and states, nothing is measured here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.model.actions import Halt
from planner.model.events import PlanSubmitted, Verified
from planner.model.taxonomy import Category
from planner.model.verdicts import TodoState, Verdict
from planner.policy.outcomes import UNDECIDED, failures_of, is_unowned, state_of
from planner.store.run_rows import PASSED, RunRows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.engine import State
    from planner.model.outcome import Failure, Outcome
    from planner.store.run_log import Step


def verdict_of(outcome: Outcome) -> tuple[Verdict, Failure | None]:
    """Return the verdict of a verification of a todo, and the failure that decided it, if there is one.

    The verdict is ``passed``, ``failed``, ``flaky``, ``needs_human`` or ``inconclusive``. It is
    inconclusive where only the environment or the verifier failed, or the outcome contradicts itself.
    """
    state = state_of(outcome)
    if state is TodoState.DONE:
        return Verdict.PASSED, None
    failure = next(failures_of(outcome), None)
    if failure is not None and is_unowned(failure):
        return Verdict.INCONCLUSIVE, failure
    if state is TodoState.TEST_FAILED:
        is_flaky = failure is not None and failure.category is Category.FLAKY_TEST
        return (Verdict.FLAKY if is_flaky else Verdict.FAILED), failure
    verdicts = {check.counts_as for check in outcome.checks}
    if Verdict.NEEDS_HUMAN in verdicts and not verdicts & UNDECIDED:
        return Verdict.NEEDS_HUMAN, None
    return Verdict.INCONCLUSIVE, None


@dataclass(slots=True)
class Figures:
    """Totals of one run."""

    branches: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Verifications by verdict and category of the deciding failure, ``none`` where there is none."""
    halts: Counter[str] = field(default_factory=Counter[str])
    """Halts by the rule that decided them."""
    resolutions: list[tuple[bool, float]] = field(default_factory=list[tuple[bool, float]])
    """For each branch that ended: whether it passed, and the seconds since it was created."""


def count_run(steps: Iterable[Step]) -> tuple[Figures, State]:
    """Return the figures of a run and its last state.

    ``steps`` must not be empty. Errors of reading the log are raised by its iterator, and pass through.
    """
    figures, rows, after = Figures(), None, None
    for step in steps:
        event, actions, _, after = step
        if rows is None:
            assert isinstance(event, PlanSubmitted)  # a run begins with its submission
            rows = RunRows(event)
        rows.add(step)
        if isinstance(event, Verified):
            verdict, failure = verdict_of(event.outcome)
            figures.verdicts[verdict.value, "none" if failure is None else failure.category.value] += 1
        figures.halts.update(action.rule for action in actions if isinstance(action, Halt))
    assert rows is not None
    assert after is not None
    branches = [row for row in rows.repairs if "branch_id" in row]
    figures.branches = len(branches)
    ended = (row for row in branches if "closed" in row)
    figures.resolutions = [(row["outcome"] == PASSED, row["duration_seconds"]) for row in ended]
    return figures, after
