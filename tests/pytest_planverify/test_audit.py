"""What audit events tell was reached for, what is granted, and whose doing it was."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from forked import in_fork

from pytest_planverify.guards import sandbox_policy
from pytest_planverify.guards.sandbox_policy import (
    CONNECT,
    PROCESS,
    WRITE,
    Reached,
    Sandbox,
    denies_anything,
    grants_of,
    is_loopback,
    outside_of,
    readers,
    resolve_path,
    stamp_of,
)
from pytest_planverify.observe import audit
from pytest_planverify.observe.audit import origin_finder
from pytest_planverify.observe.spec import Start, WorkerSpec

# -- what was reached for --------------------------------------------------------------------------

READ = readers(outside_of(["/inside", "/tmp"]))
CREATE = os.O_WRONLY | os.O_CREAT


def targets(event: str, *args: Any) -> list[str]:
    return [reached.target for reached in READ[event](args)]


@pytest.mark.parametrize(
    ("event", "args", "expected"),
    [
        ("socket.connect", (None, ("198.51.100.1", 443)), ["198.51.100.1:443"]),
        ("socket.connect", (None, ("2001:db8::1", 443, 0, 0)), ["[2001:db8::1]:443"]),
        ("socket.connect", (None, (b"example.org", 80)), ["example.org:80"]),
        ("socket.connect", (None, ("127.0.0.53", 53)), []),
        ("socket.connect", (None, "/run/service.sock"), []),
        ("socket.connect", (None, (16, 0)), []),
        ("socket.sendmsg", (None, None), []),
        ("socket.getaddrinfo", ("example.org", "https", 0, 0, 0), ["example.org:https"]),
        ("socket.getaddrinfo", ("198.51.100.1", 80, 0, 0, 0), []),
        ("socket.getaddrinfo", (None, 80, 0, 0, 0), []),
        ("socket.gethostbyname", ("example.org",), ["example.org"]),
        ("socket.gethostbyname", (socket.gethostname(),), []),
        ("socket.getnameinfo", (("example.org", 80),), ["example.org"]),
        ("subprocess.Popen", ("git", ["git", "status"], None, None), ["git"]),
        (
            "subprocess.Popen",
            ("/bin/sh", ["/bin/sh", "-c", "curl x | sh"], None, None),
            ["/bin/sh -c curl"],
        ),
        ("subprocess.Popen", (Path("/bin/ls"), "ls", None, None), ["/bin/ls"]),
        ("os.exec", ("/bin/ls", ["ls"], None), ["/bin/ls"]),
        ("os.spawn", (0, "/bin/ls", ["ls"], None), ["/bin/ls"]),
        ("os.posix_spawn", ("/bin/ls", ["ls"], None), ["/bin/ls"]),
        ("pty.spawn", (["ls", "-l"],), ["ls"]),
        ("os.system", (b"rm -rf x",), ["/bin/sh -c rm"]),
        ("open", ("/elsewhere/a", "w", CREATE), ["/elsewhere/a"]),
        ("open", (b"/elsewhere/a", "a", os.O_APPEND), ["/elsewhere/a"]),
        ("open", (Path("/inside/../elsewhere/a"), None, CREATE), ["/elsewhere/a"]),
        ("open", ("/elsewhere/a", "r", os.O_CLOEXEC), []),
        ("open", ("/inside/a", "w", CREATE), []),
        ("open", ("/tmp/a", "w", CREATE), []),
        ("open", ("/dev/null", "w", CREATE), []),
        ("open", (3, "w", CREATE), []),
        ("open", ("/elsewhere/__pycache__/x.pyc", "wb", CREATE), []),
        ("open", ("/elsewhere/.coverage.host", "wb", CREATE), []),
        ("os.mkdir", ("/elsewhere", 0o777, -1), ["/elsewhere"]),
        ("os.mkdir", ("/", 0o777, -1), []),
        ("os.mkdir", ("/usr", 0o777, -1), []),
        ("os.remove", ("/elsewhere/not-there", -1), []),
        ("os.remove", ("/etc/passwd", -1), ["/etc/passwd"]),
        ("os.rename", ("/etc/passwd", "/inside/b", -1, -1), ["/etc/passwd"]),
        ("os.rename", ("/inside/a", "/elsewhere/b", -1, -1), ["/elsewhere/b"]),
        ("os.symlink", ("/etc/passwd", "/inside/b", -1), []),
        ("os.link", ("/inside/a", "/elsewhere/b", -1, -1), ["/elsewhere/b"]),
        ("os.chmod", ("/etc/passwd", 0o600, -1), ["/etc/passwd"]),
        ("os.truncate", (5, 0), []),
        ("os.truncate", ("/etc/passwd", 0), ["/etc/passwd"]),
        ("ctypes.dlsym", (None, "system"), ["system of C, by ctypes"]),
        ("ctypes.dlsym", (None, b"connect"), ["connect of C, by ctypes"]),
        ("ctypes.dlsym", (None, "strlen"), []),
        ("ctypes.dlsym", (None, 7), []),
        ("ctypes.dlsym", (None,), []),
        ("sqlite3.connect", ("/elsewhere/db",), ["/elsewhere/db"]),
        ("sqlite3.connect", (":memory:",), []),
        ("sqlite3.connect", ("file:/elsewhere/db?mode=ro",), []),
        ("sqlite3.connect", ("file:///elsewhere/db?x=1",), ["/elsewhere/db"]),
    ],
)
def test_what_an_event_tells_was_reached_for(event: str, args: tuple[Any, ...], expected: list[str]):
    assert targets(event, *args) == expected


def test_a_folder_that_is_held_open_says_where_its_entries_are(tmp_path: Path):
    descriptor = os.open("/etc", os.O_RDONLY)
    try:
        assert targets("os.remove", "passwd", descriptor) == ["/etc/passwd"]
        assert targets("os.remove", "passwd", 9999) == []
    finally:
        os.close(descriptor)


def test_where_no_event_says_which_folder_is_meant_all_that_are_held_open_are_in_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    descriptor = os.open("/etc", os.O_RDONLY)
    try:
        found = READ["open"](("passwd", None, CREATE))
        assert [each.target for each in found] == ["/etc/passwd"]
        assert found[0].before == stamp_of("/etc/passwd") != ()
        assert READ["open"](("/tmp/passwd", None, CREATE)) == ()
        assert READ["open"](("passwd", "w", CREATE)) == ()
        assert READ["open"](("passwd", None, os.O_RDONLY)) == ()
        monkeypatch.setattr("os.listdir", lambda _: ["x", "9999"])
        assert targets("open", "passwd", None, CREATE) == ["/etc/passwd"]  # bound before
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sandbox_policy, "listdir", lambda _: ["x", "9999"])
        assert targets("open", "passwd", None, CREATE) == []
        monkeypatch.setattr(
            "pytest_planverify.guards.sandbox_policy.listdir", lambda _: os.stat("/nowhere")
        )
        assert READ["open"](("passwd", None, CREATE)) == ()
    finally:
        os.close(descriptor)
    assert stamp_of("/nowhere") == ()


def test_multiprocessing_tells_of_itself_by_the_pipe_that_it_opens():
    launcher = Path(os.__file__).parent / "multiprocessing" / "popen_spawn_posix.py"
    code = "found = hook((7, 'w', CREATE))"
    told: dict[str, list[Reached]] = {}
    for name in (str(launcher), "/elsewhere/popen_spawn_posix.py"):
        names: dict[str, Any] = {"hook": lambda args: READ["open"](args), "CREATE": CREATE}
        exec(compile(code, name, "exec"), names)
        told[name] = list(names["found"])
    (started,) = told.pop(str(launcher))
    assert (started.kind, started.name) == ("process", sys.executable)
    assert list(told.values()) == [[]]


def test_a_link_that_leads_elsewhere_is_followed_where_the_call_follows_it(tmp_path: Path):
    (tmp_path / "link").symlink_to("/elsewhere")
    (tmp_path / "loop").symlink_to("loop")

    assert resolve_path(tmp_path / "link" / "a", -1, True) == "/elsewhere/a"
    assert resolve_path(str(tmp_path / "link"), -1, False) == str(tmp_path / "link")
    assert resolve_path(str(tmp_path / "loop"), -1, True) == str(tmp_path / "loop")
    assert resolve_path("/", -1, True) == "/"


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "::1", "::ffff:127.0.0.1", "a.localhost", "", "0.0.0.0"]
)
def test_this_machine_is_no_other(host: str):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["127.example.org", "::2", "localhost.example.org", "::ffff:198.51.100.1", "1:2", "10.0.0.1"]
)
def test_another_machine_is_not_this_one(host: str):
    assert not is_loopback(host)


# -- what is granted -------------------------------------------------------------------------------


def granted(reached: Reached, **policy: Any) -> bool:
    return grants_of([Sandbox(root="/root/of/plan", **policy)])(reached)


def host(name: str, port: int | None = 443, *, lookup: bool = False) -> Reached:
    return Reached(CONNECT, name, name, port, lookup)


@pytest.mark.parametrize(
    ("policy", "reached", "expected"),
    [
        ("record", host("example.org"), True),
        ("deny", host("example.org"), False),
        (("example.org",), host("example.org"), True),
        (("example.org:443",), host("example.org", 443), True),
        (("example.org:443",), host("example.org", 80), False),
        (("example.org:443",), host("example.org", None, lookup=True), True),
        (("*.example.org",), host("a.b.example.org"), True),
        (("*.example.org",), host("example.org"), False),
        (("2001:db8::1",), host("2001:db8::1"), True),
        (("[2001:db8::1]:443",), host("2001:db8::1", 80), False),
        (("other.example",), host("example.org", lookup=True), False),
        (("198.51.100.1",), host("198.51.100.2"), False),
    ],
)
def test_hosts_are_granted_by_name_pattern_and_port(policy: Any, reached: Reached, expected: bool):
    assert granted(reached, network=policy) is expected


def test_a_granted_name_grants_the_numbers_that_it_stands_for():
    judge = grants_of([Sandbox(root="/", network=("localhost:80", "no-such-host.invalid"))])

    assert judge(host("127.0.0.1", 80))
    assert not judge(host("127.0.0.1", 81))
    assert not judge(host("198.51.100.1", 80))


@pytest.mark.parametrize(
    ("policy", "program", "expected"),
    [
        (("git",), "git", True),
        (("git",), "/root/of/plan/git", False),
        (("git",), "sh", False),
        (("python",), sys.executable, True),
        (("/usr/bin",), "/usr/bin/env", True),
        (("./tools/*",), "/root/of/plan/tools/make", True),
        (("./tools/*",), "tools/make", True),
        (("sh",), "/bin/sh", True),
    ],
)
def test_programs_are_granted_by_name_and_place(policy: Any, program: str, expected: bool):
    assert granted(Reached(PROCESS, program, program), processes=policy) is expected


def test_folders_are_granted_with_all_that_they_hold():
    for path, expected in {
        "/data": True,
        "/data/x/y": True,
        "/database": False,
        "/root/of/plan/../up/f": False,
    }.items():
        assert granted(Reached(WRITE, path, path), writes=("/data",)) is expected
    assert granted(Reached(WRITE, "/root/of/up/f", "/root/of/up/f"), writes=("../up",))


def test_every_policy_must_grant_it():
    both = [Sandbox(root="/", network=("a",)), Sandbox(root="/", network="record")]
    assert grants_of(both)(host("a"))
    assert not grants_of([*both, Sandbox(root="/", network="deny")])(host("a"))
    assert denies_anything(both)
    assert not denies_anything([Sandbox(root="/")])


# -- whose doing it is -----------------------------------------------------------------------------


def frame(*calls: tuple[str, str], **variables: Any) -> Any:
    """Frames as (file, function), the innermost first."""
    found = None
    for file, name in reversed(calls):
        code = SimpleNamespace(co_filename=file, co_name=name)
        found = SimpleNamespace(f_code=code, f_back=found, f_locals=variables)
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
        ([LIBRARY, TEST, RUNNER, PLUGGY, PROTOCOL], (True, "call", TEST[0])),
        ([LIBRARY, RUNNER, PLUGGY, PROTOCOL], (True, "call", None)),
        ([LIBRARY, PYTESTER, TEST, RUNNER, PLUGGY, PROTOCOL], (True, "call", TEST[0])),
        ([LIBRARY, CONFTEST, PLUGGY], (False, None, CONFTEST[0])),
        ([LIBRARY], (False, None, None)),
        ([LIBRARY, PLUGIN, PLUGGY, PROTOCOL], None),
        ([LIBRARY, CACHE, PLUGGY], None),
        ([LIBRARY, START_UP], None),
        ([LIBRARY, INSTALLED, PLUGGY], None),
        ([LIBRARY, WORKERS], None),
    ],
    ids=["test", "fixture", "pytester", "conftest", "thread", "plugin", "pytest", "start", "venv", "xdist"],
)
def test_the_innermost_call_that_somebody_answers_for_decides(calls: Any, expected: Any):
    origin = origin_finder(("/root/of/plan",))(frame(*calls))

    assert (origin and (origin.in_test, origin.phase, origin.path)) == expected


def test_the_fixture_of_a_wider_scope_is_told():
    setup = (package("_pytest", "fixtures.py"), "pytest_fixture_setup")
    find = origin_finder(("/root/of/plan",))
    for scope, told in (("session", True), ("function", False)):
        definition = SimpleNamespace(scope=scope, argname="service")
        origin = find(frame(LIBRARY, TEST, setup, PLUGGY, fixturedef=definition))
        assert origin is not None
        assert (origin.fixture is definition) is told


# -- the hook --------------------------------------------------------------------------------------


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


def test_the_hook_refuses_what_is_denied_and_counts_what_is_recorded(tmp_path: Path):
    def session() -> None:
        watched = audit.watch(spec(tmp_path, network="deny", writes=("/granted",)))
        assert audit.watching() is watched
        code = compile(
            "for _ in range(3): popen(['true']).wait()\n"
            "connect = socket(2, 2).connect\n"
            "def denied(call, *args):\n"
            "    try: call(*args)\n"
            "    except PermissionError as error: return error.errno\n"
            "found = [denied(connect, ('198.51.100.1', 9)), denied(mkdir, '/not-granted')]\n"
            "connect(('127.0.0.1', 9))\n"
            "thread = Thread(target=lambda: denied(connect, ('198.51.100.2', 9)))\n"
            "thread.start(); thread.join()\n"
            "close_journal()\n"
            "again = denied(Database, '/also-not-granted')\n",
            str(tmp_path / "conftest.py"),
            "exec",
        )
        names: dict[str, Any] = {
            "popen": subprocess.Popen,
            "socket": socket.socket,
            "mkdir": os.mkdir,
            "Thread": threading.Thread,
            "close_journal": lambda: close_all(tmp_path / "journal.jsonl"),
            "Database": sqlite3.connect,
        }
        exec(code, names)
        assert names["found"] == [13, 13]
        assert names["again"] == 13
        watched.flush()

    in_fork(session)

    records = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    told = {(each["event"], each["target"], each["denied"]): each["count"] for each in records}
    assert told == {
        ("process", "true", False): 3,
        ("connect", "198.51.100.1:9", True): 1,
        ("connect", "198.51.100.2:9", True): 1,
        ("write", "/not-granted", True): 1,
        ("write", "/also-not-granted", True): 1,
    }
    assert {each["path"] for each in records} == {"conftest.py"}
    assert {each["session"] for each in records} == {"w1"}


def test_a_file_that_is_opened_through_a_folder_is_told_of_once_it_was_written(tmp_path: Path):
    for name in ("in", "out", "still"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "known").write_text("")

    def session() -> None:
        audit.temporary_folders = list
        os.chdir(tmp_path / "in")
        watched = audit.watch(spec(tmp_path / "in", writes="deny"))
        code = compile(
            "out, still = open('../out', 0), open('../still', 0)\n"
            "for name in ('new', 'known'):\n"
            "    write(open(name, CREATE, dir_fd=out), b'x')\n"
            "write(open('own', CREATE), b'x')\n"
            "for _ in range(150):\n"  # more than are kept in mind
            "    close(open('own', CREATE))\n",
            str(tmp_path / "in" / "conftest.py"),
            "exec",
        )
        exec(code, {"open": os.open, "write": os.write, "close": os.close, "CREATE": CREATE})
        watched.flush()

    in_fork(session)

    records = [json.loads(line) for line in (tmp_path / "in" / "journal.jsonl").read_text().splitlines()]
    told = {(each["event"], each["target"], each["denied"]) for each in records}
    assert told == {("write", f"{tmp_path}/out/{name}", True) for name in ("new", "known")}
    assert {each["path"] for each in records} == {"conftest.py"}


def test_a_worker_finds_its_spec_in_the_environment_and_takes_it_out(tmp_path: Path):
    def worker() -> None:
        os.environ["PYTEST_XDIST_WORKER"] = "gw7"
        os.environ[audit.WORKER_VARIABLE] = audit.spec_for_workers(spec(tmp_path, network="deny"))
        audit._audit = None
        audit.watch_worker()
        assert audit.WORKER_VARIABLE not in os.environ
        found = audit.watching()
        assert found is not None
        assert found.worker == "gw7"
        with pytest.raises(PermissionError, match=r"the plan denies it: 198\.51\.100\.1:9"):
            exec(
                compile("call(('198.51.100.1', 9))", str(tmp_path / "x.py"), "exec"),
                {"call": socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect},
            )

    in_fork(worker)


def test_the_hook_returns_at_once_for_what_tells_of_nothing_and_never_for_odd_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hooks: list[Any] = []
    monkeypatch.setattr(sys, "addaudithook", hooks.append)
    monkeypatch.setattr(audit, "_audit", None)
    watched = audit.watch(spec(tmp_path, network="deny", processes=("git",)))
    audit.watch(spec(tmp_path))
    strict, lenient = hooks
    watched.nodeid = "test_a.py::test_a"
    monkeypatch.setattr(audit, "MOST_EVENTS", 2)

    for hook in hooks:
        assert hook("import", ("os",)) is None
        assert hook("open", (str(tmp_path / "a"), "w", CREATE)) is None
        thread = threading.Thread()
        assert hook("_thread.start_new_thread", (thread._bootstrap, (), {})) is None  # type: ignore[attr-defined]
    assert lenient("open", ()) is None
    with pytest.raises(IndexError):
        strict("open", ())
    with pytest.raises(PermissionError, match="the plan denies it: curl"):
        strict("subprocess.Popen", ("curl", ["curl"], None, None))
    assert strict("subprocess.Popen", ("git", ["git"], None, None)) is None
    for number in range(5):
        assert lenient("socket.connect", (None, (f"198.51.100.{number}", 9))) is None
        assert lenient("socket.connect", (None, (f"198.51.100.{number}", 9))) is None
    audit.watching().flush()  # type: ignore[union-attr]

    records = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    connects = [(each["target"], each["count"]) for each in records if each["event"] == "connect"]
    assert connects[:2] == [("198.51.100.0:9", 1), ("198.51.100.1:9", 1)]
    assert sorted(connects[2:]) == [("198.51.100.0:9", 2), ("198.51.100.1:9", 2)]


def test_nothing_is_told_of_by_a_hook_while_it_looks_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hooks: list[Any] = []
    monkeypatch.setattr(sys, "addaudithook", hooks.append)
    monkeypatch.setattr(audit, "_audit", None)

    class Path_(os.PathLike[str]):
        def __fspath__(self) -> str:
            hooks[0]("subprocess.Popen", ("nested", ["nested"], None, None))
            return "/elsewhere/a"

    audit.watch(spec(tmp_path))
    hooks[0]("open", (Path_(), "w", CREATE))

    text = (tmp_path / "journal.jsonl").read_text()
    assert "/elsewhere/a" in text
    assert "nested" not in text
