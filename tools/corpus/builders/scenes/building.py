"""Build the groups ``environment`` and ``guard``: the cases of all scenes, one after the other."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path

from scenes.making import Dropped, make
from scenes.scene import Scene, read_scenes
from tools.corpus.case import Case, Group


class SceneBuilder:
    """Builder of the cases of one group."""

    def __init__(self, group: Group) -> None:
        self._group = group

    @cached_property
    def scenes(self) -> tuple[Scene, ...]:
        """Return the scenes in the order in which their cases are built."""
        return read_scenes(self._group)

    @property
    def KINDS(self) -> dict[str, str]:
        """Return every kind of fault, with one sentence about it."""
        return {each.kind: each.says for each in sorted(self.scenes, key=lambda scene: scene.kind)}

    def build(self, work: Path, seed: int, only: Collection[str] = ()) -> Iterator[Case]:
        """Yield every case, or those of some kinds or projects. Reports dropped cases on standard error."""
        dropped: list[Dropped] = []
        for scene in self.scenes:
            for project in scene.projects:
                if only and scene.kind not in only and project not in only:
                    continue
                made = make(scene, project, self._group, work, seed)
                if isinstance(made, Dropped):
                    dropped.append(made)
                    print(f"dropped {made.case_id}: {made.reason}", file=sys.stderr)
                else:
                    yield made
        for kind, count in sorted(Counter(each.kind for each in dropped).items()):
            print(f"dropped {count} of {kind}", file=sys.stderr)


ENVIRONMENTS = SceneBuilder(Group.ENVIRONMENT)
"""Faults of the machine, and similar faults of the project itself."""

GUARDS = SceneBuilder(Group.GUARD)
"""Findings of guards and of criteria other than tests, and aborted runs."""
