"""Tests excluded by -k, -m, --deselect, -x or --lf do not run, and pass only by an earlier verdict."""

from __future__ import annotations

from pathlib import Path

from example_project import Example, todo

FILES = {
    "pytest.ini": "[pytest]\nmarkers = slow\n",
    "test_one.py": """\
        import pytest
        def test_fast(): pass
        @pytest.mark.slow
        def test_slow(): pass
    """,
    "test_two.py": "def test_other(): pass\n",
    "test_three.py": """\
        def test_first(): pass
        def test_second(): pass
    """,
    "test_four.py": "def test_it(): pass\n",
}


def an_example(folder: Path) -> Example:
    example = Example(folder, FILES)
    example.plan(
        todo("both", "pytest test_one.py"),
        todo("fast", "pytest test_one.py::test_fast"),
        todo("other", "pytest test_two.py", expected_artifacts=["test_two.py"]),
        todo("three", "pytest test_three.py"),
        todo("four", "pytest test_four.py"),
        todo("after", "pytest test_one.py::test_fast", after=("other",)),
    )
    return example


def test_a_deselected_test_is_not_run_and_blocks_no_other_todo(tmp_path: Path):
    run = an_example(tmp_path).verify(
        *("-m", "not slow", "-k", "not other"),
        *("--deselect=test_three.py::test_first", "--deselect=test_four.py"),
    )

    assert run.verdicts == {
        "both": "not_run",
        "fast": "passed",
        "other": {"tests[0]": "not_run", "expected_artifacts[0]": "not_run"},
        "three": "not_run",
        "four": "not_run",
        "after": "passed",
    }, str(run)
    assert {name for name, state in run.states.items() if state == "done"} == {"fast", "after"}
    assert "deselected" in run.check("both")["reason"]
    assert run.exit_code == 0
    assert run.document is not None
    assert any("only a part of the plan was selected" in note for note in run.document["run"]["notes"])
    assert "only a part of the plan was selected" in run.output


def test_a_criterion_with_an_ignored_test_file_does_not_pass(tmp_path: Path):
    green, red = "def test_green(): pass\n", "def test_red(): assert 0\n"
    files = {f"{folder}/test_one_{folder}.py": green for folder in ("a", "b")}
    files |= {"a/test_two.py": red, "b/test_three.py": red, "docs/a.md": ""}
    example = Example(tmp_path, files)
    example.plan(todo("a", "pytest a"), todo("b", "pytest b"), todo("one", "pytest a/test_one_a.py"))

    run = example.verify(
        "--ignore-glob", "*_two.py", f"--ignore={tmp_path}/b/test_three.py", "--ignore=docs"
    )

    assert run.verdicts == {"a": "not_run", "b": "not_run", "one": "passed"}, str(run)
    assert "deselected" in run.check("a")["reason"]
    assert "deselected" in run.check("b")["reason"]


def test_an_option_that_changes_the_selection_of_criteria_is_a_usage_error(tmp_path: Path):
    run = an_example(tmp_path).verify("-o", "python_files=test_one.py")

    assert run.exit_code == 4, str(run)
    assert "it changes which tests the criteria select" in run.output


def test_deselecting_every_test_is_exit_status_5(tmp_path: Path):
    run = an_example(tmp_path).verify("-k", "no_such_test")

    assert run.exit_code == 5, str(run)
    assert set(run.states.values()) == {"pending"}


def test_exitfirst_and_last_failed_run_everything_if_nothing_fails_or_ever_failed(tmp_path: Path):
    run = an_example(tmp_path).verify("-x", "--lf")

    assert set(run.states.values()) == {"done"}, str(run)
    assert all(check["taken_from"] is None for each in run.outcomes.values() for check in each["checks"])
    assert run.exit_code == 0
    assert "only a part of the plan was selected" not in run.output


NUMBERED = ((1, "green"), (2, "red"), (3, "green"), (4, "red"), (5, "green"))


def test_the_rest_is_not_run_after_the_maximum_of_failures(tmp_path: Path):
    text = "".join(f"def test_{n}_{word}(): assert {word == 'green'}\n" for n, word in NUMBERED)
    example = Example(tmp_path, {"test_reds.py": text})
    example.plan(*(todo(f"t{n}", f"pytest test_reds.py::test_{n}_{word}") for n, word in NUMBERED))

    run = example.verify("--maxfail=2", "--planverify-confirm=0")

    assert list(run.verdicts.values()) == ["passed", "failed", "passed", "failed", "not_run"], str(run)
    assert run.exit_code == 1, str(run)
