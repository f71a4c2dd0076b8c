"""A small project with a plan, and the result of running the real command on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from real_command import LEAN_TERMINAL, Finished, outer_environment, run_pytest
from text_bundles import write_files

ONLY_THIS_PLUGIN = ("-p", "pytest_planverify.plugin")
"""Used with `PYTEST_DISABLE_PLUGIN_AUTOLOAD`, as loading plugins takes most of a short run."""

RUN_MARK = "EXAMPLE_RUN"
"""An environment variable that every process of one run inherits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Exit code, output and outcome file of a run."""

    exit_code: int
    output: str
    document: dict[str, Any] | None = field(repr=False)
    left_running: tuple[str, ...] | None = None
    """Processes of the run that were still alive after the command returned; ``None`` for a forked one."""

    def __str__(self) -> str:
        return f"exit code {self.exit_code}\n{self.output}"

    @property
    def outcomes(self) -> dict[str, dict[str, Any]]:
        """Outcomes by todo id."""
        assert self.document is not None, str(self)
        return {outcome["todo_id"]: outcome for outcome in self.document["outcomes"]}

    @property
    def states(self) -> dict[str, str]:
        """States by todo id."""
        return {todo_id: outcome["state"] for todo_id, outcome in self.outcomes.items()}

    @property
    def verdicts(self) -> dict[str, str | dict[str, str]]:
        """Verdicts by todo id; for several criteria, the verdict of each by its id."""
        found: dict[str, str | dict[str, str]] = {}
        for todo_id, outcome in self.outcomes.items():
            checks = {check["id"]: check["verdict"] for check in outcome["checks"]}
            found[todo_id] = next(iter(checks.values())) if len(checks) == 1 else checks
        return found

    def check(self, todo_id: str, check_id: str = "tests[0]") -> dict[str, Any]:
        """Return the outcome of one criterion."""
        (check,) = (each for each in self.outcomes[todo_id]["checks"] if each["id"] == check_id)
        return check

    def tests(self, todo_id: str) -> dict[str, str]:
        """Return the outcome of each test of the first criterion, by node id."""
        return {test["nodeid"]: test["outcome"] for test in self.check(todo_id, "tests[0]")["tests"]}

    def category(self, todo_id: str) -> str | None:
        """Return the category of the failure that decides the todo's route; ``None`` without a failure."""
        evidence = self.outcomes[todo_id]["failure_evidence"]
        return None if evidence is None else evidence["category"]


class Example:
    """A folder with a plan and the files that it verifies."""

    def __init__(self, root: Path, files: dict[str, str] | None = None) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.write(files or {})

    def copied_to(self, root: Path) -> Example:
        """Copy the folder, including the files left by runs."""
        shutil.copytree(self.root, root, symlinks=True)
        return Example(root)

    def write(self, files: dict[str, str]) -> None:
        """Write files, by path below the root; their text may be indented."""
        write_files(self.root, {name: textwrap.dedent(text) for name, text in files.items()})

    def plan(self, *todos: dict[str, Any], path: str = "plan.yaml", **keys: Any) -> None:
        """Write a plan of these todos as JSON, which is valid YAML."""
        plan = {"todo_list_id": "example", **keys, "items": list(todos)}
        self.write({path: json.dumps(plan, ensure_ascii=False, indent=1)})

    def verify(
        self,
        *args: str,
        autoload: bool = False,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        outcomes: Path | None = None,
        timeout_seconds: float = 300,
        as_module: bool = False,
        forked: bool = True,
    ) -> Verified:
        """Run `pytest --planverify ARGS`, by default in the root, without plugin autoloading and forked."""
        mark = uuid.uuid4().hex
        options = ["--planverify", *args]
        settings = {RUN_MARK: mark, **(env or {})}
        if not autoload:
            options = [*ONLY_THIS_PLUGIN, *options]
            settings["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        done = run_pytest(
            *options,
            cwd=cwd or self.root,
            env=settings,
            timeout_seconds=timeout_seconds,
            as_module=as_module,
            forked=forked,
        )
        return self.verified(done, "" if forked else mark, outcomes)

    def start(
        self,
        *options: str,
        mark: str = "",
        under: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        stdout: int = subprocess.PIPE,
    ) -> subprocess.Popen[str]:
        """Start `pytest --planverify OPTIONS` in a new process session, by the command ``under`` if given.

        Every process of the run has the ``mark`` in its environment.
        """
        return subprocess.Popen(
            [*under, sys.executable, "-m", "pytest", *ONLY_THIS_PLUGIN, "--planverify", *options],
            cwd=self.root,
            env=outer_environment() | LEAN_TERMINAL | {RUN_MARK: mark, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def verified(self, done: Finished, mark: str, outcomes: Path | None = None) -> Verified:
        """Return the result of a finished command, with its outcome file and the processes left running.

        These are found by the ``mark`` that they inherited when their first process was started.
        """
        path = outcomes or self.outcome_file
        return Verified(
            exit_code=done.exit_code,
            output=done.output,
            document=json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None,
            left_running=processes_of(mark) if mark else None,
        )

    @property
    def outcome_file(self) -> Path:
        """Default path of the outcome file."""
        return self.root / ".planverify" / "outcomes.json"

    @property
    def runs(self) -> list[Path]:
        """Folders of the runs that are kept, oldest first."""
        return sorted((self.root / ".planverify" / "runs").iterdir())


def todo(
    todo_id: str, *commands: str | dict[str, Any], after: tuple[str, ...] = (), **keys: Any
) -> dict[str, Any]:
    """Return a todo with these test commands; artifacts, metrics and manual checks are criteria, too."""
    criteria = {
        name: keys.pop(name) for name in ("expected_artifacts", "metrics", "manual") if name in keys
    }
    tests = [{"cmd": command} if isinstance(command, str) else command for command in commands]
    if tests:
        criteria["tests"] = tests
    entry: dict[str, Any] = {"id": todo_id, "title": f"Todo {todo_id}", **keys}
    if criteria:
        entry["acceptance_criteria"] = criteria
    if after:
        entry["dependencies"] = list(after)
    return entry


def processes_of(mark: str) -> tuple[str, ...]:
    """Return the pid, status and command line of each live process with that mark."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(RUN_MARK) == mark:
                found.append(f"{process.pid} {process.status()} {' '.join(process.cmdline())}")
        except psutil.Error:
            continue
    return tuple(found)
