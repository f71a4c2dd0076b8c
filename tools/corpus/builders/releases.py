"""Build cases of real work: the tests of one release of a package on the source of an older one.

The older release lacks what the newer one brought, so that the label is known without planting a fault.
``releases.yaml`` names packages and labels.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import yaml
from packages import Package, commit, unpacked
from recording import plan_of, record

from planner.model.evidence import Evidence
from planner.model.taxonomy import Category, Owner, Repeatability
from pytest_planverify.diagnosis import signature
from tools.corpus.case import Case, Gates, Group, Label, Origin, Place, Reading

KINDS = {
    "release-unwritten": "The tests of a release are committed on the product of the release before.",
    "release-tests-first": "The tests of a release are the change, on the product of the release before.",
    "release-set-back": "The product was set back to the release before: that is the change.",
    "release-as-published": "Nothing was changed, and the machine lacks what the project asks for.",
}
_ENTRIES: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("releases.yaml").read_text("utf-8")
)
CONFIRMATIONS = 2
MOST_CASES, MOST_LARGE = 6, 2
"""Most cases of one package and layout, each with another signature; and most of these that are large."""
LARGE = 40_000
"""Characters from which a case is large, as each of its cases contains the changes of a whole release."""


def build(work: Path, seed: int, only: Collection[str] = ()) -> Iterator[Case]:
    """Build the cases of every package and layout; ``only`` names packages or kinds."""
    for entry in _ENTRIES:
        for layout in entry["layouts"]:
            kind = f"release-{layout}"
            if not only or entry["package"] in only or kind in only:
                yield from _cases(entry, kind, _laid_out(entry, layout, work))


def _laid_out(entry: dict[str, Any], layout: str, work: Path) -> Path:
    """Return a repository with the newer tests and the source that the layout determines."""
    old, new = (unpacked(_package(entry, which), work / which) for which in ("old", "new"))
    project, source = work / "projects" / f"{entry['package']}-{layout}", entry["source"]
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(old if layout == "tests-first" else new, project)
    for name in entry.get("without", ()):
        (project / name).unlink()
    if layout == "unwritten":
        _replace(old / source, project / source)
    commit(project)
    if layout == "set-back":
        _replace(old / source, project / source)
    elif layout == "tests-first":
        _replace(new / "tests", project / "tests")
    return project


def _package(entry: dict[str, Any], which: str) -> Package:
    pinned = entry[which]
    return Package(
        name=entry["package"], sources=entry["source"], tests="tests", cases=MOST_CASES, **pinned
    )


def _replace(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def _cases(entry: dict[str, Any], kind: str, project: Path) -> Iterator[Case]:
    todos = {f"work{number}": {"tests": [{"cmd": each}]} for number, each in enumerate(entry["commands"])}
    path = project / entry.get("import_path", ".")
    recording = record(
        project,
        plan_of(todos),
        environment={"PYTHONPATH": str(path)},
        confirmations=CONFIRMATIONS,
    )
    made: dict[str, Evidence] = {}
    for evidence in recording.evidence:
        made.setdefault(signature(evidence, Category.UNKNOWN), evidence)
    large = 0
    for number, evidence in enumerate(list(made.values())[:MOST_CASES]):
        large += len(evidence.model_dump_json(exclude_defaults=True)) > LARGE
        if large > MOST_LARGE:
            break
        label = _label(entry, evidence)
        if label is None:
            print(f"{entry['package']}: dropped {evidence.nodeid}: no label", file=sys.stderr)
            continue
        answers = [each.passed for each in evidence.confirmations]
        yield Case(
            id=f"{project.name}-{number}" if kind != "release-as-published" else project.name,
            group=Group.RELEASE,
            origin=Origin(
                package=entry["package"],
                version=entry["new"]["version"],
                sha256=entry["new"]["sha256"],
                kind=kind,
                before=str(entry["old"]["version"]),
                after=str(entry["new"]["version"]),
                python=".".join(map(str, sys.version_info[:3])),
            ),
            # That the newer tests are green on the newer source was seen by who wrote the label.
            gates=Gates(green_before=True, red_runs=1 + answers.count(False), runs=1 + len(answers)),
            label=label,
            evidence=evidence,
        )


def _label(entry: dict[str, Any], evidence: Evidence) -> Label | None:
    for start, category, owner, path, *also in entry["labels"]:
        if (evidence.nodeid or "").startswith(start):
            others = (each.split() for each in also)
            return Label(
                category=Category(category),
                owner=Owner(owner),
                repeatability=Repeatability.DETERMINISTIC if evidence.nodeid else None,
                place=Place(path=path) if path else None,
                also=tuple(
                    Reading(category=Category(one), owner=Owner(other), why="the failure can be read so")
                    for one, other in others
                ),
            )
    return None
