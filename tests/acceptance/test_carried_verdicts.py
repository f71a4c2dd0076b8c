"""Todos outside a partial run keep their last verdicts if nothing that these depend on has changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from baseline_samples import commit_all
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
        import pathlib
        def test_rate(): assert int(pathlib.Path("rates.txt").read_text()) > 0
    """,
    "test_child.py": """\
        import subprocess
        def test_child(): assert subprocess.check_output(["cat", "rates.txt"])
    """,
}
FIXED = {"pricing.py": "def tax(price): return price * 1.2\n"}


@pytest.fixture
def fresh(tmp_path: Path) -> Example:
    """Return a project without a run."""
    return project(tmp_path)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Example:
    example = project(tmp_path_factory.mktemp("first"))
    assert example.verify().exit_code == 1
    return example


@pytest.fixture
def example(first: Example, tmp_path: Path) -> Example:
    """Return a project after one run."""
    return first.copied_to(tmp_path / "project")


def project(root: Path) -> Example:
    example = Example(root, FILES)
    example.plan(
        todo("tax", "pytest test_tax.py"),
        todo(
            "rounding",
            "pytest test_rounding.py",
            expected_artifacts=["rounding.py"],
            metrics=[{"name": "rows", "operator": ">=", "value": 10}],
        ),
        todo("rates", "pytest test_rates.py"),
        todo("child", "pytest test_child.py"),
        todo("after", "pytest test_rounding.py::test_rounded", after=("tax",)),
    )
    return example


def taken(run: Verified) -> dict[str, str | None]:
    """Return, by todo, the run that the verdict of its first check is from; ``None`` for this run."""
    return {todo_id: outcome["checks"][0]["taken_from"] for todo_id, outcome in run.outcomes.items()}


def kept(run: Verified) -> set[str]:
    """Return the todos that kept the verdict of an earlier run."""
    return {todo_id for todo_id, run_id in taken(run).items() if run_id}


def notes(run: Verified) -> str:
    assert run.document is not None
    return "\n".join(run.document["run"]["notes"])


# -- the last failures ---------------------------------------------------------------------------------


def test_repeated_last_failed_runs_complete_a_plan(example: Example):
    again = example.verify("--lf")
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


def test_last_failed_keeps_every_verdict_after_a_green_run(fresh: Example):
    fresh.write(FIXED)
    fresh.verify()

    run = fresh.verify("--lf")

    assert run.exit_code == 0
    assert kept(run) == set(run.outcomes)
    assert "only a part of the plan was selected" not in notes(run)


def test_last_failed_without_an_earlier_run_runs_everything(fresh: Example):
    run = fresh.verify("--lf")

    assert kept(run) == set()
    assert run.states["rounding"] == "done"


# -- one todo ------------------------------------------------------------------------------------------


def test_unselected_todos_keep_their_verdicts(example: Example):
    run = example.verify("plan.yaml::rounding")

    assert run.exit_code == 0, "the todos that were asked for decide alone"
    assert kept(run) == {"tax", "rates", "child"}
    assert run.states == {
        "tax": "test_failed",
        "rounding": "done",
        "rates": "done",
        "child": "done",
        "after": "blocked",
    }
    assert run.category("tax") == "TEST_REGRESSION"
    assert "assert 200 == 120" in run.output


def test_metrics_and_artifacts_of_unselected_todos_are_checked_again(example: Example):
    kept_metric = example.verify("plan.yaml::rates")
    (example.root / "rounding.py").unlink()
    gone = example.verify("plan.yaml::rates")

    assert kept_metric.verdicts["rounding"] == {
        "tests[0]": "passed",
        "expected_artifacts[0]": "passed",
        "metrics[0]": "passed",
    }
    assert kept_metric.outcomes["rounding"]["recorded"] == {"rows": [12]}
    assert kept_metric.check("rounding", "metrics[0]")["taken_from"] is None
    assert set(gone.verdicts["rounding"].values()) == {"not_run"}  # type: ignore[union-attr]


def test_an_unselected_dependency_neither_runs_nor_blocks(example: Example):
    run = example.verify("plan.yaml::after")

    assert run.states["after"] == "done"
    assert run.states["tax"] == "test_failed"
    assert run.exit_code == 0


