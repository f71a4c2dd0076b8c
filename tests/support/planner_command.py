"""Runs of `planner` in this process, and the plans and outcomes for them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sample_documents import run_info
from text_bundles import write_files

from planner.cli import main
from planner.errors import PlannerError
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.tree import load_tree, todo_digests
from planner.testing import create_sample_todo, sample_failure


@dataclass(frozen=True, slots=True)
class Ran:
    """Exit status and output of the command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Command:
    """The command in one folder."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setenv("LOGNAME", "ada")
        monkeypatch.delenv("FORCE_COLOR", raising=False)

    def __call__(self, *words: str) -> Ran:
        self._monkeypatch.setattr("sys.argv", ["planner", *words])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capsys.readouterr()
        return Ran(int(ended.value.code or 0), said.out, said.err)

    def plan(self, *todos: dict[str, Any], path: str = "plan.yaml", **keys: Any) -> Path:
        """Write a plan of these todos as JSON, which is valid YAML."""
        plan = {"todo_list_id": "shop", **keys, "items": [{"title": todo["id"], **todo} for todo in todos]}
        write_files(self.folder, {path: json.dumps(plan, ensure_ascii=False, indent=1)})
        return self.folder / path

    def outcomes(
        self,
        *outcomes: dict[str, Any],
        plan: str = "plan.yaml",
        path: str | None = None,
        run: dict[str, Any] | None = None,
        **keys: Any,
    ) -> Path:
        """Write outcomes of the current plan, by default where its last run would have left them.

        ``run`` has facts of the run that are not the usual ones.
        """
        tree = load_tree(self.folder / plan)
        with suppress(PlannerError):  # the file of a sub-plan may not exist yet
            tree.load_all()
        loaded, flat = tree.loaded, tree.flat()
        reference = {
            "todo_list_id": loaded.plan.todo_list_id,
            "path": plan,
            "digest": loaded.digest,
            "todos": todo_digests(flat.loaded, flat.files),
        }
        document = {
            "schema_version": 1,
            "plans": [reference],
            "run": run_info(**(run or {})).model_dump(mode="json"),
            "summary": {},
            "outcomes": list(outcomes),
            **keys,
        }
        own = PlanFolder(loaded.root, loaded.plan.todo_list_id).outcomes
        target = own if path is None else self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(document), encoding="utf-8")
        return target

    def ask(self, todo_id: str, *questions: str) -> None:
        """Write a plan of one todo whose test has passed, and whose manual questions are open."""
        todo = with_test(todo_id)
        todo["acceptance_criteria"]["manual"] = [{"question": each} for each in questions]
        self.plan(todo)
        outcome = undecided(todo_id, "passed")
        for at, question in enumerate(questions):
            check = {"id": f"manual[{at}]", "kind": "manual", "verdict": "needs_human", "title": question}
            outcome["checks"].append(check)
        self.outcomes(outcome)


def with_test(todo_id: str, **keys: Any) -> dict[str, Any]:
    """Return a todo with one test."""
    return {
        "id": todo_id,
        "acceptance_criteria": {"tests": [{"cmd": f"pytest tests/test_{todo_id}.py"}]},
        **keys,
    }


def done(todo_id: str, **keys: Any) -> dict[str, Any]:
    """Return the outcome of a todo that is done."""
    return _outcome(todo_id, "done", "passed", **keys)


def pending(todo_id: str, **keys: Any) -> dict[str, Any]:
    """Return the outcome of a todo none of whose criteria ran."""
    return {**_outcome(todo_id, "pending", "not_run"), **keys}


def undecided(todo_id: str, verdict: str, **keys: Any) -> dict[str, Any]:
    """Return the outcome of a todo with an undecided verdict."""
    return _outcome(todo_id, "testing", verdict, **keys)


def failed(todo_id: str, category: str = "TEST_REGRESSION", **failure: Any) -> dict[str, Any]:
    """Return the outcome of a todo whose test fails."""
    said = {
        "signature": "a1b2c3d4e5f6",
        "suggestion": "Fix it",
        "rerun": f"pytest --planverify plan.yaml::{todo_id}",
    }
    todo = create_sample_todo(todo_id)
    found = sample_failure(todo, category, "AssertionError: assert 1 == 2", **(said | failure))
    evidence = found.model_dump(mode="json")
    return _outcome(todo_id, "test_failed", "failed", failure_evidence=evidence, failures=[evidence])


def _outcome(todo_id: str, state: str, verdict: str, **keys: Any) -> dict[str, Any]:
    test = {
        "nodeid": f"tests/test_{todo_id}.py::test_it",
        "outcome": "failed" if verdict == "failed" else "passed",
    }
    return {
        "todo_id": todo_id,
        "plan": "shop",
        "state": state,
        "verified": True,
        "success": state == "done",
        "tests_passed": state == "done",
        "checks": [
            {
                "id": "tests[0]",
                "kind": "test",
                "verdict": verdict,
                "cmd": f"pytest tests/test_{todo_id}.py",
                "tests": [test],
            }
        ],
        **keys,
    }
