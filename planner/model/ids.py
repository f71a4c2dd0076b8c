"""Identifiers that travel through both packages."""

from __future__ import annotations

from typing import NewType

PlanId = NewType("PlanId", str)
"""The ``todo_list_id`` of a plan."""

TodoId = NewType("TodoId", str)
"""The id of a todo, unique in its plan: letters, digits, ``_``, ``.`` and ``-``."""

CheckId = NewType("CheckId", str)
"""Where a criterion stands in its todo: ``tests[0]``, ``expected_artifacts[1]``, ``verify``."""

NodeId = NewType("NodeId", str)
"""A pytest node id relative to the plan's root."""

Signature = NewType("Signature", str)
"""Twelve hexadecimal digits that name a root cause."""

RunId = NewType("RunId", str)
"""The name of one run's folder below ``.planverify/runs``."""


def qualified(within: str, todo_id: str) -> str:
    """Return the id of a todo as the plan at the top names it: ``phase-2/buffer-impl``."""
    return f"{within}/{todo_id}" if within else todo_id
