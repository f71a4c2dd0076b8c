"""What the report of one failed todo says of the causes of the run: its own, and those to mend before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.failure_report import ReportedCause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.outcome import Cause, Failure, Outcome

MOST_TODOS = 10
MOST_EARLIER = 3


class KnownCauses:
    """The causes of a run by the signatures of the failures that they are about."""

    def __init__(self, causes: Sequence[Cause] = ()) -> None:
        self._count = len(causes)
        self._of = {signature: cause for cause in causes for signature in cause.signatures}
        self._explaining: dict[str, list[Cause]] = {}
        for cause in causes:
            for signature in cause.explains:
                self._explaining.setdefault(signature, []).append(cause)

    def of(self, failure: Failure) -> ReportedCause | None:
        """The cause that a failure belongs to."""
        cause = self._of.get(failure.signature or "")
        return None if cause is None else self._reported(cause)

    def before(self, outcome: Outcome, failure: Failure) -> tuple[ReportedCause, ...]:
        """The causes that probably explain a failure, and that other todos show."""
        here = (outcome.plan, outcome.todo_id)
        found = self._explaining.get(failure.signature or "", ())
        others = [each for each in found if any((todo.plan, todo.todo_id) != here for todo in each.todos)]
        return tuple(self._reported(each) for each in others[:MOST_EARLIER])

    def _reported(self, cause: Cause) -> ReportedCause:
        return ReportedCause(
            rank=cause.rank,
            of=self._count,
            because=cause.because,
            headline=cause.headline,
            location=cause.location,
            todos=tuple(todo.todo_id for todo in cause.todos[:MOST_TODOS]),
            tests=cause.tests,
            files=cause.files,
        )
