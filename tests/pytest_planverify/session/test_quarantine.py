"""A quarantine holds for what it names, as long as it lasts."""

from __future__ import annotations

import pytest

from planner.model.outcome import Check
from planner.model.plan import Quarantine
from planner.model.verdicts import CheckKind, Verdict
from pytest_planverify.session.check_runs import quarantine_of


def entry(nodeid: str, expires: str = "2026-12-31") -> Quarantine:
    return Quarantine(nodeid=nodeid, owner="ann", ticket="T-1", expires=expires)


@pytest.mark.parametrize(
    ("tests", "entries", "expires"),
    [
        (["t.py::a"], [entry("t.py::a")], "2026-12-31"),
        (["t.py::a[x]"], [entry("t.py::a")], "2026-12-31"),
        (["t.py::a"], [entry("t.py::a[x]")], None),
        (["t.py::a"], [entry("t.py")], None),
        (["t.py::a", "t.py::b"], [entry("t.py::a")], None),
        (["t.py::a", "t.py::b"], [entry("t.py::a"), entry("t.py::b", "2026-01-01")], "2026-01-01"),
        (["t.py::a"], [entry("t.py::a", "2026-01-01"), entry("t.py::a")], "2026-12-31"),
        (["t.py::a"], [], None),
        ([], [entry("t.py::a")], None),
    ],
)
def test_a_check_is_quarantined_as_a_whole_until_the_first_entry_ends(
    tests: list[str], entries: list[Quarantine], expires: str | None
):
    found = quarantine_of(tests, entries)

    assert (found.expires if found else None) == expires


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_quarantine_allows_for_flakiness_only(verdict: Verdict):
    check = Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict, quarantined="T-1")

    assert check.counts_as is (Verdict.PASSED if verdict is Verdict.FLAKY else verdict)
    assert check.model_copy(update={"quarantined": None}).counts_as is verdict
