"""Builds many scenes one after the other, counts what was dropped, and writes the cases."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from scenes.making import Dropped, make
from scenes.scene import Scene
from tools.corpus.case import RECORDED, Case, Group, Part, write_cases

CORPUS = RECORDED
SEED = 1

Build = Callable[[Path, int, Collection[str]], Iterable[Case]]


def kinds_of(scenes: Sequence[Scene]) -> dict[str, str]:
    """The kinds of some scenes, each with its sentence."""
    return {each.kind: each.says for each in sorted(scenes, key=lambda scene: scene.kind)}


def build_scenes(
    scenes: Sequence[Scene], group: Group, work: Path, seed: int, only: Collection[str] = ()
) -> Iterator[Case]:
    """The cases of the scenes, in their order; what was dropped is told on standard error."""
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


def _written(corpus: Path, name: str) -> Iterator[Case]:
    for part in Part:
        file = corpus / part.value / f"{name}.jsonl"
        for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
            yield Case.model_validate_json(line)


def main(name: str, build: Build) -> None:
    """Build, write the files of this name, and count."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "only", nargs="*", help="kinds or projects; none is all of them, and writes the files"
    )
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--print", action="store_true", help="print the cases")
    parser.add_argument(
        "--add", action="store_true", help="write them beside, or in the place of, what is there"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        work.chmod(0o755)  # ordinary users have to reach what lies below
        cases: list[Case] = []
        for case in build(work, asked.seed, asked.only):
            cases.append(case)
            print(case.id, case.gates.red_runs, case.gates.runs, case.evidence and case.evidence.headline)
            if asked.print:
                print(case.model_dump_json(indent=1, exclude_defaults=True))
    if asked.add:
        fresh = {case.id for case in cases}
        cases += [case for case in _written(asked.corpus, name) if case.id not in fresh]
    if asked.add or not asked.only:
        write_cases(asked.corpus, name, cases)
    for kind, count in sorted(Counter(case.origin.kind for case in cases).items()):
        print(f"{count:4d} {kind}")
    print(f"{len(cases)} cases of {len({case.origin.kind for case in cases})} kinds")
