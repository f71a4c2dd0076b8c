"""Node ids, import paths and soft limits: the small translations between pytest and a plan."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_planverify.observing import limits as limits_module
from pytest_planverify.observing.import_paths import import_path
from pytest_planverify.observing.limits import SoftLimits
from pytest_planverify.observing.nodeids import NodeIds
from pytest_planverify.observing.spec import Narrowing, SessionSpec, Wanted


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


def test_a_test_file_is_imported_from_the_first_folder_that_is_no_package(tmp_path: Path):
    (tmp_path / "a/b/c").mkdir(parents=True)
    for folder in ("a/b", "a/b/c"):
        (tmp_path / folder / "__init__.py").touch()

    import_path.cache_clear()
    assert import_path(str(tmp_path / "a/b/c/test_x.py")) == str(tmp_path / "a")
    assert import_path(str(tmp_path / "a/test_x.py")) == str(tmp_path / "a")


def test_packages_up_to_the_top_end(monkeypatch: pytest.MonkeyPatch):
    import_path.cache_clear()
    monkeypatch.setattr("os.path.exists", lambda path: True)

    assert import_path("/a/test_x.py") == "/"
    monkeypatch.undo()
    import_path.cache_clear()


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
    test = item(own=own, ini=ini)

    SoftLimits().set(test, 10)

    assert bool(test.marks) == limited
    if limited:
        mark, append = test.marks[0]
        assert (mark.args, append) == ((10,), False)
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

    limits.set(test, 10)

    assert callable(alarm_while_called(limits, test))
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert test.marks == []


def test_a_timer_that_runs_out_as_the_call_ends_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch):
    test, limits = item(), SoftLimits()
    limits.set(test, 10)
    set_timer = signal.setitimer

    def late(which: int, seconds: float) -> None:
        set_timer(which, 0)
        if not seconds:
            signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(limits_module, "setitimer", late)

    assert callable(alarm_while_called(limits, test))
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_without_the_timeout_plugin_there_is_no_soft_limit():
    test, limits = item(plugin=False), SoftLimits()

    limits.set(test, 10)

    assert alarm_while_called(limits, test) == signal.SIG_DFL
    assert test.marks == []


def test_a_project_that_uses_the_alarm_itself_keeps_it():
    def own(number: int, frame: object) -> None: ...

    test, limits = item(), SoftLimits()
    limits.set(test, 10)
    before = signal.signal(signal.SIGALRM, own)
    try:
        assert alarm_while_called(limits, test) is own
        assert signal.getsignal(signal.SIGALRM) is own
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_spec_survives_the_way_to_a_worker():
    spec = SessionSpec(
        session_id="s1",
        root="/r",
        args=("-q", "é"),
        wanted=(Wanted(key="k", selections=("a.py", "b.py"), deselect=("c",), limit_seconds=3.5),),
        journal="/j",
        log=None,
        stacks="/s",
        env={"A": "1"},
        narrowing=Narrowing(keyword="x", only=("a.py::t",)),
        skip=("a.py::u",),
        planned=("x.py",),
    )

    assert SessionSpec.from_json(spec.to_json()) == spec
