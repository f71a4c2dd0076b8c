"""The approval of the start of a todo with high risk is asked for until a person has answered."""

from __future__ import annotations

from pathlib import Path

from example_project import Example, todo
from real_planner import planner


def test_a_failing_verification_does_not_replace_the_approval_of_a_start(tmp_path: Path):
    example = Example(
        tmp_path,
        {"test_it.py": "def test_one(): pass\ndef test_two(): assert 1 == 2\n"},
    )
    example.plan(todo("pay", "pytest test_it.py", risk_level="HIGH", max_retries=1))
    assert "pay:start" in planner("next", cwd=example.root).out

    assert example.verify().verdicts == {"pay": "failed"}

    after = planner("next", cwd=example.root)
    assert (after.status, "pay:start" in after.out, "retry" in after.out) == (11, True, False), after.out
    assert planner("approve", "pay:start", "--by", "Ada", cwd=example.root).status == 0
    assert "pay" in planner("next", cwd=example.root).out
