"""The result of a test's body counts, even if a conftest or a plugin changes its report."""

from __future__ import annotations

import pytest
from example_project import Example, Verified, todo

RED = """\
import unittest

def test_red(): assert 1 == 2

def test_green(): pass

class Cases(unittest.TestCase):
    def test_red(self): self.assertEqual(1, 2)
"""

HOOKS = {
    "makereport": """\
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            if report.failed:
                report.outcome, report.longrepr = "passed", None
            return report
        """,
    "makereport_first": """\
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_makereport(item, call):
            call.excinfo = None
        """,
    "logreport": """\
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_logreport(report):
            if report.failed:
                report.outcome = "passed"
        """,
    "skipped": """\
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            if report.failed:
                report.outcome, report.longrepr = "skipped", ("conftest.py", 1, "Skipped: no")
            return report
        """,
    "swallowed": """\
        @pytest.hookimpl(wrapper=True)
        def pytest_pyfunc_call(pyfuncitem):
            try:
                return (yield)
            except Exception:
                return True
        """,
    "swallowed_call": """\
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_call(item):
            try:
                return (yield)
            except Exception:
                return None
        """,
}

RETRIES = '''\
"""Does what plugins do that run a failing test again and report the last answer only."""
import pytest
from _pytest.runner import CallInfo

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and call.excinfo is not None:
        again = CallInfo.from_call(lambda: item.ihook.pytest_runtest_call(item=item), when="call")
        if again.excinfo is None:
            report.outcome, report.longrepr = "passed", None
    return report
'''

HONEST = """\
import unittest
import pytest

@pytest.mark.xfail
def test_known(): assert 0

@pytest.mark.xfail(raises=ZeroDivisionError)
def test_known_too(): 1 / 0

def test_skips(): pytest.skip("not here")

def test_asks_for_the_failure():
    with pytest.raises(ValueError):
        int("x")

def test_green(): pass

class Cases(unittest.TestCase):
    @unittest.expectedFailure
    def test_expected(self): self.fail()

    def test_skipped(self): raise unittest.SkipTest("no")

    def test_parts(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertLess(number, 3)
"""


@pytest.fixture(
    scope="module",
    params=[(), ("-p", "xdist", "-n2")],
    ids=["folded", "workers"],
)
def turned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verified:
    files = {"honest/test_honest.py": HONEST}
    for name, hook in HOOKS.items():
        files[f"{name}/test_{name}.py"] = RED
        files[f"{name}/conftest.py"] = "import pytest\n\n" + hook.replace("\n        ", "\n").strip() + "\n"
    files["again/test_again.py"] = (
        "DONE = []\ndef test_it():\n    DONE.append(1)\n    assert len(DONE) == 2\n"
    )
    files["again/conftest.py"] = RETRIES
    example = Example(tmp_path_factory.mktemp("turned"), files)
    example.plan(
        *(
            todo(name, f"pytest {name}/test_{name}.py::test_red {name}/test_{name}.py::test_green")
            for name in HOOKS
        ),
        todo("again", "pytest again"),
        todo("honest", "pytest honest"),
    )
    return example.verify("--planverify-confirm=0", *request.param, measured=not request.param)


@pytest.mark.parametrize("name", HOOKS)
def test_a_failure_reported_as_another_outcome_is_a_violation(name: str, turned: Verified):
    assert turned.verdicts[name] == "failed", str(turned)
    assert turned.category(name) == "HYGIENE_VIOLATION"
    assert f"{name}/test_{name}.py::test_red failed and was reported as" in turned.check(name)["reason"]


def test_an_overridden_report_sets_the_exit_status_of_a_violation(turned: Verified):
    assert turned.exit_code == 13


def test_a_pass_after_an_unreported_retry_is_flaky(turned: Verified):
    assert turned.verdicts["again"] == "flaky", str(turned)
    assert turned.category("again") == "FLAKY_TEST"


def test_skips_and_expected_failures_are_no_failures(turned: Verified):
    assert turned.verdicts["honest"] == "passed", str(turned)
