"""The built-in debugger of `planverify run`: repairs by rule, and the failing test run alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import commit_all
from test_run_with_agents import agent, project, run_forked  # noqa: F401

from pytest_planverify.harness import debugger

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git keeps the files of each turn")

PLAN = """\
todo_list_id: shop
metadata: {auto_approve_branches: true}
items:
  - id: price
    title: The price has the tax in it
    allowed_files: ["shop/**"]
    failure_routing: {TEST_REGRESSION: debugger}
    max_retries: 0
    acceptance_criteria: {tests: [pytest tests/test_price.py]}
"""
RIGHT_ONLY_WITH_FINDINGS = """\
import pathlib, sys
brief = pathlib.Path(sys.argv[1]).read_text()
is_told = "Result of the debugger" in brief
if is_told:
    pathlib.Path("../told.txt").write_text(brief)
rate = 119 if is_told else 109
pathlib.Path("shop/price.py").write_text(f"def gross(net):\\n    return net * {rate} // 100\\n")
"""


def test_the_coder_continues_with_the_findings_of_the_debugger(project: Path):  # noqa: F811
    (project / "plan.yaml").write_text(PLAN)
    commit_all(project)

    done = run_forked(
        project, "run", "plan.yaml", "--agent", f"coder={agent(project, RIGHT_ONLY_WITH_FINDINGS)}"
    )

    assert done.exit_code == 0, done.output
    assert (project.parent / "told.txt").exists(), done.output
    told = (project.parent / "told.txt").read_text()
    found = told.partition("## Result of the debugger")[2]
    assert "tests/test_price.py::test_gross fails alone, too:\n\n```" in found
    assert "assert 109 == 119" in found


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
    assert debugger.main(path) == 0
    return json.loads((root.parent / "r.json").read_text())


RED = {
    "category": "TEST_REGRESSION",
    "check_id": "tests[0]",
    "tests": ["tests/test_price.py::test_gross"],
}


PRICE, IGNORED = "shop/price.py", "notes/mine.py"


@pytest.fixture
def shop(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811
    (project / "shop/price.py").write_text("def gross(net):\n    return net * 119 // 100\n")
    monkeypatch.chdir(project)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return project


def test_a_test_that_fails_alone_is_shown_with_its_values_and_without_secrets(shop: Path):
    test = "def test_gross():\n    words = '```', 'ghp_" + "a1B2" * 9 + "'\n    assert not words\n"
    (shop / "tests/test_price.py").write_text(test)

    report = turn(shop, RED)

    assert report["repaired"] is False
    head, _, output = report["notes"].partition("fails alone, too:\n\n````text\n")
    assert head == "tests/test_price.py::test_gross "
    assert "words      = ('```'" in output
    assert "a1B2a1B2" not in output
    assert len(report["notes"]) < 2_000


def test_a_test_that_hangs_alone_ends_at_the_time_limit(shop: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(debugger, "MOST_SECONDS", 1)
    (shop / "tests/test_price.py").write_text("import time\n\n\ndef test_gross():\n    time.sleep(60)\n")

    assert "did not end within the debugger's time" in turn(shop, RED)["notes"]


def test_a_failure_that_depends_on_order_is_reported_as_such(shop: Path):
    assert "passes alone: the order" in turn(shop, RED)["notes"]


def test_the_debugger_reports_a_check_without_a_command(shop: Path):
    assert (
        "not a command" in turn(shop, {"category": "ARTIFACT_MISSING", "check_id": "artifacts[0]"})["notes"]
    )


@pytest.mark.parametrize(
    ("command", "bounds", "faulty", "is_fixed"),
    [
        pytest.param("ruff check shop", {"allowed_files": ["shop/**"]}, PRICE, True, id="allowed"),
        pytest.param("ruff check shop", {"allowed_files": ["docs/**"]}, PRICE, False, id="not allowed"),
        pytest.param("ruff check .", {}, PRICE, True, id="beside an ignored file"),
        pytest.param(f"ruff check shop {IGNORED}", {}, IGNORED, False, id="ignored, but named"),
    ],
)
def test_lint_errors_are_fixed_only_in_allowed_files_that_git_does_not_ignore(
    shop: Path, command: str, bounds: dict[str, Any], faulty: str, is_fixed: bool
):
    plan = (shop / "plan.yaml").read_text().replace("[pytest tests/test_price.py]", f"[{command}]")
    (shop / "plan.yaml").write_text(plan)
    (shop / ".gitignore").write_text(".planverify/\nnotes/\n")
    (shop / "notes").mkdir()
    for file in {faulty, IGNORED}:
        (shop / file).write_text("import sys\n")
    commit_all(shop)

    report = turn(shop, {"category": "LINT_ERROR", "check_id": "tests[0]"}, **bounds)

    assert report["repaired"] is is_fixed
    assert report["notes"].startswith("Ran ruff check --fix") is is_fixed
    assert ((shop / faulty).read_text() == "") is is_fixed
    assert (shop / IGNORED).read_text() == "import sys\n"


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
