"""Where the tests of a todo are, when it does not say."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from planner.model.plan import AcceptanceCriteria, ArtifactSpec, CommandSpec, Todo
from planner.planfile.checks import Conventions

if TYPE_CHECKING:
    from pathlib import Path


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
def test_a_test_file_is_found_anywhere_under_the_root_with_dashes_or_underscores(
    tmp_path: Path, impl: Todo, name: str
) -> None:
    ignored = (f"{folder}/test_buffer_impl.py" for folder in (".hidden", "venv", "x/node_modules"))
    touch(tmp_path, name, *ignored)

    assert command(tmp_path, impl) == shlex.join(["pytest", name])


def test_a_target_of_the_makefile_is_run(tmp_path: Path, impl: Todo) -> None:
    (tmp_path / "Makefile").write_text("VAR := 1\nall: x\ntest-other test-buffer-impl: x\n\tpytest\n")
    touch(tmp_path, "src/test_buffer_impl.py")
    assert command(tmp_path, impl) == "make test-buffer-impl"
    touch(tmp_path, "tests/test_buffer_impl.py")
    assert command(tmp_path, impl) == "pytest tests/test_buffer_impl.py"


@pytest.mark.parametrize(
    "tests",
    [
        Todo(id="buffer-tests", title="T", test_file="tests/test_it.py"),
        Todo(
            id="buffer-tests",
            title="T",
            acceptance_criteria=AcceptanceCriteria(
                expected_artifacts=(ArtifactSpec(path="README.md"), ArtifactSpec(path="tests/test_it.py"))
            ),
        ),
        Todo(
            id="buffer-tests",
            title="T",
            acceptance_criteria=AcceptanceCriteria(
                tests=(CommandSpec(cmd="pytest -q tests/test_it.py::test_a"),)
            ),
        ),
    ],
)
def test_the_tests_of_a_dependency_of_the_same_stem_come_first(
    tmp_path: Path, impl: Todo, tests: Todo
) -> None:
    touch(tmp_path, "tests/test_buffer_impl.py")
    assert command(tmp_path, impl, tests) == "pytest tests/test_it.py"


def test_a_dependency_that_names_no_file_has_it_by_its_stem(tmp_path: Path, impl: Todo) -> None:
    tests = Todo(id="buffer-tests", title="T")
    touch(tmp_path, "tests/test_buffer.py")
    assert command(tmp_path, impl, tests) == "pytest tests/test_buffer.py"
    (tmp_path / "tests" / "test_buffer.py").rename(tmp_path / "test_buffer.py")
    assert command(tmp_path, impl, tests) == "pytest test_buffer.py"


def test_a_dependency_of_another_stem_lends_no_tests(tmp_path: Path) -> None:
    first = Todo(id="t_1", title="A", test_file="tests/test_first.py")
    assert (
        command(tmp_path, Todo(id="t_2", title="B", dependencies=("t_1",)), first)
        == "pytest tests/test_t_2.py"
    )


def test_the_search_is_bounded(tmp_path: Path, impl: Todo, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, *(f"a{at}/x.py" for at in range(20)), "z/deep/test_buffer_impl.py")
    monkeypatch.setattr("planner.planfile.checks._MAX_FILES", 10)
    assert command(tmp_path, impl) == "pytest tests/test_buffer_impl.py"
