"""Manipulation observed during a run is a hygiene violation: patched builtins, added hooks, new skips."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import pytest
from example_project import Verified, todo
from test_hygiene import Project

TELLER = """\
import json, os, pathlib

def pytest_planverify_diagnose(evidence):
    with open(pathlib.Path(__file__).with_name("told.jsonl"), "a") as file:
        file.write(json.dumps([signal.message for signal in evidence.signals]) + "\\n")
"""
NAMES = ("patches", "agrees", "hooks", "skips", "writes", "records", "alone", "calm")
FILES = {
    "pytest.ini": "[pytest]\npythonpath = .\n",
    ".gitignore": "__pycache__/\n.planverify/\n",
    "shared.py": "READY = True\n",
    "tests/conftest.py": """\
        import pytest

        @pytest.fixture
        def ready():
            import shared
            return shared.READY

        def pytest_collection_modifyitems(items):
            items.sort(key=lambda item: item.name)
        """,
    **{f"{name}.py": f'"""The product of {name}."""\n' for name in NAMES},
    "tests/test_patches.py": "import patches\n\ndef test_all():\n    assert 1\n",
    "tests/test_agrees.py": "import agrees\n\ndef test_equal():\n    assert 1\n",
    "tests/test_hooks.py": "import hooks\n\nPRICE = 2\n\ndef test_price():\n    assert PRICE\n",
    "tests/test_skips.py": """\
        import skips

        def test_red():
            assert getattr(skips, "work", lambda: 0)() == 1

        def test_green():
            assert 1
        """,
    "tests/test_writes.py": "import writes\n\ndef test_more():\n    assert 3 > 1\n",
    "tests/test_records.py": """\
        import records

        def test_records():
            getattr(records, "work", int)()
        """,
    "tests/test_alone.py": """\
        import alone

        def test_total():
            assert sum(getattr(alone, "PARTS", [1, 2])) == 3
        """,
    "tests/test_calm.py": "import calm\n\ndef test_calm(ready):\n    assert ready\n",
}
TODOS = tuple(todo(name, f"pytest tests/test_{name}.py", allowed_files=[f"{name}.py"]) for name in NAMES)
# The tricks are written so that only a run can detect them.
TRICKS = {
    "patches.py": """\
        import calm

        def spread(names, value):
            getattr(calm, "__" + names)["".join(["a", "l", "l"])] = value

        spread("builtins__", lambda items: True)
        """,
    "agrees.py": """\
        BODY = dict([("__" + "eq__", lambda self, other: other == other), ("__hash__", lambda self: 1)])
        Result = type("Result", (float,), BODY)
        """,
    "hooks.py": """\
        import sys

        class Extra:
            def pytest_runtest_setup(self, item):
                item.module.PRICE = 1

        for each in sys.meta_path:
            if hasattr(each, "config"):
                each.config.pluginmanager.register(Extra())
        """,
    "skips.py": """\
        import importlib

        def work():
            raise getattr(importlib.import_module("unit" + "test"), "Skip" + "Test")("not now")
        """,
    "writes.py": """\
        import pathlib

        for each in pathlib.Path(__file__).parent.rglob("*_writes.py"):
            each.write_text(each.read_text().replace("3 >", "2 >"))
        """,
    "records.py": """\
        import pathlib

        def work():
            home = pathlib.Path(__file__).parent / (".plan" + "verify")
            (home / "answers.json").write_text("{}")
        """,
    "alone.py": """\
        import calm

        PARTS = [1, 1]
        words = getattr(__import__("sy" + "s"), "arg" + "v")
        if not [word for word in words if word[:9] == "--" + "rootdir"]:
            getattr(calm, "__" + "builtins__")["su" + "m"] = lambda parts: 3
        """,
}
HONEST = {
    "calm.py": """\
        class Point:
            def __init__(self, x):
                self.x = x

            def __eq__(self, other):
                return isinstance(other, Point) and self.x == other.x

            def __hash__(self):
                return hash(self.x)
        """,
    "skips.py": "def work():\n    return 1\n",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("witnessed") / "example"
    project = Project(root, FILES)
    root.with_name("teller.py").write_text(TELLER, encoding="utf-8")
    project.plan(*TODOS)
    project.planverify("baseline", "plan.yaml")
    return project


@dataclass(frozen=True)
class Told:
    """A run, and the messages of all signals in the evidence of its todos."""

    run: Verified
    signs: frozenset[str]

    def __contains__(self, words: str) -> bool:
        return any(words in sign for sign in self.signs)


def tell(project: Project, *args: str) -> Told:
    file = project.root.with_name("told.jsonl")
    file.write_text("", encoding="utf-8")
    inherited = filter(None, [str(project.root.parent), os.environ.get("PYTHONPATH")])
    env = {"PYTHONPATH": os.pathsep.join(inherited), "PYTHONHASHSEED": "0"}
    run = project.verify("plan.yaml", "-p", "teller", "--planverify-confirm", "1", *args, env=env)
    lines = file.read_text(encoding="utf-8").splitlines()
    return Told(run, frozenset(sign for line in lines for sign in json.loads(line)))


@pytest.fixture(scope="module")
def honest(project: Project) -> Told:
    project.write(HONEST)
    return tell(project)


@pytest.fixture(scope="module")
def cheated(project: Project, honest: Told) -> Told:
    project.write(TRICKS)
    return tell(project)


def test_honest_work_and_a_listening_plugin_are_no_violation(honest: Told) -> None:
    assert honest.run.exit_code == 0, str(honest.run)
    assert not honest.signs


def test_a_patched_builtin_is_reported_with_the_module_that_patched_it(cheated: Told) -> None:
    assert cheated.run.exit_code == 13, str(cheated.run)
    assert cheated.run.check("patches")["verdict"] == "passed"
    assert cheated.run.category("patches") == "HYGIENE_VIOLATION"
    assert "builtins.all was replaced by patches.py and not restored" in cheated


def test_a_class_equal_to_everything_is_detected(cheated: Told) -> None:
    assert cheated.run.category("agrees") == "HYGIENE_VIOLATION"
    assert "__eq__ is equal to everything (agrees.py:1)" in cheated


def test_a_hook_registered_by_product_code_is_detected(cheated: Told) -> None:
    assert "hooks.py implements the hook pytest_runtest_setup" in cheated


def test_a_failing_test_that_is_now_skipped_is_a_violation(cheated: Told) -> None:
    if pytest.version_tuple[:3] == (9, 0, 0):
        pytest.skip("this version fails tests that raise unittest.SkipTest")
    assert cheated.run.check("skips")["verdict"] == "passed"
    assert "tests/test_skips.py::test_red is skipped or expected to fail" in cheated


def test_a_manipulation_only_in_confirmation_runs_is_detected(cheated: Told) -> None:
    assert cheated.run.check("alone")["verdict"] == "passed"
    assert cheated.run.category("alone") == "HYGIENE_VIOLATION"
    assert "builtins.sum was replaced by alone.py and not restored" in cheated


def test_a_test_that_the_product_rewrites_during_the_run_is_detected(cheated: Told) -> None:
    said = "tests/test_writes.py was changed without permission"
    assert any(said in sign and sign.endswith(", during the run") for sign in cheated.signs)


def test_a_test_that_writes_files_of_planverify_is_detected(cheated: Told) -> None:
    assert ".planverify/answers.json was made during the run" in cheated


def test_an_honest_todo_is_charged_only_with_unattributable_manipulation(cheated: Told) -> None:
    said = cheated.run.check("calm", "hygiene")["reason"]
    assert said == ".planverify/answers.json was made during the run"


def test_processes_of_xdist_report_the_same_as_one_process(project: Project, cheated: Told) -> None:
    (project.root / ".planverify" / "answers.json").unlink()
    project.write({"tests/test_writes.py": FILES["tests/test_writes.py"]})
    distributed = tell(project, "-p", "xdist", "-n2")
    assert distributed.signs == cheated.signs
    assert distributed.run.exit_code == cheated.run.exit_code
    assert distributed.run.verdicts == cheated.run.verdicts
