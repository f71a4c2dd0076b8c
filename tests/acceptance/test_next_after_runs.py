"""`planverify next` after real runs: stopped plans, missing tools, approvals, roles and changed files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from baseline_samples import commit_all
from example_project import ONLY_THIS_PLUGIN, Example, Verified, todo
from real_command import LEAN_TERMINAL, run_pytest
from real_planner import Ran, forked, planner

from planner.planfile.latest_outcomes import FoundOutcomes, find_outcomes
from planner.planfile.loader import load_plan

FILES = {
    "shop.py": "def price(): return 3\n",
    "test_shop.py": """
        import pathlib
        import shop

        RUNS = pathlib.Path(__file__).parent.parent / "runs"

        def test_price():
            assert shop.price() == 4

        def test_flaky():
            count = len(RUNS.read_text()) if RUNS.exists() else 0
            RUNS.write_text("x" * (count + 1))
            assert count % 2
    """,
}

UNCONFIRMED = "--planverify-confirm=0"
TOOL = {"name": "no_such_tool", "kind": "validate", "argv": ["no_such_tool"]}


@pytest.fixture
def project(tmp_path: Path) -> Example:
    return Example(tmp_path / "project", FILES)


def said(project: Example, *words: str, status: int = 0) -> str:
    done = forked(words, project.root, program="planverify")
    assert done.status == status, f"{words}: {done.out}{done.err}"
    return done.out


def test_a_stopped_plan_still_shows_its_failures(project: Example):
    project.plan(
        todo("price", "pytest test_shop.py::test_price", status="claimed"),
        metadata={"max_branch_depth": 0},  # no repairs: a person decides
    )
    project.verify(UNCONFIRMED)
    said(project, "next", status=11)
    said(project, "answer", "plan.yaml", "price", "stop", "--by", "ann")

    shown = said(project, "next", status=11)

    assert "halted" in shown.splitlines()[0]
    assert "[stopped-by-person]" in shown
    assert "failed test_shop.py::test_price" in shown
    assert "says   AssertionError: assert 3 == 4" in shown


def test_inconclusive_todos_are_counted_and_shown_with_a_remedy(project: Example):
    project.plan(todo("types", "no_such_tool shop.py", status="claimed"), metadata={"tools": [TOOL]})
    run = project.verify()
    assert (run.exit_code, run.verdicts) == (10, {"types": "inconclusive"}), str(run)
    assert "no_such_tool is not installed" in run.output

    shown = said(project, "next", status=10)

    assert "1 could not be verified" in shown.splitlines()[0]
    assert "verify types: something was missing: no_such_tool is not installed" in shown
    assert "install it, or correct PATH" in shown


def test_an_approval_after_an_in_place_edit_belongs_to_the_same_run(project: Example):
    project.plan(
        todo("flaky", "pytest test_shop.py::test_flaky", status="claimed"),
        todo("price", "pytest test_shop.py::test_price", status="claimed"),
    )
    project.verify()
    said(project, "next", "--in-place")
    assert "metadata" not in (project.root / "plan.yaml").read_text()

    said(project, "approve", "plan.yaml", "flaky:edits:1", "--by", "ann")
    said(project, "next", "--in-place")

    assert "quarantine" in (project.root / "plan.yaml").read_text()
    assert [each.name for each in (project.root / ".planverify/logs").iterdir()] == ["example.jsonl"]


def test_code_that_ends_pytest_is_to_be_corrected_at_its_place_in_the_project(project: Example):
    (project.root / "shop.py").write_text("import sys\n\nsys.exit(3)\n")
    project.plan(todo("price", "pytest test_shop.py::test_price", status="claimed"))
    project.verify(UNCONFIRMED)

    out = said(project, "next", "plan.yaml")

    assert "where  shop.py:3" in out
    assert "edit   Find what ends the process in shop.py:3 " in out


def test_an_answer_after_a_run_requires_another_verification(project: Example):
    manual = [
        {"question": "Is it readable?", "role": "human"},
        {"question": "Is it short?", "role": "human"},
    ]
    project.write({"shop.py": "def price(): return 4\n"})
    project.plan(todo("price", "pytest test_shop.py::test_price", status="claimed", manual=manual))
    project.verify()
    assert "answer planverify answer plan.yaml price yes --check 'manual[1]' # or" in said(
        project, "next", status=11
    )
    said(project, "answer", "price", "yes", status=2)  # ambiguous: there are two questions
    said(project, "answer", "price", "answered", "--check", "manual[0]", status=2)
    # With --check this answers the plan's question, even if the engine has an option of that name.
    assert "Is it readable? no" in said(project, "answer", "price", "stop", "--check", "manual[0]")
    assert "still open: manual[1] Is it short?" in said(
        project, "answer", "price", "yes", "--check", "manual[0]"
    )
    said(project, "answer", "price", "yes")
    assert project.verify().exit_code == 0
    assert "completed" in said(project, "next")

    time.sleep(1.1)  # times of answers have a resolution of one second
    said(project, "answer", "price", "too long", "--check", "manual[1]")

    shown = said(project, "next")
    assert "! answered since the run: price" in shown
    assert "plan.yaml::price" in shown

    project.write({"shop.py": "def price(): return 2 + 2\n"})
    refused = project.verify()
    (failure,) = refused.outcomes["price"]["failures"]
    assert (failure.get("location"), failure["candidates"]) == (None, []), "no code is known to be at fault"
    brief = said(project, "next", "--brief", "price")
    assert brief.startswith("# Repair `price`: a person answered no")
    assert "after the repair, a person must answer again first" in brief


def test_a_failing_verification_does_not_replace_the_approval_of_a_start(tmp_path: Path):
    example = Example(
        tmp_path,
        {"test_it.py": "def test_one(): pass\ndef test_two(): assert 1 == 2\n"},
    )
    example.plan(todo("pay", "pytest test_it.py", risk_level="HIGH", max_retries=1))
    assert "pay:start" in planner("next", cwd=example.root).out

    assert example.verify(UNCONFIRMED).verdicts == {"pay": "failed"}

    after = planner("next", cwd=example.root)
    assert (after.status, "pay:start" in after.out, "retry" in after.out) == (11, True, False), after.out
    assert planner("approve", "pay:start", "--by", "Ada", cwd=example.root).status == 0
    assert "pay" in planner("next", cwd=example.root).out


UNFORMATTED = "X = 1\ndef f(): return X\n"
FORMATTED = "X = 1\n\n\ndef f():\n    return X\n"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """Return a verified project whose formatter check fails, and for which `next` has planned a step."""
    example = Example(tmp_path_factory.mktemp("unformatted") / "project", {"a.py": UNFORMATTED})
    example.plan({"id": "style", "title": "Style", "verify": "ruff format --check a.py"})
    assert example.verify(UNCONFIRMED).verdicts == {"style": "failed"}
    assert "style_step_01" in told(example).out
    return example


@pytest.fixture
def unformatted(planned: Example, tmp_path: Path) -> Example:
    return planned.copied_to(tmp_path / "project")


def told(example: Example, *words: str) -> Ran:
    return planner("next", *words, cwd=example.root)


def test_a_preparatory_step_is_skipped_when_its_todo_passes(unformatted: Example):
    unformatted.write({"a.py": FORMATTED})
    assert unformatted.verify().verdicts == {"style": "passed"}

    after = told(unformatted)

    assert after.status == 0, after.err
    assert "completed: 1 of 1 todo done" in after.out
    assert "style_step_01" not in after.out
    branch = planner("status", "style_branch_01", cwd=unformatted.root).out
    assert "skipped" in branch, branch


def test_a_preparatory_step_is_checked_by_the_check_of_its_todo(unformatted: Example):
    brief = told(unformatted, "--brief", "style_step_01").out

    assert "Check: pytest --planverify plan.yaml::style\n" in brief
    assert "It is done when" not in brief


def test_a_step_is_done_when_its_todo_was_verified_after_a_change_and_still_fails(unformatted: Example):
    unformatted.write({"a.py": f"{UNFORMATTED}Y = 2\n"})
    assert unformatted.verify(UNCONFIRMED).verdicts == {"style": "failed"}

    after = told(unformatted)

    assert "style_branch_01" in after.out
    assert "style_step_01" not in after.out


def test_the_brief_of_a_todo_without_criteria_explains_how_to_complete_it(tmp_path: Path):
    example = Example(tmp_path, {"a.py": FORMATTED})
    example.plan({"id": "notes", "title": "Notes", "requires_testing": False})

    brief = told(example, "--brief", "notes").out

    assert "It has no criteria: when it is done, set its status to claimed in the plan." in brief
    assert "Check:" not in brief


SUM = "def test_sum():\n    assert 1 + 1 == 3\n"


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    uses = "from {0} import go\ndef test_go():\n    go()\n"
    modules = ("pricing", "billing", "elsewhere")
    tests = {f"tests/test_{name}.py": uses.format(name) for name in modules}
    example = Example(tmp_path_factory.mktemp("repairs"), {"tests/test_sum.py": SUM, **tests})
    example.plan(
        todo("sum", "pytest tests/test_sum.py"),
        todo("artifact", "pytest tests/test_pricing.py", expected_artifacts=["pricing.py"]),
        todo(
            "allowed", "pytest tests/test_billing.py", allowed_files=["billing.py", "tests/test_billing.py"]
        ),
        todo("nobody", "pytest tests/test_elsewhere.py"),
    )
    return example.verify(UNCONFIRMED)


def failure(verified: Verified, todo_id: str) -> dict[str, Any]:
    return next(
        each for each in verified.outcomes[todo_id]["failures"] if each["check_id"].startswith("tests")
    )


def test_a_failing_test_without_product_code_is_routed_to_the_tester(verified: Verified) -> None:
    found = failure(verified, "sum")
    assert (found["category"], found["owner"], found["target_agent"]) == (
        "TEST_REGRESSION",
        "test",
        "tester",
    )
    assert found["location"]["path"] == "tests/test_sum.py"


@pytest.mark.parametrize(("todo_id", "file"), [("artifact", "pricing.py"), ("allowed", "billing.py")])
def test_a_missing_module_planned_by_a_todo_is_missing_product_code(
    verified: Verified, todo_id: str, file: str
) -> None:
    found = failure(verified, todo_id)
    assert (found["category"], found["owner"], found["target_agent"]) == (
        "ARTIFACT_MISSING",
        "product",
        "coder",
    )
    assert f"write {file}" in found["suggestion"]


def test_a_missing_module_not_planned_by_any_todo_is_an_environment_error(verified: Verified) -> None:
    found = failure(verified, "nobody")
    assert (found["category"], found["owner"]) == ("IMPORT_ERROR", "environment")


PLAN = """\
todo_list_id: shop
items:
  - {id: cart, title: Cart, verify: pytest tests/test_cart.py}
  - {id: price, title: Price, verify: pytest tests/test_price.py}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_shop(tmp_path)


