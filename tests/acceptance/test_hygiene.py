"""Changes since the baseline that manipulate a verdict are hygiene violations of the todos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from example_project import Example, Verified, todo
from real_command import planverify
from real_planner import forked

FILES = {
    "conftest.py": "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n",
    "pytest.ini": "[pytest]\naddopts = -q --planverify-confirm=0\n",
    ".gitignore": "__pycache__/\n.planverify/\n",
    "calc.py": "def add(a, b):\n    return a - b\n",
    "text.py": "def shout(word):\n    return word\n",
    "tests/test_add.py": "import calc\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n",
    "tests/test_text.py": "import text\n\ndef test_shout():\n    assert text.shout('a') == 'A'\n",
    "tests/test_own.py": "import text\n\ndef test_kept():\n    assert text.shout('A') == 'A'\n",
}
TODOS = (
    todo("adds", "pytest tests/test_add.py", allowed_files=["calc.py"]),
    todo("shouts", "pytest tests/test_text.py", allowed_files=["text.py"]),
    todo("tests", "pytest tests/test_own.py", allowed_files=["tests/test_own*.py"]),
)
HONEST = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "text.py": "def shout(word):\n    return word.upper()\n",
    "tests/test_own.py": "import pytest\nimport text\n\n@pytest.mark.parametrize('word', ['A', 'B'])\n"
    "def test_kept(word):\n    assert text.shout(word) == word\n",
}
CHEATS = {
    "calc.py": FILES["calc.py"],
    "tests/test_add.py": "import calc\n\ndef test_add():\n    assert calc.add(1, 2) is not None\n",
    "text.py": "import sys\n\ndef shout(word):\n    return 'A' if 'py' + 'test' in sys.modules else word\n",
}


class Project(Example):
    """An example project that runs `planverify` commands."""

    def planverify(self, *args: str) -> None:
        done = planverify(*args, cwd=self.root)
        assert done.returncode == 0, done.stdout + done.stderr

    def accept(self, *args: str) -> str:
        """Run `planverify baseline accept`, and return its output."""
        ran = forked(("baseline", "accept", *args), self.root, program="planverify", merged=True)
        assert ran.status == 0, ran.out
        return ran.out


def hygiene_failure(run: Verified, todo_id: str) -> dict[str, Any]:
    found = [each for each in run.outcomes[todo_id]["failures"] if each["category"] == "HYGIENE_VIOLATION"]
    (failure,) = found
    return failure


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verified]:
    """Return runs after one baseline: of honest work, of cheats, and after a person accepted one cheat."""
    project = Project(tmp_path_factory.mktemp("hygiene") / "calc", FILES)
    project.plan(*TODOS)
    project.planverify("baseline", "plan.yaml")
    project.write(HONEST)
    runs = {"honest": project.verify("plan.yaml")}
    project.write(CHEATS)
    runs["cheats"] = project.verify("plan.yaml")
    project.accept("adds", "plan.yaml", "--reason", "any sum will do")
    runs["blessed"] = project.verify("plan.yaml")
    named = ("--file", "text.py", "--file", "no such.py")
    said = project.accept("shouts", *named, "--reason", "it is a drill")
    assert "not accepted: no such.py does not exist" in said
    runs["all accepted"] = project.verify("plan.yaml")
    return runs


def test_honest_work_has_no_hygiene_violation(runs: dict[str, Verified]) -> None:
    assert runs["honest"].exit_code == 0, str(runs["honest"])
    document = runs["honest"].document
    assert document is not None
    assert document["run"]["hygiene"].startswith("clean: checked against the baseline of ")


def test_a_tampered_test_is_a_violation_of_the_todo_it_judges(runs: dict[str, Verified]) -> None:
    run = runs["cheats"]
    assert run.exit_code == 13, str(run)
    assert run.document is not None
    assert run.document["run"]["hygiene"].startswith("violated: checked against the baseline of ")
    assert (run.check("adds")["verdict"], run.check("adds", "hygiene")["verdict"]) == ("passed", "failed")
    failure = hygiene_failure(run, "adds")
    assert failure["rule"] == "judge-tampered"
    assert failure["location"]["path"] == "tests/test_add.py"
    assert "asserts less" in run.check("adds", "hygiene")["reason"]


def test_a_manipulation_in_product_code_is_a_violation_of_its_todo_only(runs: dict[str, Verified]) -> None:
    run = runs["cheats"]
    checks = (run.check("shouts"), run.check("shouts", "hygiene"))
    assert [check["verdict"] for check in checks] == ["passed", "failed"]
    location = hygiene_failure(run, "shouts")["location"]
    assert (location["path"], location["line"]) == ("text.py", 4)
    assert "hygiene" not in [check["id"] for check in run.outcomes["tests"]["checks"]]


def test_changed_tools_and_commands_of_the_plan_are_detected(tmp_path: Path) -> None:
    project = Project(tmp_path / "calc", FILES | HONEST)
    named = {"name": "in-order", "argv": ["sort", "--check"]}
    looser = {"name": "in-order", "argv": ["sort"]}
    ordered = todo("ordered", "in-order pytest.ini", allowed_files=["pytest.ini"])
    project.plan(TODOS[0], ordered, metadata={"tools": [named]})
    project.planverify("baseline", "plan.yaml")
    changed = todo("adds", "pytest tests/test_own.py", allowed_files=["calc.py"])
    project.plan(changed, ordered, metadata={"tools": [looser]})

    run = project.verify("plan.yaml")

    assert run.exit_code == 13, str(run)
    failure = hygiene_failure(run, "adds")
    assert (failure["rule"], failure["location"]["path"]) == ("judge-tampered", "plan.yaml")
    said = "The todo adds requires less (command: pytest tests/test_add.py) (plan.yaml) (and 1 more)"
    assert run.check("adds", "hygiene")["reason"] == said


def test_an_accepted_change_is_no_violation(runs: dict[str, Verified]) -> None:
    run = runs["blessed"]
    assert run.verdicts["adds"] == "passed", str(run)
    assert run.verdicts["shouts"] == {"tests[0]": "passed", "hygiene": "failed"}
    assert run.exit_code == 13
    assert "baseline accept shouts --file text.py --reason" in hygiene_failure(run, "shouts")["suggestion"]


def test_a_suspected_file_of_the_product_can_be_accepted(runs: dict[str, Verified]) -> None:
    run = runs["all accepted"]
    assert run.states["shouts"] == "done", str(run)
    assert run.exit_code == 1, str(run)


def test_a_module_named_pytest_does_not_replace_pytest(tmp_path: Path) -> None:
    project = Project(tmp_path / "calc", FILES | {"pytest.py": "print('1 passed')\n"})
    project.plan(TODOS[0])
    done = planverify("verify", "plan.yaml", cwd=project.root)
    assert done.returncode == 1, done.stdout + done.stderr
