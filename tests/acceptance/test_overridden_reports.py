"""The result of a test's body counts, even if a conftest or a plugin changes its report."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_project import Example, Verified, todo
from text_bundles import read_bundle

HOOKS = ("makereport", "makereport_first", "logreport", "skipped", "swallowed", "swallowed_call")
"""Folders of the bundle whose conftest changes the report of a failure."""

FILES = read_bundle(Path(__file__).parents[1] / "support/overridden_reports.txt") | {
    f"{name}/test_{name}.py": """
        import unittest

        def test_red(): assert 1 == 2
        def test_green(): pass

        class Cases(unittest.TestCase):
            def test_red(self): self.assertEqual(1, 2)
    """
    for name in HOOKS
}


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(tmp_path_factory.mktemp("turned"), FILES)
    example.plan(
        *(
            todo(name, f"pytest {name}/test_{name}.py::test_red {name}/test_{name}.py::test_green")
            for name in HOOKS
        ),
        todo("again", "pytest again"),
        todo("honest", "pytest honest"),
    )
    return example.verify("--planverify-confirm=0")


def test_a_failure_reported_as_another_outcome_is_a_violation(turned: Verified):
    for name in HOOKS:
        assert turned.verdicts[name] == "failed", str(turned)
        assert turned.category(name) == "HYGIENE_VIOLATION"
        reported = f"{name}/test_{name}.py::test_red failed and was reported as"
        assert reported in turned.check(name)["reason"]
    assert turned.exit_code == 13


def test_a_pass_after_an_unreported_retry_is_flaky(turned: Verified):
    assert turned.verdicts["again"] == "flaky", str(turned)
    assert turned.category("again") == "FLAKY_TEST"


def test_skips_and_expected_failures_are_no_failures(turned: Verified):
    assert turned.verdicts["honest"] == "passed", str(turned)
