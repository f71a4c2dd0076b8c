"""Sandbox guard: fails a criterion whose tests attempted access that the plan denies.

The verdict does not depend on the results of the tests: a test may catch the exception of a denied access.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from planner.model.evidence import AuditEvent, Evidence
from planner.model.verdicts import EvidenceKind, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pytest_planverify.checks.result import Judgement

MOST_EVENTS = 50
"""Limit of the events stored with a check; denied ones come first."""

_DENIED = {
    "connect": "accessed {target}",
    "process": "started {target}",
    "write": "wrote to {target}",
}


def hold(
    judgement: Judgement, records: Iterable[dict[str, Any]], *, check_id: str, nodeids: Collection[str]
) -> Judgement:
    """Add the audit events of a worker to the judgement of its criterion; a denied event fails it.

    ``records`` are the events in the worker's journal, ``nodeids`` the tests of the criterion. A criterion
    that was not run keeps its verdict. Returns the same judgement.
    """
    events = merged(records, nodeids)
    judgement.events = events[:MOST_EVENTS]
    denied = [event for event in events if event.denied]
    if denied and judgement.verdict is not Verdict.NOT_RUN:
        judgement.verdict = Verdict.FAILED
        judgement.reason = said_of(denied)
        judgement.evidence = (_evidence(denied, check_id), *judgement.evidence)
    return judgement


def merged(records: Iterable[dict[str, Any]], nodeids: Collection[str]) -> tuple[AuditEvent, ...]:
    """Return the distinct events, denied ones first.

    An event of a test in ``nodeids`` names the test. Any other event, for example of a session fixture,
    names the file that caused it, and is left out if a test has the same event.
    """
    found: dict[AuditEvent, None] = {}
    for record in records:
        fields = {name: record.get(name) for name in ("event", "target", "nodeid", "path", "phase")}
        is_of_test = fields["nodeid"] in nodeids
        fields |= {"path": None} if is_of_test else {"nodeid": None, "phase": None}
        # The records of events are not signed, so a test can write anything in their form.
        with suppress(ValidationError):
            found[AuditEvent.model_validate({**fields, "denied": bool(record.get("denied"))})] = None
    by_tests = {(each.event, each.target, each.denied) for each in found if each.nodeid is not None}
    events = [
        event
        for event in found
        if event.nodeid is not None or (event.event, event.target, event.denied) not in by_tests
    ]
    return tuple(sorted(events, key=lambda event: not event.denied))


def said_of(denied: Sequence[AuditEvent]) -> str:
    """Return one sentence on denied events: the first, and the number of others."""
    first = denied[0]
    who = first.nodeid or first.path or "the session"
    more = len({(event.event, event.target) for event in denied}) - 1
    beside = f", and {more} more" if more else ""
    # A forged event may be of any kind.
    did = _DENIED.get(first.event, "used {target}").format(target=first.target)
    return f"{who} {did}, which the plan denies{beside}"


def _evidence(denied: Sequence[AuditEvent], check_id: str) -> Evidence:
    """Return the evidence for the failed check; its place is that of the first denied event."""
    first = denied[0]
    tests = tuple(dict.fromkeys(event.nodeid for event in denied if event.nodeid))
    return Evidence(
        kind=EvidenceKind.SANDBOX,
        check_id=check_id,
        nodeid=first.nodeid,
        phase=first.phase,
        headline=said_of(denied),
        tests=tests,
        events=tuple(denied[:MOST_EVENTS]),
    )
