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


def test_a_plan_with_the_last_default_name_is_found_without_an_argument(tmp_path: Path):
    run = an_example(tmp_path, "todo.yaml", "other.yaml").verify()

    assert run.exit_code == 0, str(run)
    assert run.document is not None
    assert [plan["path"] for plan in run.document["plans"]] == ["todo.yaml"]


def test_the_ini_file_takes_precedence_over_default_plan_names(tmp_path: Path):
    example = an_example(tmp_path, "plan.yaml", "planverify.yaml", "plans/mine.yaml")
    by_name = example.verify()
    example.write({"pytest.ini": "[pytest]\nplanverify_plan = plans/mine.yaml\n"})
    example.write({"plans/test_it.py": PASSING["test_it.py"]})

    by_ini = example.verify(outcomes=tmp_path / "plans/.planverify/outcomes.json")

    assert by_name.document is not None
    assert by_name.document["plans"][0]["path"] == "planverify.yaml", str(by_name)
    assert by_ini.exit_code == 0, str(by_ini)
    assert by_ini.document is not None
    assert by_ini.document["plans"][0]["path"] == "plans/mine.yaml"


def test_the_plan_of_the_root_is_found_from_a_subfolder(tmp_path: Path):
    example = an_example(tmp_path, "plan.yaml")
    example.write({"pytest.ini": "[pytest]\n", "src/deep/module.py": ""})

    run = example.verify(cwd=tmp_path / "src/deep")

    assert run.exit_code == 0, str(run)
    assert run.document is not None
    assert run.document["plans"][0]["path"] == "../../plan.yaml"
    assert run.tests("draw") == {"test_it.py::test_it": "passed"}


def test_a_missing_plan_is_a_usage_error_with_a_remedy(tmp_path: Path):
    run = Example(tmp_path, PASSING).verify()

    assert run.exit_code == 4, str(run)
    assert "there is no plan to verify" in run.output
    assert "planverify_plan" in run.output
    assert not (tmp_path / ".planverify").exists()


def test_a_selected_todo_runs_without_its_dependencies(tmp_path: Path):
    example = Example(tmp_path, {**PASSING, "test_red.py": "def test_red(): assert False\n"})
    example.plan(
        todo("draw", "pytest test_red.py"),
        todo("paint", "pytest test_it.py", after=("draw",)),
    )

    run = example.verify("plan.yaml::paint")

    assert run.exit_code == 0, str(run)
    assert run.states == {"draw": "pending", "paint": "done"}


def test_several_todos_of_a_plan_can_be_selected(tmp_path: Path):
    example = Example(tmp_path, PASSING)
    example.plan(*(todo(name, "pytest test_it.py") for name in ("a", "b", "c")))

    run = example.verify("plan.yaml::a", "plan.yaml::c")

    assert run.exit_code == 0, str(run)
    assert run.states == {"a": "done", "b": "pending", "c": "done"}


def test_an_unknown_todo_is_a_usage_error_that_suggests_the_nearest(tmp_path: Path):
    run = an_example(tmp_path, "plan.yaml").verify("plan.yaml::pait")

    assert run.exit_code == 4, str(run)
    assert "no todo 'pait'" in run.output
    assert "plan.yaml::paint" in run.output
    assert run.document is None


def test_several_plans_are_verified_into_one_outcome_file(tmp_path: Path):
    example = an_example(tmp_path, "one.yaml", "two.yaml")
    example.write({"test_red.py": "def test_red(): assert False\n"})
    example.plan(todo("draw", "pytest test_red.py"), path="two.yaml", todo_list_id="plan_1")

    both = tmp_path / "all.json"
    run = example.verify("one.yaml", "two.yaml", "--planverify-outcomes", "all.json", outcomes=both)

    assert run.exit_code == 1, str(run)
    assert run.document is not None
    assert [plan["todo_list_id"] for plan in run.document["plans"]] == ["plan_0", "plan_1"]
    said = {(each["plan"], each["todo_id"]): each["state"] for each in run.document["outcomes"]}
    assert said == {
        ("plan_0", "draw"): "done",
        ("plan_0", "paint"): "done",
        ("plan_1", "draw"): "test_failed",
    }
    assert not example.outcome_file.exists()


