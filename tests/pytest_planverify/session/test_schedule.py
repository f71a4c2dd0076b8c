"""The schedule: order of commands, concurrent commands, and commands that run without a worker."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from example_project import todo
from hypothesis import given
from hypothesis import strategies as st
from text_bundles import write_files

from planner.planfile.loader import LoadedPlan, load_plan
from planner.planfile.tree import FlatPlan, load_tree
from pytest_planverify.session.schedule import Job, Schedule


def plan_of(root: Path, *items: dict[str, Any]) -> LoadedPlan:
    path = root / "plan.yaml"
    path.write_text(json.dumps({"todo_list_id": "p", "items": list(items)}))
    return load_plan(path)


def schedule_of(plan: LoadedPlan, *, only: str | None = None, **more: Any) -> Schedule:
    todos = [each for each in plan.plan.items if only in (None, each.id)]
    return Schedule(FlatPlan(loaded=plan), todos, **more)


def name(job: Job) -> str:
    return f"{job.todo.id}.{job.criterion.id[6:-1]}"


def waves(schedule: Schedule) -> list[list[str]]:
    """Return the commands that may run concurrently, in waves; a wave ends before the next one starts."""
    found: list[list[str]] = []
    while True:
        running: list[Job] = []
        schedule.finished_todos()
        while (job := schedule.next()) is not None:
            running.append(job)
        if not running:
            assert not schedule.jobs
            return found
        found.append([name(job) for job in running])
        for job in running:
            schedule.done(job)


def only_job(plan: LoadedPlan) -> Job:
    (job,) = schedule_of(plan).jobs
    return job


def test_independent_todos_run_concurrently(tmp_path: Path):
    plan = plan_of(
        tmp_path,
        todo("a", "pytest a.py", "FOO=1 pytest b.py"),
        todo("b", "pytest b.py", after=("a",)),
        todo("c", "pytest c.py"),
    )
    assert waves(schedule_of(plan)) == [["a.0", "a.1", "c.0"], ["b.0"]]


def test_dependency_outside_the_run_is_not_awaited(tmp_path: Path):
    plan = plan_of(tmp_path, todo("a", "ruff check ."), todo("b", "pytest b.py", after=("a",)))
    assert waves(schedule_of(plan, only="b")) == [["b.0"]]


def test_commands_with_known_verdicts_are_not_scheduled(tmp_path: Path):
    plan = plan_of(tmp_path, todo("a", "pytest a.py", "pytest b.py"), todo("b", "pytest c.py"))
    schedule = schedule_of(plan, taken={("a", "tests[0]"), ("b", "tests[0]")})
    assert [each.id for each in schedule.finished_todos()] == ["b"]
    assert waves(schedule) == [["a.1"]]


def test_parent_and_its_dependents_wait_for_the_sub_plan(tmp_path: Path):
    sub_plan = {"todo_list_id": "sub", "items": [todo("x", "pytest x.py")]}
    (tmp_path / "sub.json").write_text(json.dumps(sub_plan))
    parent = todo("p", "pytest b.py", sub_plan="sub.json")
    plan_of(tmp_path, todo("after", "pytest a.py", after=("p",)), parent)
    flat = load_tree(tmp_path / "plan.yaml").load_all().flat()
    assert waves(Schedule(flat, flat.loaded.plan.items)) == [["p/x.0"], ["p.0"], ["after.0"]]


@st.composite
def plans(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw todos in any order with acyclic dependencies."""
    count = draw(st.integers(1, 6))
    items: list[dict[str, Any]] = []
    for number in range(count):
        commands = draw(st.lists(st.sampled_from(["pytest a.py", "ruff check ."]), max_size=3))
        before = draw(st.sets(st.integers(0, number - 1))) if number else set[int]()
        items.append(todo(f"t{number}", *commands, after=tuple(f"t{each}" for each in sorted(before))))
    return draw(st.permutations(items))


@given(items=plans(), data=st.data(), lanes=st.integers(1, 3))
def test_every_command_is_scheduled_once_after_its_dependencies(
    items: list[dict[str, Any]], data: st.DataObject, lanes: int, tmp_path_factory: pytest.TempPathFactory
):
    plan = plan_of(tmp_path_factory.mktemp("plan"), *items)
    schedule = schedule_of(plan)
    order = [name(job) for job in schedule.jobs]
    running, started, finished = list[Job](), list[str](), set[str]()
    while True:
        finished |= {each.id for each in schedule.finished_todos()}
        while len(running) < lanes and (job := schedule.next()) is not None:
            assert finished >= set(job.todo.dependencies)
            if not job.is_pytest:
                assert not running
                assert set(order[: order.index(name(job))]) == set(started)
            assert all(each.is_pytest for each in running)
            started.append(name(job))
            running.append(job)
        if not running:
            break
        schedule.done(running.pop(data.draw(st.integers(0, len(running) - 1))))

    assert sorted(started) == sorted(order)
    assert finished == {item["id"] for item in items}


AS_MODULE = (sys.executable, "-m", "pytest")
SCRIPT = Path(sys.executable).with_name("pytest")


@pytest.mark.parametrize(
    ("module", "command", "is_pytest"),
    [
        ("a.py", "pytest --frobnicate a.py", True),
        ("a.py", "PYTHONPATH=src pytest a.py", True),
        ("a.py", "ruff check .", False),
        ("a.py", ".venv/bin/python -m pytest a.py", False),
        ("a.py", "PYTHONHASHSEED=1 pytest a.py", False),
        ("a.py", "LC_ALL=C pytest a.py", False),
        ("random.py", "pytest a.py", True),
        ("random.py", "python -m pytest a.py", False),
        ("random/__init__.py", "PYTHONPATH=lib:. pytest a.py", False),
        ("random/__init__.py", "PYTHONPATH=lib pytest a.py", True),
    ],
)
def test_only_pytest_commands_of_this_interpreter_that_find_its_own_modules_first_are_workers(
    module: str, command: str, is_pytest: bool, tmp_path: Path
):
    write_files(tmp_path, {module: ""})
    assert only_job(plan_of(tmp_path, todo("a", command))).is_pytest is is_pytest


@pytest.mark.parametrize(
    ("command", "launcher"),
    [
        ("PYTHONHASHSEED=1 python -m pytest a.py", AS_MODULE),
        (".venv/bin/python -m pytest a.py", (".venv/bin/python", "-m", "pytest")),
        ("PYTHONHASHSEED=1 pytest a.py", (sys.executable, str(SCRIPT)) if SCRIPT.exists() else AS_MODULE),
    ],
)
def test_spawned_command_is_started_by_the_program_it_names(
    command: str, launcher: tuple[str, ...], tmp_path: Path
):
    assert only_job(plan_of(tmp_path, todo("a", command))).launcher == launcher
