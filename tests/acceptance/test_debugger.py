"""The built-in debugger of `planverify run`: repairs by rule, and the search for the change at fault."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_run_with_agents import FILES, agent, commit, project, run  # noqa: F401

from pytest_planverify.harness.debugger import main

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git keeps the files of each turn")

PLAN = """\
todo_list_id: shop
metadata: {auto_approve_branches: true}
items:
  - id: price
    title: The price has the tax in it
    allowed_files: ["shop/**"]
    acceptance_criteria: {tests: [pytest tests/test_price.py]}
  - id: basket
    title: The basket adds prices up
    allowed_files: ["shop/**"]
    dependencies: [price]
    failure_routing: {TEST_REGRESSION: debugger}
    max_retries: 0
    acceptance_criteria: {tests: [pytest tests/test_basket.py, pytest tests/test_price.py]}
"""
WRITES_AND_BREAKS = """\
import os, pathlib, sys
brief = pathlib.Path(sys.argv[1]).read_text()
price, basket = pathlib.Path("shop/price.py"), pathlib.Path("shop/basket.py")
right = "def gross(net):\\n    return net * 119 // 100\\n"
if "Result of the debugger" in brief:
    pathlib.Path("../told.txt").write_text(brief)
    price.write_text(right)
elif os.environ["PLANVERIFY_TODO"] == "price":
    price.write_text(right)
else:
    basket.write_text("def total(prices):\\n    return sum(prices)\\n")
    price.write_text(right.replace("119", "109"))
"""


def test_a_breaking_change_of_an_earlier_turn_is_found_and_shown_to_the_coder(project: Path):  # noqa: F811
    (project / "plan.yaml").write_text(PLAN)
    commit(project)

    done = run(project, "run", "plan.yaml", "--agent", f"coder={agent(project, WRITES_AND_BREAKS)}")

    assert done.exit_code == 0, done.output
    assert (project.parent / "told.txt").exists(), done.output
    told = (project.parent / "told.txt").read_text()
    found = told.partition("## Result of the debugger")[2]
    assert "makes tests/test_price.py::test_gross pass" in found
    assert (
        "shop/price.py:2 (+1 -1) in gross\n-    return net * 119 // 100\n+    return net * 109 // 100"
        in found
    )
    assert "shop/basket.py" not in found


# -- one turn ----------------------------------------------------------------------------------------------


def turn(root: Path, failure: dict[str, Any], **bounds: Any) -> dict[str, Any]:
    """Run one turn of the debugger on the todo ``price``; return its result."""
    brief = {
        "todo_id": "price",
        "plan": "plan.yaml",
        "bounds": bounds,
        "brief": {"title": "Repair it", "failure": failure},
        "turn": {
            "id": "0009-price",
            "run": "none",
            "result": str(root.parent / "r.json"),
            "timeout_seconds": 120,
        },
    }
    path = root.parent / "brief.json"
    path.write_text(json.dumps(brief))
    assert main(path) == 0
    return json.loads((root.parent / "r.json").read_text())


RED = {
    "category": "TEST_REGRESSION",
    "check_id": "tests[0]",
    "tests": ["tests/test_price.py::test_gross"],
}


@pytest.fixture
def shop(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811
    (project / "shop/price.py").write_text("def gross(net):\n    return net * 119 // 100\n")
    monkeypatch.chdir(project)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return project


def test_the_breaking_change_is_found_among_many_since_the_last_commit(shop: Path):
    lines = [f"def f{number}():\n    return {number}\n\n\n" for number in range(12)]
    (shop / "shop/price.py").write_text("".join(lines) + "def gross(net):\n    return net * 119 // 100\n")
    commit(shop)
    changed = [
        line.replace(f"return {number}\n", f"return {number} + 0\n") for number, line in enumerate(lines)
    ]
    (shop / "shop/price.py").write_text("".join(changed) + "def gross(net):\n    return net * 91 // 100\n")
    before = (shop / "shop/price.py").read_text()

    report = turn(shop, RED)

    assert report["repaired"] is False
    assert report["notes"].startswith(
        "Reverting this change, made since the last commit, makes tests/test_price.py"
    )
    assert "shop/price.py:50 (+1 -1) in gross" in report["notes"]
    assert (shop / "shop/price.py").read_text() == before


def test_a_committed_breaking_change_is_reported_with_its_commit(shop: Path):
    commit(shop)
    assert run(shop, "verify", "plan.yaml::price").exit_code == 0
    (shop / "shop/price.py").write_text("def gross(net):\n    return net * 91 // 100\n")
    commit(shop)

    notes = turn(shop, RED)["notes"]

    assert "made since the last green run" in notes
    assert "\nby commit " in notes
    assert notes.endswith(" begin")


def test_the_debugger_without_history_reports_its_attempts(shop: Path):
    (shop / "shop/price.py").write_text("def gross(net):\n    return 0\n")

    report = turn(shop, RED)

    assert report["repaired"] is False
    assert "fails alone, too; undoing the changes does not make it pass" in report["notes"]


def test_a_failure_that_depends_on_order_is_reported_as_such(shop: Path):
    assert "passes alone: the order" in turn(shop, RED)["notes"]


def test_the_debugger_reports_a_check_without_a_command(shop: Path):
    assert (
        "not a command" in turn(shop, {"category": "ARTIFACT_MISSING", "check_id": "artifacts[0]"})["notes"]
    )


@pytest.mark.parametrize(("globs", "is_fixed"), [(["shop/**"], True), (["docs/**"], False)])
def test_lint_errors_are_fixed_only_in_allowed_files(shop: Path, globs: list[str], is_fixed: bool):
    plan = (shop / "plan.yaml").read_text().replace("[pytest tests/test_price.py]", "[ruff check shop]")
    (shop / "plan.yaml").write_text(plan)
    (shop / "shop/price.py").write_text("import os\n\n\ndef gross(net):\n    return net\n")
    commit(shop)

    report = turn(shop, {"category": "LINT_ERROR", "check_id": "tests[0]"}, allowed_files=globs)

    assert report["repaired"] is is_fixed
    assert ("import os" in (shop / "shop/price.py").read_text()) is not is_fixed
    assert report["notes"].startswith("Ran ruff check --fix") is is_fixed


def test_a_missing_init_file_is_created_only_in_allowed_files(shop: Path):
    (shop / "tests/helper.py").write_text("EXPECTED = 119\n")
    (shop / "tests/test_price.py").write_text(
        "from shop.price import gross\n\nfrom .helper import EXPECTED\n\n\n"
        "def test_gross():\n    assert gross(100) == EXPECTED\n"
    )
    head = "ImportError: attempted relative import with no known parent package"
    failure = {**RED, "category": "IMPORT_ERROR", "stack_trace_head": head}

    assert turn(shop, failure, allowed_files=["shop/**"])["repaired"] is False
    assert turn(shop, failure, allowed_files=["tests/**"])["repaired"] is True
    assert (shop / "tests/__init__.py").read_text() == ""


def test_the_built_in_debugger_is_refused_for_other_roles(project: Path):  # noqa: F811
    done = run(project, "run", "plan.yaml", "--agent", "coder=builtin")

    assert done.exit_code == 4
    assert "write --agent debugger=builtin" in done.output
