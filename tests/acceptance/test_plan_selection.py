"""Selection of plans and todos; --collect-only lists them and runs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, todo

from pytest_planverify.options import PlanArgument
from pytest_planverify.session.plans import load_plans

PASSING = {"test_it.py": "def test_it(): pass\n"}


def test_a_missing_plan_is_a_usage_error_with_a_remedy(tmp_path: Path):
    run = Example(tmp_path, PASSING).verify()

    assert run.exit_code == 4, str(run)
    assert "there is no plan to verify" in run.output
    assert "planverify init" in run.output
    assert "planverify_plan" in run.output
    assert not (tmp_path / ".planverify").exists()


def test_two_plans_with_the_same_id_are_refused(tmp_path: Path):
    example = Example(tmp_path)
    for name in ("one.yaml", "two.yaml"):
        example.plan(todo("draw", "pytest test_it.py"), path=name)

    with pytest.raises(pytest.UsageError, match="both 'example'"):
        load_plans([PlanArgument(tmp_path / name, name, (), tmp_path) for name in ("one.yaml", "two.yaml")])


def test_a_plan_in_a_folder_of_any_name_keeps_its_own_ini_file(tmp_path: Path):
    Example(tmp_path, {"pytest.ini": "[pytest]\naddopts = --strict-markers\nmarkers = outer\n"})
    inner = Example(
        tmp_path / "mein Ordner 目录 ü",
        {
            "pytest.ini": "[pytest]\nmarkers = inner_only\npython_functions = prüfe_*\n",
            "tests/te st/test_größe.py": "import pytest\n@pytest.mark.inner_only\n"
            "def prüfe_länge(pytestconfig, tmp_path):\n"
            "    assert pytestconfig.inipath.parent.name == 'mein Ordner 目录 ü'\n",
        },
    )
    nodeid = "tests/te st/test_größe.py::prüfe_länge"
    inner.plan(todo("groesse", f"pytest '{nodeid}'"), path="der plan.yaml")

    run = inner.verify("mein Ordner 目录 ü/der plan.yaml", cwd=tmp_path)

    assert run.exit_code == 0, str(run)
    assert run.tests("groesse") == {nodeid: "passed"}


# -- without a run -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """Return a project with a plan whose second todo has a sub-plan."""
    tests = """
        import pathlib, pytest
        @pytest.mark.parametrize("n", [1, 2])
        def test_it(n):
            pathlib.Path("ran").write_text("")
    """
    example = Example(tmp_path_factory.mktemp("collected"), {"test_it.py": tests})
    commands = ("pytest test_it.py", "python -m compileall .")
    metric = {"name": "n", "operator": ">", "value": 1}
    example.plan(todo("paint", "pytest test_it.py -k 1"), path="phases/one.yaml", root="..")
    example.plan(
        todo("draw", *commands, expected_artifacts=["out.txt"], metrics=[metric]),
        todo("phase", after=("draw",), sub_plan="phases/one.yaml"),
    )
    return example


def test_the_tree_shows_todos_criteria_and_node_ids_also_of_sub_plans_and_runs_nothing(example: Example):
    tree = example.verify("--collect-only")

    assert tree.exit_code == 0, str(tree)
    for line in (
        "example  (3 todos, 2 tests)",
        "  draw  Todo draw  (4 criteria, 2 tests)",
        "      test_it.py::test_it[2]",
        "    tests[1]  python -m compileall .",
        "    metrics[0]  n > 1",
        "    paint  Todo paint  (1 criterion, 1 test)",
        "      tests[0]  pytest test_it.py -k 1  (1 test)",
        "        test_it.py::test_it[1]",
    ):
        assert line in tree.output.splitlines(), str(tree)
    assert not (example.root / "ran").exists()
    assert not list(example.root.rglob("*.pyc")), "a command was run"
    assert tree.document is None


def test_quiet_collection_prints_one_selected_node_id_per_line(example: Example):
    quiet = example.verify("--co", "-q", "-k", "not 2")

    assert quiet.exit_code == 0, str(quiet)
    lines = quiet.output.splitlines()
    assert "test_it.py::test_it[1]" in lines, str(quiet)
    assert "test_it.py::test_it[2]" not in quiet.output


def test_collection_errors_are_shown_and_fail_the_command(tmp_path: Path):
    example = Example(tmp_path, {**PASSING, "test_broken.py": "import no_such_module\n"})
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
