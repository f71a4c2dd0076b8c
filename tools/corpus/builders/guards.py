"""Build the group ``guard``: findings of guards and of criteria other than tests, and aborted runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from scenes import guard_criteria, guard_hygiene, guard_runs
from scenes.building import build_scenes, kinds_of
from scenes.scene import Scene

from tools.corpus.case import Case, Group

SCENES: tuple[Scene, ...] = (
    *guard_hygiene.scenes(),
    *guard_criteria.bound_scenes(),
    *guard_criteria.criterion_scenes(),
    *guard_criteria.contract_scenes(),
    *guard_runs.selection_scenes(),
    *guard_runs.run_scenes(),
    *guard_runs.flaky_scenes(),
)
"""Scenes in the order in which their cases are built."""

KINDS: dict[str, str] = kinds_of(SCENES)
"""Every kind of fault, with one sentence about it."""


def build(work: Path, seed: int, only: Collection[str] = ()) -> Iterable[Case]:
    """Build every case, or those of some kinds or projects. Reports dropped cases on standard error."""
    return build_scenes(SCENES, Group.GUARD, work, seed, only)
