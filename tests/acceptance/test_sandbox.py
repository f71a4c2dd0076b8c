"""Accesses of tests outside the project are recorded, and those that the plan denies are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, Verified, todo

NOWHERE = "198.51.100.7"
"""An address that no host has."""

CONFTEST = f"""
    import socket
    import pytest

    @pytest.fixture(scope="session")
    def service():
        try:
            socket.create_connection(("{NOWHERE}", 443), timeout=0.1)
        except OSError:
            pass
"""

REACHING = f"""
    import atexit, ctypes, multiprocessing, os, pathlib, socket, subprocess, sys, threading

    def reach(target, *args):
        try:
            return target(*args)
        except OSError:
            return None

    def test_swallowed():
        assert reach(socket.getaddrinfo, "example.org", 443) is None

    def test_nothing_of_the_kind(tmp_path):
        (tmp_path / "a").write_text("x")
        pathlib.Path("inside.txt").write_text("x")
        os.link(tmp_path / "a", tmp_path / "b")
        with open(os.devnull, "w") as stream:
            stream.write("x")

    def test_loopback_and_this_machine():
        with socket.socket() as server, socket.socket(socket.AF_UNIX) as local:
            server.bind(("127.0.0.1", 0))
            server.listen()
            socket.create_connection(("localhost", server.getsockname()[1])).close()
            reach(local.connect, "/nonexistent.sock")

    def test_thread():
        thread = threading.Thread(target=lambda: reach(udp))
        thread.start()
        thread.join()

    def udp():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x", ("{NOWHERE}", 53))

    def test_programs():
        subprocess.run([sys.executable, "-c", ""], check=True)
        for _ in range(3):
            subprocess.run(["true"], check=True)

    def test_past_the_interpreter():
        reach(getattr, ctypes.CDLL(None), "system")
        context = multiprocessing.get_context("spawn")
        child = context.Process(target=os.getpid)
        if reach(child.start) is None and child.pid:
            child.join()

    def test_granted_folder():
        pathlib.Path("granted").mkdir(exist_ok=True)
        reach(os.utime, "/nonexistent-as-well")

    def test_written_elsewhere():
        assert reach(pathlib.Path("elsewhere/file").write_text, "x") is None
