"""The hooks that this plugin offers to other plugins and to a project's own ``pytest_planverify`` code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from planner.model.evidence import Evidence
    from planner.model.outcome import Diagnosis


@pytest.hookspec(firstresult=True)
def pytest_planverify_diagnose(evidence: Evidence) -> Diagnosis | None:  # type: ignore[empty-body]
    """Diagnose one failure, before the plugin's built-in rules are applied.

    Called in the parent process (the one that the user started), once for each distinct failure, after the
    failure was confirmed.

    ``evidence`` contains the facts and is frozen: the phase, the exceptions with their frames and the owner
    of each file (product, tests, library), exit codes, findings of a tool, changes since the baseline, and
    the results of repeated runs.

    Return a diagnosis to decide, or ``None`` to leave it to the next plugin and finally to the built-in
    rules. The first result wins, and no correction changes it. Failures are grouped and compared by
    ``signature``: use that of :func:`pytest_planverify.diagnosis.signature`. ``target_agent`` is the role
    that should act, if it is not the category's default role; the todo's own ``failure_routing`` takes
    precedence over it. A diagnosis never changes a verdict.

    May be implemented by installed plugins (entry point ``pytest11``) and by those named with ``-p``, but
    not by a ``conftest.py``, which only workers load. An implementation that raises, exits the process or
    returns anything else is ignored: the run reports it in one line, and the failure is diagnosed without
    it.
    """
