"""Tests excluded by -k, -m, --deselect, -x or --lf do not run, and pass only by an earlier verdict."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, Verified, todo

FILES = {
    "pytest.ini": "[pytest]\nmarkers = slow\n",
    "test_one.py": """\
        import pytest
        def test_fast(): pass
        @pytest.mark.slow
        def test_slow(): pass
    """,
    "test_two.py": """\
        def test_other(): pass
    """,
}


def an_example(folder: Path) -> Example:
    example = Example(folder, FILES)
    example.plan(
        todo("both", "pytest test_one.py"),
        todo("fast", "pytest test_one.py::test_fast"),
        todo("other", "pytest test_two.py", expected_artifacts=["test_two.py"]),
    )
    return example


@pytest.mark.parametrize(
    "options",
    [
        ("-kfast",),
        ("-m", "not slow", "-k", "not other"),
        ("--deselect=test_one.py::test_slow", "--deselect=test_two.py"),
    ],
    ids=" ".join,
)
def test_a_deselected_test_is_not_run(options: tuple[str, ...], tmp_path: Path):
    run = an_example(tmp_path).verify(*options)

    assert run.verdicts == {
        "both": "not_run",
        "fast": "passed",
        "other": {"tests[0]": "not_run", "expected_artifacts[0]": "not_run"},
    }, str(run)
    assert run.states["fast"] == "done"
    assert "done" not in (run.states["both"], run.states["other"])
    assert "deselected" in run.check("both")["reason"]
    assert run.exit_code == 0, str(run)


@pytest.mark.parametrize(
    "options",
    [("--ignore-glob", "*_two.py"), ("--ignore", "{folder}/test_two.py")],
)
def test_a_criterion_with_an_ignored_test_file_does_not_pass(options: tuple[str, ...], tmp_path: Path):
    example = Example(tmp_path, {**FILES, "test_two.py": "def test_red(): assert 0", "docs/a.md": ""})
    example.plan(todo("all", "pytest ."), todo("one", "pytest test_one.py"))

    run = example.verify(*(each.format(folder=tmp_path) for each in options), "--ignore=docs")

    assert run.verdicts == {"all": "not_run", "one": "passed"}, str(run)
    assert "deselected" in run.check("all")["reason"]


def test_an_option_that_changes_the_selection_of_criteria_is_a_usage_error(tmp_path: Path):
    run = an_example(tmp_path).verify("-o", "python_files=test_one.py")

    assert run.exit_code == 4, str(run)
    assert "it changes which tests the criteria select" in run.output


def test_a_selected_failing_test_still_fails(tmp_path: Path):
    example = an_example(tmp_path)
    example.write({"test_two.py": "def test_other(): assert False\n"})

    run = example.verify("-k", "other")

    assert run.exit_code == 1, str(run)
    assert run.states["other"] == "test_failed"
    assert run.verdicts["both"] == "not_run"


def test_deselecting_every_test_is_exit_status_5(tmp_path: Path):
    run = an_example(tmp_path).verify("-k", "no_such_test")

    assert run.exit_code == 5, str(run)
    assert set(run.states.values()) == {"pending"}


def test_an_invalid_selection_expression_is_a_usage_error(tmp_path: Path):
    run = an_example(tmp_path).verify("-k", "fast and and")

    assert run.exit_code == 4, str(run)
    assert "'fast and and' is not an expression" in run.output
    assert run.document is None


def test_exitfirst_runs_everything_if_nothing_fails(tmp_path: Path):
    run = an_example(tmp_path).verify("-x")

    assert set(run.states.values()) == {"done"}, str(run)
    assert run.exit_code == 0
    assert "only a part of the plan was selected" not in run.output


# -- stopping early ------------------------------------------------------------------------------------

REDS = {
    "test_reds.py": """\
        def test_1_green(): pass
        def test_2_red(): assert False
        def test_3_green(): pass
        def test_4_red(): assert False
        def test_5_green(): pass
    """
}


def an_example_with_reds(folder: Path) -> Example:
    example = Example(folder, REDS)
    example.plan(*(todo(f"t{n}", f"pytest test_reds.py::test_{n}_{word}") for n, word in NUMBERED))
    return example


NUMBERED = ((1, "green"), (2, "red"), (3, "green"), (4, "red"), (5, "green"))


@pytest.mark.parametrize(
    ("options", "reached"),
    [(("-x",), 2), (("--maxfail=2",), 4)],
    ids=["-x", "--maxfail=2"],
)
def test_the_rest_is_not_run_after_the_maximum_of_failures(
    options: tuple[str, ...], reached: int, tmp_path: Path
):
    run = an_example_with_reds(tmp_path).verify(*options)

    colours = ["passed", "failed", "passed", "failed", "passed"]
    expected = [colour if number < reached else "not_run" for number, colour in enumerate(colours)]
    assert list(run.verdicts.values()) == expected, str(run)
    assert run.exit_code == 1, str(run)


# -- the last failures ---------------------------------------------------------------------------------


def test_last_failed_runs_only_the_failures(tmp_path: Path):
    example = an_example_with_reds(tmp_path)
    example.verify()

    run = example.verify("--lf")

    assert list(run.verdicts.values()) == ["passed", "failed", "passed", "failed", "passed"], str(run)
    ran = [name for name in run.outcomes if run.check(name)["taken_from"] is None]
    assert ran == ["t2", "t4"]
    assert run.exit_code == 1, str(run)


def test_last_failed_without_failures_runs_everything(tmp_path: Path):
    example = an_example(tmp_path)

    never_run = example.verify("--lf")
    all_green = example.verify("--lf")

    assert never_run.states == all_green.states == {"both": "done", "fast": "done", "other": "done"}, str(
        never_run
    )
    assert never_run.exit_code == all_green.exit_code == 0


@pytest.fixture(scope="module")
def dependent(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("dependent"), FILES)
    example.plan(
        todo("first", "pytest test_one.py"),
        todo("second", "pytest test_two.py", after=("first",)),
    )
    return example.verify("-k", "other")


def test_a_deselected_todo_blocks_no_other(dependent: Verified):
    assert dependent.verdicts == {"first": "not_run", "second": "passed"}, str(dependent)


def test_the_outcomes_note_a_partial_selection(dependent: Verified):
    assert dependent.document is not None
    assert any(
        "only a part of the plan was selected" in note for note in dependent.document["run"]["notes"]
    )
    assert "only a part of the plan was selected" in dependent.output
