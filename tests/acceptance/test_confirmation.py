"""Failures are run again; flaky checks, and runs in which no test passed, complete no todo."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, Verified, todo

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


@pytest.fixture(scope="module")
def confirmed(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(
        tmp_path_factory.mktemp("confirmed"),
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
    return example.verify("-p", "pytest_rerunfailures", "--planverify-confirm=6")


def test_commands_do_not_affect_each_other(confirmed: Verified):
    assert confirmed.check("victim")["verdict"] == "passed", str(confirmed)


@pytest.mark.parametrize("todo_id", ["steady", "within"])
def test_a_failure_that_repeats_is_deterministic(todo_id: str, confirmed: Verified):
    failure = confirmed.outcomes[todo_id]["failure_evidence"]

    assert confirmed.verdicts[todo_id] == "failed"
    assert failure["repeatability"] == "deterministic"
    assert "failed 2 of 2" in confirmed.output


def test_a_failure_in_code_that_uses_random_is_rerun_until_results_differ(confirmed: Verified):
    check = confirmed.check("chance")

    assert (check["verdict"], check["runs"], check["reds"]) == ("flaky", 4, 3), str(confirmed)
    assert confirmed.outcomes["chance"]["failure_evidence"]["category"] == "FLAKY_TEST"


def test_a_quarantine_does_not_cover_a_deterministic_failure(confirmed: Verified):
    assert confirmed.verdicts["steady"] == "failed"
    assert confirmed.check("steady")["quarantined"] is None


def test_a_quarantined_flaky_check_does_not_block_its_todo(confirmed: Verified):
    check = confirmed.check("borne")

    assert (check["verdict"], check["quarantined"]) == ("flaky", "OPS-1")
    assert confirmed.states["borne"] == "done"
    assert confirmed.outcomes["borne"]["failure_evidence"] is None
    assert confirmed.states["after_borne"] == "done", "what is borne blocks nothing"
    assert "quarantined until 2999-01-01 (OPS-1, ann)" in " ".join(confirmed.output.split())


def test_an_expired_quarantine_has_no_effect_and_is_reported(confirmed: Verified):
    assert confirmed.states["ended"] == "test_failed"
    assert confirmed.check("ended")["quarantine_ended"] == "2001-01-01"
    assert "its quarantine ended on 2001-01-01 (OPS-1, ann)" in " ".join(confirmed.output.split())


def test_a_test_that_passes_and_fails_is_flaky_and_does_not_complete_a_todo(confirmed: Verified):
    assert confirmed.verdicts["alternates"] == "flaky", str(confirmed)
    assert confirmed.category("alternates") == "FLAKY_TEST"
    assert confirmed.outcomes["alternates"]["failure_evidence"]["repeatability"] == "flaky"
    assert confirmed.states["alternates"] == "test_failed"


def test_a_flaky_test_does_not_hide_a_deterministic_failure_of_its_criterion(confirmed: Verified):
    assert confirmed.verdicts["both"] == "failed", str(confirmed)
    assert confirmed.category("both") == "TEST_REGRESSION"
    failures = confirmed.outcomes["both"]["failures"]
    assert [(each["category"], each["runs"], each["reds"]) for each in failures] == [
        ("TEST_REGRESSION", 2, 2),
        ("FLAKY_TEST", 2, 1),
    ]


def test_a_flaky_todo_blocks_its_dependents(confirmed: Verified):
    assert confirmed.verdicts["depends"] == "blocked"
    assert confirmed.verdicts["green"] == "passed"


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n2")], ids=["alone", "workers"])
def test_a_pass_on_a_rerun_is_flaky(workers: tuple[str, ...], tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": NOW_RED_NOW_GREEN})
    example.plan(todo("reruns", "pytest test_it.py"))

    run = example.verify("-p", "pytest_rerunfailures", "--reruns", "2", *workers)

    assert run.verdicts == {"reruns": "flaky"}, str(run)
    assert run.category("reruns") == "FLAKY_TEST"
    assert run.exit_code == 1


def test_a_pass_after_reruns_by_the_command_is_flaky(confirmed: Verified):
    assert confirmed.verdicts["reruns"] == "flaky", str(confirmed)


EMPTY = {
    "nothing_collected": "def helper(): pass\n",
    "all_skipped": "import pytest\n@pytest.mark.skip(reason='not today')\ndef test_it(): pass\n",
    "skipped_inside": "import pytest\ndef test_it(): pytest.skip('no database')\n",
    "expected_failure": "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_it(): assert 0\n",
    "skipped_module": "import pytest\npytest.skip('no service', allow_module_level=True)\n"
    "def test_it(): pass\n",
    "missing_import": "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass\n",
}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("empty"))
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
    return example.verify("--planverify-confirm=0")


def test_a_command_without_a_passed_test_fails_its_criterion(empty: Verified):
    names = [*EMPTY, "no_match"]

    assert {name: empty.verdicts[name] for name in names} == dict.fromkeys(names, "failed"), str(empty)
    assert empty.exit_code == 1


def test_confirm_0_reruns_nothing(empty: Verified):
    check = empty.check("alternates")

    assert (check["verdict"], check["runs"], check["reds"]) == ("failed", 1, 1), str(empty)
    assert empty.outcomes["alternates"]["failure_evidence"]["repeatability"] == "unconfirmed"


def test_one_passed_test_is_enough(empty: Verified):
    assert empty.verdicts["one_passes"] == "passed", str(empty)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("all_skipped", "not today"), ("skipped_inside", "no database"), ("skipped_module", "no service")],
)
def test_the_skip_reason_is_reported(name: str, reason: str, empty: Verified):
    assert reason in (empty.check(name)["reason"] or ""), str(empty)
