"""Whom it concerns when the budget of a run is used up in the middle of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.verdicts import CheckKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.rules.criteria import Criterion
    from pytest_planverify.supervision.check_runs import CheckRun
    from pytest_planverify.supervision.records import SessionRecord
    from pytest_planverify.supervision.schedule import Fold


def at_work(records: Iterable[tuple[Fold, SessionRecord]]) -> tuple[str, ...]:
    """The todos whose tests were running when a shared session was ended; none where no test ran."""
    found: dict[str, None] = {}
    for fold, record in records:
        if record.exit_status is not None:
            continue
        keys = {key for nodeid in record.running for key in record.wanted_by(nodeid)}
        found |= {job.todo.id: None for job in fold.jobs if job.key in keys}
    return tuple(found)


def being_verified(
    order: Sequence[str],
    current: Sequence[str],
    checks: Mapping[str, Mapping[str, CheckRun]],
    criteria: Mapping[str, Sequence[Criterion]],
) -> tuple[str, ...]:
    """The todos that were being verified: of the current ones those that lack the verdict of a command.

    Where none does, all the current ones; where nothing had begun, the first that has no verdict yet.
    """

    def lacks(todo_id: str, *kinds: CheckKind) -> bool:
        return any(
            each.id not in checks[todo_id] and (not kinds or each.kind in kinds)
            for each in criteria[todo_id]
        )

    unfinished = [each for each in current if lacks(each, CheckKind.TEST, CheckKind.COMMAND)]
    waiting = [each for each in order if lacks(each)]
    return tuple(unfinished or current or waiting[:1] or order[-1:])
