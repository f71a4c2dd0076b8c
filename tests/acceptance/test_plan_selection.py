"""Selection of plans and todos; --collect-only lists them and runs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, Verified, todo

PASSING = {"test_it.py": "def test_it(): pass\n"}
TODOS = (todo("draw", "pytest test_it.py"), todo("paint", "pytest test_it.py", after=("draw",)))


def an_example(folder: Path, *plans: str) -> Example:
    example = Example(folder, PASSING)
    for number, plan in enumerate(plans):
        example.plan(*TODOS, path=plan, todo_list_id=f"plan_{number}")
    return example


def test_a_plan_with_a_default_name_is_found_without_an_argument(tmp_path: Path):
    run = an_example(tmp_path, "plan.yaml", "planverify.yaml", "other.yaml").verify()

    assert run.exit_code == 0, str(run)
    assert run.document is not None
    assert [plan["path"] for plan in run.document["plans"]] == ["planverify.yaml"]


def test_a_plan_of_the_ini_file_with_its_root_above_itself_is_found_from_a_subfolder(tmp_path: Path):
    example = an_example(tmp_path, "plan.yaml")
    ini = "[pytest]\nplanverify_plan = plans/mine.yaml\n"
    example.write({"pytest.ini": ini, "src/deep/module.py": ""})
    example.plan(todo("draw", "pytest test_it.py"), path="plans/mine.yaml", root="..")

    run = example.verify(cwd=tmp_path / "src/deep")

    assert run.exit_code == 0, str(run)
    assert run.document is not None
    assert [plan["path"] for plan in run.document["plans"]] == ["../../plans/mine.yaml"]
    assert run.tests("draw") == {"test_it.py::test_it": "passed"}


def test_a_missing_plan_is_a_usage_error_with_a_remedy(tmp_path: Path):
    run = Example(tmp_path, PASSING).verify()

    assert run.exit_code == 4, str(run)
    assert "there is no plan to verify" in run.output
    assert "planverify init" in run.output
    assert "planverify_plan" in run.output
    assert not (tmp_path / ".planverify").exists()


def test_only_the_selected_todos_of_a_plan_named_twice_run_without_their_dependencies(tmp_path: Path):
    example = Example(tmp_path, {**PASSING, "test_red.py": "def test_red(): assert False\n"})
    example.plan(
        todo("draw", "pytest test_red.py"),
        todo("paint", "pytest test_it.py", after=("draw",)),
        todo("frame", "pytest test_it.py"),
    )

    run = example.verify("plan.yaml::paint", "./plan.yaml::frame")

    assert run.exit_code == 0, str(run)
    assert "verifying 2 criteria of 1 plan" in run.output
    assert run.states == {"draw": "pending", "paint": "done", "frame": "done"}
    assert run.document is not None
    assert len(run.document["plans"]) == 1


def test_an_unknown_todo_is_a_usage_error_that_suggests_the_nearest(tmp_path: Path):
    run = an_example(tmp_path, "plan.yaml").verify("plan.yaml::pait")

    assert run.exit_code == 4, str(run)
    assert "no todo 'pait'" in run.output
    assert "plan.yaml::paint" in run.output
    assert run.document is None


def test_two_plans_with_the_same_id_are_refused(tmp_path: Path):
    example = an_example(tmp_path, "one.yaml", "two.yaml")
    example.plan(*TODOS, path="two.yaml", todo_list_id="plan_0")

    run = example.verify("one.yaml", "two.yaml", "--planverify-outcomes=all.json")

    assert run.exit_code == 4, str(run)
    assert "both 'plan_0'" in run.output
    assert not (tmp_path / "all.json").exists()


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


def test_an_id_that_is_not_ascii_is_a_usage_error_that_shows_it(tmp_path: Path):
    example = Example(tmp_path, PASSING)
    example.plan(todo("größe", "pytest test_it.py"))

    run = example.verify()

    assert run.exit_code == 4, str(run)
    assert "größe" in run.output


def only_an_example(folder: Path) -> Example:
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
    return only_an_example(tmp_path_factory.mktemp("collected"))


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


def test_collect_only_runs_nothing_and_writes_no_outcomes(example: Example, tree: Verified):
    assert not (example.root / "ran").exists()
    assert not list(example.root.rglob("*.pyc")), "a command was run"
    assert tree.document is None


def test_quiet_collection_prints_one_selected_node_id_per_line(example: Example):
    quiet = example.verify("--co", "-q", "-k", "not 2")

    assert quiet.exit_code == 0, str(quiet)
    lines = quiet.output.splitlines()
    assert "draw tests[0] test_it.py::test_it[1]" in lines or "test_it.py::test_it[1]" in lines, str(quiet)
    assert "test_it.py::test_it[2]" not in quiet.output


def test_collection_errors_are_shown_and_fail_the_command(tmp_path: Path):
    example = only_an_example(tmp_path)
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
