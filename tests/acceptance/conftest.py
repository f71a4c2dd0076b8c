"""A fixture for all acceptance tests that limits coverage to the processes of some modules."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from real_command import MEASURING

MEASURED = frozenset(
    {
        "test_baseline",
        "test_mcp",
        "test_parallel_turns",
        "test_qualification",
        "test_reporters",
        "test_run_with_agents",
    }
)
"""Modules whose processes are measured for coverage. Measurement adds half of the run time, and the other
modules execute the same lines, in more projects.
"""


@pytest.fixture(autouse=True, scope="module")
def measure_only_what_counts(request: pytest.FixtureRequest) -> Generator[None]:
    """Measure the processes that a module starts only if the module is in `MEASURED`."""
    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__ not in MEASURED:
            for name in MEASURING:
                patch.delenv(name, raising=False)
        yield
