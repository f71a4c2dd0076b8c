"""`planverify qualify` finds checks that prove nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from real_command import planverify
from real_planner import forked

TESTS = """\
import pathlib

import calc

COUNT = pathlib.Path(__file__).with_suffix(".count")

def test_hollow(): assert calc.add
def test_multiply(): assert calc.multiply(2, 3) == 6
def test_asks_for_what_nobody_has(no_such_fixture): pass
def test_now_and_then():
    count = int(COUNT.read_text()) if COUNT.exists() else 0
    COUNT.write_text(str(count + 1))
    assert count % 2
"""


def check(name: str) -> str:
    return f"python -m pytest tests/test_calc.py::{name}"


TODOS: list[dict[str, Any]] = [
    {"id": "hollow", "verify": check("test_hollow")},
    {
        "id": "multiply",
        "acceptance_criteria": {
            "tests": [{"cmd": check("test_multiply")}, {"cmd": "python -m compileall -q calc.py"}]
        },
    },
    {"id": "random", "verify": check("test_now_and_then")},
    {"id": "fixture", "verify": check("test_asks_for_what_nobody_has")},
    {"id": "missing", "verify": "python -m pytest tests/test_nowhere.py"},
    {
        "id": "planned",
        "verify": "python -m pytest tests/test_new.py",
        "allowed_files": ["tests/test_new.py"],
    },
    {"id": "claimed", "status": "claimed", "verify": check("test_hollow")},
]

EXPECTED = {
    "hollow verify": "vacuous",
    "multiply tests[0]": "red_ok",
    "multiply tests[1]": "vacuous",
    "random verify": "unstable",
    "fixture verify": "unrunnable",
    "missing verify": "unrunnable",
    "planned verify": "red_ok",
}


def write(root: Path, todos: list[dict[str, Any]]) -> None:
    (root / "tests").mkdir(parents=True)
    (root / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (root / "tests" / "test_calc.py").write_text(TESTS)
    (root / "pytest.ini").write_text("[pytest]\naddopts = --planverify-confirm=0\n")
    items = [{"title": each["id"], **each} for each in todos]
    (root / "plan.yaml").write_text(json.dumps({"todo_list_id": "calc", "items": items}))


class Qualified:
    """A project after `planverify qualify`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        write(root, TODOS)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        self.before = self.files()
        self.done = planverify("qualify", "--runs", "2", cwd=root)
        self.file = root / ".planverify/plans/calc/qualification.json"
        self.document = json.loads(self.file.read_text())

    def files(self) -> dict[str, str]:
        """Return the text of every file, except records and caches."""
        return {
            path.relative_to(self.root).as_posix(): path.read_text()
            for path in self.root.rglob("*")
            if path.is_file()
            and path.suffix not in (".pyc", ".count")
            and not {".planverify", ".git", ".pytest_cache"} & {*path.relative_to(self.root).parts}
        }


@pytest.fixture(scope="module")
def qualified(tmp_path_factory: pytest.TempPathFactory) -> Qualified:
    return Qualified(tmp_path_factory.mktemp("qualified") / "project")


def test_qualify_classifies_each_check_of_an_open_todo(qualified: Qualified):
    found = {
        f"{each['todo_id']} {each['check_id']}": each["quality"] for each in qualified.document["checks"]
    }

    assert found == EXPECTED, qualified.done.stdout + qualified.done.stderr
    assert qualified.document["skipped"] == ["claimed"]


def test_qualify_prints_reasons_and_remedies(qualified: Qualified):
    text = " ".join(qualified.done.stdout.split())  # the output is wrapped

    assert qualified.done.returncode == 1
    assert "it passes before the work (2 of 2 times)" in text
    assert "add a test that fails now" in text
    assert "2 red_ok, 2 unrunnable, 1 unstable, 2 vacuous" in text
    assert "not qualified, because claimed already: claimed" in text
    assert "Traceback" not in text + qualified.done.stderr


def test_qualify_leaves_the_tree_unchanged(qualified: Qualified):
    assert qualified.files() == qualified.before


def test_good_checks_give_exit_status_0_and_a_command_may_pass_beside_them(tmp_path: Path):
    root = tmp_path / "project"
    commands = [{"cmd": cmd} for cmd in (check("test_multiply"), "python -m compileall -q calc.py")]
    write(root, [{"id": "multiply", "acceptance_criteria": {"tests": commands}}])

    done = planverify("qualify", "--runs", "1", cwd=root)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 red_ok, 1 vacuous" in done.stdout
    assert "a command may pass beside a check of the todo that is red_ok" in " ".join(done.stdout.split())
    assert "  fix " not in done.stdout


def test_invalid_number_of_runs_is_a_usage_error(tmp_path: Path):
    root = tmp_path / "project"
    write(root, [{"id": "a", "verify": check("test_hollow")}])

    ran = forked(("qualify", "--runs", "0"), root, program="planverify")

    assert ran.status == 2
    assert "Invalid value for '--runs'" in ran.err
