"""The instructions of a worker."""

from __future__ import annotations

from pytest_planverify.guards.sandbox_policy import Sandbox
from pytest_planverify.observe.spec import Narrowing, Start, WorkerSpec


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
