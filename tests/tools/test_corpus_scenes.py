"""Tests of the small projects that show environment and guard faults in the corpus."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

from planner.model.taxonomy import Category

CORPUS = Path(__file__).parents[2] / "tools" / "corpus" / "builders"
sys.path.insert(0, str(CORPUS))

from scenes.making import (  # noqa: E402 - the folder has to be on the path first
    ENVIRONMENTS,
    GUARDS,
    edited,
    files_of,
    in_style,
    naming,
)
from scenes.scene import PROJECTS, STAND_INS, Scene, Style  # noqa: E402

GROUPS = {"environment": ENVIRONMENTS.scenes, "guard": GUARDS.scenes}
PLACEHOLDER = re.compile(r"\b(PKG|ENVNAME|SRC|TESTS|NOUNS?|Noun|MODULE|PORTNUMBER)\b")
BROKEN_ON_PURPOSE = {"product-of-another-python"}


def every_scene() -> list[tuple[Scene, str]]:
    return [(scene, name) for scenes in GROUPS.values() for scene in scenes for name in scene.projects]


parse = cache(ast.parse)


def test_every_edit_changes_its_project_and_leaves_modules_that_parse():
    for scene, name in every_scene():
        named = naming(scene, PROJECTS[name], 20_000)
        before = files_of(scene, PROJECTS[name], named)
        after = edited(before, scene, named)
        assert (after != before) == bool(scene.edits), (scene.kind, name)
        for path, text in (before | after).items():
            assert not PLACEHOLDER.search(f"{path}\n{text}"), (scene.kind, name, path)
            if path.endswith(".py") and scene.kind not in BROKEN_ON_PURPOSE:
                parse(text)


def test_every_scene_has_a_fault_in_the_machine_an_edit_or_the_command():
    for scene, _ in every_scene():
        causes = (scene.edits, scene.healthy != scene.ill, scene.green_cmd)
        assert any(causes), scene.kind
        if scene.truth.category is Category.ENVIRONMENT_ERROR:
            assert not scene.edits, f"{scene.kind}: who changed it is at fault, and not the machine"


def test_every_scene_has_a_name_of_its_own():
    names = [(scene.kind, scene.shape, name) for scene, name in every_scene()]
    assert len(names) == len(set(names))


def test_machines_name_only_existing_stand_ins():
    for scene, _ in every_scene():
        assert {*scene.healthy.installed, *scene.ill.installed} <= STAND_INS.keys(), scene.kind


def test_tests_are_rewritten_in_the_test_style_of_a_project():
    source = "import a\n\n\ndef test_one():\n    assert a\n\n\ndef test_two(tmp_path):\n    assert a\n"

    written = {style: in_style(source, style, "a_b") for style in Style}

    assert written[Style.FUNCTIONS] == source
    assert "class TestAB:\n    def test_one(self):" in written[Style.CLASSES]
    assert "def test_two(self, tmp_path):" in written[Style.UNITTEST]
    assert "unittest" not in written[Style.UNITTEST], "fixtures cannot be given to a TestCase"
    assert "class ABTest(unittest.TestCase):" in in_style(
        source.replace("tmp_path", ""), Style.UNITTEST, "a_b"
    )
