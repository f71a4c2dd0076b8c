"""Failures are run again; flaky checks, and runs in which no test passed, complete no todo."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, todo

POLLUTER = """\
import shelf
def test_first(): pass
def test_fills(): shelf.BOOKS.append("one")
def test_last(): pass
"""

WITHIN = """\
STATE = []
def test_first(): pass
def test_fills(): STATE.append(1)
def test_between(): pass
def test_is_empty(): assert STATE == []
def test_last(): pass
"""

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
    "polluter": POLLUTER,
    "victim": "import shelf\ndef test_is_empty(): assert shelf.BOOKS == []\n",
    "within": WITHIN,
    "chance": CHANCE,
    "steady": "def test_red():\n    assert 1 + 1 == 3\n",
    "borne": NOW_RED_NOW_GREEN,
    "ended": NOW_RED_NOW_GREEN,
    "alternates": NOW_RED_NOW_GREEN,
    "green": "def test_it(): pass\n",
}


VERDICTS = {
    "polluter": "passed",
    "victim": "passed",  # another command has filled the shelf
    "within": "failed",
    "chance": "flaky",
    "steady": "failed",
    "borne": "flaky",
    "ended": "flaky",
    "alternates": "flaky",
    "green": "passed",
    "both": "failed",
    "reruns": "flaky",  # the command itself reran it until it passed
    "after_borne": "passed",
    "depends": "blocked",
}
DONE = {"polluter", "victim", "borne", "green", "after_borne"}
"""A quarantined flaky check completes its todo and blocks nothing; any other flaky check does neither."""
FAILURES = {
    "within": [("TEST_REGRESSION", "deterministic", 2, 2)],
    "steady": [("TEST_REGRESSION", "deterministic", 2, 2)],
    "chance": [("FLAKY_TEST", "flaky", 4, 3)],
    "alternates": [("FLAKY_TEST", "flaky", 2, 1)],
    "both": [("TEST_REGRESSION", "deterministic", 2, 2), ("FLAKY_TEST", "flaky", 2, 1)],
    "borne": [],
}


def test_failures_are_run_again_and_flaky_checks_count_only_in_quarantine(tmp_path: Path):
    example = Example(
        tmp_path,
        {
            "shelf.py": "BOOKS = []\n",
            **{f"test_{name}.py": text for name, text in CONFIRMED.items()},
            "test_beside.py": NOW_RED_NOW_GREEN,
            "test_reruns.py": NOW_RED_NOW_GREEN,
        },
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
        todo("depends", "pytest test_green.py", after=("alternates",)),
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


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n2")], ids=["alone", "workers"])
def test_a_pass_on_a_rerun_is_flaky(workers: tuple[str, ...], tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": NOW_RED_NOW_GREEN})
    example.plan(todo("reruns", "pytest test_it.py"))

    run = example.verify("-p", "pytest_rerunfailures", "--reruns", "2", *workers)

    assert run.verdicts == {"reruns": "flaky"}, str(run)
    assert run.category("reruns") == "FLAKY_TEST"
    assert run.exit_code == 1


EMPTY = {
    "nothing_collected": "def helper(): pass\n",
    "all_skipped": "import pytest\n@pytest.mark.skip(reason='not today')\ndef test_it(): pass\n",
    "skipped_inside": "import pytest\ndef test_it(): pytest.skip('no database')\n",
    "expected_failure": "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_it(): assert 0\n",
    "skipped_module": "import pytest\npytest.skip('no service', allow_module_level=True)\n"
    "def test_it(): pass\n",
    "missing_import": "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass\n",
}
SKIP_REASONS = {
    "all_skipped": "not today",
    "skipped_inside": "no database",
    "skipped_module": "no service",
}


def test_a_command_without_a_passed_test_fails_and_confirm_0_reruns_nothing(tmp_path: Path):
    example = Example(tmp_path)
    example.write({f"test_{name}.py": text for name, text in EMPTY.items()})
    example.write(
        {
            "test_real.py": "import pytest\ndef test_it(): pass\n"
            "@pytest.mark.skip\ndef test_skipped(): pass\n",
            "test_alternates.py": NOW_RED_NOW_GREEN,
        }
    )
    example.plan(
        *(todo(name, f"pytest test_{name}.py") for name in EMPTY),
        todo("no_match", "pytest test_real.py -k nothing_like_it"),
        todo("one_passes", "pytest test_real.py"),
        todo("alternates", "pytest test_alternates.py"),
    )

    run = example.verify("--planverify-confirm=0")

    failed = dict.fromkeys((*EMPTY, "no_match", "alternates"), "failed")
    assert run.verdicts == {**failed, "one_passes": "passed"}, str(run)
    assert run.exit_code == 1
    for name, reason in SKIP_REASONS.items():
        assert reason in (run.check(name)["reason"] or "")
    assert (run.check("alternates")["runs"], run.check("alternates")["reds"]) == (1, 1)
    assert run.outcomes["alternates"]["failure_evidence"]["repeatability"] == "unconfirmed"
