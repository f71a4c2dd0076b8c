"""Runs of `planner` as by a user, on a plan and an outcome file written for a table of cases."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn

import planner_command
from real_command import LEAN_TERMINAL
from sample_documents import run_info
from text_bundles import write_files

from planner import cli

for module in pkgutil.iter_modules(cli.__path__, "planner.cli."):
    importlib.import_module(module.name)  # once, instead of in each forked process

MODULES = {"planner": "planner.cli", "planverify": "pytest_planverify.cli"}
"""The module with the `main` of each program."""


class Ran(planner_command.Ran):
    """Exit status and output of the command, with the actions of `planner next --json`."""

    @property
    def actions(self) -> list[dict[str, Any]]:
        """The requested actions."""
        return self.json.get("actions", [])

    @property
    def asked(self) -> dict[str, dict[str, Any]]:
        """First action for each todo; an action for a branch counts for its parent."""
        found: dict[str, dict[str, Any]] = {}
        for action in self.actions:
            for name in action.get("todo_ids", [action.get("todo_id")]):
                found.setdefault(action.get("parent_id") or name, action)
        return found

    def branch(self, todo_id: str) -> dict[str, Any]:
        """Return the branch proposed for a todo."""
        return self.asked[todo_id]["branch"]


def planner(*words: str, cwd: Path, env: dict[str, str] | None = None) -> Ran:
    """Run `planner WORDS`; assert that no internal error occurs."""
    ran = forked(words, cwd) if env is None else spawned(words, cwd, env)
    assert "Traceback" not in ran.err, ran.err
    assert ran.status != 3, ran.err
    return ran


def spawned(
    words: Sequence[str],
    cwd: Path,
    env: Mapping[str, str] | None = None,
    *,
    command: Sequence[str] = (sys.executable, "-m", "planner"),
    stdout: int | IO[str] = subprocess.PIPE,
) -> Ran:
    """Run the command in a new interpreter, with these variables and this standard output."""
    done = subprocess.run(
        [*command, *words],
        cwd=cwd,
        env={**os.environ, **LEAN_TERMINAL, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return Ran(done.returncode, done.stdout or "", done.stderr)


def forked(
    words: Sequence[str],
    cwd: Path,
    given: str = "",
    *,
    program: str = "planner",
    encoding: str = "utf-8",
    env: Mapping[str, str] | None = None,
    merged: bool = False,
) -> Ran:
    """Run `planner` or `planverify` in a fork, which saves the import; other tests start the real ones.

    The command is killed after two minutes. ``env`` adds variables; ``merged`` writes errors to the output.
    """
    main = importlib.import_module(MODULES[program]).main
    with ExitStack() as stack:
        streams = [stack.enter_context(TemporaryFile("w+", encoding="utf-8")) for _ in range(3)]
        streams[0].write(given)
        streams[0].seek(0)
        pid = os.fork()
        if pid == 0:
            descriptors = [stream.fileno() for stream in (*streams[:2], streams[1 if merged else 2])]
            become_planner([program, *words], cwd, descriptors, encoding, main, env)
        _, status = os.waitpid(pid, 0)
        said = []
        for stream in streams[1:]:
            stream.seek(0)
            said.append(stream.read())
    return Ran(os.waitstatus_to_exitcode(status), *said)


def become_planner(
    argv: Sequence[str],
    cwd: Path,
    streams: Sequence[int],
    encoding: str = "utf-8",
    main: Callable[[], object] = cli.main,
    env: Mapping[str, str] | None = None,
) -> NoReturn:
    """Run the command here with these descriptors as standard streams, and exit; `env` adds variables."""
    status = 70
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(120)
        for descriptor, source in enumerate(streams):
            os.dup2(source, descriptor)
        os.closerange(3, 1 << 16)  # including pipes of other processes, which must reach end of file
        sys.stdin = os.fdopen(0, encoding=encoding, closefd=False)
        sys.stdout, sys.stderr = (os.fdopen(at, "w", encoding=encoding, closefd=False) for at in (1, 2))
        os.chdir(cwd)
        os.environ.update({**LEAN_TERMINAL, **(env or {})})
        sys.argv[:] = argv
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))  # coverage data is written last
    finally:
        os._exit(status)


class Desk:
    """A folder with a plan and its outcomes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def plan(self, *todos: dict[str, Any], **keys: Any) -> None:
        """Write a plan of these todos as JSON, which is valid YAML."""
        items = [{"title": f"Todo {todo['id']}", **todo} for todo in todos]
        plan = {"todo_list_id": "shop", **keys, "items": items}
        (self.folder / "plan.yaml").write_text(json.dumps(plan, indent=1), encoding="utf-8")

    def outcomes(self, *outcomes: dict[str, Any], **run: Any) -> None:
        """Write outcomes of the current plan."""
        path = self.folder / "plan.yaml"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        name = json.loads(path.read_text(encoding="utf-8"))["todo_list_id"]
        document = {
            "schema_version": 1,
            "plans": [{"todo_list_id": name, "path": "plan.yaml", "digest": f"sha256:{digest}"}],
            "run": run_info(**{"finished_at": "2026-01-01T00:10:00Z", **run}).model_dump(mode="json"),
            "summary": {},
            "outcomes": list(outcomes),
        }
        self.write("outcomes.json", document)

    def write(self, name: str, document: Any) -> None:
        text = document if isinstance(document, str) else json.dumps(document)
        write_files(self.folder, {name: text})

    def next(self, *words: str, **keys: Any) -> Ran:
        """Return the result of `planner next --json --full` for the plan and its outcomes."""
        given = ("--outcomes", "outcomes.json", "--json", "--full", *words)
        return planner("next", "plan.yaml", *given, cwd=self.folder, **keys)


def todo(todo_id: str, *after: str, **keys: Any) -> dict[str, Any]:
    """Return a todo with one test file."""
    file = todo_id.split("_branch_")[0].replace("-", "_")
    criteria = {"tests": [{"cmd": f"pytest tests/test_{file}.py"}]}
    return {"id": todo_id, "acceptance_criteria": criteria, "dependencies": list(after), **keys}


def failed(todo_id: str, category: str = "TEST_REGRESSION", **failure: Any) -> dict[str, Any]:
    """Return a minimal failed outcome with a signature unlike any other todo's."""
    said = {"category": category, "signature": todo_id, **failure}
    return {"todo_id": todo_id, "success": False, "tests_passed": False, "failure_evidence": said}


def passed(todo_id: str, **keys: Any) -> dict[str, Any]:
    """Return a minimal passed outcome."""
    return {"todo_id": todo_id, "success": True, "tests_passed": True, **keys}