def write_shop(folder: Path) -> Path:
    write(folder, "plan.yaml", PLAN)
    write(folder, "pytest.ini", "[pytest]\npythonpath = .\n")
    write(folder, "cart.py", "def total(cart): return sum(cart)\n")
    write(folder, "price.py", "def gross(net): return net\n")
    write(folder, "tests/test_cart.py", "from cart import *\ndef test_total(): assert total([1, 2]) == 3\n")
    write(folder, "tests/test_price.py", "from price import *\ndef test_gross(): assert gross(2) == 3\n")
    write(folder, "README.md", "A shop.\n")
    return folder


@pytest.fixture(scope="module", params=[False, True], ids=["without git", "under git"])
def once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the shop after a run."""
    folder = write_shop(tmp_path_factory.mktemp("once") / "shop")
    if request.param:
        commit_all(folder)
    assert verify(folder, UNCONFIRMED) == 1
    return folder


@pytest.fixture
def verified_shop(once: Path, tmp_path: Path) -> Path:
    """Return a copy of the shop after the run."""
    return Example(once).copied_to(tmp_path / "shop").root


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(text)


def verify(folder: Path, *options: str) -> int:
    words = (*ONLY_THIS_PLUGIN, "-p", "no:cacheprovider", "--planverify", *options)
    return run_pytest(*words, cwd=folder, env=LEAN_TERMINAL).exit_code


def found(folder: Path) -> FoundOutcomes:
    return find_outcomes(load_plan(folder / "plan.yaml"))


def test_files_changed_since_the_run_are_listed_with_the_affected_todos(verified_shop: Path) -> None:
    shop = verified_shop
    assert found(shop).files.paths == ()
    assert found(shop).unfinished is None

    write(shop, "README.md", "A shop, and what nobody tests.\n")
    os.utime(shop / "cart.py")
    assert found(shop).files.paths == ()

    write(shop, "cart.py", "def total(cart): return 0\n")
    assert found(shop).files.by_todo == {"cart": ("cart.py",)}

    write(shop, "new.py", "")
    files = found(shop).files
    assert files.paths == ("cart.py", "new.py")
    assert files.by_todo == {"cart": ("cart.py",), "price": ("new.py",)}

    (shop / "price.py").unlink()
    assert "price.py" in found(shop).files.by_todo["price"]


def test_a_plan_without_a_run_has_no_outcomes_but_a_verify_command(shop: Path) -> None:
    nothing = found(shop)

    assert (nothing.document, nothing.unfinished, nothing.files.paths) == (None, None, ())
    assert nothing.verify.startswith("pytest --planverify ")


def test_a_killed_run_is_reported_until_another_run_finishes(shop: Path) -> None:
    write(shop, "tests/test_price.py", "import time\ndef test_gross(): time.sleep(60)\n")
    process = Example(shop).start(stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while ((run := found(shop).unfinished) is None or len(run.checks) < 1) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert run is not None
    assert (run.state, len(run.checks)) == ("running", 1)
    process.send_signal(signal.SIGKILL)
    process.wait()

    killed = found(shop)

    assert killed.document is None
    assert killed.unfinished is not None
    assert (killed.unfinished.state, len(killed.unfinished.checks)) == ("killed", 1)
    write(shop, "tests/test_price.py", "def test_gross(): pass\n")
    assert verify(shop, "--planverify-resume") == 0
    assert found(shop).unfinished is None


def test_missing_and_invalid_journals_are_ignored(verified_shop: Path) -> None:
    shop = verified_shop
    write(shop, "cart.py", "")
    journal = next((shop / ".planverify/runs").glob("*/journal.jsonl"))
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([lines[0], "[]", '{"record": "check_judged", "session": "parent", 1']))
    assert found(shop).unfinished is not None

    journal.unlink()
    os.mkfifo(journal)

    assert found(shop).unfinished is None
    assert found(shop).files.paths == ()
    assert json.loads(found(shop).path.read_text())["run"]["run_id"]
