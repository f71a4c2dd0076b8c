"""Runs a function in a process of its own, forked from the tests', and brings back what it returns."""

from __future__ import annotations

import gc
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from pytest_planverify.journal import Record, read_journal
from pytest_planverify.observing.session import run_session
from pytest_planverify.observing.spec import SessionSpec, Wanted

Result = TypeVar("Result")


def in_fork(work: Callable[[], Result]) -> Result:
    """The result, or `AssertionError` with what was raised there."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        # pytest collects garbage when it ends: what the tests' process holds is none, and much.
        gc.freeze()
        try:
            answer: tuple[bool, object] = (True, work())
        except BaseException as error:
            answer = (False, repr(error))
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(answer, stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(pid, 0)
    succeeded, result = pickle.loads(data) if data else (False, "the process died")
    assert succeeded, result
    return result


class Collected:
    """Remembers which items a session was left with."""

    def __init__(self) -> None:
        self.nodeids: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.nodeids = [item.nodeid for item in session.items]


def plain_pytest(root: Path, *args: str) -> tuple[int, list[str]]:
    """Exit status and node ids of `pytest --collect-only ARGS` in the root."""

    def work() -> tuple[int, list[str]]:
        os.chdir(root)
        silence()
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        collected = Collected()
        sys.argv[:] = ["pytest", *args]
        status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *args], plugins=[collected])
        return int(status), collected.nodeids

    return in_fork(work)


def session(root: Path, *args: str, wanted: tuple[Wanted, ...], **more: object) -> list[Record]:
    """The journal of one session that runs for a plan, in a process of its own."""
    journal = root / ".journal.jsonl"
    journal.unlink(missing_ok=True)
    spec = SessionSpec(
        session_id="s1",
        root=str(root),
        args=("-p", "no:cacheprovider", *args),
        wanted=wanted,
        journal=str(journal),
        log=str(root / ".session.log"),
        stacks=str(root / ".session.stacks"),
        **more,  # type: ignore[arg-type]
    )

    def work() -> int:
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        return run_session(spec)

    in_fork(work)
    return read_journal(journal)


def records(journal: list[Record], tag: str) -> list[Record]:
    """Those with that tag."""
    return [record for record in journal if record["record"] == tag]


def silence() -> None:
    """Send the output of this process nowhere."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