def test_an_unselected_todo_without_an_earlier_verdict_is_not_run(fresh: Example):
    run = fresh.verify("plan.yaml::rounding")

    assert run.states["tax"] == "pending"
    assert run.check("tax")["verdict"] == "not_run"
    assert "no earlier run has verified it" in run.check("tax")["reason"]
    assert "only a part of the plan was selected" in notes(run)


def test_a_carried_verdict_is_carried_again_from_its_original_run(example: Example):
    example.verify("plan.yaml::rates")
    third = example.verify("plan.yaml::rates")

    assert taken(third)["rounding"] == example.runs[0].name


# -- dependencies of a verdict ---------------------------------------------------------------------------


def append(name: str) -> Callable[[Path], object]:
    def change(root: Path) -> None:
        with open(root / name, "a") as file:
            file.write("\n")

    return change


CHILD = "child"
"""The todo whose test starts a process. Files read by that process are unknown, so all files count."""
ALL = ("tax", "rounding", "rates", CHILD)
LOST = {
    "data": (append("rates.txt"), ("rates", CHILD), "rates.txt has changed"),
    "what nobody read": (append("notes.md"), (CHILD,), "notes.md has changed"),
    "a new file": (append("new.txt"), ALL, "new.txt is new"),
    "a file that is gone": (lambda root: (root / "notes.md").unlink(), ALL, "notes.md is gone"),
}
"""Changes, the todos whose verdicts they invalidate, and the reason; `test_basis.py` tries all inputs."""


@pytest.mark.parametrize(("change", "lost", "why"), LOST.values(), ids=LOST)
def test_a_verdict_is_lost_when_an_input_of_it_changes(
    change: Callable[[Path], object], lost: tuple[str, ...], why: str, example: Example
):
    change(example.root)

    loses(example, lost, why)


def test_a_change_of_one_todo_in_the_plan_leaves_the_verdicts_of_the_others(example: Example):
    plan = example.root / "plan.yaml"
    plan.write_text(plan.read_text().replace("test_tax.py", "test_tax.py -x"))

    run = example.verify("plan.yaml::after")

    assert kept(run) == {"rounding", "rates"}, str(run)
    assert "its part of the plan has changed since run" in run.check("tax")["reason"]
    assert "the plan has changed since run" in run.check(CHILD)["reason"]


def test_under_git_a_verdict_is_lost_when_an_input_of_it_changes(fresh: Example):
    commit(fresh.root)
    fresh.verify()
    change, lost, why = LOST["data"]
    change(fresh.root)

    loses(fresh, lost, why)


def loses(example: Example, lost: tuple[str, ...], why: str) -> None:
    run = example.verify("plan.yaml::after")

    assert kept(run) == set(ALL) - set(lost), str(run)
    for todo_id in lost:
        assert run.check(todo_id)["verdict"] == "not_run"
        assert f"{why} since run" in run.check(todo_id)["reason"]


def commit(root: Path) -> None:
    (root / ".gitignore").write_text(".planverify/\n__pycache__/\n")
    commit_all(root)


def test_committing_the_verified_files_keeps_all_verdicts(fresh: Example):
    commit(fresh.root)
    fresh.write(FIXED)
    fresh.verify()
    commit(fresh.root)

    run = fresh.verify("--lf")

    assert kept(run) == set(run.outcomes), str(run)
    assert run.exit_code == 0


def test_changes_in_a_new_commit_invalidate_verdicts(fresh: Example):
    commit(fresh.root)
    fresh.verify()
    append("rounding.py")(fresh.root)
    commit(fresh.root)

    run = fresh.verify("plan.yaml::tax")

    assert kept(run) == {"rates"}, str(run)


@pytest.mark.parametrize(
    ("args", "env", "why"),
    [
        (("-W", "error"), {}, "not the same options"),
        (("--planverify-isolate",), {}, "not the same options"),
        ((), {"PYTHONHASHSEED": "7"}, "not the same environment"),
    ],
    ids=["option", "isolation", "environment"],
)
def test_other_options_or_environment_invalidate_all_verdicts(
    args: tuple[str, ...], env: dict[str, str], why: str, example: Example
):
    run = example.verify("plan.yaml::tax", *args, env=env)

    assert kept(run) == set()
    assert why in run.check("rates")["reason"]


