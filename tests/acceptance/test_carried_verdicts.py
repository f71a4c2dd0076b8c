"""Todos outside a partial run keep their last verdicts if nothing that these depend on has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from example_project import Example, Verified, todo

FILES = {
    "pytest.ini": "[pytest]\nmarkers = slow\naddopts = --planverify-confirm=0\n",
    "pricing.py": "def tax(price): return price * 2\n",
    "rounding.py": "def rounded(price): return round(price, 2)\n",
    "rates.txt": "20\n",
    "notes.md": "Rates are in percent.\n",
    "test_tax.py": """\
        import pricing
        def test_tax(): assert pricing.tax(100) == 120
    """,
    "test_rounding.py": """\
        import pytest, rounding
        def test_rounded(record_property):
            record_property("rows", 12)
            assert rounding.rounded(1.001) == 1
        @pytest.mark.slow
        def test_slow(): pass
    """,
    "test_rates.py": """\
        import pathlib, pytest
        def test_rate(): assert int(pathlib.Path("rates.txt").read_text()) > 0
        @pytest.mark.slow
        def test_slow(): pass
    """,
    "test_child.py": """\
        import subprocess
        def test_child(): assert subprocess.check_output(["cat", "rates.txt"])
    """,
}
FIXED = {"pricing.py": "def tax(price): return price * 1.2\n"}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Example:
    rows = {"name": "rows", "operator": ">=", "value": 10}
    example = Example(tmp_path_factory.mktemp("first"), FILES)
    example.plan(
        todo("tax", "pytest test_tax.py"),
        todo("rounding", "pytest test_rounding.py", expected_artifacts=["rounding.py"], metrics=[rows]),
        todo("rates", "pytest test_rates.py"),
        todo("child", "pytest test_child.py"),
        todo("after", "pytest test_rounding.py::test_rounded", after=("tax",)),
    )
    assert example.verify().exit_code == 1
    return example


@pytest.fixture
def example(first: Example, tmp_path: Path) -> Example:
    """Return a project after one run."""
    return first.copied_to(tmp_path / "project")


def taken(run: Verified) -> dict[str, str | None]:
    """Return, by todo, the run that the verdict of its first check is from; ``None`` for this run."""
    return {todo_id: outcome["checks"][0]["taken_from"] for todo_id, outcome in run.outcomes.items()}


def kept(run: Verified) -> set[str]:
    """Return the todos that kept the verdict of an earlier run."""
    return {todo_id for todo_id, run_id in taken(run).items() if run_id}


# -- the last failures ---------------------------------------------------------------------------------


def test_repeated_last_failed_runs_complete_a_plan(example: Example):
    again = example.verify("--lf", "-vv", "--tb", "short")  # options of the display lose no verdict
    example.write(FIXED)
    fixed = example.verify("--lf")

    assert again.exit_code == 1
    assert kept(again) == {"rounding", "rates", "child"}
    assert again.states["tax"] == "test_failed"
    assert again.states["after"] == "blocked"
    assert fixed.exit_code == 0, str(fixed)
    assert set(fixed.states.values()) == {"done"}
    # Files read by a process that a test started are unknown.
    assert kept(fixed) == {"rounding", "rates"}
    assert taken(fixed)["rounding"] == example.runs[0].name


# -- one todo ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def selected(first: Example, tmp_path_factory: pytest.TempPathFactory) -> tuple[Example, Verified]:
    """Return the project after a second run, of one todo, and that run."""
    example = first.copied_to(tmp_path_factory.mktemp("selected") / "project")
    return example, example.verify("plan.yaml::rates")


def test_unselected_todos_keep_their_verdicts_and_their_other_criteria_are_checked_again(
    selected: tuple[Example, Verified],
):
    _, run = selected

    assert run.exit_code == 0, "the todos that were asked for decide alone"
    assert kept(run) == {"tax", "rounding", "child"}
    done = dict.fromkeys(("rounding", "rates", "child"), "done")
    assert run.states == {"tax": "test_failed", "after": "blocked", **done}
    assert run.category("tax") == "TEST_REGRESSION"
    assert "assert 200 == 120" not in run.output, "the run before has shown why"
    assert run.outcomes["rounding"]["recorded"] == {"rows": [12]}
    assert run.check("rounding", "metrics[0]")["taken_from"] is None


def test_a_carried_verdict_is_carried_again_from_its_original_run_until_a_file_is_gone(
    selected: tuple[Example, Verified], tmp_path: Path
):
    example = selected[0].copied_to(tmp_path / "project")

    third = example.verify("plan.yaml::rates")
    (example.root / "rounding.py").unlink()
    gone = example.verify("plan.yaml::rates")

    assert taken(third)["rounding"] == example.runs[0].name
    assert kept(gone) == set()
    assert "rounding.py is gone since run" in gone.check("tax")["reason"]
    assert set(gone.verdicts["rounding"].values()) == {"not_run"}  # type: ignore[union-attr]


# -- dependencies of a verdict ---------------------------------------------------------------------------


def append(root: Path, name: str) -> None:
    with open(root / name, "a") as file:
        file.write("\n")


def test_a_file_that_no_test_reads_counts_for_a_test_that_starts_a_process(example: Example):
    """Files read by that process are unknown. The failed dependency of the selected todo does not run."""
    append(example.root, "notes.md")

    run = example.verify("plan.yaml::after")

    assert kept(run) == {"tax", "rounding", "rates"}, str(run)
    assert run.check("child")["verdict"] == "not_run"
    assert "notes.md has changed since run" in run.check("child")["reason"]
    assert (run.states["after"], run.states["tax"], run.exit_code) == ("done", "test_failed", 0)


def test_a_change_of_one_todo_in_the_plan_leaves_the_verdicts_of_the_others(example: Example):
    plan = example.root / "plan.yaml"
    plan.write_text(plan.read_text().replace("test_tax.py", "test_tax.py -x"))

    run = example.verify("plan.yaml::after")

    assert kept(run) == {"rounding", "rates"}, str(run)
    assert "its part of the plan has changed since run" in run.check("tax")["reason"]
    assert "the plan has changed since run" in run.check("child")["reason"]


def test_a_verdict_is_lost_by_a_change_of_an_older_file_during_the_run(tmp_path: Path):
    files = {
        "state.txt": "0",
        "test_state.py": """\
            import pathlib
            def test_counts():
                path = pathlib.Path("state.txt")
                path.write_text(str(int(path.read_text()) + 1))
        """,
        "test_own.py": """\
            import pathlib
            def test_writes():
                pathlib.Path("own.txt").write_text("1")
                assert pathlib.Path("own.txt").read_text() == "1"
        """,
    }
    example = Example(tmp_path, files)
    example.plan(todo("state", "pytest test_state.py"), todo("own", "pytest test_own.py"))
    example.verify()

    assert kept(example.verify("--lf")) == {"own"}


# -- excluded tests, and runs that stop early ------------------------------------------------------------


def test_a_partial_green_run_keeps_a_pass_and_a_criterion_without_selected_tests_its_verdict(
    example: Example,
):
    run = example.verify("-k", "rounded")

    assert set(run.verdicts["rounding"].values()) == {"passed"}  # type: ignore[union-attr]
    assert {"rounding", "tax"} <= kept(run)
    assert run.check("tax")["verdict"] == "failed"
    assert run.states["tax"] == "test_failed"
    assert run.category("tax") == "TEST_REGRESSION"
    assert run.exit_code == 1


def test_after_changes_a_partial_red_run_fails_a_criterion_and_a_green_one_passes_none(example: Example):
    example.write({"test_rounding.py": FILES["test_rounding.py"].replace("== 1", "== 2")})
    append(example.root, "rates.txt")

    run = example.verify("-m", "not slow")

    assert run.check("rounding")["verdict"] == "failed"
    assert run.check("rounding")["taken_from"] is None
    assert run.check("rates")["verdict"] == "not_run"
    assert "rates.txt has changed since run" in run.check("rates")["reason"]
    assert run.states["rates"] == "pending"


def test_criteria_not_reached_before_an_early_stop_keep_their_verdicts(example: Example):
    append(example.root, "rates.txt")

    run = example.verify("-x")

    assert run.exit_code == 1
    assert kept(run) == {"rounding"}, str(run)
    pending = dict.fromkeys(("rates", "child"), "pending")
    assert run.states == {"tax": "test_failed", "rounding": "done", "after": "blocked", **pending}


# -- several plans ---------------------------------------------------------------------------------------


def test_verdicts_of_sub_plans_and_other_plans_are_carried(tmp_path: Path):
    example = Example(tmp_path, {"test_a.py": "def test_a(): pass\n", "test_b.py": "def test_b(): pass\n"})
    example.plan(todo("x", "pytest test_b.py"), path="phase.yaml", todo_list_id="phase")
    example.plan(todo("phase", sub_plan="phase.yaml"), todo("a", "pytest test_a.py"))
    example.plan(todo("b", "pytest test_b.py"), path="other.yaml", todo_list_id="other")
    example.verify("plan.yaml", "other.yaml")

    run = example.verify("plan.yaml::a", "other.yaml")
    sub = example.verify("plan.yaml::phase/x")

    assert run.exit_code == sub.exit_code == 0, str(run)
    assert run.check("phase/x")["taken_from"]
    assert run.check("b")["taken_from"] is None
    assert run.states["phase"] == "done"
    assert sub.check("a")["taken_from"]
    assert json.loads(example.outcome_file.read_text())["run"]["exit_status"] == 0
