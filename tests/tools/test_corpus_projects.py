"""Tests that the descriptions of decoys and honest controls are complete, before any project is built."""

import ast
import fnmatch
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools" / "corpus" / "builders"))

import controls
import decoys
from bundles import CONTROL_KINDS, DECOY_KINDS, Change, SmallProject, small_projects
from edits import changed_files

PROJECTS = small_projects()
each_project = pytest.mark.parametrize("project", PROJECTS, ids=[each.name for each in PROJECTS])

BROKEN_ON_PURPOSE = {"syntax-error-in-product", "syntax-error-in-test"}


def test_every_kind_of_decoy_and_control_occurs():
    assert {decoy.kind for project in PROJECTS for decoy in project.decoys} == set(DECOY_KINDS)
    assert {change.kind for project in PROJECTS for change in project.controls} == set(CONTROL_KINDS)


@each_project
def test_every_project_compiles_before_and_after_each_change(project: SmallProject):
    compiles(project.files)
    for change in (*project.decoys, *project.controls):
        after = changed_files(project.files, change.edits)
        assert after != project.files, change.kind
        if change.kind not in BROKEN_ON_PURPOSE:
            compiles({path: text for path, text in after.items() if project.files.get(path) != text})


@each_project
def test_every_decoy_has_a_complete_label_and_a_name_of_its_own(project: SmallProject):
    for decoy in project.decoys:
        label = decoys.label_of(decoy)
        assert all(reading.why for reading in label.also), decoy.kind
        assert len(set(label.readings)) == len(label.readings), decoy.kind
        assert decoys.criteria_of(decoy)["tests"][0]["cmd"].startswith("pytest "), decoy.kind
        assert decoy.one("test").partition("::")[0] in project.files, decoy.kind
    names = [decoys.case_name(project, decoy) for decoy in project.decoys]
    assert len(set(names)) == len(names)


@each_project
def test_the_plan_of_a_control_change_allows_the_files_it_touches(project: SmallProject):
    assert len({change.kind for change in project.controls}) == len(project.controls)
    for change in project.controls:
        assert not outside(project, change), change.kind


def outside(project: SmallProject, change: Change) -> list[str]:
    globs = controls.granted(project, change)
    paths = [edit.path for edit in change.edits]
    return [path for path in paths if globs and not any(fnmatch.fnmatch(path, glob) for glob in globs)]


def compiles(files: dict[str, str]):
    for path, text in files.items():
        if path.endswith(".py"):
            ast.parse(text, filename=path)
