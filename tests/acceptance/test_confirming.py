"""What a red is worth is found out by running it again under other conditions, and the culprit is named."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from example_project import Example, Verified, todo

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota")

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


def order_with_seed(seed: int) -> list[str]:
    """The order in which an interpreter with that hash seed gives the names of a set."""
    code = f"print(*set({NAMES!r}))"
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.fixture(scope="module")
def confirmed(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    by_hash = f"def test_order():\n    assert list(set({NAMES!r})) == {order_with_seed(2)!r}\n"
    example = Example(
        tmp_path_factory.mktemp("confirmed"),
        {
            "shelf.py": "BOOKS = []\n",
            "test_polluter.py": POLLUTER,
            "test_victim.py": "import shelf\ndef test_is_empty(): assert shelf.BOOKS == []\n",
            "test_within.py": WITHIN,
            "test_hash.py": by_hash,
            "test_steady.py": "def test_red():\n    assert {1, 2} == {3}\n",
        },
    )
    example.plan(
        *(
            todo(name, f"pytest test_{name}.py")
            for name in ("polluter", "victim", "within", "hash", "steady")
        )
    )
    return example.verify("--planverify-confirm=2")


@pytest.fixture(scope="module")
def quarantined(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(
        tmp_path_factory.mktemp("quarantined"),
        {
            "test_steady.py": "def test_red():\n    assert 0\n",
            "test_green.py": "def test_it(): pass\n",
            "test_borne.py": NOW_RED_NOW_GREEN,
            "test_ended.py": NOW_RED_NOW_GREEN,
        },
    )
    entry = {"owner": "ann", "ticket": "OPS-1"}
    example.plan(
        *(todo(name, f"pytest test_{name}.py") for name in ("steady", "borne", "ended")),
        todo("after", "pytest test_green.py", after=("borne",)),
        metadata={
            "flaky_retry": {
                "quarantine": [
                    {"nodeid": "test_borne.py::test_it", "expires": "2999-01-01", **entry},
                    {"nodeid": "test_ended.py::test_it", "expires": "2001-01-01", **entry},
                    {"nodeid": "test_steady.py::test_red", "expires": "2999-01-01", **entry},
                ]
            }
        },
    )
    return example.verify("--planverify-confirm=2")


def test_what_only_another_command_disturbs_passes_and_the_culprit_is_named(confirmed: Verified):
    check = confirmed.check("victim")

    assert check["verdict"] == "passed", str(confirmed)
    assert check["reason"] == (
        "red after test_polluter.py::test_fills in the shared session, green alone 2 of 2 times; what runs "
        "alone counts"
    )


def test_what_another_test_of_the_command_disturbs_is_order_dependent_and_the_culprit_is_named(
    confirmed: Verified,
):
    failure = confirmed.outcomes["within"]["failure_evidence"]

    assert confirmed.verdicts["within"] == "failed"
    assert (failure["category"], failure["repeatability"]) == ("FLAKY_TEST", "order_dependent")
    assert "test_within.py::test_fills" in failure["suggestion"]
    assert confirmed.check("within")["reason"] == (
        "test_within.py::test_is_empty is red after test_within.py::test_fills, green without"
    )


def test_what_the_order_of_a_set_decides_is_flaky_by_its_hash_seed(confirmed: Verified):
    failure = confirmed.outcomes["hash"]["failure_evidence"]

    assert confirmed.verdicts["hash"] == "flaky", str(confirmed)
    assert (failure["category"], failure["repeatability"]) == ("FLAKY_TEST", "hash_order")
    assert "PYTHONHASHSEED=2" in failure["suggestion"]


def test_what_is_red_every_time_with_any_seed_is_deterministic(confirmed: Verified):
    failure = confirmed.outcomes["steady"]["failure_evidence"]

    assert confirmed.verdicts["steady"] == "failed"
    assert failure["repeatability"] == "deterministic"


def test_no_quarantine_bears_what_is_red_every_time(quarantined: Verified):
    assert quarantined.verdicts["steady"] == "failed"
    assert quarantined.check("steady")["quarantined"] is None


def test_a_quarantine_bears_a_flaky_check_and_says_so(quarantined: Verified):
    check = quarantined.check("borne")

    assert (check["verdict"], check["quarantined"]) == ("flaky", "OPS-1")
    assert quarantined.states["borne"] == "done"
    assert quarantined.outcomes["borne"]["failure_evidence"] is None
    assert quarantined.states["after"] == "done", "what is borne blocks nothing"
    assert "borne until 2999-01-01 (OPS-1, ann)" in " ".join(quarantined.output.split())


def test_a_quarantine_that_has_ended_bears_nothing_and_says_so(quarantined: Verified):
    assert quarantined.states["ended"] == "test_failed"
    assert quarantined.check("ended")["quarantine_ended"] == "2001-01-01"
    assert "its quarantine ended on 2001-01-01 (OPS-1, ann)" in " ".join(quarantined.output.split())


def test_when_the_time_for_confirmations_is_used_up_the_run_says_so(tmp_path):  # type: ignore[no-untyped-def]
    example = Example(tmp_path, {"test_red.py": "def test_it():\n    assert 0\n"})
    example.plan(todo("red", "pytest test_red.py"))

    run = example.verify("--planverify-confirm-seconds=0")

    assert run.verdicts == {"red": "failed"}
    assert run.outcomes["red"]["failure_evidence"]["repeatability"] == "unconfirmed"
    assert run.document is not None
    assert (
        "1 check was not confirmed: the 0 s for confirmations were used up" in run.document["run"]["notes"]
    )
