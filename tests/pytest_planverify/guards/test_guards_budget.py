"""A limit of the budget is noticed when it is passed, and said with what used most."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.model.plan import Budget
from planner.model.taxonomy import Category
from planner.model.verdicts import CheckKind, Verdict
from pytest_planverify.checks.processes import run_process
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.guards.budget import BudgetExceeded, BudgetWatch, violation


def watch(root: Path, expected: tuple[str, ...] = (), **limits: float) -> BudgetWatch:
    started = BudgetWatch(Budget.model_validate(limits), root, expected=expected)
    started.start()
    return started


def test_without_limits_nothing_is_looked_at(tmp_path: Path):
    started = watch(tmp_path)
    started.check()
    started.finish()


def test_time_counts_from_the_start(tmp_path: Path):
    started = watch(tmp_path, wall_seconds=0.05)
    started.check()
    time.sleep(0.06)

    with pytest.raises(BudgetExceeded, match=r"more than budget\.wall_seconds \(0\.05 s\)"):
        started.check()


@pytest.fixture
def large() -> Iterator[subprocess.Popen[str]]:
    code = "data = bytearray(b'1') * (120 << 20); print('there', flush=True); import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield process
        process.kill()


def test_the_memory_of_children_is_added_up_and_the_largest_is_named(
    tmp_path: Path, large: subprocess.Popen[str]
):
    watch(tmp_path, memory_mb=4_000).check()

    with pytest.raises(BudgetExceeded) as caught:
        watch(tmp_path, memory_mb=100).check()

    fact = caught.value.fact
    assert 100 < fact.used < 1_000
    assert any(example.startswith(f"{large.pid} ") for example in fact.examples)
    spared = BudgetWatch(Budget(memory_mb=100), tmp_path, spared=lambda: [large.pid])
    spared.check()


def test_new_files_are_counted_but_not_those_of_tools_and_of_the_plan(tmp_path: Path):
    (tmp_path / "before.txt").touch()
    started = watch(tmp_path, expected=("out/*.json",), new_files=1)
    for name in ("out/a.json", "__pycache__/a.pyc", ".planverify/x", "one.txt", ".coverage"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    started.check()
    started.finish()
    (tmp_path / "two.txt").touch()

    started.check()  # not so soon again
    with pytest.raises(
        BudgetExceeded, match=r"2 new files, more than budget\.new_files \(1\): one\.txt, two\.txt"
    ):
        started.finish()


def test_what_the_work_has_added_before_the_run_counts(tmp_path: Path):
    started = BudgetWatch(Budget(new_files=1), tmp_path)

    with pytest.raises(BudgetExceeded):
        started.start(["a.py", "b.py"])


def test_a_command_is_ended_by_whoever_watches_it(tmp_path: Path):
    def stop() -> None:
        raise BudgetExceeded(fact)

    fact = watch_fact(tmp_path)
    started = time.monotonic()
    with pytest.raises(BudgetExceeded):
        run_process(
            [sys.executable, "-c", "import time; time.sleep(60)"],
            cwd=tmp_path,
            env={},
            timeout_seconds=60,
            watch=stop,
        )
    assert time.monotonic() - started < 50
    done = run_process(
        [sys.executable, "-c", ""], cwd=tmp_path, env={}, timeout_seconds=60, watch=lambda: None
    )
    assert done.exit_code == 0
    late = run_process(
        [sys.executable, "-c", "import time; time.sleep(60)"],
        cwd=tmp_path,
        env={},
        timeout_seconds=0.3,
        watch=lambda: None,
    )
    assert late.timed_out


def watch_fact(folder: Path):
    with pytest.raises(BudgetExceeded) as caught:
        BudgetWatch(Budget(new_files=0), folder).start(["a"])
    return caught.value.fact


def test_it_is_held_against_a_todo_as_a_check_of_its_own(tmp_path: Path):
    check, evidence = violation("t", watch_fact(tmp_path)).check()

    assert (check.id, check.kind, check.verdict) == ("budget", CheckKind.GUARD, Verdict.FAILED)
    assert diagnose(evidence).category is Category.BUDGET_EXCEEDED