def test_display_options_keep_all_verdicts(example: Example):
    assert kept(example.verify("--lf", "-vv", "--tb", "short")) == {"rounding", "rates", "child"}


def test_a_verdict_is_not_carried_if_its_input_changed_during_the_run(tmp_path: Path):
    example = Example(
        tmp_path,
        {
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
        },
    )
    example.plan(todo("state", "pytest test_state.py"), todo("own", "pytest test_own.py"))
    example.verify()

    assert kept(example.verify("--lf")) == {"own"}


def test_a_new_file_in_a_listed_folder_invalidates_the_verdict(tmp_path: Path):
    example = Example(
        tmp_path,
        {
            "cases/one.txt": "1",
            "test_cases.py": """\
                import glob, pytest
                @pytest.mark.parametrize("case", sorted(glob.glob("cases/*.txt")))
                def test_case(case): assert open(case).read() == "1"
            """,
        },
    )
    example.plan(todo("cases", "pytest test_cases.py"))
    example.verify()
    same = example.verify("--lf")
    example.write({"cases/two.txt": "2"})
    more = example.verify("--lf")

    assert kept(same) == {"cases"}
    assert kept(more) == set()
    assert more.exit_code == 1


# -- excluded tests, and runs that stop early ------------------------------------------------------------


def test_a_partial_green_run_of_a_criterion_keeps_its_pass(example: Example):
    run = example.verify("-m", "not slow")

    assert run.verdicts["rounding"] == {
        "tests[0]": "passed",
        "expected_artifacts[0]": "passed",
        "metrics[0]": "passed",
    }
    assert "rounding" in kept(run)
    assert run.states["tax"] == "test_failed"
    assert run.exit_code == 1


def test_a_partial_red_run_fails_the_criterion(example: Example):
    example.write({"test_rounding.py": FILES["test_rounding.py"].replace("== 1", "== 2")})

    run = example.verify("-m", "not slow")

    assert run.check("rounding")["verdict"] == "failed"
    assert run.check("rounding")["taken_from"] is None


def test_a_criterion_whose_tests_are_all_deselected_keeps_its_verdict(example: Example):
    run = example.verify("-k", "rate")

    assert run.check("tax")["verdict"] == "failed"
    assert "tax" in kept(run)
    assert run.category("tax") == "TEST_REGRESSION"
    assert run.exit_code == 1


def test_after_a_change_a_partial_green_run_passes_no_criterion(example: Example):
    append("rounding.py")(example.root)

    run = example.verify("-m", "not slow")

    assert run.check("rounding")["verdict"] == "not_run"
    assert "rounding.py has changed since run" in run.check("rounding")["reason"]
    assert run.states["rounding"] == "pending"


def test_criteria_not_reached_before_an_early_stop_keep_their_verdicts(example: Example):
    append("rates.txt")(example.root)

    run = example.verify("-x")

    assert run.exit_code == 1
    assert kept(run) == {"rounding"}, str(run)
    assert run.states == {
        "tax": "test_failed",
        "rounding": "done",
        "rates": "pending",
        "child": "pending",
        "after": "blocked",
    }


# -- contradictory, outdated and damaged records ---------------------------------------------------------


def test_a_verdict_with_contradictory_records_is_not_carried(example: Example):
    journal = example.runs[-1] / "journal.jsonl"
    lines = journal.read_text().splitlines()
    (red,) = (line for line in lines if '"check_judged"' in line and '"todo_id": "tax"' in line)
    journal.write_text(
        "\n".join([*lines, red.replace('"verdict": "failed"', '"verdict": "passed"')]) + "\n"
    )

    run = example.verify("plan.yaml::rates")

    assert run.check("tax")["verdict"] == "not_run"


def test_only_the_newest_verdict_is_carried(example: Example):
    broken = {"rounding.py": "def rounded(price): return price\n"}
    example.write(broken)
    example.verify()
    example.write({"rounding.py": FILES["rounding.py"]})

    run = example.verify("plan.yaml::rates")

    assert run.check("rounding")["verdict"] == "not_run"


def test_no_verdict_is_carried_without_recorded_file_states(example: Example):
    (example.runs[-1] / "tree.json").write_text("[")

    run = example.verify("plan.yaml::rates")

    assert kept(run) == set()
    assert "the changed files are unknown" in run.check("rounding")["reason"]


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
