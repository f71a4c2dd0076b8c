"""Instructions for a worker, its reports as JSON, and the soft time limit of its tests."""

from __future__ import annotations

import enum
import json
import signal
import sys
from decimal import Decimal
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from pytest_planverify.guards.sandbox_policy import Sandbox
from pytest_planverify.observe.relay import Relay, dump_line
from pytest_planverify.observe.spec import Narrowing, Start, WorkerSpec
from pytest_planverify.observe.supervision import SIGNAL, SoftLimits


class Level(enum.IntEnum):
    HIGH = 3


class Unprintable:
    def __str__(self) -> str:
        pytest.fail("no text")


def circle() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.50"), "1.50"),
        (Level.HIGH, 3),
        ("\udcff", "\udcff"),
        ({1}, "{1}"),
        pytest.param(10**5000, "a int that cannot be shown", id="longer than Python writes in decimal"),
        (Unprintable(), "a Unprintable that cannot be shown"),
        (circle(), "a list that cannot be shown"),
        ({("a", 1): 2}, "a dict that cannot be shown"),
    ],
)
def test_values_without_a_json_form_are_replaced_by_text(value: object, expected: object) -> None:
    data: dict[str, Any] = {"nodeid": "a.py::test_a", "metadata": value}
    data["user_properties"] = [("odd", value), ("plain", [1, None])]

    line = dump_line({"kind": "report", "data": data})

    assert line.endswith(b"\n")
    read = json.loads(line)["data"]
    assert (read["nodeid"], read["metadata"]) == ("a.py::test_a", expected)
    assert read["user_properties"] == [["odd", expected], ["plain", [1, None]]]


def test_report_that_pytest_cannot_serialize_is_relayed_with_its_text(tmp_path: Path):
    odd = SimpleNamespace(toterminal=lambda _: None, reprtraceback=None, reprcrash=None)
    report = pytest.TestReport(
        "a.py::test_a", ("a.py", 1, "test_a"), {}, "failed", cast("Any", odd), "call"
    )
    hook = SimpleNamespace(pytest_report_to_serializable=lambda config, report: report._to_json())
    config = SimpleNamespace(hook=hook, rootpath=tmp_path)

    Relay(cast("pytest.Config", config), tmp_path / "relay").pytest_runtest_logreport(report)

    *_, line = (tmp_path / "relay").read_text().splitlines()
    data = json.loads(line)["data"]
    assert (data["nodeid"], data["outcome"], data["longrepr"]) == ("a.py::test_a", "failed", "")


def test_soft_limit_applies_only_to_the_test_body(monkeypatch: pytest.MonkeyPatch):
    limits_reached: list[float] = []
    plugin = SimpleNamespace(timeout_sigalrm=lambda item, settings: limits_reached.append(settings.timeout))
    monkeypatch.setitem(sys.modules, "pytest_timeout", cast("ModuleType", plugin))
    before, limits = signal.getsignal(SIGNAL), SoftLimits()
    try:
        assert limits.listen(7.5)
        signal.raise_signal(SIGNAL)
        body = limits.pytest_runtest_call(cast("pytest.Item", object()))
        next(body)
        signal.raise_signal(SIGNAL)
        with pytest.raises(StopIteration):
            body.send(None)
        signal.raise_signal(SIGNAL)
    finally:
        signal.signal(SIGNAL, before)

    assert limits_reached == [7.5]


def test_worker_spec_round_trips_through_json():
    start = Start(root="/r", options=("-q", "é"), env=(("A", "1"),))
    paths = {"journal": "/j", "log": None, "stacks": "/s", "board": "/b"}
    narrowing, sandbox = (
        Narrowing(keyword="x", deselect=("a.py::t",)),
        Sandbox(root="/r", network=("host",)),
    )
    more = {**paths, "narrowing": narrowing, "sandbox": (sandbox,)}
    spec = WorkerSpec(worker_id="w1", check="plan::t::tests[0]", start=start, args=("é", "a.py"), **more)

    assert WorkerSpec.from_json(spec.to_json()) == spec