def test_two_plans_with_the_same_id_are_refused(tmp_path: Path):
    example = an_example(tmp_path, "one.yaml", "two.yaml")
    example.plan(*TODOS, path="two.yaml", todo_list_id="plan_0")

    run = example.verify("one.yaml", "two.yaml", "--planverify-outcomes=all.json")

    assert run.exit_code == 4, str(run)
    assert "both 'plan_0'" in run.output
    assert not (tmp_path / "all.json").exists()


def test_a_plan_named_twice_is_verified_once(tmp_path: Path):
    run = an_example(tmp_path, "plan.yaml").verify("plan.yaml", "./plan.yaml")

    assert run.exit_code == 0, str(run)
    assert len(run.document["plans"]) == 1  # type: ignore[index]


def test_a_path_with_spaces_and_other_alphabets_works(tmp_path: Path):
    folder = tmp_path / "mein Ordner 目录 ü"
    example = Example(folder, {"tests/te st/test_größe.py": "def test_länge(tmp_path): pass\n"})
    example.plan(todo("größe", "pytest 'tests/te st/test_größe.py::test_länge'"), path="der plan.yaml")

    run = example.verify("der plan.yaml")

    assert run.exit_code == 4, str(run)  # ids are ASCII; the message is readable
    assert "größe" in run.output

    example.plan(todo("groesse", "pytest 'tests/te st/test_größe.py::test_länge'"), path="der plan.yaml")
    from_outside = example.verify("mein Ordner 目录 ü/der plan.yaml", cwd=tmp_path)

    assert from_outside.exit_code == 0, str(from_outside)
    assert from_outside.tests("groesse") == {"tests/te st/test_größe.py::test_länge": "passed"}


def test_a_plan_may_have_its_root_above_itself(tmp_path: Path):
    example = Example(tmp_path, {"pytest.ini": "[pytest]\n", "tests/test_it.py": "def test_it(): pass\n"})
    example.plan(todo("draw", "pytest tests/test_it.py"), path="plans/plan.yaml", root="..")

    run = example.verify("plans/plan.yaml")

    assert run.exit_code == 0, str(run)
    assert run.tests("draw") == {"tests/test_it.py::test_it": "passed"}


def test_a_plan_in_a_subfolder_keeps_its_own_ini_file(tmp_path: Path):
    outer = Example(tmp_path, {"pytest.ini": "[pytest]\naddopts = --strict-markers\nmarkers = outer\n"})
    inner = Example(
        tmp_path / "inner",
        {
            "pytest.ini": "[pytest]\nmarkers = inner_only\npython_functions = check_*\n",
            "test_it.py": "import pytest\n@pytest.mark.inner_only\ndef check_it(pytestconfig):\n"
            "    assert pytestconfig.inipath.parent.name == 'inner'\n",
        },
    )
    inner.plan(todo("draw", "pytest test_it.py"))

    run = inner.verify("inner/plan.yaml", cwd=outer.root)

    assert run.exit_code == 0, str(run)
    assert run.tests("draw") == {"test_it.py::check_it": "passed"}


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


def test_quiet_collection_prints_one_node_id_per_line(example: Example):
    quiet = example.verify("--collect-only", "-q")

    assert quiet.exit_code == 0, str(quiet)
    lines = quiet.output.splitlines()
    assert "draw tests[0] test_it.py::test_it[1]" in lines or "test_it.py::test_it[1]" in lines, str(quiet)


def test_a_selection_narrows_the_collected_tree(example: Example):
    run = example.verify("--co", "-k", "not 2")

    assert run.exit_code == 0, str(run)
    assert "test_it.py::test_it[1]" in run.output
    assert "test_it.py::test_it[2]" not in run.output


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
