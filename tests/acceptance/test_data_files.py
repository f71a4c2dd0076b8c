"""The data file of a criterion: it must exist, its digest is kept, and the tests are told where it is.

Of data that tests only read, a changed line is the place of their failure.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

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


def test_the_changed_line_of_data_that_the_failing_test_read_is_the_place(tmp_path: Path) -> None:
    example = Example(
        tmp_path,
        {
            "rates.py": "import json\nfrom pathlib import Path\n\n\ndef rate(name):\n"
            "    return json.loads(Path(__file__).with_name('rates.json').read_text())[name]\n",
            "rates.json": '{\n  "DE": 19,\n  "LU": 17\n}\n',
            "notes.json": "{}\n",
            "tests/test_rates.py": "from rates import rate\n\n"
            "def test_rate():\n    assert rate('LU') == 17\n",
            "pytest.ini": "[pytest]\npythonpath = .\n",
        },
    )
    example.plan(todo("rates", "pytest tests/test_rates.py"))
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    example.write({"rates.json": '{\n  "DE": 19,\n  "LU": 71\n}\n', "notes.json": "[]\n"})

    verified = example.verify()

    failure = verified.outcomes["rates"]["failure_evidence"]
    assert (failure["location"]["path"], failure["location"]["line"]) == ("rates.json", 3), str(verified)
    assert "changed rates.json:3 (+1 -1)\n" in verified.output
    assert "notes.json" not in verified.output
