"""Holds against a criterion what its tests reached for and the plan denies, whatever they made of it."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from planner.model.evidence import AuditEvent, Evidence
from planner.model.kinds import EvidenceKind
from planner.model.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from planner.model.kinds import Phase
    from pytest_planverify.judgement import Judgement

MOST_EVENTS = 50
"""How many events a check tells of; those that were denied come first."""

_DENIED = {
    "connect": "reached for {target}",
    "process": "started {target}",
    "write": "wrote to {target}",
}


def hold(
    judgement: Judgement,
    records: Iterable[dict[str, Any]],
    *,
    key: str,
    check_id: str,
    nodeids: Collection[str],
    names: Callable[[str], bool],
    test_files: Collection[str],
) -> Judgement:
    """Add to a judgement what was reached for on the criterion's behalf; what was denied fails it.

    ``nodeids`` are its tests, ``names`` says whether its command names a file or what lies around it, and
    ``test_files`` are all files of the session that hold tests.
    """
    mine = [record for record in records if _concerns(record, key, nodeids, names, test_files)]
    if not mine:
        return judgement
    events = merged(mine, nodeids)
    judgement.events = events[:MOST_EVENTS]
    denied = [event for event in events if event.denied]
    if denied and judgement.verdict is not Verdict.NOT_RUN:
        judgement.verdict = Verdict.FAILED
        judgement.reason = said_of(denied)
        judgement.evidence = (_evidence(denied, check_id), *judgement.evidence)
        judgement.doubt = None
    return judgement


def merged(records: Iterable[dict[str, Any]], nodeids: Collection[str]) -> tuple[AuditEvent, ...]:
    """The events, equal ones of several processes as one, those that were denied first.

    What a shared fixture reached for is no other criterion's test's doing, only its file's; and where it
    was made once more, in another worker, for one of the criterion's own tests, that says it all.
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
    """One sentence on what was denied."""
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


def _concerns(
    record: dict[str, Any],
    key: str,
    nodeids: Collection[str],
    names: Callable[[str], bool],
    test_files: Collection[str],
) -> bool:
    """Whether the criterion would have seen it alone, too: in one of its tests, or in what those load."""
    if key in record.get("keys", ()) or record.get("nodeid") in nodeids:
        return True
    path = record.get("path")
    if record.get("nodeid") is not None:
        return False
    if path is None:
        return True
    files = {nodeid.partition("::")[0] for nodeid in nodeids}
    if posixpath.basename(path) == "conftest.py":
        folder = posixpath.dirname(path)
        if not files:
            return names(folder or ".")
        return any(file.startswith(f"{folder}/") for file in files) if folder else True
    if path in test_files or path in files:
        return path in files or names(path)
    return True  # whatever loads it: a plugin of the project, a thread, something at the end
