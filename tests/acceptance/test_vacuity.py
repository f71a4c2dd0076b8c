"""What proves nothing does not pass: no test, only skipped ones, only expected failures."""

from __future__ import annotations

import pytest
from example_project import Example, Verified, todo

EMPTY = {
    "nothing_collected": "def helper(): pass\n",
    "all_skipped": "import pytest\n@pytest.mark.skip(reason='not today')\ndef test_it(): pass\n",
    "skipped_inside": "import pytest\ndef test_it(): pytest.skip('no database')\n",
    "expected_failure": "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_it(): assert 0\n",
    "skipped_module": "import pytest\npytest.skip('no service', allow_module_level=True)\n"
    "def test_it(): pass\n",
    "missing_import": "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass\n",
}


@pytest.fixture(scope="module", params=[(), ("--planverify-isolate",), ("-p", "xdist", "-n2")], ids=str)
def empty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("empty"))
    example.write({f"test_{name}.py": text for name, text in EMPTY.items()})
    example.write(
        {
            "test_real.py": "import pytest\ndef test_it(): pass\n"
            "@pytest.mark.skip\ndef test_skipped(): pass\n"
        }
    )
    example.plan(
        *(todo(name, f"pytest test_{name}.py") for name in EMPTY),
        todo("no_match", "pytest test_real.py -k nothing_like_it"),
        todo("one_passes", "pytest test_real.py"),
    )
    return example.verify(*request.param, "--planverify-confirm=1")


def test_what_proves_nothing_does_not_pass(empty: Verified):
    names = [*EMPTY, "no_match"]

    assert {name: empty.verdicts[name] for name in names} == dict.fromkeys(names, "failed"), str(empty)
    assert empty.exit_code == 1


def test_one_test_that_passed_is_enough(empty: Verified):
    assert empty.verdicts["one_passes"] == "passed", str(empty)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("all_skipped", "not today"), ("skipped_inside", "no database"), ("skipped_module", "no service")],
)
def test_the_reason_of_the_skip_is_told(name: str, reason: str, empty: Verified):
    assert reason in (empty.check(name)["reason"] or ""), str(empty)
