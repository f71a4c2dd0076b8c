"""Plans, repositories and baselines for the tests of the comparison with a baseline."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

from planner.model.baseline import Baseline
from planner.planfile.tree import FlatPlan, load_tree

TODO = "{id: t, title: T, verify: pytest t.py}"
"""A todo as in a plan file."""


def git(folder: Path, *words: str) -> str:
    """Run git with an author, and return its output."""
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", *author, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, encoding="utf-8")
    return done.stdout.strip()


def commit_all(folder: Path) -> str:
    """Commit all files of a folder, which becomes a repository, and return the commit."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    return git(folder, "rev-parse", "HEAD")


def write_plan(path: Path, *todos: str, plan_id: str = "p", root: str = ".") -> Path:
    """Write a plan of these todos; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    items = "".join(f"- {todo}\n" for todo in todos)
    path.write_text(f"todo_list_id: {plan_id}\nroot: {root}\nitems:\n{items}")
    return path


def flat_plan(folder: Path, *todos: str) -> FlatPlan:
    """Write ``plan.yaml`` with these todos, by default one, and load it with its sub-plans."""
    plan = write_plan(folder / "plan.yaml", *(todos or (TODO,)))
    return load_tree(plan, boundary=folder).load_all().flat()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def baseline(plan: str = "p", **fields: Any) -> Baseline:
    """Return a baseline with these fields, as in its file."""
    usual = {"plan_digest": "sha256:1", "made_at": "2026-01-01T00:00:00Z", "python": "3", "pytest": "9"}
    return Baseline.model_validate({"plan": plan, **usual, **fields})
