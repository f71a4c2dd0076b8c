"""Default plans, roots and tests where none are named."""

from __future__ import annotations

import shlex
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from _pytest.config.findpaths import determine_setup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.model.plan import Todo
from planner.planfile.checks import Conventions
from planner.planfile.discovery import PlanChoice, find_plans, parse_choice, plan_boundary, project_root

FILES = {
    "pytest.ini": ("", "[pytest]\nplanverify_plan = plans/a.yaml 'b c.yaml'\n"),
    "pyproject.toml": (
        "",
        "[project]\nname = 'x'\n",
        "[tool.pytest.ini_options]\nplanverify_plan = ['x.yaml::t1,t2']\n",
        "[tool.pytest.ini_options]\n",
    ),
    "tox.ini": ("[tox]\n", "[pytest]\nplanverify_plan = t.yaml\n"),
    "setup.cfg": ("[metadata]\nname = x\n", "[tool:pytest]\naddopts = -q\n"),
    "setup.py": ("",),
}
FOLDERS = ("", "src", "src/deep")

written = st.dictionaries(
    st.sampled_from([(folder, name) for folder in FOLDERS for name in FILES]), st.integers(0, 3), max_size=4
)


@given(written, st.sampled_from(FOLDERS), st.sampled_from(FOLDERS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_rootdir_and_ini_file_agree_with_pytest(
    tmp_path_factory: pytest.TempPathFactory, files: dict[tuple[str, str], int], here: str, argument: str
) -> None:
    top = tmp_path_factory.mktemp("root")
    (top / "src/deep").mkdir(parents=True)
    for (folder, name), variant in files.items():
        (top / folder / name).write_text(FILES[name][variant % len(FILES[name])])
    plan = top / argument / "plan.yaml"
    plan.write_text("")

    unset = dict.fromkeys(signature(determine_setup).parameters)  # they differ between versions of pytest
    words: dict[str, Any] = unset | {"args": [str(plan)], "invocation_dir": top / here}
    rootdir, ini, section, *_ = determine_setup(**words)
    found = project_root(top / here, plan.parent)

    assert (found.folder, found.ini) == (rootdir, ini)
    assert bool(found.plans) == ("planverify_plan" in section)


def test_a_plan_may_be_named_with_a_selection_of_todos(tmp_path: Path) -> None:
    assert parse_choice("../plan.yaml", tmp_path / "sub") == PlanChoice(path=tmp_path / "plan.yaml")
    assert parse_choice("p.yaml::a,b/c", tmp_path).todo_ids == ("a", "b/c")


def test_the_ini_setting_precedes_local_plan_names_and_those_of_the_rootdir(tmp_path: Path) -> None:
    sub = tmp_path / "sub"
    sub.mkdir()
    assert find_plans(sub) == ()

    (tmp_path / "pytest.ini").write_text("")
    for name in ("todo.yaml", "plan.yaml", "planverify.yaml"):
        (tmp_path / name).write_text("")
        assert find_plans(sub) == (PlanChoice(path=tmp_path / name),)
    (sub / "todo.yaml").write_text("")
    assert find_plans(sub) == (PlanChoice(path=sub / "todo.yaml"),)
    (tmp_path / "pytest.ini").write_text("[pytest]\nplanverify_plan = 'a b.yaml' c.yaml::t\n")
    assert find_plans(sub) == (
        PlanChoice(path=tmp_path / "a b.yaml"),
        PlanChoice(path=tmp_path / "c.yaml", todo_ids=("t",)),
    )


def test_the_boundary_of_a_plan_is_its_rootdir_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plans/deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "plans/deep")
    plan = tmp_path / "plans/plan.yaml"
    assert plan_boundary(plan) == tmp_path / "plans"
    (tmp_path / "pytest.ini").write_text("")
    assert plan_boundary(plan) == tmp_path
    assert plan_boundary(Path("/nowhere/plan.yaml")) == Path("/nowhere")


def test_a_broken_ini_file_has_no_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest\n")
    (tmp_path / "tox.ini").write_text("no section\n")
    assert project_root(tmp_path).ini == tmp_path / "pyproject.toml"
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts\n  -q\n")
    assert project_root(tmp_path).settings == {}


def command(root: Path, todo: Todo, *others: Todo) -> str:
    return Conventions(root, {each.id: each for each in (todo, *others)}).command(todo)


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


@pytest.fixture
def impl() -> Todo:
    return Todo(id="buffer-impl", title="B", dependencies=("other", "buffer-tests"))


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_buffer_impl.py",
        "tests/test_buffer-impl.py",
        "src/deep/buffer_impl_test.py",
        "a b/test_buffer-impl.py",
    ],
)
def test_a_test_file_is_found_below_the_root_with_dashes_or_underscores(
    tmp_path: Path, impl: Todo, name: str
) -> None:
    ignored = (f"{folder}/test_buffer_impl.py" for folder in (".hidden", "venv", "x/node_modules"))
    touch(tmp_path, name, *ignored)
    assert command(tmp_path, impl) == shlex.join(["pytest", name])


def test_a_matching_make_target_is_run(tmp_path: Path, impl: Todo) -> None:
    (tmp_path / "Makefile").write_text("VAR := 1\nall: x\ntest-other test-buffer-impl: x\n\tpytest\n")
    touch(tmp_path, "src/test_buffer_impl.py")
    assert command(tmp_path, impl) == "make test-buffer-impl"
    touch(tmp_path, "tests/test_buffer_impl.py")
    assert command(tmp_path, impl) == "pytest tests/test_buffer_impl.py"


@pytest.mark.parametrize(
    ("keys", "file"),
    [
        ({"test_file": "tests/test_it.py"}, "test_it"),
        ({"acceptance_criteria": {"expected_artifacts": ["a.md", "tests/test_it.py"]}}, "test_it"),
        ({"acceptance_criteria": {"tests": [{"cmd": "pytest -q tests/test_it.py::test_a"}]}}, "test_it"),
        ({}, "test_buffer"),
        ({"id": "other", "test_file": "tests/test_it.py"}, "test_buffer_impl"),
    ],
    ids=["test_file", "artifact", "command", "convention", "another stem"],
)
def test_tests_of_a_dependency_with_the_same_stem_take_precedence(
    tmp_path: Path, impl: Todo, keys: dict[str, Any], file: str
) -> None:
    tests = Todo.model_validate({"id": "buffer-tests", "title": "T", **keys})
    touch(tmp_path, "tests/test_buffer_impl.py", *["tests/test_buffer.py"] * (not keys))
    assert command(tmp_path, impl, tests) == f"pytest tests/{file}.py"
