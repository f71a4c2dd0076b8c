"""Shared by the acceptance tests: whose processes are measured."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from real_command import MEASURING

MEASURED = frozenset(
    {
        "test_allowlist",
        "test_baseline",
        "test_budget",
        "test_collect_only",
        "test_command_criteria",
        "test_confirmation",
        "test_coverage_options",
        "test_hostile_projects",
        "test_exit_statuses",
        "test_foreign_plugins",
        "test_init",
        "test_interrupted_runs",
        "test_mcp",
        "test_narrowed_runs",
        "test_other_criteria",
        "test_qualification",
        "test_reporters",
        "test_overridden_reports",
        "test_run_folders",
        "test_parallel_turns",
        "test_run_with_agents",
        "test_run_within_limits",
        "test_stop_hook",
        "test_undo",
        "test_sandbox",
        "test_time_limits",
        "test_witnessed_hygiene",
        "test_workers",
    }
)
"""Modules whose processes count for coverage. Measuring takes as long as running, and the others run the
same lines, in more projects."""


@pytest.fixture(autouse=True, scope="module")
def measure_only_what_counts(request: pytest.FixtureRequest) -> Generator[None]:
    """Let what a test starts be measured in few modules only."""
    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__ not in MEASURED:
            for name in MEASURING:
                patch.delenv(name, raising=False)
        yield
