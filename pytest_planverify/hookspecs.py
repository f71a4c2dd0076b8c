"""The hooks that this plugin offers to other plugins and to a project's own ``pytest_planverify`` code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from planner.model.evidence import Evidence
    from planner.model.outcome import Diagnosis


@pytest.hookspec(firstresult=True)
def pytest_planverify_diagnose(evidence: Evidence) -> Diagnosis | None:  # type: ignore[empty-body]
    """Say what one failure means, before the plugin's own rules are asked.

    Called in the process that was started, once a distinct failure, after the failure was confirmed.
    ``evidence`` holds the facts: phase, exceptions with their frames, exit codes, a tool's complaints.
    Return a diagnosis to decide, or ``None`` to leave it to the next plugin and at last to the built-in
    rules; the first result wins. May be implemented by installed plugins and by those named with
    ``-p``; not by ``conftest.py``, which only the forked sessions load. A diagnosis never changes a
    verdict.
    """
