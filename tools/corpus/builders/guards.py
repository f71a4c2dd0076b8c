"""Cases of the group guard: what guards and criteria other than tests find, and runs that did not end."""

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
"""In the order in which their cases are made."""

KINDS: dict[str, str] = kinds_of(SCENES)
"""Every kind of fault, with one sentence of what is wrong."""


def build(work: Path, seed: int, only: Collection[str] = ()) -> Iterable[Case]:
    """Every case, or those of some kinds or projects. Reports what was dropped on standard error."""
    return build_scenes(SCENES, Group.GUARD, work, seed, only)
