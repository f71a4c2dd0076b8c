"""Scopes of todos, the order of their runs, and the effect of failed dependencies."""

from __future__ import annotations

from pathlib import Path

from example_project import Example, todo
from real_command import WORKER

FILES = {
    "test_green.py": "import pathlib\ndef test_it():\n"
    "    with open('ran', 'a') as file: file.write('green ')\n",
    "test_red.py": "def test_it(): assert 0\n",
}
GREEN, RED = "pytest test_green.py", "pytest test_red.py"
UNCONFIRMED = "--planverify-confirm=0"


def an_example(folder: Path) -> Example:
    example = Example(folder, FILES)
    example.plan(
        todo("last", GREEN, after=("middle",), expected_artifacts=["test_green.py"]),
        todo("middle", GREEN, after=("first",)),
        todo("first", RED),
        todo("beside", GREEN, status="claimed"),
    )
    return example


def test_direct_and_indirect_dependents_of_a_failed_todo_are_blocked(tmp_path: Path):
    run = an_example(tmp_path).verify(UNCONFIRMED)

    assert run.states == {
        "last": "blocked",
        "middle": "blocked",
        "first": "test_failed",
        "beside": "done",
    }, str(run)
    assert run.verdicts["last"] == {"tests[0]": "blocked", "expected_artifacts[0]": "blocked"}
    assert run.outcomes["middle"]["blocked_by"] == ["first"]
    assert run.outcomes["middle"]["failure_evidence"] is None
    assert run.exit_code == 1


def test_keep_going_runs_the_checks_of_blocked_todos(tmp_path: Path):
    run = an_example(tmp_path).verify("--planverify-keep-going", UNCONFIRMED)

    assert run.verdicts["middle"] == "passed", str(run)
    assert run.verdicts["last"] == {"tests[0]": "passed", "expected_artifacts[0]": "passed"}
    assert run.states["middle"] == run.states["last"] == "blocked"
    assert run.exit_code == 1


def test_in_scope_claimed_only_claimed_todos_decide(tmp_path: Path):
    example = an_example(tmp_path)

    true_claims = example.verify("--planverify-scope", "claimed", UNCONFIRMED)
    example.plan(todo("beside", GREEN), todo("lie", RED, status="claimed"))
    false_claims = example.verify("--planverify-scope=claimed", UNCONFIRMED)

    assert true_claims.exit_code == 0, str(true_claims)
    assert false_claims.exit_code == 1, str(false_claims)


def test_a_test_shared_by_todos_runs_in_the_worker_of_each(tmp_path: Path):
    example = Example(tmp_path, FILES)
    spellings = (
        GREEN,
        "pytest test_green.py::test_it",
        "pytest -q ./test_green.py",
        "pytest . -k test_green",
        GREEN,
    )
    example.plan(*(todo(f"t{number}", command) for number, command in enumerate(spellings)))

    run = example.verify()

    assert set(run.verdicts.values()) == {"passed"}, str(run)
    assert (tmp_path / "ran").read_text().split() == ["green"] * 5
    assert {run.check(name)["isolation"] for name in run.outcomes} == {WORKER}
