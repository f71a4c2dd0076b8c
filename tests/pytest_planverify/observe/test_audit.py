"""The audit hook of a session: denied and recorded accesses, and their origin."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from forked import in_fork

from pytest_planverify.guards.sandbox_policy import Sandbox
from pytest_planverify.journal import read_journal
from pytest_planverify.observe import audit
from pytest_planverify.observe.audit import origin_finder
from pytest_planverify.observe.spec import Start, WorkerSpec

CREATE = os.O_WRONLY | os.O_CREAT


def frame(*calls: tuple[str, str]) -> Any:
    """Return a chain of frames from pairs (file, function), innermost first."""
    found = None
    for file, name in reversed(calls):
        code = SimpleNamespace(co_filename=file, co_name=name)
        found = SimpleNamespace(f_code=code, f_back=found)
    return found


def package(name: str, file: str) -> str:
    return str(Path(str(sys.modules[name].__file__)).parent / file)


RUNNER = (package("_pytest", "runner.py"), "pytest_runtest_call")
PROTOCOL = (package("_pytest", "runner.py"), "runtestprotocol")
PLUGGY = (package("pluggy", "_callers.py"), "_multicall")
LIBRARY = ("/usr/lib/python3/socket.py", "connect")
PLUGIN = ("/usr/lib/python3/site-packages/plugin.py", "pytest_runtest_logreport")
TEST = ("/root/of/plan/test_a.py", "test_a")
PYTESTER = (package("_pytest", "pytester.py"), "popen")
CACHE = (package("_pytest", "cacheprovider.py"), "pytest_sessionfinish")
START_UP = (package("_pytest", "config/__init__.py"), "import_plugin")
CONFTEST = ("/root/of/plan/conftest.py", "<module>")
INSTALLED = ("/root/of/plan/.venv/lib/site-packages/x.py", "hook")
WORKERS = (str(Path(str(sys.modules["_pytest"].__file__)).parents[1] / "xdist/workermanage.py"), "setup")


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([TEST, RUNNER, PLUGGY, PROTOCOL], (True, "call", TEST[0])),
        ([RUNNER, PLUGGY, PROTOCOL], (True, "call", None)),
        ([PYTESTER, TEST, RUNNER, PLUGGY, PROTOCOL], (True, "call", TEST[0])),
        ([CONFTEST, PLUGGY], (False, None, CONFTEST[0])),
        ([], (False, None, None)),
        *((calls, None) for calls in ([PLUGIN, PLUGGY, PROTOCOL], [CACHE, PLUGGY], [START_UP])),
        *((calls, None) for calls in ([INSTALLED, PLUGGY], [WORKERS])),
    ],
)
def test_innermost_known_call_decides_the_origin(calls: Any, expected: Any):
    origin = origin_finder(("/root/of/plan",))(frame(LIBRARY, *calls))
    assert (origin and (origin.in_test, origin.phase, origin.path)) == expected


def spec(folder: Path, **sandbox: Any) -> WorkerSpec:
    return WorkerSpec(
        worker_id="w1",
        check="plan::t::tests[0]",
        start=Start(root=str(folder)),
        args=("--basetemp", str(folder / "base")),
        journal=str(folder / "journal.jsonl"),
        log=None,
        stacks=str(folder / "stacks"),
        board=str(folder / "phases"),
        sandbox=(Sandbox(root=str(folder), **sandbox),) if sandbox else (),
    )


def close_all(path: Path) -> None:
    for name in os.listdir("/proc/self/fd"):
        if os.path.realpath(f"/proc/self/fd/{name}") == str(path):
            os.close(int(name))


ACCESSES = """\
import os, socket, sqlite3, subprocess, threading

def denied(call, *args):
    try: call(*args)
    except PermissionError as error: return error.errno

