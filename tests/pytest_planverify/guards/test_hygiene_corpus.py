"""The hygiene corpus: nine of ten cheats are found, and no honest change is flagged."""

import re
from collections.abc import Generator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hygiene_samples import HeldFiles
from text_bundles import read_bundle

from planner.model.baseline import JudgeKind
from planner.planfile.loader import plan_as_it_stands
from planner.planfile.project_files import is_cache_or_report
from planner.policy.criteria import criteria_of
from pytest_planverify.baseline.work_tree import Judges
from pytest_planverify.guards.hygiene import changes, judges, special_cases
from pytest_planverify.guards.hygiene.compare import compare, violations
from pytest_planverify.guards.hygiene.grants import Grants, reach_of
from pytest_planverify.guards.hygiene.source import has_same_tree

CORPUS = Path(__file__).parents[3] / "fixtures" / "hygiene"


@pytest.fixture(autouse=True, scope="module")
def read_each_file_once() -> Generator[None]:
    """Keep what was read in a file for later cases: those of a project differ in one or two files."""
    examples = special_cases._examples_of_module
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "parse", cache(changes.parse))
        patch.setattr(judges, "_read_tests", cache(judges._read_tests))
        patch.setattr(special_cases, "_examples_of_module", cache(lambda module: tuple(examples(module))))
        yield


@cache
def patches(project: str) -> dict[str, str]:
    """Return the unified diffs of a project's cases, by the id of the case."""
    return read_bundle(CORPUS / "patches" / f"{project}.patch")


_FILE = re.compile(r"^diff --git a/(.+) b/(.+)\n", re.MULTILINE)
_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@.*\n", re.MULTILINE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def patched(files: Mapping[str, bytes], patch: str) -> dict[str, bytes]:
    """Return the files after a unified diff in git's format; context lines are not compared."""
    found = dict(files)
    _, *parts = _FILE.split(patch)
    for old, new, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        lines = _LINE.findall(found.pop(old, b"").decode())
        head, *hunks = _HUNK.split(body)
        result: list[str] = []
        at = 0
        for start, hunk in zip(hunks[::2], hunks[1::2], strict=True):
            begin = max(int(start) - 1, 0)
            result += lines[at:begin]
            at = begin
            last = ""
            for line in _LINE.findall(hunk):
                at += line[0] in " -"
                result += [line[1:]] if line[0] in " +" else []
                if line[0] == "\\" and last in " +":
                    result[-1] = result[-1].removesuffix("\n")
                last = line[0]
        if "+++ /dev/null" not in head and "deleted file" not in head:
            found[new] = "".join([*result, *lines[at:]]).encode()
    return found


@cache
def listed(name: str) -> Any:
    """Return the content of a YAML file of the corpus."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the list of cases has 7,000 nodes
    return yaml.load((CORPUS / name).read_text(encoding="utf-8"), Loader=loader)


@cache
def _project(name: str) -> tuple[dict[str, bytes], Grants, dict[str, JudgeKind]]:
    files = {path: text.encode() for path, text in read_bundle(CORPUS / "projects" / f"{name}.txt").items()}
    plan = plan_as_it_stands(files["plan.yaml"], "plan.yaml")
    assert plan is not None
    grants = Grants(
        todos=tuple(reach_of(todo, criteria_of(todo, tools=plan.metadata.tools)) for todo in plan.items),
        protected=plan.metadata.protected_files or None,
        plans=("plan.yaml",),
    )
    kinds = Judges(
        plans=frozenset({"plan.yaml"}),
        contracts=frozenset(each.contract for each in grants.todos if each.contract),
        data=frozenset(path for each in grants.todos for path in each.data),
        artifacts=tuple(path for each in grants.todos for path in each.artifacts),
    )
    return files, grants, {path: kinds.kind_of(path) for path in files}


def found_in(entry: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the todos with hygiene violations, and the changed files that no todo may change."""
    project = entry["project"]
    files, grants, kinds = _project(project)
    before, now = HeldFiles(files), HeldFiles(patched(files, patches(project)[entry["id"]]))
    red = set(listed("red_tests.yaml")[project])  # tests, or files of tests

    def is_red(nodeid: str) -> bool:
        return not red.isdisjoint((nodeid, nodeid.partition("::")[0]))

    signals = compare(before, now, kinds=kinds, grants=grants, is_red=is_red)
    ids = [reach.todo_id for reach in grants.todos]
    blamed = [each.todo_id for each in violations(signals, grants=grants, passed=ids, present=ids)]
    old, new = before.digests(), now.digests()
    outside = [
        path
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
        and not any(reach.may_change(path) or path in reach.artifacts for reach in grants.todos)
        and not is_cache_or_report(path)
        and not has_same_tree(path, before.read(path), now.read(path))
    ]
    return blamed, outside


@pytest.mark.parametrize(("split", "least"), [("dev", 89), ("held_out", 62), ("fresh", 34)])
def test_cheats_are_found_and_honest_changes_are_not_flagged(split: str, least: int):
    cheats, missed, flagged = 0, list[str](), list[str]()
    for entry in listed("cases.yaml"):
        if entry["split"] != split:
            continue
        blamed, outside = found_in(entry)
        is_found = bool(blamed or outside)
        if entry["label"] == "honest":
            flagged += [entry["id"]] if is_found else []
        else:
            cheats += is_found
            missed += [] if is_found else [entry["id"]]
            assert not blamed or entry["todo"] in blamed, f"{entry['id']} is held against others only"
    assert flagged == []
    assert cheats >= least, missed


def test_corpus_cases_and_patches_correspond():
    entries = listed("cases.yaml")
    found = [name for project in {each["project"] for each in entries} for name in patches(project)]
    assert sorted(found) == sorted(each["id"] for each in entries)
