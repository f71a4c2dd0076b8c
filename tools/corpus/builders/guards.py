"""Cases of the group guard: what guards and criteria other than tests find, and runs that did not end."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from scenes.building import build_scenes, kinds_of, main
from scenes.guard_tables import SCENES as _SCENES
from scenes.scene import Scene

from tools.corpus.case import Case, Group

SCENES: tuple[Scene, ...] = _SCENES

KINDS: dict[str, str] = kinds_of(SCENES)
"""Every kind of fault, with one sentence of what is wrong."""


def build(work: Path, seed: int, only: Collection[str] = ()) -> Iterable[Case]:
    """Every case, or those of some kinds or projects. Reports what was dropped on standard error."""
    return build_scenes(SCENES, Group.GUARD, work, seed, only)


if __name__ == "__main__":
    main("guards", build)
