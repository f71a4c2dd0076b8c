"""The schedule: who shares a session, who runs by itself, and what has to wait for what."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.edges.plan_file import LoadedPlan, load_plan
from planner.edges.plan_tree import FlatPlan, load_tree
from pytest_planverify.supervision.schedule import Job, Stage, criterion_key, schedule


def plan_of(root: Path, *items: dict[str, Any]) -> LoadedPlan:
    for name in ("test_a.py", "test_b.py"):
        (root / name).write_text("def test_it(): pass\n")
    path = root / "plan.yaml"
    path.write_text(json.dumps({"todo_list_id": "p", "items": list(items)}))
    return load_plan(path)


def todo(todo_id: str, *commands: str, after: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": todo_id, "title": todo_id, "dependencies": list(after), **more}
    if commands:
        entry["acceptance_criteria"] = {"tests": [{"cmd": command} for command in commands]}
    return entry


def stages_of(plan: LoadedPlan, *, isolate: bool = False, only: tuple[str, ...] = ()) -> list[Stage]:
    return schedule(FlatPlan(loaded=plan), only or [item.id for item in plan.plan.items], isolate=isolate)


def shape(stages: list[Stage]) -> list[tuple[list[list[str]], list[str], list[str]]]:
    """Folds, commands of their own and finished todos, a stage."""
    return [
        (
            [[name(job) for job in fold.jobs] for fold in stage.folds],
            [name(job) for job in stage.singles],
            [each.id for each in stage.todos],
        )
        for stage in stages
    ]


def name(job: Job) -> str:
    return f"{job.todo.id}.{job.criterion.id[6:-1]}"


def single(stages: list[Stage]) -> Job:
    (job,) = [job for stage in stages for job in stage.singles]
    return job


def below(root: Path, name: str, *items: dict[str, Any], at: str = "..") -> dict[str, Any]:
    """A sub-plan whose root is the given one, and the keys of its parent."""
    (root / "phases").mkdir(exist_ok=True)
    (root / "phases/test_a.py").write_text("def test_it(): pass\n")
    text = json.dumps({"todo_list_id": name, "root": at, "items": list(items)})
    (root / f"phases/{name}.json").write_text(text)
    return {"sub_plan": f"phases/{name}.json"}


def test_commands_of_all_levels_with_one_root_share_a_session(tmp_path: Path):
    same = below(tmp_path, "same", todo("x", "pytest test_a.py"))
    own = below(tmp_path, "own", todo("x", "pytest test_a.py"), at=".")
    plan_of(tmp_path, todo("p", "pytest test_b.py", **same), todo("q", **own))
    flat = load_tree(tmp_path / "plan.yaml").load_all().flat()

    (stage,) = schedule(flat, flat.loaded.criteria, isolate=False)

    folds = {fold.key.root: [name(job) for job in fold.jobs] for fold in stage.folds}
    assert folds == {str(tmp_path): ["p/x.0", "p.0"], str(tmp_path / "phases"): ["q/x.0"]}
    assert [each.id for each in stage.todos] == ["p/x", "p", "q/x", "q"]


def test_a_parent_and_what_depends_on_it_wait_for_the_effects_of_its_todos(tmp_path: Path):
    keys = below(tmp_path, "sub", todo("x", "python make.py"))
    plan_of(
        tmp_path, todo("after", "pytest test_a.py", after=("p",)), todo("p", "pytest test_b.py", **keys)
    )
    flat = load_tree(tmp_path / "plan.yaml").load_all().flat()

    stages = schedule(flat, flat.loaded.criteria, isolate=False)

    assert shape(stages) == [([], ["p/x.0"], ["p/x"]), ([["p.0", "after.0"]], [], ["p", "after"])]


def test_pytest_commands_of_all_todos_share_one_session(tmp_path: Path):
    plan = plan_of(
        tmp_path,
        todo("a", "pytest test_a.py"),
        todo("b", "pytest test_b.py", "pytest test_a.py", after=("a",)),
    )

    assert shape(stages_of(plan)) == [([["a.0", "b.0", "b.1"]], [], ["a", "b"])]


def test_other_conditions_are_another_fold_of_the_same_stage(tmp_path: Path):
    plan = plan_of(tmp_path, todo("a", "pytest test_a.py", "FOO=1 pytest test_a.py", "pytest test_b.py"))

    assert shape(stages_of(plan)) == [([["a.0", "a.2"], ["a.1"]], [], ["a"])]


def test_tests_after_a_command_of_their_todo_wait_for_it(tmp_path: Path):
    plan = plan_of(tmp_path, todo("a", "pytest test_a.py", "ruff check .", "pytest test_b.py"))

    assert shape(stages_of(plan)) == [([["a.0"]], ["a.1"], []), ([["a.2"]], [], ["a"])]


def test_tests_of_a_todo_that_depends_on_a_command_wait_for_it(tmp_path: Path):
    plan = plan_of(
        tmp_path,
        todo("tests", "pytest test_b.py", after=("build",)),
        todo("build", "ruff check ."),
        todo("free", "pytest test_a.py"),
    )

    assert shape(stages_of(plan)) == [
        ([["free.0"]], ["build.0"], ["build", "free"]),
        ([["tests.0"]], [], ["tests"]),
    ]


def test_several_commands_in_a_row_make_one_wait(tmp_path: Path):
    plan = plan_of(tmp_path, todo("a", "ruff check .", "mypy .", "pytest test_a.py", "ruff check ."))

    assert shape(stages_of(plan)) == [([], ["a.0", "a.1"], []), ([["a.2"]], ["a.3"], ["a"])]


def test_waiting_adds_up_over_a_chain_of_dependencies(tmp_path: Path):
    plan = plan_of(
        tmp_path,
        todo("a", "ruff check ."),
        todo("b", "pytest test_a.py", "ruff check .", after=("a",)),
        todo("c", "pytest test_b.py", after=("b",)),
    )

    assert [each[2] for each in shape(stages_of(plan))] == [["a"], ["b"], ["c"]]


def test_dependencies_that_are_not_part_of_the_run_are_not_waited_for(tmp_path: Path):
    plan = plan_of(tmp_path, todo("a", "ruff check ."), todo("b", "pytest test_b.py", after=("a",)))

    assert shape(stages_of(plan, only=("b",))) == [([["b.0"]], [], ["b"])]


def test_a_todo_without_commands_has_its_place_all_the_same(tmp_path: Path):
    plan = plan_of(
        tmp_path, todo("a", "ruff check ."), todo("b", after=("a",), contract_path="c.json"), todo("c")
    )

    assert [each[2] for each in shape(stages_of(plan))] == [["a", "c"], ["b"]]


def test_nothing_to_verify_is_no_stage(tmp_path: Path):
    plan = plan_of(tmp_path, todo("a", "pytest test_a.py"))

    assert schedule(FlatPlan(loaded=plan), [], isolate=False) == []


def test_isolated_every_command_has_a_session_of_its_own(tmp_path: Path):
    plan = plan_of(tmp_path, todo("a", "pytest test_a.py", "pytest test_b.py"))

    stages = stages_of(plan, isolate=True)

    assert shape(stages) == [([], ["a.0", "a.1"], ["a"])]
    assert {job.own_session for job in stages[0].singles} == {"asked for by --planverify-isolate"}
    assert all(job.is_pytest for job in stages[0].singles)


@pytest.mark.parametrize(
    ("command", "reason", "forked"),
    [
        ("ruff check .", "it is no pytest command", False),
        (
            ".venv/bin/python -m pytest test_a.py",
            ".venv/bin/python -m pytest is another interpreter",
            False,
        ),
        ("PYTHONHASHSEED=1 pytest test_a.py", "PYTHONHASHSEED is read when an interpreter starts", False),
        ("LC_ALL=C pytest test_a.py", "LC_ALL is read when an interpreter starts", False),
        ("pytest --frobnicate test_a.py", "--frobnicate", True),
    ],
)
def test_why_a_command_shares_no_session_is_said(command: str, reason: str, forked: bool, tmp_path: Path):
    job = single(stages_of(plan_of(tmp_path, todo("a", command))))

    assert reason in (job.own_session or "")
    assert job.is_pytest is forked


READS_SELECTION = "def pytest_collection_modifyitems(config, items): return config.option.keyword\n"


def test_commands_with_an_expression_that_a_conftest_reads_run_by_themselves(tmp_path: Path):
    (tmp_path / "conftest.py").write_text(READS_SELECTION)
    commands = ("pytest test_a.py", "pytest test_a.py -k it", "pytest test_a.py -m x", "pytest test_b.py")

    stages = stages_of(plan_of(tmp_path, todo("a", *commands)))

    assert shape(stages) == [([["a.0", "a.3"]], ["a.1", "a.2"], ["a"])]
    assert {job.own_session for job in stages[0].singles} == {"its conftest reads -k or -m"}


def test_the_search_path_of_a_command_is_followed_without_a_new_interpreter(tmp_path: Path):
    stages = stages_of(plan_of(tmp_path, todo("a", "PYTHONPATH=src pytest test_a.py")))

    assert stages[0].singles == []


def test_what_is_spawned_is_started_as_the_command_says(tmp_path: Path):
    def launcher(command: str) -> tuple[str, ...]:
        return single(stages_of(plan_of(tmp_path, todo("a", command)))).launcher

    script = Path(sys.executable).with_name("pytest")
    assert launcher("PYTHONHASHSEED=1 python -m pytest test_a.py") == (sys.executable, "-m", "pytest")
    assert launcher(".venv/bin/python -m pytest test_a.py") == (".venv/bin/python", "-m", "pytest")
    own = (sys.executable, str(script)) if script.exists() else (sys.executable, "-m", "pytest")
    assert launcher("PYTHONHASHSEED=1 pytest test_a.py") == own


def test_a_key_names_a_criterion_among_all_plans(tmp_path: Path):
    plan = plan_of(tmp_path, todo("a", "pytest test_a.py"))
    (job,) = stages_of(plan)[0].folds[0].jobs

    assert job.key == criterion_key(plan, "a", "tests[0]") == f"{plan.path}::a::tests[0]"
    assert job.spec.cmd == "pytest test_a.py"
