"""Time limits of criteria, and the budget of a run."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest
from example_project import Example, todo

HANGS = {
    "holds_the_interpreter": "import re\ndef test_it(): re.match(r'(a+)+$', 'a' * 40 + 'b')\n",
    "at_import": "import time\ntime.sleep(60)\ndef test_it(): pass\n",
}
"""test_fault_matrix.py has other hanging tests, also without workers of xdist."""
# Loading it takes a part of the time, so that the test alone stays below the limit.
SWALLOWS = """\
import time
time.sleep(0.5)
def test_it():
    try: time.sleep(60)
    except BaseException: pass
"""
MANY = "import pytest, time\n@pytest.mark.parametrize('n', range(8))\ndef test_it(n): time.sleep(0.2)\n"

LIMIT = 2
"""Seconds that suffice for a worker to reach its test, even on a busy machine."""


def test_a_check_over_its_time_limit_fails_as_a_timeout_and_the_run_continues(tmp_path: Path):
    example = Example(tmp_path)
    todos = [todo("first", "pytest test_healthy.py::test_first")]
    for name, text in HANGS.items():
        example.write({f"test_{name}.py": text})
        todos.append(todo(name, {"cmd": f"pytest test_{name}.py", "timeout_seconds": LIMIT}))
    example.write(
        {
            "test_healthy.py": "def test_first(): pass\ndef test_last(): pass\n",
            "hang.py": "import time\ntime.sleep(60)\n",
            "test_many.py": MANY,
            "test_swallows.py": SWALLOWS,
        }
    )
    todos += [
        todo("swallows", {"cmd": "pytest test_swallows.py", "timeout_seconds": LIMIT}),
        todo("command", {"cmd": "python hang.py", "timeout_seconds": LIMIT}),
        todo("tight", {"cmd": "pytest test_many.py", "timeout_seconds": 1}),
        todo("wide", {"cmd": "pytest test_many.py", "timeout_seconds": 20}),
        todo("last", "pytest test_healthy.py::test_last"),
    ]
    example.plan(*todos)

    run = example.verify(
        "-p", "pytest_timeout", "-p", "xdist", "-n3", "--planverify-confirm=0", forked=False
    )

    late = (*HANGS, "swallows", "command", "tight")  # the tests of the latter are too slow only together
    assert {name for name, verdict in run.verdicts.items() if verdict == "failed"} == {*late}, str(run)
    assert {run.category(name) for name in late} == {"TEST_TIMEOUT"}
    places = {name: run.outcomes[name]["failure_evidence"]["location"]["path"] for name in HANGS}
    assert places == {name: f"test_{name}.py" for name in HANGS}
    assert [run.verdicts[name] for name in ("first", "wide", "last")] == ["passed"] * 3
    assert run.exit_code == 1
    assert run.left_running == ()


def test_temporary_folders_of_earlier_sessions_are_removed_after_the_verdicts(tmp_path: Path):
    old = tmp_path / f"pytest-of-{getpass.getuser()}"
    for number in range(3):  # of five, with those of the run, pytest keeps three
        (old / f"pytest-{number}").mkdir(parents=True)
    still_there = (
        f"import pathlib\ndef test_it(tmp_path): assert pathlib.Path({str(old)!r}, 'pytest-0').exists()\n"
    )
    example = Example(tmp_path / "project", {"test_a.py": still_there, "test_b.py": still_there})
    example.plan(todo("a", "pytest test_a.py"), todo("b", "pytest test_b.py"))

    run = example.verify(env={"PYTEST_DEBUG_TEMPROOT": str(tmp_path)})

    assert run.verdicts == {"a": "passed", "b": "passed"}, str(run)
    assert sorted(each.name for each in old.glob("pytest-?")) == ["pytest-2", "pytest-3", "pytest-4"]


FILES = {
    "test_quick.py": "def test_quick(): pass\n",
    "test_slow.py": "import time\ndef test_slow(): time.sleep(60)\n",
    "test_large_child.py": """
        import subprocess, sys
        def test_it():
            code = "import time; data = bytearray(b'1') * (400 << 20); time.sleep(60)"
            subprocess.run([sys.executable, "-c", code])
    """,
    "slow.py": "import time\ntime.sleep(60)\n",
}
WORKERS = ("-p", "xdist.plugin", "-n", "2")


@pytest.mark.parametrize(
    ("commands", "budget"),
    [
        (("pytest test_slow.py", "python slow.py"), {"wall_seconds": 8}),
        (("pytest test_large_child.py",), {"memory_mb": 300}),
    ],
    ids=["time", "memory"],
)
def test_an_exceeded_budget_ends_the_run_and_keeps_its_verdicts(
    tmp_path: Path, commands: tuple[str, ...], budget: dict[str, float]
):
    """Of tests and commands that run at the same time."""
    example = Example(tmp_path, FILES)
    middle = {f"middle_{number}": command for number, command in enumerate(commands)}
    example.plan(
        todo("before", "pytest test_quick.py"),
        *(
            todo(name, {"cmd": command, "timeout_seconds": 50}, after=("before",))
            for name, command in middle.items()
        ),
        todo("after", "pytest test_quick.py", after=("middle_0",)),
        metadata={"budget": budget},
    )

    run = example.verify(*WORKERS, forked=False)

    assert run.exit_code == 12, str(run)
    (limit,) = budget
    for name in middle:
        assert run.check(name)["verdict"] == "not_run"
        assert f"the budget {limit} was exceeded" in run.check(name)["reason"]
    (exceeding,) = (name for name in middle if run.category(name) == "BUDGET_EXCEEDED")
    assert run.check(exceeding, "budget")["verdict"] == "failed"
    assert f"more than budget.{limit}" in run.check(exceeding, "budget")["reason"]
    assert run.verdicts["before"] == "passed"
    assert run.states["after"] == "blocked"
    assert run.left_running == ()
    assert run.document is not None
    assert run.document["run"]["duration_ms"] < 40_000
