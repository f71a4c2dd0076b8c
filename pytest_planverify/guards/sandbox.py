"""Sandbox guard: fails a criterion whose tests accessed what the plan denies, whatever the tests
reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.model.evidence import AuditEvent, Evidence
from planner.model.verdicts import EvidenceKind, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from planner.model.verdicts import Phase
    from pytest_planverify.checks.result import Judgement

MOST_EVENTS = 50
"""Limit of events in a check; denied ones come first."""

_DENIED = {
    "connect": "reached for {target}",
    "process": "started {target}",
    "write": "wrote to {target}",
}


def hold(
    judgement: Judgement, records: Iterable[dict[str, Any]], *, check_id: str, nodeids: Collection[str]
) -> Judgement:
    """Add a worker's audit events to its judgement; denied ones fail it.

    ``nodeids`` are its tests.
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
    """Return the events, denied first, with equal ones of several processes merged.

    An event outside of tests, for example of a session fixture, carries the file that caused it.
    """
    found: dict[AuditEvent, int] = {}
    for record in records:
        fields = {name: record.get(name) for name in ("event", "target", "nodeid", "path", "phase")}
        own = fields["nodeid"] in nodeids
        fields |= {"path": None} if own else {"nodeid": None, "phase": None}
        event = AuditEvent.model_validate({**fields, "denied": bool(record.get("denied"))})
        found[event] = found.get(event, 0) + max(int(record.get("count", 1)), 1)
    own_doing = {(each.event, each.target, each.denied) for each in found if each.nodeid is not None}
    events = [
        event.model_copy(update={"count": count})
        for event, count in found.items()
        if event.nodeid is not None or (event.event, event.target, event.denied) not in own_doing
    ]
    return tuple(sorted(events, key=lambda event: not event.denied))


def said_of(denied: Sequence[AuditEvent]) -> str:
    """Return one sentence on denied events."""
    first = denied[0]
    who = first.nodeid or first.path or "the session"
    more = len({(event.event, event.target) for event in denied}) - 1
    beside = f", and {more} more" if more else ""
    did = _DENIED.get(first.event, "used {target}").format(target=first.target)
    return f"{who} {did}, which the plan denies{beside}"


def _evidence(denied: Sequence[AuditEvent], check_id: str) -> Evidence:
    first = denied[0]
    tests = tuple(dict.fromkeys(event.nodeid for event in denied if event.nodeid))
    phase: Phase | None = first.phase
    return Evidence(
        kind=EvidenceKind.SANDBOX,
        check_id=check_id,
        nodeid=first.nodeid,
        phase=phase,
        headline=said_of(denied),
        tests=tests,
        events=tuple(denied[:MOST_EVENTS]),
    )
