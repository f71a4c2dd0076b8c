"""A quarantine bears what it names, as long as it lasts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.outcome import Check, CheckKind, Verdict
from planner.model.plan import Quarantine
from planner.rules.quarantine import bearing

TODAY = "2026-06-15"


def entry(nodeid: str, expires: str = "2026-12-31", ticket: str = "T-1") -> Quarantine:
    return Quarantine(nodeid=nodeid, owner="ann", ticket=ticket, expires=expires)


@pytest.mark.parametrize(
    ("tests", "entries", "borne"),
    [
        (["t.py::a"], [entry("t.py::a")], True),
        (["t.py::a"], [entry("t.py::a", TODAY)], True),
        (["t.py::a"], [entry("t.py::a", "2026-06-14")], False),
        (["t.py::a[x]"], [entry("t.py::a")], True),
        (["t.py::a"], [entry("t.py::a[x]")], None),
        (["t.py::a"], [entry("t.py")], None),
        (["t.py::a", "t.py::b"], [entry("t.py::a")], None),
        (["t.py::a", "t.py::b"], [entry("t.py::a"), entry("t.py::b")], True),
        (["t.py::a", "t.py::b"], [entry("t.py::a"), entry("t.py::b", "2026-01-01")], False),
        (["t.py::a"], [entry("t.py::a", "2026-01-01"), entry("t.py::a")], True),
        (["t.py::a"], [], None),
        ([], [entry("t.py::a")], None),
    ],
)
def test_a_check_is_borne_as_a_whole_until_the_last_day(
    tests: list[str], entries: list[Quarantine], borne: bool | None
):
    said = bearing(tests, entries, TODAY)

    assert (None if said is None else said.borne) == borne


def test_what_is_said_names_the_day_the_ticket_and_the_owner():
    borne = bearing(["t.py::a"], [entry("t.py::a")], TODAY)
    ended = bearing(["t.py::a"], [entry("t.py::a", "2026-01-01")], TODAY)

    assert borne is not None
    assert borne.reason == "borne until 2026-12-31 (T-1, ann)"
    assert ended is not None
    assert ended.reason == "its quarantine ended on 2026-01-01 (T-1, ann)"


@given(day=st.dates().map(str), expires=st.dates().map(str))
def test_a_day_after_the_last_one_is_never_borne(day: str, expires: str):
    said = bearing(["t"], [entry("t", expires)], day)

    assert said is not None
    assert said.borne == (day <= expires)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_quarantine_bears_flakiness_only(verdict: Verdict):
    check = Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict, quarantined="T-1")

    assert check.counts_as is (Verdict.PASSED if verdict is Verdict.FLAKY else verdict)
    assert check.model_copy(update={"quarantined": None}).counts_as is verdict
