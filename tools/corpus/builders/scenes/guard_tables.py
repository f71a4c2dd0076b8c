"""All scenes of the group guard, in one order."""

from __future__ import annotations

from scenes import (
    guard_bounds,
    guard_contracts,
    guard_criteria,
    guard_flaky,
    guard_hygiene,
    guard_runs,
    guard_selection,
)

SCENES = tuple(
    scene
    for table in (
        guard_hygiene,
        guard_bounds,
        guard_criteria,
        guard_contracts,
        guard_selection,
        guard_runs,
        guard_flaky,
    )
    for scene in table.scenes()
)
