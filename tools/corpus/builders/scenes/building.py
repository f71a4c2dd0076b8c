"""Build many scenes one after the other, and count the dropped ones."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from scenes.making import Dropped, make
from scenes.scene import Scene
from tools.corpus.case import Case, Group


def kinds_of(scenes: Sequence[Scene]) -> dict[str, str]:
    """Return the kinds of some scenes, each with its sentence."""
    return {each.kind: each.says for each in sorted(scenes, key=lambda scene: scene.kind)}


def build_scenes(
    scenes: Sequence[Scene], group: Group, work: Path, seed: int, only: Collection[str] = ()
) -> Iterator[Case]:
    """Yield the cases of the scenes, in their order; dropped scenes are reported on standard error."""
    dropped: list[Dropped] = []
    for scene in scenes:
        for project in scene.projects:
            if only and scene.kind not in only and project not in only:
                continue
            made = make(scene, project, group, work, seed)
            if isinstance(made, Dropped):
                dropped.append(made)
                print(f"dropped {made.case_id}: {made.reason}", file=sys.stderr)
            else:
                yield made
    for kind, count in sorted(Counter(each.kind for each in dropped).items()):
        print(f"dropped {count} of {kind}", file=sys.stderr)
