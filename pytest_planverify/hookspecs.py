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

    ``evidence`` holds the facts and is frozen: the phase, the exceptions with their frames and whose files
    those are, exit codes, a tool's complaints, what changed, what repeated runs said.

    Return a diagnosis to decide, or ``None`` to leave it to the next plugin and at last to the built-in
    rules; the first result wins, and no correction changes it. ``signature`` is what failures are grouped
    and compared by: take that of :func:`pytest_planverify.diagnosis.signature`. ``target_agent`` names who
    should act where that is not the category's default role; the todo's own ``failure_routing`` goes before
    it. A diagnosis never changes a verdict.

    May be implemented by installed plugins (entry point ``pytest11``) and by those named with ``-p``; not
    by ``conftest.py``, which only the forked sessions load. An implementation that raises, leaves the
    process or returns something else is passed over: the run says so in one line, and the failure is
    diagnosed without it.
    """
