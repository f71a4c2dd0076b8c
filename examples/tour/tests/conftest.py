"""House rules of the shop's tests."""

from __future__ import annotations

import resource

import pytest

# A test of the tour crashes on purpose; its memory need not be kept in a file.
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """A test that is marked `silent` fails if it prints, though no assertion of it does."""
    report = yield
    if report.when == "call" and report.passed and report.capstdout and item.get_closest_marker("silent"):
        report.outcome = "failed"
        report.longrepr = "house rule: the test is marked silent, and something printed"
    return report
