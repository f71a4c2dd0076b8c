"""What audit events tell was accessed, and what the plans grant of it."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

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
)

# -- what was accessed --------------------------------------------------------------------------

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
