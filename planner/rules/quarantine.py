"""Which flaky tests a plan bears, for whom, under which ticket and until when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from planner.model.plan import Quarantine


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearing:
    """What the plan says about a flaky check."""

    borne: bool
    """The flakiness does not count as a failure."""
    ticket: str
    until: str
    reason: str
    """One clause for the screen."""


def bearing(tests: Collection[str], entries: Sequence[Quarantine], today: str) -> Bearing | None:
    """Whether the plan bears the flakiness of all of these tests on that day (``2026-11-22``).

    A test is borne by an entry with its node id, or with that of all its parameters. ``None`` where the
    plan says nothing of one of them: a check is borne as a whole or not at all.
    """
    found = [_latest(test, entries) for test in tests]
    known = [entry for entry in found if entry is not None]
    if not known or len(known) < len(found):
        return None
    ended = [entry for entry in known if entry.expires < today]
    if ended:
        first = min(ended, key=lambda entry: entry.expires)
        reason = f"its quarantine ended on {first.expires} ({first.ticket}, {first.owner})"
        return Bearing(borne=False, ticket=first.ticket, until=first.expires, reason=reason)
    first = min(known, key=lambda entry: entry.expires)
    reason = f"borne until {first.expires} ({first.ticket}, {first.owner})"
    return Bearing(borne=True, ticket=first.ticket, until=first.expires, reason=reason)


def _latest(test: str, entries: Sequence[Quarantine]) -> Quarantine | None:
    """The entry for the test that lasts longest."""
    names = {test, test.partition("[")[0]}
    return max((entry for entry in entries if entry.nodeid in names), key=_expires, default=None)


def _expires(entry: Quarantine) -> str:
    return entry.expires