"""

FILES = {
    "tests/conftest.py": CONFTEST,
    "tests/test_reaching.py": REACHING,
    "tests/test_service.py": """
        def test_one(service): pass
        def test_two(service): pass
        def test_three(): pass
    """,
    "tests/test_import.py": f"""
        import socket
        try:
            socket.create_connection(("{NOWHERE}", 80), timeout=0.1)
        except OSError:
            pass
        def test_quiet(): pass
    """,
    "tests/below/conftest.py": """
        import subprocess
        try:
            subprocess.run(["uname"])
        except PermissionError:
            pass
    """,
    "tests/below/test_below.py": "def test_below(): pass",
}

TODOS = {
    "swallowed": "pytest tests/test_reaching.py::test_swallowed",
    "twice": "pytest tests/test_reaching.py::test_swallowed -q",
    "quiet": "pytest tests/test_reaching.py::test_nothing_of_the_kind",
    "loopback": "pytest tests/test_reaching.py::test_loopback_and_this_machine",
    "thread": "pytest tests/test_reaching.py::test_thread",
    "programs": "pytest tests/test_reaching.py::test_programs",
    "past": "pytest tests/test_reaching.py::test_past_the_interpreter",
    "folder": "pytest tests/test_reaching.py::test_granted_folder",
    "elsewhere": "pytest tests/test_reaching.py::test_written_elsewhere",
    "one": "pytest tests/test_service.py::test_one",
    "two": "pytest tests/test_service.py::test_two",
    "three": "pytest tests/test_service.py::test_three",
    "import": "pytest tests/test_import.py",
    "below": "pytest tests/below",
}

VIOLATED = {
    "swallowed", "twice", "thread", "programs", "past", "elsewhere", "one", "two", "import", "below"
}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Example:
    example = Example(tmp_path_factory.mktemp("sandbox"), FILES)
    (example.root / "elsewhere").symlink_to("/nonexistent")  # outside the writable paths
    return example


def verified(project: Example, *options: str, forked: bool = True, **policy: Any) -> Verified:
    project.plan(*(todo(name, command) for name, command in TODOS.items()), metadata=policy)
    return project.verify(*options, forked=forked)


DENIED = {"network": "deny", "processes": "deny", "writes": "deny"}


def events(run: Verified, todo_id: str) -> list[tuple[str, str, bool]]:
    return [
        (each["event"], each["target"], each["denied"]) for each in run.check(todo_id).get("events", ())
    ]


def test_a_denied_access_fails_the_criterion_even_if_the_error_is_caught(project: Example):
    run = verified(project, "-p", "xdist.plugin", "-n", "2", forked=False, **DENIED)

    assert {name for name, state in run.states.items() if state == "test_failed"} == VIOLATED, str(run)
    assert {run.category(name) for name in VIOLATED} == {"SANDBOX_VIOLATION"}
    assert run.exit_code == 13
    assert run.tests("swallowed") == {"tests/test_reaching.py::test_swallowed": "passed"}
    assert events(run, "swallowed") == events(run, "twice") == [("connect", "example.org:443", True)]
    assert events(run, "thread") == [("connect", f"{NOWHERE}:53", True)]
    assert events(run, "import") == [("connect", f"{NOWHERE}:80", True)]
    assert run.check("import")["events"][0]["path"] == "tests/test_import.py"
    assert events(run, "elsewhere") == [("write", "/nonexistent/file", True)]
    called, started = events(run, "past")
    assert called == ("process", "system of C, by ctypes", True)
    assert started[1].endswith(", by multiprocessing")
    assert started[2]
    assert events(run, "below") == [("process", "uname", True)]
    assert run.check("below")["events"][0]["path"] == "tests/below/conftest.py"
    assert events(run, "one") == events(run, "two") == [("connect", f"{NOWHERE}:443", True)]
    assert run.left_running == ()


def test_a_denied_access_fails_an_isolated_criterion(project: Example):
    names = ("swallowed", "quiet", "import")
    selected = (f"plan.yaml::{name}" for name in names)
    run = verified(project, "--planverify-isolate", *selected, **DENIED)

    assert [run.check(name)["verdict"] for name in names] == ["failed", "passed", "failed"], str(run)
    assert {run.check(name)["isolation"] for name in names} == {"cold"}
    assert events(run, "swallowed") == [("connect", "example.org:443", True)]
    assert events(run, "import") == [("connect", f"{NOWHERE}:80", True)]


def test_recorded_and_granted_accesses_are_no_violation(project: Example):
    run = verified(project, network=["example.org:443", NOWHERE], processes=["true", "python"])

    red = {name for name, state in run.states.items() if state == "test_failed"}
    assert red == {"past", "below"}, str(run)
    assert [denied for *_, denied in events(run, "past")] == [True, False]  # the interpreter is granted
    assert events(run, "swallowed") == [("connect", "example.org:443", False)]
    (interpreter, true) = run.check("programs")["events"]
    assert interpreter["target"].rpartition("/")[2].startswith("python")
    assert (true["target"], true["nodeid"], true["phase"]) == (
        "true",
        "tests/test_reaching.py::test_programs",
        "call",
    )
    assert "which the plan denies" in run.output
    records = [json.loads(line) for line in (project.runs[-1] / "journal.jsonl").read_text().splitlines()]
    assert {each["event"] for each in records if each["record"] == "audit_event"} >= {"connect", "process"}


def test_commands_not_watched_are_noted_and_commands_not_in_the_catalog_are_refused(tmp_path: Path):
    example = Example(tmp_path, {"x.py": "x = 1\n"})
    example.plan(todo("compiles", "python -m compileall -q x.py"), metadata={"network": "deny"})

    run = example.verify()

    assert run.exit_code == 0
    assert run.document is not None
    assert any(
        "not watched" in note and "compiles tests[0]" in note for note in run.document["run"]["notes"]
    )
    example.plan(todo("curl", "curl -o stolen.txt file:///etc/hostname"), todo("sh", "sh -c 'touch made'"))
    refused = example.verify()
    assert refused.exit_code == 4
    assert not (tmp_path / "stolen.txt").exists()
    assert not (tmp_path / "made").exists()
