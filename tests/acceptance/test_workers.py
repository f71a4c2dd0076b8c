"""Runs pass no word and no flag of theirs to commands, and workers at the same time share no folder.

That -n changes no verdict and no recorded value is in test_three_ways.py and test_command_criteria.py.
"""

from __future__ import annotations

from pathlib import Path

from example_project import Example, todo
from real_command import planverify


def test_option_of_the_run_takes_no_word_of_a_command(tmp_path: Path):
    test = "def test_a(): pass\n"
    example = Example(tmp_path, {"test_a.py": test, "test_b.py": "def test_b(): assert 0\n"})
    example.plan(todo("a", "pytest test_a.py"))

    run = example.verify("--debug")

    assert run.exit_code == 0, str(run)
    assert (tmp_path / "test_a.py").read_text() == test


def test_flags_of_a_worker_are_those_of_its_command(tmp_path: Path):
    test = """\
        import subprocess, sys
        def test_flags():
            flags = subprocess._args_from_interpreter_flags()
            assert subprocess.run([sys.executable, *flags, "-c", "import shop"]).returncode == 0
    """
    example = Example(tmp_path, {"shop.py": "", "test_a.py": test})
    example.plan(todo("a", "pytest test_a.py"))

    cold = example.verify("--planverify-isolate", "--planverify-confirm=0")
    forked = planverify("verify", "plan.yaml", cwd=tmp_path)

    assert cold.exit_code == 0, str(cold)
    assert forked.returncode == 0, forked.stdout


def test_workers_at_the_same_time_empty_no_common_basetemp(tmp_path: Path):
    waiting = """\
        import pathlib, time
        def test_kept(tmp_path):
            (tmp_path / "file").touch()
            pathlib.Path(f"{__name__}.started").touch()
            give_up = time.monotonic() + 20
            while len(list(pathlib.Path().glob("*.started"))) < 3 and time.monotonic() < give_up:
                time.sleep(0.01)
            assert (tmp_path / "file").exists()
    """
    example = Example(tmp_path, {f"test_{name}.py": waiting for name in "abc"})
    example.plan(*(todo(name, f"pytest test_{name}.py") for name in "abc"))

    run = example.verify("-p", "xdist", "-n", "3", "--basetemp=scratch/tmp")

    assert run.exit_code == 0, str(run)
    assert len(list((tmp_path / "scratch/tmp").iterdir())) == 3
