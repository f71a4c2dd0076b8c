"""Runs with -n have the same verdicts and recorded values as runs without."""

from __future__ import annotations

from pathlib import Path

from example_project import Example, todo

XDIST = ("-p", "xdist")
UNCONFIRMED = "--planverify-confirm=0"


def an_example(folder: Path) -> Example:
    example = Example(
        folder,
        {
            "test_mixed.py": """\
                import pytest
                @pytest.mark.parametrize("n", range(6))
                def test_green(n, record_property, planverify):
                    record_property("seen", n)
                    planverify.metric("twice", 2 * n)
                def test_red(): assert 1 == 2
                @pytest.mark.skip
                def test_skipped(): pass
                @pytest.mark.xfail
                def test_expected(): assert 0
            """,
            "test_broken.py": "import no_such_module\n",
        },
    )
    example.plan(
        todo(
            "green",
            "pytest test_mixed.py -k green",
            metrics=[
                {"name": "seen", "operator": "<", "value": 6},
                {"name": "twice", "operator": "<=", "value": 10},
            ],
        ),
        todo("red", "pytest test_mixed.py::test_red"),
        todo("skipped", "pytest test_mixed.py::test_skipped"),
        todo("expected", "pytest test_mixed.py::test_expected"),
        todo("broken", "pytest test_broken.py"),
        todo("missing", "pytest test_mixed.py::test_no"),
        todo("blocked", "pytest test_mixed.py -k green", after=("red",)),
    )
    return example


def test_xdist_workers_give_the_same_verdicts_and_recorded_values(tmp_path: Path):
    example = an_example(tmp_path)

    one = example.verify(UNCONFIRMED)
    two = example.verify(*XDIST, "-n", "2", "--dist", "each", UNCONFIRMED)

    assert one.verdicts == two.verdicts, f"{one}\n{two}"
    assert one.verdicts["green"] == {"tests[0]": "passed", "metrics[0]": "passed", "metrics[1]": "passed"}
    assert (one.exit_code, two.exit_code) == (1, 1)
    assert sorted(two.outcomes["green"]["recorded"]["seen"]) == one.outcomes["green"]["recorded"]["seen"]
    assert {run.category("red") for run in (one, two)} == {"TEST_REGRESSION"}


def test_option_of_the_run_takes_no_word_of_a_command(tmp_path: Path):
    test = "def test_a(): pass\n"
    example = Example(tmp_path, {"test_a.py": test, "test_b.py": "def test_b(): assert 0\n"})
    example.plan(todo("a", "pytest test_a.py"))

    run = example.verify("--debug")

    assert run.exit_code == 0, str(run)
    assert (tmp_path / "test_a.py").read_text() == test


def test_workers_at_the_same_time_empty_no_common_basetemp(tmp_path: Path):
    waiting = """\
        import pathlib, time
        def test_kept(tmp_path):
            (tmp_path / "file").touch()
            pathlib.Path(f"{__name__}.started").touch()
            while len(list(pathlib.Path().glob("*.started"))) < 3: time.sleep(0.01)
            assert (tmp_path / "file").exists()
    """
    example = Example(tmp_path, {f"test_{name}.py": waiting for name in "abc"})
    example.plan(*(todo(name, f"pytest test_{name}.py") for name in "abc"))

    run = example.verify(*XDIST, "-n", "3", "--basetemp=scratch/tmp")

    assert run.exit_code == 0, str(run)
    assert len(list((tmp_path / "scratch/tmp").iterdir())) == 3
