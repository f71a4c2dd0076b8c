"""--collect-only shows the tree of todos, criteria and node ids, runs nothing and writes no outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, Verified, todo


def an_example(folder: Path) -> Example:
    example = Example(
        folder,
        {
            "test_it.py": """\
                import pathlib, pytest
                @pytest.mark.parametrize("n", [1, 2])
                def test_it(n):
                    pathlib.Path("ran").write_text("")
            """
        },
    )
    example.plan(
        todo(
            "draw",
            "pytest test_it.py",
            "python -m compileall .",
            expected_artifacts=["out.txt"],
            metrics=[{"name": "n", "operator": ">", "value": 1}],
        ),
        todo("paint", "pytest test_it.py -k 1", after=("draw",)),
    )
    return example


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return an_example(tmp_path_factory.mktemp("collected"))


@pytest.fixture(scope="module")
def tree(example: Example) -> Verified:
    return example.verify("--collect-only")


def test_the_tree_shows_todos_criteria_and_node_ids(tree: Verified):
    assert tree.exit_code == 0, str(tree)
    for text in (
        "draw",
        "paint",
        "pytest test_it.py -k 1",
        "test_it.py::test_it[1]",
        "test_it.py::test_it[2]",
    ):
        assert text in tree.output
    for text in ("python -m compileall .", "out.txt", "n > 1", "2 todos, 2 tests"):
        assert text in tree.output


def test_nothing_is_run_and_no_outcome_is_written(example: Example, tree: Verified):
    assert not (example.root / "ran").exists()
    assert not list(example.root.rglob("*.pyc")), "a command was run"
    assert tree.document is None


def test_quietly_there_is_one_node_id_a_line(example: Example):
    quiet = example.verify("--collect-only", "-q")

    assert quiet.exit_code == 0, str(quiet)
    lines = quiet.output.splitlines()
    assert "draw tests[0] test_it.py::test_it[1]" in lines or "test_it.py::test_it[1]" in lines, str(quiet)


def test_narrowing_narrows_the_tree(example: Example):
    run = example.verify("--co", "-k", "not 2")

    assert run.exit_code == 0, str(run)
    assert "test_it.py::test_it[1]" in run.output
    assert "test_it.py::test_it[2]" not in run.output


def test_what_cannot_be_collected_is_shown_and_fails(tmp_path: Path):
    example = an_example(tmp_path)
    example.write({"test_broken.py": "import no_such_module\n"})
    example.plan(
        todo("draw", "pytest test_it.py::test_that"),
        todo("paint", "pytest test_broken.py"),
        todo("frame", "pytest test_missing.py"),
    )

    run = example.verify("--collect-only")

    assert run.exit_code == 1, str(run)
    assert "test_it.py::test_that names no test" in run.output
    assert "no_such_module" in run.output
    assert "test_missing.py does not exist" in run.output
