"""The corpus of cheats and honest changes: applies each patch and yields the tree before and after it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hygiene_samples import HeldFiles
from text_bundles import read_bundle, unpack_bundle

from planner.model.baseline import JudgeKind
from planner.model.evidence import HygieneSignal
from planner.planfile.loader import plan_as_it_stands
from pytest_planverify.baseline.kinds import Judges
from pytest_planverify.guards.allowlist import is_cache
from pytest_planverify.guards.hygiene import Grants, compare, violations
from pytest_planverify.guards.hygiene.source import has_same_tree

CORPUS = Path(__file__).parents[2] / "fixtures" / "hygiene"


@dataclass(frozen=True)
class Case:
    """One change of one project."""

    id: str
    project: str
    label: str
    todo: str
    kind: str
    note: str
    before: HeldFiles
    now: HeldFiles
    grants: Grants
    kinds: dict[str, JudgeKind]

    def signals(self) -> tuple[HygieneSignal, ...]:
        red = frozenset(_red_tests()[self.project])

        def is_red(nodeid: str) -> bool:
            return nodeid in red or nodeid.partition("::")[0] in red

        return compare(self.before, self.now, kinds=self.kinds, grants=self.grants, is_red=is_red)

    def blamed(self) -> list[str]:
        """Return the todos that hygiene holds something against."""
        passed = [reach.todo_id for reach in self.grants.todos]
        return [each.todo_id for each in violations(self.signals(), grants=self.grants, passed=passed)]

    def outside(self) -> list[str]:
        """Return the changed files that the allowlist holds against todos."""
        old, new = self.before.digests(), self.now.digests()
        return [
            path
            for path in sorted({*old, *new})
            if old.get(path) != new.get(path)
            and not any(reach.may_change(path) for reach in self.grants.todos)
            and not any(path in reach.artifacts for reach in self.grants.todos)
            and not is_cache(path)
            and not has_same_tree(path, self.before.read(path), self.now.read(path))
        ]


def cases(split: str, folder: Path, *, label: str | None = None) -> Iterator[Case]:
    """The cases of a split; patches are applied below a folder for scratch work."""
    for entry in _entries():
        if entry["split"] == split and label in (None, entry["label"]):
            yield _case(entry, folder)


@cache
def patches(project: str) -> dict[str, str]:
    """Return the unified diffs of a project's cases, by the id of the case."""
    return read_bundle(CORPUS / "patches" / f"{project}.patch")


def project_bundle(name: str) -> Path:
    """Return the file that holds the files of a project."""
    return CORPUS / "projects" / f"{name}.txt"


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


@cache
def _entries() -> list[dict[str, Any]]:
    return yaml.safe_load((CORPUS / "cases.yaml").read_text(encoding="utf-8"))


@cache
def _red_tests() -> dict[str, list[str]]:
    return yaml.safe_load((CORPUS / "red_tests.yaml").read_text(encoding="utf-8"))


@cache
def _project(name: str) -> tuple[HeldFiles, Grants, dict[str, JudgeKind]]:
    files = {path: text.encode() for path, text in read_bundle(project_bundle(name)).items()}
    plan = plan_as_it_stands(files["plan.yaml"], "plan.yaml")
    assert plan is not None
    grants = Grants.of_plan(plan, "plan.yaml")
    judges = Judges(
        plans=frozenset({"plan.yaml"}),
        contracts=frozenset(each.contract for each in grants.todos if each.contract),
        data=frozenset(path for each in grants.todos for path in each.data),
        artifacts=tuple(path for each in grants.todos for path in each.artifacts),
    )
    return HeldFiles(files), grants, {path: judges.kind_of(path) for path in files}


def _case(entry: dict[str, Any], folder: Path) -> Case:
    before, grants, kinds = _project(entry["project"])
    place = folder / entry["id"]
    unpack_bundle(project_bundle(entry["project"]), place)
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn"],
        input=patches(entry["project"])[entry["id"]].encode(),
        cwd=place,
        check=True,
        env={"GIT_CEILING_DIRECTORIES": str(folder), "PATH": "/usr/bin:/bin:/usr/local/bin"},
    )
    now = HeldFiles(files_below(place))
    shutil.rmtree(place)
    return Case(
        id=entry["id"],
        project=entry["project"],
        label=entry["label"],
        todo=entry["todo"],
        kind=entry["kind"],
        note=entry["note"],
        before=before,
        now=now,
        grants=grants,
        kinds=kinds,
    )
