"""Runs of `planner step` as by a driver: through pipes, in a separate process that can be killed."""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from real_planner import become_planner

START = datetime(2026, 1, 1, 10, 0, tzinfo=UTC)
TEST = "from shop import price\ndef test_it(): assert price(1) == 2\n"
BARE = {"success": True, "tests_passed": True}
"""A passed outcome from a driver that knows only an exit status."""
PASSED = {**BARE, "verified": True, "checks": [{"id": "tests[0]", "kind": "test", "verdict": "passed"}]}
FAILURE = {"category": "TEST_REGRESSION", "signature": "a1b2c3d4e5f6", "check_id": "tests[0]"}
FAILED = {"success": False, "tests_passed": False, "failure_evidence": FAILURE}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one event."""

    actions: list[dict[str, Any]]
    last: dict[str, Any]
    """The line with the state or the error."""

    @property
    def kinds(self) -> list[str]:
        return [action["action"] for action in self.actions]

    @property
    def todos(self) -> dict[str, str]:
        todos: dict[str, str] = self.last["state"]["todos"]
        return todos


def shop(folder: Path, *todos: dict[str, Any], path: str = "plan.yaml", **keys: Any) -> Path:
    """Write a project with a bug and a plan for it; return the path of the plan."""
    (folder / "tests").mkdir(parents=True, exist_ok=True)
    (folder / "shop.py").write_text("def price(x): return x\n")
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    given = todos or ({"id": "t1"}, {"id": "t2", "dependencies": ["t1"]})
    items: list[dict[str, Any]] = []
    for each in given:
        file = f"tests/test_{each['id']}.py"
        (folder / file).write_text(TEST)
        criteria = {"tests": [{"cmd": f"pytest {file}"}]}
        items.append({"title": each["id"], "max_retries": 0, "acceptance_criteria": criteria, **each})
    plan = folder / path
    plan.parent.mkdir(exist_ok=True)
    document = {"todo_list_id": "shop", "metadata": {"auto_fix_mode": True}, **keys, "items": items}
    plan.write_text(json.dumps(document, indent=1))
    return plan


def event(kind: str, minute: float = 0, **keys: Any) -> dict[str, Any]:
    return {"event": kind, "at": (START + timedelta(minutes=minute)).isoformat(), **keys}


@dataclass(slots=True)
class Step:
    """A process of `planner step`, forked from this one, which has already imported it."""

    folder: Path
    words: tuple[str, ...] = ("plan.yaml", "--log", "run.jsonl")
    command: str = "step"
    pid: int = 0
    err: str = ""
    acknowledged: int = 0
    """Number of answers received."""
    _in: int = -1
    _out: int = -1
    _rest: bytes = field(default=b"")
    _err: IO[str] = field(default_factory=lambda: TemporaryFile("w+"))  # noqa: SIM115  # closed with it

    def __post_init__(self) -> None:
        child_in, self._in = os.pipe()
        self._out, child_out = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._in)
            os.close(self._out)
            argv = ["planner", self.command, *self.words]
            become_planner(argv, self.folder, (child_in, child_out, self._err.fileno()), "ascii")
        os.close(child_in)
        os.close(child_out)

    def tell(self, *events: dict[str, Any] | str | bytes) -> Answer:
        """Write events, and return the answer to the last."""
        for each in events:
            self.write(_raw(each) + b"\n")
            answer = self.answer()
        return answer

    def write(self, raw: bytes) -> None:
        while raw:
            raw = raw[os.write(self._in, raw) :]

    def answer(self) -> Answer:
        """Read the next answer. Raises ``EOFError`` if the process has ended."""
        actions: list[dict[str, Any]] = []
        for line in self.lines():
            if "action" not in line:
                self.acknowledged += 1
                return Answer(actions, line)
            actions.append(line)
        raise EOFError

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield each complete line of the output; a line torn by a kill is dropped."""
        while True:
            line, end, self._rest = self._rest.partition(b"\n")
            if end:
                yield json.loads(line)
                continue
            ready, _, _ = select.select([self._out], [], [], 10)
            chunk = os.read(self._out, 1 << 16) if ready else b""
            if not chunk:
                return
            self._rest = line + chunk

    def kill(self) -> None:
        """Kill the process, and count the answers that are still in the pipe."""
        os.kill(self.pid, signal.SIGKILL)
        self.acknowledged += sum("action" not in line for line in self.lines())
        self.end(drain=False)

    def end(self, *, drain: bool = True) -> int:
        """Close the input and wait; return the exit status."""
        os.close(self._in)
        if drain:
            self.acknowledged += sum("action" not in line for line in self.lines())
        os.close(self._out)
        _, status = os.waitpid(self.pid, 0)
        self._err.seek(0)
        self.err = self._err.read()
        assert "Traceback" not in self.err, self.err
        return os.waitstatus_to_exitcode(status)

    def hear_no_more(self) -> None:
        """Close the reading end of the output."""
        os.dup2(os.open(os.devnull, os.O_RDONLY), self._out)


def _raw(told: dict[str, Any] | str | bytes) -> bytes:
    if isinstance(told, bytes):
        return told
    return (told if isinstance(told, str) else json.dumps(told)).encode()


def told(folder: Path, events: Iterable[dict[str, Any] | str | bytes], *words: str) -> list[Answer]:
    """Submit events to one process, which must exit with status 0, and return its answers."""
    step = Step(folder, words or ("plan.yaml", "--log", "run.jsonl"))
    answers = [step.tell(each) for each in events]
    assert step.end() == 0, step.err
    return answers
