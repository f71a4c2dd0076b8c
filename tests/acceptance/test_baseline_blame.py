"""Whether a todo is blamed for a failure that is older than the work: the table of docs/baseline.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from real_planner import Desk, Ran

from planner.planfile.loader import load_plan

TEST = "tests/test_a.py::test_old"


def row(
    todo_id: str,
    blamed: bool,
    *,
    since: str = "pre_existing",
    at_base: str | None = "open",
    check: str | None = "red",
    check_id: str = "tests[0]",
    tests: tuple[str, ...] = (TEST,),
    **keys: Any,
) -> tuple[str, bool, dict[str, Any], dict[str, Any]]:
    """Return a row of the table: the todo's id, whether it is blamed, the todo and its outcome."""
    todo = {
        "id": todo_id,
        "title": todo_id,
        "status": "claimed",
        "acceptance_criteria": {"tests": [{"cmd": "pytest tests/test_a.py"}]},
        **keys,
    }
    failure = {
        "category": "TEST_REGRESSION",
        "owner": "product",
        "signature": f"sig-{todo_id}",
        "check_id": check_id,
        "tests": list(tests),
        "since": since,
    }
    results = [{"nodeid": name, "outcome": "failed", "since": since} for name in tests]
    checks = [{"id": check_id, "kind": "test", "verdict": "failed", "tests": results, "at_base": check}]
    outcome = {
        "todo_id": todo_id,
        "state": "test_failed",
        "success": False,
        "tests_passed": False,
        "at_base": at_base,
        "checks": checks,
        "failures": [failure],
        "failure_evidence": failure,
    }
    return todo_id, blamed, todo, outcome


ROWS = [
    row("new-red", True, since="new", check="green"),
    row("nobody-can-tell", True, since="unknown", check=None),
    row("whole-check-was-red", True),
    row("red-among-greens", False, check="mixed"),
    row("check-was-green", False, check="green"),
    row("claimed-at-base", False, at_base="claimed"),
    row("done-at-base", False, at_base="done"),
    row("not-there-at-base", False, at_base=None),
    row("flaky-at-base", False, since="flaky_at_base"),
    row("named-to-turn-green", True, check="mixed", must_turn_green=[TEST]),
    row("file-named-to-turn-green", True, at_base="claimed", must_turn_green=["tests/test_a.py"]),
    row("all-named-to-turn-green", True, check="mixed", must_turn_green="all"),
    row("flaky-and-named", True, since="flaky_at_base", must_turn_green=[TEST]),
    row("another-named-to-turn-green", False, must_turn_green=["tests/test_a.py::test_mine"]),
    row(
        "the-demand-itself", True, check_id="must_turn_green", tests=(), must_turn_green=["tests/test_b.py"]
    ),
    row("stay-green-demand", False, check_id="must_stay_green", must_stay_green="all"),
    row("no-tests-red-then", True, tests=()),
    row("no-tests-green-then", True, tests=(), since="new", check="green"),
    row("no-tests-and-a-demand", True, tests=(), must_turn_green=[TEST]),
]


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    desk = Desk(tmp_path_factory.mktemp("blame"))
    policy = {"max_concurrent_branches": 100, "notify_after_n_failures": 100}
    desk.plan(*(todo for _, _, todo, _ in ROWS), metadata=policy)
    desk.outcomes(*(outcome for *_, outcome in ROWS))
    return desk.next()


@pytest.mark.parametrize(("todo_id", "blamed"), [each[:2] for each in ROWS], ids=[each[0] for each in ROWS])
def test_todos_are_blamed_as_in_the_table(decided: Ran, todo_id: str, blamed: bool) -> None:
    asked = {action["todo_id"]: action for action in decided.actions if action["action"] == "implement"}

    assert (f"{todo_id}_branch_01" in asked) is blamed
    assert (f"pre_existing_sig-{todo_id}" in asked) is not blamed


def test_new_and_pre_existing_failures_of_one_todo_are_repaired_separately(tmp_path: Path) -> None:
    *_, todo, outcome = row("mixed", True, check="mixed")
    own = {
        **outcome["failures"][0],
        "signature": "own",
        "since": "new",
        "tests": ["tests/test_a.py::test_new"],
    }
    outcome["failures"] = [own, *outcome["failures"]]
    outcome["failure_evidence"] = own
    desk = Desk(tmp_path)
    desk.plan(todo)
    desk.outcomes(outcome)

    asked = {action["todo_id"]: action for action in desk.next("--output", "next.yaml").actions}

    assert asked["mixed_branch_01"]["brief"]["failure"]["signature"] == "own"
    assert asked["pre_existing_sig-mixed"]["brief"]["criteria"] == [f"pytest {TEST}"]
    plan = load_plan(tmp_path / "next.yaml").plan
    assert plan.todo("mixed").dependencies == ("pre_existing_sig-mixed",)
