"""After a crash or a flaky test: run it alone; a flaky one may be borne for a while."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from planner.model.edits import QuarantineTest
from planner.model.taxonomy import Repeatability
from planner.rules.revision.facts import failing_tests, quoted
from planner.rules.revision.isolating import isolate, isolate_company
from planner.rules.routing import role_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.edits import Edit
    from planner.rules.revision.situation import Situation

QUARANTINE_DAYS = 14
"""So long a flaky test may be borne before it is looked at again."""

_MOST = 10
_MAX_NODEID = 1_000


def after_crash(situation: Situation) -> Iterator[Edit]:
    """Leaves the branch the crashing test, so that it takes no other test with it."""
    yield from isolate(situation, rule="crash-isolates", why="what ends its process is run without company")


def after_flaky_test(situation: Situation) -> Iterator[Edit]:
    """Leaves the branch the flaky tests; proposes to bear them until a date."""
    if situation.failure.repeatability is Repeatability.ORDER_DEPENDENT:
        yield from isolate_company(
            situation,
            rule="flaky-isolates",
            why="what fails only in company is run in company",
        )
        return  # run as it stands it gives one answer, which no quarantine bears
    yield from isolate(situation, rule="flaky-isolates", why="what gives both answers is run again, alone")
    yield from _quarantine(situation)


def _quarantine(situation: Situation) -> Iterator[QuarantineTest]:
    today = _day(situation.at)
    if today is None or today > date.max - timedelta(days=QUARANTINE_DAYS):
        return
    expires = (today + timedelta(days=QUARANTINE_DAYS)).isoformat()
    borne = {each.nodeid: each.expires for each in situation.plan.metadata.flaky_retry.quarantine}
    role = role_for(situation.failure, situation.todo)
    ticket = situation.branch.id if situation.branch else situation.todo.id
    for nodeid in failing_tests(situation)[:_MOST]:
        until = borne.get(nodeid)
        lawful = 0 < len(nodeid) <= _MAX_NODEID and nodeid.isprintable()
        if not lawful or (until and until >= today.isoformat()):
            continue
        before = f"; an earlier quarantine ended on {until}" if until else ""
        yield QuarantineTest(
            rule="flaky-quarantines",
            because=f"{quoted(nodeid)} gave both answers, and {ticket} is there to mend it{before}",
            requires_approval=True,
            todo_id=situation.todo.id,
            nodeid=nodeid,
            owner=role.value,
            ticket=ticket,
            expires=expires,
        )


def _day(at: str) -> date | None:
    try:
        return date.fromisoformat(at[:10])
    except ValueError:
        return None
