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
    todo("ordered", "in-order pytest.ini", allowed_files=["pytest.ini"]),
)
TOOL = {"name": "in-order", "argv": ["sort", "--check"]}
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

    def planverify(self, *words: str) -> str:
        """Run a command that has to succeed, and return its output."""
        ran = forked(words, self.root, program="planverify", merged=True)
        assert ran.status == 0, ran.out
        return ran.out

    def accept(self, *words: str) -> str:
        return self.planverify("baseline", "accept", *words, "--reason", "it is a drill")


def hygiene_failure(run: Verified, todo_id: str) -> dict[str, Any]:
    found = [each for each in run.outcomes[todo_id]["failures"] if each["category"] == "HYGIENE_VIOLATION"]
    (failure,) = found
    return failure


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verified]:
    """Return runs after one baseline: of honest work, of cheats, after a person accepted them, and of a
    changed plan."""
    project = Project(tmp_path_factory.mktemp("hygiene") / "calc", FILES)
    project.plan(*TODOS, metadata={"tools": [TOOL]})
    project.planverify("baseline", "plan.yaml")
    project.write(HONEST)
    runs = {"honest": project.verify("plan.yaml")}
    project.write(CHEATS)
    runs["cheats"] = project.verify("plan.yaml")
    project.accept("adds", "plan.yaml")
    runs["blessed"] = project.verify("plan.yaml")
    said = project.accept("shouts", "--file", "text.py", "--file", "no such.py")
    assert "not accepted: no such.py does not exist" in said
    runs["all accepted"] = project.verify("plan.yaml")
    changed = todo("adds", "pytest tests/test_own.py", allowed_files=["calc.py"])
    project.plan(changed, *TODOS[1:], metadata={"tools": [TOOL | {"argv": ["sort"]}]})
    runs["other plan"] = project.verify("plan.yaml")
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


def test_changed_tools_and_commands_of_the_plan_are_detected(runs: dict[str, Verified]) -> None:
    run = runs["other plan"]
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
    # A suspected file of the product can be accepted, too.
    run = runs["all accepted"]
    assert run.states["shouts"] == "done", str(run)
    assert run.exit_code == 1, str(run)


def test_a_module_named_pytest_does_not_replace_pytest(tmp_path: Path) -> None:
    project = Project(tmp_path / "calc", FILES | {"pytest.py": "print('1 passed')\n"})
    project.plan(TODOS[0])
    done = planverify("verify", "plan.yaml", cwd=project.root)
    assert done.returncode == 1, done.stdout + done.stderr
