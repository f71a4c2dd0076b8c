"""Failures are run again; flaky checks, and runs in which no test passed, complete no todo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from example_project import ONLY_THIS_PLUGIN, Example, todo
from real_command import LEAN_TERMINAL, outer_environment

NOW_RED_NOW_GREEN = """\
import pathlib
COUNT = pathlib.Path(__file__).with_suffix(".count")
def test_it():
    count = int(COUNT.read_text()) if COUNT.exists() else 0
    COUNT.write_text(str(count + 1))
    assert count % 2 == 1
"""

CHANCE = """\
import pathlib, random
COUNT = pathlib.Path(__file__).with_suffix(".count")
def test_it():
    count = int(COUNT.read_text()) if COUNT.exists() else 0
    COUNT.write_text(str(count + 1))
    assert count >= 3 + random.random() * 0
"""

CONFIRMED = {
    "chance": CHANCE,
    "steady": "def test_red():\n    assert 1 + 1 == 3\n",
    "borne": NOW_RED_NOW_GREEN,
    "ended": NOW_RED_NOW_GREEN,
    "green": "def test_it(): pass\n",
}
VERDICTS = {
    "chance": "flaky",
    "steady": "failed",
    "borne": "flaky",
    "ended": "flaky",
    "green": "passed",
    "both": "failed",
    "reruns": "flaky",  # the command itself reran it until it passed
    "after_borne": "passed",
    "depends": "blocked",
}
DONE = {"borne", "green", "after_borne"}
"""A quarantined flaky check completes its todo and blocks nothing; any other flaky check does neither."""
FAILURES = {
    "steady": [("TEST_REGRESSION", "deterministic", 2, 2)],
    "chance": [("FLAKY_TEST", "flaky", 4, 3)],
    "ended": [("FLAKY_TEST", "flaky", 2, 1)],
    "both": [("TEST_REGRESSION", "deterministic", 2, 2), ("FLAKY_TEST", "flaky", 2, 1)],
    "borne": [],
}


def test_failures_are_run_again_and_flaky_checks_count_only_in_quarantine(tmp_path: Path):
    example = Example(
        tmp_path,
        {f"test_{name}.py": text for name, text in CONFIRMED.items()}
        | dict.fromkeys(("test_beside.py", "test_reruns.py"), NOW_RED_NOW_GREEN),
    )
    entry = {"owner": "ann", "ticket": "OPS-1"}
    quarantine = [
        {"nodeid": "test_borne.py::test_it", "expires": "2999-01-01", **entry},
        {"nodeid": "test_ended.py::test_it", "expires": "2001-01-01", **entry},
        {"nodeid": "test_steady.py::test_red", "expires": "2999-01-01", **entry},
    ]
    example.plan(
        *(todo(name, f"pytest test_{name}.py") for name in CONFIRMED),
        todo("both", "pytest test_beside.py test_steady.py"),
        todo("reruns", "pytest test_reruns.py --reruns 2"),
        todo("after_borne", "pytest test_green.py", after=("borne",)),
        todo("depends", "pytest test_green.py", after=("ended",)),
        metadata={"flaky_retry": {"quarantine": quarantine}},
    )

    run = example.verify("-p", "pytest_rerunfailures", "--planverify-confirm=6")

    assert run.verdicts == VERDICTS, str(run)
    assert {name for name, state in run.states.items() if state == "done"} == DONE
    keys = ("category", "repeatability", "runs", "reds")
    failures = {name: run.outcomes[name]["failures"] for name in FAILURES}
    found = {name: [tuple(each[key] for key in keys) for each in all_] for name, all_ in failures.items()}
    assert found == FAILURES
    assert "failed 2 of 2" in run.output
    told = " ".join(run.output.split())
    assert run.check("borne")["quarantined"] == "OPS-1"
    assert "quarantined until 2999-01-01 (OPS-1, ann)" in told
    assert run.check("ended")["quarantine_ended"] == "2001-01-01"
    assert "its quarantine ended on 2001-01-01 (OPS-1, ann)" in told
    assert run.check("steady")["quarantined"] is None, "it fails every time"


def test_confirm_0_reruns_nothing(tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": NOW_RED_NOW_GREEN})
    example.plan(todo("alternates", "pytest test_it.py"))

    run = example.verify("--planverify-confirm=0")

    assert run.verdicts == {"alternates": "failed"}, str(run)
    assert (run.check("alternates")["runs"], run.check("alternates")["reds"]) == (1, 1)
    assert run.outcomes["alternates"]["failure_evidence"]["repeatability"] == "unconfirmed"


def test_options_of_the_interpreter_apply_to_confirmations_and_end_kept_verdicts(tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": "def test_it():\n    if not __debug__: raise ValueError\n"})
    example.plan(todo("t0", "pytest test_it.py"))
    assert example.verify().exit_code == 0

    done = subprocess.run(
        [sys.executable, "-O", "-m", "pytest", *ONLY_THIS_PLUGIN, "--planverify", "--lf"],
        cwd=example.root,
        env=outer_environment() | LEAN_TERMINAL,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert "failed 2 of 2" in done.stdout, done.stdout + done.stderr
