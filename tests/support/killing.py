"""Runs of a small plan that are killed at random moments, with checks after each kill.

Each test and script of the plan writes its name to the file that the variable ``RAN_LOG`` names.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from example_project import Example, processes_of, todo
from real_command import wait_until

from planner.planfile.latest_outcomes import past_runs

FILES = {
    "conftest.py": """\
        import os, pytest
        @pytest.fixture(autouse=True)
        def told(request):
            with open(os.environ["RAN_LOG"], "a") as file:
                file.write(request.node.nodeid + "\\n")
    """,
    "test_fast.py": """\
        import pathlib, pytest
        @pytest.mark.parametrize("number", range(20))
        def test_many(number): assert number < 20
        def test_metric(record_property): record_property("rows", 12)
        def test_writes(): pathlib.Path("out.json").write_text("{}")
        def test_one(): pass
    """,
    "test_red.py": "def test_wrong(): assert 1 + 1 == 3\n",
    "test_slow.py": """\
        import subprocess, time
        def test_child():
            child = subprocess.Popen(["sleep", "20"], start_new_session=True)
            time.sleep(0.25)
            child.kill()
            child.wait()
        def test_waits(): time.sleep(0.15)
    """,
    "test_made.py": "import os\ndef test_made(): assert os.path.exists('made.txt')\n",
    "make.py": """\
        import os, pathlib, subprocess, sys
        with open(os.environ["RAN_LOG"], "a") as file:
            file.write("make.py\\n")
        subprocess.run(["sleep", "0.1"])
        pathlib.Path("made.txt").touch()
    """,
}
TODOS = (
    todo("many", "pytest test_fast.py -k many"),
    todo(
        "writes",
        "pytest test_fast.py::test_writes",
        "pytest test_fast.py::test_metric",
        expected_artifacts=["out.json"],
        metrics=[{"name": "rows", "operator": ">=", "value": 10}],
    ),
    todo("red", "pytest test_red.py"),
    todo("below", "pytest test_fast.py::test_one", after=("red",)),
    todo("slow", "pytest test_slow.py::test_child", "pytest test_slow.py::test_waits"),
    todo("makes", "python make.py"),
    todo("made", "pytest test_made.py", after=("makes",)),
    todo("asks", manual=[{"question": "Does it look right?"}]),
)
OF_ONE_CHECK = {
    "test_fast.py::test_writes": ("writes", "tests[0]"),
    "test_fast.py::test_metric": ("writes", "tests[1]"),
    "test_red.py::test_wrong": ("red", "tests[0]"),
    "test_slow.py::test_child": ("slow", "tests[0]"),
    "test_slow.py::test_waits": ("slow", "tests[1]"),
    "make.py": ("makes", "tests[0]"),
    "test_made.py::test_made": ("made", "tests[0]"),
}
"""Tests and scripts by the name that they write, with the only check that runs each."""

TIMES = frozenset(
    {"run_id", "started_at", "finished_at", "duration_ms", "at", "notes", "interrupted", "taken_from"}
    | {"diff_hash", "touched_files", "isolation", "exit_code"}
)
"""Keys that may differ between equivalent runs, such as the isolation of a check."""


class Killing:
    """A project whose runs are killed. Raises ``AssertionError`` at the first violated rule."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.log = folder / "ran.log"
        self.verdicts_found = 0
        """Number of final verdicts in the journals of killed runs."""

    def round(self, kills: int, *how: str) -> None:
        """Kill a run and its resumptions, check the state after each, and let the last one finish.

        If no kill came after a verdict, up to twice as many follow. ``how`` are options of all runs.
        """
        self._run_to_the_end(*how)
        self.example = self._fresh()
        final: dict[tuple[str, str], str] = {}
        for number in range(3 * kills):
            if number >= kills and self.verdicts_found:
                break
            options = (*how, *(("--planverify-resume",) if number else ()))
            final = self._kill(final, *options)
        self._resume(final, *how)

    def _run_to_the_end(self, *options: str) -> None:
        """Set the outcomes of a run that is not killed, its time, and the lines of its journal."""
        self.example = self._fresh()
        started = time.monotonic()
        assert self._run(*options) == 1, self.output
        self.seconds = time.monotonic() - started
        self.truth = self._document()
        self.lines = (self._runs()[-1] / "journal.jsonl").read_bytes().count(b"\n")

    def _fresh(self) -> Example:
        example = Example(self.folder / uuid.uuid4().hex[:8], FILES)
        example.plan(*TODOS)
        self.log.write_text("")
        return example

    def _kill(self, before: dict[tuple[str, str], str], *options: str) -> dict[tuple[str, str], str]:
        """Start a run, kill it at a random line of its journal or a random time, and check its state."""
        mark = uuid.uuid4().hex
        runs = len(self._runs())
        ran = len(self._ran())
        process = self._start(mark, *options)
        seconds = self.random.uniform(0, 1.1) * self.seconds
        if self.random.random() < 0.85:
            self._wait_for_line(self.random.random() * (0.6 if before else 0.95), runs, process)
            seconds = self.random.random() * 0.05
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=seconds)
        if process.poll() is None:
            kill = self.random.choice((os.kill, os.killpg))
            kill(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: not processes_of(mark), seconds=60)
        self._nothing_final_ran_again(before, ran)
        return before if len(self._runs()) == runs else self._look(before)

    def _wait_for_line(self, share: float, runs: int, process: subprocess.Popen[str]) -> None:
        """Wait until the journal of the new run has that share of the lines of a complete run."""
        while process.poll() is None:
            journal = self._runs()[-1] / "journal.jsonl" if len(self._runs()) > runs else None
            if journal and journal.exists() and journal.read_bytes().count(b"\n") >= share * self.lines:
                return
            time.sleep(0.003)

    def _look(self, before: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
        """Check the journal of the latest run; return the final verdicts of tests and commands."""
        journal = self._runs()[-1] / "journal.jsonl"
        lines = journal.read_bytes().split(b"\n") if journal.exists() else [b""]
        for line in filter(None, lines[:-1]):  # an empty line is left by terminating a torn one
            assert isinstance(json.loads(line), dict)
        run = next(past_runs(self.example.root, self.truth["plans"][0]["todo_list_id"]), None)
        if run is None:
            assert not lines[0], "the journal cannot be read"
            return before
        if run.finished is not None:
            return {}
        true = _verdicts(self.truth)
        for key, judged in run.checks.items():
            assert judged.check.verdict == true[key], f"{key} is {true[key]}"
        final = {
            key: judged.check.verdict.value
            for key, judged in run.checks.items()
            if judged.final and judged.check.cmd is not None
        }
        self.verdicts_found += len(final)
        return before | final

    def _resume(self, final: dict[tuple[str, str], str], *options: str) -> None:
        ran = len(self._ran())
        self.example.outcome_file.unlink(missing_ok=True)
        status = self._run("--planverify-resume", *options)
        assert status == self.truth["run"]["exit_status"], self.output
        document = self._document()
        assert list(differences(document, self.truth)) == []
        self._nothing_final_ran_again(final, ran)
        taken = [check for each in document["outcomes"] for check in each["checks"] if check["taken_from"]]
        assert len(taken) >= len(final), f"{len(final)} verdicts were final, {len(taken)} taken over"

    def _nothing_final_ran_again(self, final: dict[tuple[str, str], str], ran: int) -> None:
        again = {name for name in self._ran()[ran:] if OF_ONE_CHECK.get(name) in final}
        assert not again, "a final verdict was not taken over"

    def _runs(self) -> list[Path]:
        folder = self.example.root / ".planverify" / "runs"
        return sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns) if folder.exists() else []

    def _ran(self) -> list[str]:
        return self.log.read_text().splitlines()

    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.example.outcome_file.read_text())
        return document

    def _run(self, *options: str) -> int:
        process = self._start(uuid.uuid4().hex, *options)
        self.output, _ = process.communicate(timeout=300)
        return process.returncode

    def _start(self, mark: str, *options: str) -> subprocess.Popen[str]:
        return self.example.start(*options, mark=mark, env={"RAN_LOG": str(self.log)})


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Yield the places where two documents differ, except in ``TIMES``."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other} - TIMES):
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{place}[{index}]")
    elif one != other:
        yield f"{place} is {one!r}, and was {other!r}"


def _verdicts(document: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {
        (outcome["todo_id"], check["id"]): check["verdict"]
        for outcome in document["outcomes"]
        for check in outcome["checks"]
    }
