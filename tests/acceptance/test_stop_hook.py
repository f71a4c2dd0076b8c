"""`planverify hook` keeps a coding agent from stopping until everything is done, up to a limit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import commit_all
from example_project import Example, todo
from module_project import PYTEST_INI
from real_command import Finished, planverify_words
from real_planner import Ran, forked
from test_run_with_agents import run_forked, surroundings

GREEN = "def test_it(): pass\n"
RED = "def test_it(): assert 1 == 2\n"
SIGN = todo("sign", requires_testing=False)
LET_GO = Finished(exit_code=0, output="")


@pytest.fixture
def shop(tmp_path: Path) -> Example:
    example = Example(tmp_path, {"test_it.py": RED, "pytest.ini": PYTEST_INI})
    example.plan(todo("draw", "pytest test_it.py"))
    return example


def told(**call: Any) -> str:
    """Return what an agent tells the hook when it stops."""
    return json.dumps({"session_id": "s", "hook_event_name": "Stop", **call})


def stops(root: Path, **call: Any) -> Finished:
    """Run the hook in a fork, as an agent does when it stops. Its output must be empty or JSON."""
    done = run_forked(root, "hook", given=told(**call))
    assert done.output == "" or json.loads(done.output) is not None
    return done


def test_the_hook_blocks_stopping_with_a_brief_until_all_todos_are_done(
    shop: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = subprocess.run(
        planverify_words("hook"),
        cwd=shop.root,
        env=surroundings(),
        input=told(stop_hook_active=False),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (held.returncode, held.stdout) == (2, "")
    assert held.stderr.startswith("planverify: not done.\n✗ failed draw")
    assert "# Repair `draw`" in held.stderr
    assert len(held.stderr) < 700 * 4

    shop.write({"test_it.py": GREEN, "elsewhere/note.txt": ""})
    shop.plan(todo("draw", "pytest test_it.py"), {**SIGN, "status": "claimed"})
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(shop.root))
    assert stops(shop.root / "elsewhere", stop_hook_active=True) == LET_GO


def stops_with_a_broken_plan(root: Path, *words: str, **call: Any) -> Ran:
    """Run the hook in a fork, as it verifies no plan that it cannot read."""
    (root / "plan.yaml").write_text("todo_list_id: example\nitems: 7\n")
    return forked(("hook", *words), root, told(**call), program="planverify")


def test_the_hook_stops_blocking_after_its_limit_and_notifies_a_person(shop: Example) -> None:
    calls = [
        stops_with_a_broken_plan(shop.root, "--times", "2", stop_hook_active=at > 0) for at in range(3)
    ]
    assert [each.status for each in calls] == [2, 2, 0]
    message = calls[-1].json["systemMessage"]
    assert message.startswith(
        "planverify: not done, although the agent was told 2 times: plan.yaml:2:8 items: "
    )
    again = stops_with_a_broken_plan(shop.root, stop_hook_active=False)
    assert again.status == 2, "a person has prompted the agent since"

    (shop.root / ".planverify/stop_hook.json").unlink()
    (shop.root / ".planverify/stop_hook.json").mkdir()  # without a count the agent is let go
    let_go = stops_with_a_broken_plan(shop.root, stop_hook_active=True)
    assert let_go.status == 0
    assert let_go.json["systemMessage"].startswith("planverify: not done: plan.yaml:2:8 items: ")


def test_the_hook_blocks_stopping_for_a_missing_or_invalid_plan(shop: Example) -> None:
    broken = stops_with_a_broken_plan(shop.root)
    assert broken.status == 2
    assert "plan.yaml:2" in broken.err
    (shop.root / "plan.yaml").unlink()
    gone = forked(("hook",), shop.root, told(), program="planverify")
    assert gone.status == 2
    assert "there is no planverify.yaml, plan.yaml or todo.yaml here" in gone.err
    assert "Traceback" not in broken.err + gone.err


def test_the_hook_does_not_block_for_questions_to_a_person(shop: Example) -> None:
    shop.plan(todo("look", manual=[{"question": "Is it nice?"}]))
    done = stops(shop.root)
    assert done.exit_code == 0
    assert "not done, and a person must decide" in json.loads(done.output)["systemMessage"]


def test_the_hook_names_open_todos_without_checks_to_a_person(shop: Example) -> None:
    shop.write({"test_it.py": GREEN})
    shop.plan(todo("draw", "pytest test_it.py"), SIGN)
    done = stops(shop.root)
    assert done.exit_code == 0
    assert json.loads(done.output) == {"systemMessage": "planverify: not done, as nothing checks it: sign"}


def test_the_hook_does_not_block_after_a_violation_that_a_person_must_decide_on(shop: Example) -> None:
    shop.plan(todo("draw", "pytest test_it.py", allowed_files=["draw.py"]))
    commit_all(shop.root)
    shop.write({"test_it.py": GREEN})
    done = stops(shop.root)
    assert done.exit_code == 0, done.output
    message = json.loads(done.output)["systemMessage"]
    assert "a person must decide: ✗ failed draw: ALLOWLIST_VIOLATION" in message
