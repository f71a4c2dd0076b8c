"""What the recorder reads from a session and its plugins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_planverify.observe.recorder import unmet_coverage


@pytest.mark.parametrize(
    ("options", "total", "unmet"),
    [
        ({"cov_precision": 0}, 79.6, None),
        ({"cov_precision": 1}, 79.5, (79.5, 80)),
        ({"cov_precision": None}, 79.4, (79.4, 80)),
        ({}, 79.999, (79.99, 80)),
        ({}, 80, None),
        ({}, None, None),
    ],
)
def test_coverage_misses_its_limit_as_pytest_cov_rounds_it(
    options: dict[str, Any], total: float | None, unmet: tuple[float, float] | None
):
    plugin = SimpleNamespace(cov_total=total, options=SimpleNamespace(cov_fail_under=80, **options))
    config = SimpleNamespace(pluginmanager=SimpleNamespace(getplugin={"_cov": plugin}.get))
    assert unmet_coverage(cast("pytest.Config", config)) == unmet