for _ in range(3): subprocess.Popen(['true']).wait()
connect = socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect
found = [denied(connect, ('198.51.100.1', 9)), denied(os.mkdir, '/not-granted')]
connect(('127.0.0.1', 9))
thread = threading.Thread(target=lambda: denied(connect, ('198.51.100.2', 9)))
thread.start(); thread.join()
close_journal()
found.append(denied(sqlite3.connect, '/also-not-granted'))
"""


def test_hook_denies_and_records_each_access_once(tmp_path: Path):
    def session() -> None:
        watched = audit.watch(spec(tmp_path, network="deny", writes=("/granted",)))
        assert audit.watching() is watched
        names: dict[str, Any] = {"close_journal": lambda: close_all(tmp_path / "journal.jsonl")}
        exec(compile(ACCESSES, str(tmp_path / "conftest.py"), "exec"), names)
        assert names["found"] == [13, 13, 13]

    in_fork(session)

    records = read_journal(tmp_path / "journal.jsonl")
    assert [(each["event"], each["target"], each["denied"]) for each in records] == [
        ("process", "true", False),
        ("connect", "198.51.100.1:9", True),
        ("write", "/not-granted", True),
        ("connect", "198.51.100.2:9", True),
        ("write", "/also-not-granted", True),
    ]
    assert {each["path"] for each in records} == {"conftest.py"}
    assert {each["session"] for each in records} == {"w1"}


def test_worker_takes_its_sandbox_spec_from_the_environment(tmp_path: Path):
    def worker() -> None:
        os.environ["PYTEST_XDIST_WORKER"] = "gw7"
        os.environ[audit.WORKER_VARIABLE] = audit.spec_for_workers(spec(tmp_path, network="deny"))
        audit._audit = None
        audit.watch_worker()
        assert audit.WORKER_VARIABLE not in os.environ
        found = audit.watching()
        assert found.worker == "gw7"
        with pytest.raises(PermissionError, match=r"the plan denies it: 198\.51\.100\.1:9"):
            exec(
                compile("call(('198.51.100.1', 9))", str(tmp_path / "x.py"), "exec"),
                {"call": socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect},
            )

    in_fork(worker)


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the hooks that are added from now on; the interpreter does not call them."""
    added: list[Any] = []
    monkeypatch.setattr(sys, "addaudithook", added.append)
    monkeypatch.setattr(audit, "_audit", None)
    return added


def test_only_a_denying_hook_raises_on_invalid_or_denied_events(
    hooks: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    watched = audit.watch(spec(tmp_path, network="deny", processes=("git",)))
    audit.watch(spec(tmp_path))
    strict, lenient = hooks
    watched.nodeid = "test_a.py::test_a"
    monkeypatch.setattr(audit, "MOST_EVENTS", 2)

    for hook in hooks:
        assert hook("import", ("os",)) is None
        assert hook("open", (str(tmp_path / "a"), "w", CREATE)) is None
    assert lenient("open", ()) is None
    with pytest.raises(IndexError):
        strict("open", ())
    with pytest.raises(PermissionError, match="the plan denies it: curl"):
        strict("subprocess.Popen", ("curl", ["curl"], None, None))
    assert strict("subprocess.Popen", ("git", ["git"], None, None)) is None
    for number in range(5):
        assert lenient("socket.connect", (None, (f"198.51.100.{number}", 9))) is None
        assert lenient("socket.connect", (None, (f"198.51.100.{number}", 9))) is None

    records = read_journal(tmp_path / "journal.jsonl")
    connects = [each["target"] for each in records if each["event"] == "connect"]
    assert connects == ["198.51.100.0:9", "198.51.100.1:9"]


def test_hook_ignores_events_that_it_causes_itself(hooks: list[Any], tmp_path: Path):
    class Path_(os.PathLike[str]):
        def __fspath__(self) -> str:
            hooks[0]("subprocess.Popen", ("nested", ["nested"], None, None))
            return "/elsewhere/a"

    audit.watch(spec(tmp_path))
    hooks[0]("open", (Path_(), "w", CREATE))

    text = (tmp_path / "journal.jsonl").read_text()
    assert "/elsewhere/a" in text
    assert "nested" not in text
