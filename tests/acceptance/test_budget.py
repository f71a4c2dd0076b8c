"""A limit of the plan's budget ends what runs, and the run; what was verified by then is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from example_project import Example, todo

FILES = {
    "tests/test_spending.py": """
        import pathlib, subprocess, sys, time

        def test_quick(): pass
        def test_slow(): time.sleep(60)

        def test_large_child():
            code = "import time; data = bytearray(b'1') * (400 << 20); time.sleep(60)"
            subprocess.run([sys.executable, "-c", code])

        def test_many_files():
            for number in range(9):
                pathlib.Path(f"file{number}.txt").write_text("x")

        def test_last(): pass
    """,
    "test_unit.py": """
        import time, unittest

        class Slow(unittest.TestCase):
            def test_slow(self):
                time.sleep(60)
    """,
}

SLOW_COMMAND = "python -m unittest test_unit"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return Example(tmp_path_factory.mktemp("budget"), FILES)


def spend(example: Example, middle: str, *options: str, **budget: Any):
    command = middle if " " in middle else f"pytest tests/test_spending.py::test_{middle}"
    example.plan(
        todo("before", "pytest tests/test_spending.py::test_quick"),
        todo("middle", {"cmd": command, "timeout_seconds": 50}, after=("before",)),
        todo("after", "pytest tests/test_spending.py::test_last", after=("middle",)),
        metadata={"budget": budget},
    )
    return example.verify(*options)


@pytest.mark.parametrize(
    ("middle", "options", "budget"),
    [
        ("slow", (), {"wall_seconds": 8}),
        (SLOW_COMMAND, (), {"wall_seconds": 8}),
        ("large_child", ("--planverify-isolate",), {"memory_mb": 250}),
        ("large_child", ("-p", "xdist.plugin", "-n", "2"), {"memory_mb": 300}),
    ],
    ids=["time", "time-of-a-command", "memory-of-a-child", "memory-with-workers"],
)
def test_what_is_used_up_ends_the_run_and_keeps_its_verdicts(
    project: Example, middle: str, options: tuple[str, ...], budget: dict[str, float]
):
    run = spend(project, middle, *options, **budget)

    assert run.exit_code == 12, str(run)
    assert run.category("middle") == "BUDGET_EXCEEDED"
    assert run.verdicts["middle"] == {"tests[0]": "not_run", "budget": "failed"}
    # Beside workers a green may be in doubt, and there is no time left to see it alone.
    assert run.verdicts["before"] == "passed" or "-n" in options
    assert run.states["after"] == "blocked"
    (name,) = budget
    assert f"more than budget.{name}" in run.check("middle", "budget")["reason"]
    assert f"the budget {name} was exceeded" in run.check("middle")["reason"]
    assert not run.left_running
    assert run.document is not None
    assert run.document["run"]["duration_ms"] < 40_000


def test_new_files_count_but_not_those_that_the_plan_expects(project: Example, tmp_path: Path):
    example = Example(tmp_path, FILES)
    command = "pytest tests/test_spending.py::test_many_files"
    artifacts = [f"file{number}.txt" for number in range(9)]
    example.plan(
        todo("files", command, expected_artifacts=artifacts), metadata={"budget": {"new_files": 0}}
    )
    assert example.verify().exit_code == 0

    for name in artifacts:
        (tmp_path / name).unlink()
    example.plan(todo("files", command), metadata={"budget": {"new_files": 8}})
    run = example.verify()
    assert (run.exit_code, run.category("files")) == (12, "BUDGET_EXCEEDED"), str(run)
    assert run.check("files")["verdict"] == "passed"
    assert "9 new files" in run.check("files", "budget")["reason"]
    assert "file0.txt" in run.check("files", "budget")["reason"]
    # They are there now, so that another run adds none.
    assert example.verify().exit_code == 0
