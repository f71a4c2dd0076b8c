"""`planverify next` after real runs: missing modules and changed files."""

from __future__ import annotations

import os
from pathlib import Path

from example_project import Example, todo

from planner.planfile.latest_outcomes import FoundOutcomes, find_outcomes
from planner.planfile.loader import load_plan

UNCONFIRMED = "--planverify-confirm=0"


def test_a_missing_module_is_to_be_written_if_a_todo_plans_it(tmp_path: Path) -> None:
    modules = ("pricing", "billing", "elsewhere")
    uses = "from {0} import go\ndef test_go():\n    go()\n"
    project = Example(tmp_path, {f"tests/test_{name}.py": uses.format(name) for name in modules})
    project.plan(
        todo("artifact", "pytest tests/test_pricing.py", expected_artifacts=["pricing.py"]),
        todo(
            "allowed", "pytest tests/test_billing.py", allowed_files=["billing.py", "tests/test_billing.py"]
        ),
        todo("nobody", "pytest tests/test_elsewhere.py"),
    )

    run = project.verify(UNCONFIRMED)

    failures = {
        todo_id: next(each for each in outcome["failures"] if each["check_id"] == "tests[0]")
        for todo_id, outcome in run.outcomes.items()
    }
    for todo_id, file in (("artifact", "pricing.py"), ("allowed", "billing.py")):
        found = failures[todo_id]
        decided = (found["category"], found["owner"], found["target_agent"])
        assert decided == ("ARTIFACT_MISSING", "product", "coder")
        assert f"write {file}" in found["suggestion"]
    assert (failures["nobody"]["category"], failures["nobody"]["owner"]) == ("IMPORT_ERROR", "environment")


def test_files_changed_since_the_run_are_listed_with_the_affected_todos(tmp_path: Path) -> None:
    project = Example(
        tmp_path,
        {
            "pytest.ini": "[pytest]\npythonpath = .\n",
            "cart.py": "def total(cart): return sum(cart)\n",
            "price.py": "def gross(net): return net\n",
            "tests/test_cart.py": "from cart import *\ndef test_total(): assert total([1, 2]) == 3\n",
            "tests/test_price.py": "from price import *\ndef test_gross(): assert gross(2) == 3\n",
            "README.md": "A shop.\n",
        },
    )
    project.plan(todo("cart", "pytest tests/test_cart.py"), todo("price", "pytest tests/test_price.py"))
    before = found(project)
    assert (before.document, before.unfinished, before.files.paths) == (None, None, ())

    assert project.verify("-p", "no:cacheprovider", UNCONFIRMED).exit_code == 1
    assert found(project).unfinished is None
    assert found(project).files.paths == ()

    project.write({"README.md": "A shop, and what nobody tests.\n"})
    os.utime(project.root / "cart.py")
    assert found(project).files.paths == ()

    project.write({"cart.py": "def total(cart): return 0\n"})
    assert found(project).files.by_todo == {"cart": ("cart.py",)}

    project.write({"new.py": ""})
    files = found(project).files
    assert files.paths == ("cart.py", "new.py")
    assert files.by_todo == {"cart": ("cart.py",), "price": ("new.py",)}

    (project.root / "price.py").unlink()
    assert "price.py" in found(project).files.by_todo["price"]


def found(project: Example) -> FoundOutcomes:
    return find_outcomes(load_plan(project.root / "plan.yaml"))
