"""The data file of a criterion: it must exist, its digest is kept, and the tests are told where it is."""

from __future__ import annotations

import hashlib

import pytest
from example_project import Example, Verified, todo

READS = """\
    def test_it(planverify):
        assert planverify.fixture_path.is_absolute()
        assert planverify.fixture_path.read_text() == "right"
"""


@pytest.fixture(scope="module", params=[(), ("-p", "xdist", "-n2"), ("--planverify-isolate",)], ids=str)
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(
        tmp_path_factory.mktemp("data"),
        {
            "test_it.py": READS,
            "test_any.py": "def test_it(): pass\n",
            "data/right.json": "right",
            "data/wrong.json": "wrong",
        },
    )
    example.plan(
        todo("right", {"cmd": "pytest test_it.py", "fixture": "data/right.json"}),
        todo("wrong", {"cmd": "pytest test_it.py", "fixture": "data/wrong.json"}),
        todo("none", "pytest test_it.py"),
        todo("missing", {"cmd": "pytest test_any.py", "fixture": "data/missing.json"}),
        todo("unread", {"cmd": "pytest test_any.py", "fixture": "data/right.json"}),
    )
    return example.verify(*request.param)


def test_two_todos_may_run_the_same_tests_on_different_files(read: Verified):
    names = ("right", "wrong", "none")

    assert {name: read.verdicts[name] for name in names} == {
        "right": "passed",
        "wrong": "failed",
        "none": "failed",
    }, str(read)


def test_the_digest_of_the_file_is_kept(read: Verified):
    digest = hashlib.sha256(b"right").hexdigest()

    assert read.check("unread")["fixture"] == {"path": "data/right.json", "sha256": digest}
    assert read.verdicts["unread"] == "passed"


def test_a_file_that_is_missing_fails_its_criterion(read: Verified):
    assert read.verdicts["missing"] == "failed", str(read)
    assert read.check("missing")["fixture"] == {"path": "data/missing.json", "sha256": None}
    assert "data/missing.json" in read.output
