"""Node ids, soft limits and the instructions of a worker."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_planverify.observe import limits as limits_module
from pytest_planverify.observe.limits import SoftLimits
from pytest_planverify.observe.nodeids import NodeIds
from pytest_planverify.observe.spec import Narrowing, Sandbox, Start, WorkerSpec


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


def item(*, plugin: bool = True, own: Any = None, ini: float | None = None) -> Any:
    marks: list[Any] = []
    return SimpleNamespace(
        config=SimpleNamespace(
            pluginmanager=SimpleNamespace(hasplugin=lambda name: plugin and name == "timeout"),
            _env_timeout=ini,
        ),
        get_closest_marker=lambda name: own,
        add_marker=lambda mark, append: marks.append((mark.mark, append)),
        nodeid="test_slow.py::test_slow",
        marks=marks,
    )


@pytest.mark.parametrize(
    ("own", "ini", "limited"),
    [
        (None, 5, False),
        (None, 50, True),
        (None, 0, True),
        (pytest.mark.timeout(5).mark, None, False),
        (pytest.mark.timeout(timeout=5).mark, 50, False),
        (pytest.mark.timeout(50).mark, 5, True),
        (pytest.mark.timeout(method="thread").mark, None, True),
        (pytest.mark.timeout("odd").mark, None, True),
    ],
)
def test_the_tighter_limit_holds(own: Any, ini: float | None, limited: bool):
    test, limits = item(own=own, ini=ini), SoftLimits()
    limits.limit(10)

    limits.pytest_runtest_protocol(test)

    assert bool(test.marks) == limited
    if limited:
        mark, append = test.marks[0]
        assert (pytest.approx(mark.args[0], abs=1), append) == (10, False)
        assert mark.kwargs == {"method": "signal", "func_only": True}


def alarm_while_called(limits: SoftLimits, test: Any) -> object:
    call = limits.pytest_runtest_call(test)
    next(call)
    handler = signal.getsignal(signal.SIGALRM)
    with pytest.raises(StopIteration):
        call.send(None)
    return handler


def test_without_a_limit_of_its_own_a_test_has_a_timer_while_it_is_called():
    test, limits = item(), SoftLimits()

    limits.limit(10)
    limits.pytest_runtest_protocol(test)

    assert callable(alarm_while_called(limits, test))
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert test.marks == []


def test_all_tests_of_a_criterion_share_its_limit_and_one_that_comes_late_has_a_second(
    monkeypatch: pytest.MonkeyPatch,
):
    clock, given, limits = iter([100.0, 103.0, 120.0]), list[float](), SoftLimits()
    monkeypatch.setattr(limits_module, "monotonic", lambda: next(clock))
    monkeypatch.setattr(limits_module, "_set_timer", lambda which, seconds: given.append(seconds))
    limits.limit(10)
    for _ in range(2):
        test = item()
        limits.pytest_runtest_protocol(test)
        alarm_while_called(limits, test)

    assert given == [7, 0, 1, 0]


def test_a_timer_that_runs_out_as_the_call_ends_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch):
    test, limits = item(), SoftLimits()
    limits.limit(10)
    limits.pytest_runtest_protocol(test)
    set_timer = signal.setitimer

    def late(which: int, seconds: float) -> None:
        set_timer(which, 0)
        if not seconds:
            signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(limits_module, "_set_timer", late)

    assert callable(alarm_while_called(limits, test))
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_without_the_timeout_plugin_there_is_no_soft_limit():
    test, limits = item(plugin=False), SoftLimits()

    limits.limit(10)
    limits.pytest_runtest_protocol(test)

    assert alarm_while_called(limits, test) == signal.SIG_DFL
    assert test.marks == []


def test_a_project_that_uses_the_alarm_itself_keeps_it():
    def own(number: int, frame: object) -> None: ...

    test, limits = item(), SoftLimits()
    limits.limit(10)
    limits.pytest_runtest_protocol(test)
    before = signal.signal(signal.SIGALRM, own)
    try:
        assert alarm_while_called(limits, test) is own
        assert signal.getsignal(signal.SIGALRM) is own
    finally:
        signal.signal(signal.SIGALRM, before)


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
