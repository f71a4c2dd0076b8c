"""Node ids, soft limits and the instructions of a worker."""

from __future__ import annotations

import signal
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from pytest_planverify.guards.sandbox_policy import Sandbox
from pytest_planverify.observe.results import NodeIds
from pytest_planverify.observe.spec import Narrowing, Start, WorkerSpec
from pytest_planverify.observe.supervision import SIGNAL, SoftLimits

if TYPE_CHECKING:
    from types import ModuleType


@pytest.mark.parametrize(
    ("rootdir", "root", "nodeid", "seen"),
    [
        ("/r", "/r", "a.py::t", "a.py::t"),
        ("/r", "/r/sub", "sub/a.py::t", "a.py::t"),
        ("/r", "/r/sub", "other/a.py::t", "other/a.py::t"),
        ("/r", "/r/sub/deep", "sub/deep/a.py::t[sub/deep/]", "a.py::t[sub/deep/]"),
        ("/r/sub", "/r", "a.py::t", "sub/a.py::t"),
        ("/x", "/r", "a.py::t", "a.py::t"),
    ],
)
def test_ids_are_told_from_the_plans_root(rootdir: str, root: str, nodeid: str, seen: str):
    assert NodeIds(rootdir, root).of(nodeid) == seen


def test_the_limit_ends_a_test_only_while_its_body_runs(monkeypatch: pytest.MonkeyPatch):
    asked: list[float] = []
    plugin = SimpleNamespace(timeout_sigalrm=lambda item, settings: asked.append(settings.timeout))
    monkeypatch.setitem(sys.modules, "pytest_timeout", cast("ModuleType", plugin))
    assert SIGNAL is not None
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

    assert asked == [7.5]


def test_a_spec_survives_the_way_to_a_process():
    spec = WorkerSpec(
        worker_id="w1",
        check="plan::t::tests[0]",
        start=Start(root="/r", options=("-q", "é"), env=(("A", "1"),), modules=("numpy",)),
        args=("-q", "é", "a.py"),
        selections=("a.py",),
        deselect=("c",),
        journal="/j",
        log=None,
        stacks="/s",
        board="/b",
        limit_seconds=3.5,
        narrowing=Narrowing(keyword="x", deselect=("a.py::t",)),
        planned=("x.py",),
        sandbox=(Sandbox(root="/r", network=("host",)),),
    )

    assert WorkerSpec.from_json(spec.to_json()) == spec
