"""Real workers for tiny projects: a fork server, a pool, and one worker per command."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from past_run_samples import settings
from text_bundles import write_files

from planner.planfile.tree import load_tree
from pytest_planverify.session.fork_server import ForkServer
from pytest_planverify.session.records import WorkerRecord
from pytest_planverify.session.run_folder import RunFolder
from pytest_planverify.session.schedule import Job, Schedule
from pytest_planverify.session.workers import WarmPool, Workers


class Heard:
    """A progress listener that keeps the reported tests."""

    def __init__(self) -> None:
        self.count = 0
        self.tests: list[tuple[str, str]] = []

    def collected(self, key: str, count: int) -> None:
        self.count = count

    def test_started(self, key: str, nodeid: str) -> None:
        pass

    def test_finished(self, key: str, nodeid: str, outcome: str) -> None:
        self.tests.append((nodeid, outcome))


class Unreported:
    """Replaces the reporters of a user who has none."""

    def is_needed(self, *facts: object) -> bool:
        return False


class Bench:
    """A run whose commands are given one by one."""

    def __init__(self, root: Path, *, forks: bool = True) -> None:
        self.root = root
        self.heard = Heard()
        self.look: Any = lambda: None
        """Called repeatedly while a worker runs."""
        self.script_paths: tuple[str, ...] = ()
        self.server = ForkServer() if forks else None
        self.pool = None if self.server is None else WarmPool(self.server, root / ".planverify")
        self.folder = RunFolder(root, "run")
        self.workers: Workers | None = None

    def job(self, command: str, seconds: float = 30) -> Job:
        """Return the job of a plan with this one command."""
        test = {"cmd": command, "timeout_seconds": seconds}
        item = {"id": "t", "title": "T", "acceptance_criteria": {"tests": [test]}}
        plan = self.root / "plan.json"
        plan.write_text(json.dumps({"todo_list_id": "p", "items": [item]}))
        flat = load_tree(plan).load_all().flat()
        if self.workers is None:
            self.folder.create()
            facts: Any = SimpleNamespace(
                settings=settings(
                    workers=1, worker_args=("-p", "no:cacheprovider"), invocation_dir=self.root
                ),
                progress=self.heard,
                script_paths=self.script_paths,
                reporting=Unreported(),
            )
            self.workers = Workers(facts, self.pool, self.folder, flat, lambda: self.look())
        (job,) = Schedule(flat, flat.loaded.plan.items).jobs
        return job

    def write(self, files: dict[str, str]) -> None:
        write_files(self.root, files)

    def run(self, command: str = "pytest test_x.py", *, seconds: float = 30) -> WorkerRecord:
        """Run the worker of a command to its end."""
        job = self.job(command, seconds)
        assert self.workers is not None
        return self.workers.run(job)

    @property
    def levels(self) -> set[int]:
        """Final levels of the servers of this run, as stored for the next run."""
        return {group["level"] for group in self._groups}

    @property
    def preloaded(self) -> set[str]:
        """Modules that the servers of this run preload, as stored for the next run."""
        return {name for group in self._groups for name in group["modules"]}

    @property
    def _groups(self) -> list[dict[str, Any]]:
        assert self.pool is not None
        self.pool.remember()
        file = self.root / ".planverify/warm.json"
        return list(json.loads(file.read_bytes())["groups"].values()) if file.exists() else []

    def close(self) -> None:
        if self.pool is not None:
            self.pool.close()
        if self.server is not None:
            with suppress(ChildProcessError):
                self.server.close()
