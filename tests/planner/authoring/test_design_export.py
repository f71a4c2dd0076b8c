"""Export of a frozen design as a plan, and its reconciliation with that plan, outcomes and code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from design_samples import NOW, PLANNING, add, begin_complete, begin_frozen, pass_gates
from hypothesis import given, settings
from hypothesis import strategies as st
from planner_command import Command, done, failed, undecided

from planner.authoring.design.export import EXTENSION, plan_of_design
from planner.authoring.design.plan import DesignPlan, change_part
from planner.authoring.design.state_folder import StateFolder, render_page, render_step
from planner.errors import DesignError
from planner.model.plan import Todo
from planner.planfile.loader import load_plan, load_plan_text
from planner.planfile.writer import dump_plan
from planner.text.glob_patterns import matches

SOURCES = {"shop/cart.py": "def total(): ...\n", "shop/tax.py": "class Tax:\n    def tax(self): ...\n"}


def frozen(path: Path, change: Callable[[DesignPlan], DesignPlan]) -> StateFolder:
    """Return a complete design, changed by `change` and then frozen."""
    folder = begin_complete(path)
    folder.edit_plan(change)
    folder.write_page()
    pass_gates(folder, *PLANNING)
    return folder


def exported(path: Path, *words: str, part: str = "M-001") -> Todo:
    """Return the first todo exported from a design with the assignments `words` made to `part`."""
    return plan_of_design(frozen(path, lambda plan: change_part(plan, part, words)).plan()).items[0]


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


# -- export ----------------------------------------------------------------------------------------


def test_a_milestone_becomes_a_todo_that_depends_on_the_previous_wave(tmp_path: Path) -> None:
    def change(plan: DesignPlan) -> DesignPlan:
        for number in (3, 4):
            plan = add(
                plan,
                "milestone",
                *(f"name=Page {number}", f"files=docs/{number}.md"),
                *("requirements=a", "acceptance_criteria=b"),
                *("is_documentation_only=true", "documentation.module_comment=c"),
            )
        plan = change_part(plan, "W-1", ["milestones+=M-003"])
        return add(plan, "wave", "wave=9", "milestones=M-004")

    design = frozen(tmp_path, change).plan()
    plan = plan_of_design(design)

    assert {each.id: (each.title, each.dependencies) for each in plan.items} == {
        "M-001": ("Round total", ()),
        "M-003": ("Page 3", ()),
        "M-002": ("Round tax", ("M-001", "M-003")),
        "M-004": ("Page 4", ("M-002",)),
    }
    assert plan.todo_list_id.startswith("design-round-prices-")
    assert plan.extensions == {EXTENSION: str(design.plan_id)}


def test_test_files_and_command_criteria_become_commands(tmp_path: Path) -> None:
    words = ["acceptance_criteria=`ruff check shop`", "acceptance_criteria+=pytest tests/test_total.py"]
    todo = exported(tmp_path, *words, "acceptance_criteria+=halves go up")

    assert [each.cmd for each in todo.acceptance_criteria.tests] == [
        "pytest tests/test_total.py",
        "ruff check shop",
    ]
    assert not todo.acceptance_criteria.manual
    assert todo.intent is not None
    assert (
        "It is done when:\n- `ruff check shop`\n- pytest tests/test_total.py\n- halves go up" in todo.intent
    )


def test_criteria_become_questions_if_nothing_can_be_run(tmp_path: Path) -> None:
    todo = exported(tmp_path, "tests.files=", "tests.skip_reason=nothing to run")

    assert not todo.acceptance_criteria.tests
    assert [each.question for each in todo.acceptance_criteria.manual] == ["Is this true: halves go up"]


def test_the_files_of_a_milestone_are_expected_and_allowed_with_their_pages(tmp_path: Path) -> None:
    todo = exported(tmp_path, "files+=shop/rates.csv")

    files = ("shop/cart.py", "shop/rates.csv", "tests/test_total.py")
    assert tuple(each.path for each in todo.acceptance_criteria.expected_artifacts) == files
    pages = [f"{folder}{page}" for folder in ("", "shop/", "tests/") for page in ("README.md", "CLAUDE.md")]
    assert todo.allowed_files == (*files, *pages)


def test_a_deleted_file_is_not_expected(tmp_path: Path) -> None:
    diff = "--- a/shop/cart.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    criteria = exported(tmp_path, f"diff={diff}", part="CC-001").acceptance_criteria

    assert [each.path for each in criteria.expected_artifacts] == ["tests/test_total.py"]


def test_the_intent_of_a_todo_contains_the_design(tmp_path: Path) -> None:
    def change(plan: DesignPlan) -> DesignPlan:
        plan = add(plan, "constraint", "type=MUST", "description=no new dependency")
        plan = change_part(plan, "invisible_knowledge", ["invariants=totals are never negative"])
        return change_part(plan, "M-001", ["tests.scenarios.edge=half a cent"])

    intent = plan_of_design(frozen(tmp_path, change).plan()).items[0].intent or ""

    for part in (
        "Requirements:\n- two digits",
        "CI-001 shop/cart.py total: round\n  because of DL-001: Round half up",
        "Tests, edge:\n- half a cent",
        "Keep:\n- totals are never negative",
        "Constraints:\n- no new dependency",
        "CC-001 for CI-001, shop/cart.py:\n--- a/shop/cart.py",
    ):
        assert part in intent


def test_an_overlong_diff_is_replaced_by_a_reference(tmp_path: Path) -> None:
    intent = exported(tmp_path, "diff=@@ \n" + "+a\n" * 40_000, part="CC-001").intent or ""

    assert intent.endswith("see planner design show CC-001")
    assert len(intent) < 1000


def test_an_existing_file_is_replaced_only_with_force(planner: Command) -> None:
    begin_frozen(planner.folder / "state")
    (planner.folder / "plans").mkdir()
    plan = planner.folder / "plans/plan.yaml"
    plan.write_text("mine")

    assert planner("design", "export", "-o", "plans/plan.yaml").status == 2
    assert plan.read_text() == "mine"
    assert planner("design", "export", "-o", "plans/plan.yaml", "--force").status == 0
    assert load_plan(plan).root == planner.folder


ODD = st.text(max_size=20) | st.sampled_from(
    [
        "\x00",
        "\ufffe",
        "\u202ea",
        "`",
        "<a>&]]>",
        "\r\na",
        "- x: y #",
        "'\"",
        "x" * 9_000,
        "pytest \x1b[31m",
    ]
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from(["name", "requirements", "acceptance_criteria"]), ODD), ODD)
def test_any_design_can_be_shown_and_exported(
    tmp_path_factory: pytest.TempPathFactory, odd: dict[str, str], title: str
) -> None:
    folder = begin_complete(tmp_path_factory.mktemp("state"))
    for name, words in (
        ("M-001", [f"{key}={text}" for key, text in odd.items()]),
        ("overview", [f"title={title}"]),
    ):
        with suppress(DesignError):  # an empty text is refused
            folder.edit_plan(lambda plan, name=name, words=words: change_part(plan, name, words))

    design = folder.plan()
    assert "\x1b" not in render_page(design)
    assert ET.fromstring(render_step("plan", 3, folder.path, program="planner")).tag == "step"
    made = plan_of_design(design.model_copy(update={"frozen_at": NOW}))
    loaded = load_plan_text(dump_plan(made, format="yaml"), folder.path / "plan.yaml")
    assert [each.acceptance_criteria for each in loaded.plan.items] == [
        each.acceptance_criteria for each in made.items
    ]


@pytest.mark.parametrize("file", ["pages/[id].tsx", "a*.py"])
def test_a_file_name_with_glob_characters_is_escaped(file: str, tmp_path: Path) -> None:
    todo = exported(tmp_path, f"files={file}")

    assert todo.allowed_files is not None
    assert matches(file, todo.allowed_files[0])
    assert not matches("pages/i.tsx", todo.allowed_files[0])
    assert not matches("ab.py", todo.allowed_files[0])


# -- reconcile -------------------------------------------------------------------------------------


@pytest.fixture
def verified(planner: Command) -> Command:
    """Return the command with a frozen design, the exported plan and all its files."""
    begin_frozen(planner.folder / "state")
    write_files(planner.folder, SOURCES)
    planner("design", "export", "-o", "plan.yaml")
    return planner


def reconciled(planner: Command, *outcomes: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the match and its reason by the id of each milestone and intent, given these outcomes."""
    name = load_plan(planner.folder / "plan.yaml").plan.todo_list_id
    planner.outcomes(*({**each, "plan": name} for each in outcomes))
    ran = planner("design", "reconcile", "plan.yaml", "--json")
    assert ran.status in (0, 1), ran.err
    rows = {each["id"]: (each["match"], each["because"]) for each in ran.json}
    assert (ran.status == 0) == all(match == "verified" for match, _ in rows.values())
    return rows


def check(kind: str, verdict: str, **keys: str) -> dict[str, Any]:
    return {"checks": [{"id": "x", "kind": kind, "verdict": verdict, **keys}]}


@pytest.mark.parametrize(
    ("outcome", "match", "because"),
    [
        (failed("M-001"), "deviating", "pytest tests/test_M-001.py: failed"),
        (undecided("M-001", "flaky"), "deviating", "pytest tests/test_M-001.py: flaky"),
        (undecided("M-001", "needs_human"), "missing", "pytest tests/test_M-001.py: needs human"),
        (undecided("M-001", "not_run"), "missing", "pytest tests/test_M-001.py: not run"),
        (failed("M-001") | {"blocked_by": ["M-009"]}, "missing", "it waits for M-009"),
        (
            failed("M-001") | check("artifact", "failed", title="shop/cart.py"),
            "missing",
            "shop/cart.py does not exist",
        ),
        (failed("M-001") | check("guard", "failed", title="allowlist"), "deviating", "allowlist: failed"),
        (failed("M-001") | {"checks": []}, "missing", "it is not done"),
    ],
)
def test_an_unfinished_milestone_is_missing_or_deviating(
    outcome: dict[str, Any], match: str, because: str, verified: Command
) -> None:
    rows = reconciled(verified, outcome, done("M-002"))

    assert rows["M-001"] == (match, because)
    assert rows["CI-001"] == ("deviating", "it exists, but M-001 is not verified")
    assert rows["M-002"] == ("verified", "")


def test_an_unverified_milestone_is_missing(verified: Command) -> None:
    assert reconciled(verified, done("M-002"))["M-001"] == ("missing", "it was not verified")


@pytest.mark.parametrize(
    ("source", "because"),
    [
        (None, "shop/tax.py does not exist"),
        ("def other(): ...\n", "shop/tax.py defines no tax"),
        ("def tax(:\n", "shop/tax.py cannot be parsed as Python"),
        pytest.param(f"x = {'-' * 200_000}1\n", "shop/tax.py cannot be parsed as Python", id="deep"),
    ],
)
def test_an_unimplemented_intent_is_missing_even_if_the_tests_pass(
    source: str | None, because: str, verified: Command
) -> None:
    path = verified.folder / "shop/tax.py"
    path.unlink() if source is None else path.write_text(source)

    rows = reconciled(verified, done("M-001"), done("M-002"))

    assert rows["CI-002"] == ("missing", because)
    assert rows["M-002"] == ("deviating", "it is done, but these checks are missing: CI-002")


@pytest.mark.parametrize("function", ["Tax.tax", "Tax", "tax(self)"])
def test_a_function_is_found_by_its_qualified_name(function: str, planner: Command) -> None:
    frozen(planner.folder / "state", lambda plan: change_part(plan, "CI-002", [f"function={function}"]))
    write_files(planner.folder, SOURCES)
    planner("design", "export", "-o", "plan.yaml")

    assert reconciled(planner, done("M-001"), done("M-002"))["CI-002"] == ("verified", "")


def test_criteria_weakened_in_the_plan_are_detected(verified: Command) -> None:
    path = verified.folder / "plan.yaml"
    path.write_text(path.read_text().replace("pytest tests/test_total.py", "pytest tests/test_tax.py"))

    rows = reconciled(verified, done("M-001"), done("M-002"))

    assert rows["M-001"] == (
        "deviating",
        "its criteria in the plan differ from those of the design; export it again",
    )


def test_a_removed_todo_is_missing(verified: Command) -> None:
    path = verified.folder / "plan.yaml"
    text = path.read_text()
    path.write_text(text[: text.index("- id: M-002")] + text[text.index("x-design-plan") :])

    assert reconciled(verified, done("M-001"))["M-002"] == ("missing", "its todo was removed from the plan")


def test_unverified_plans_and_outcomes_of_another_plan_are_refused(verified: Command) -> None:
    unverified = verified("design", "reconcile", "plan.yaml")
    assert (unverified.status, unverified.err.count("\n")) == (4, 1)
    assert (
        "it was not verified in its current state; run first: pytest --planverify plan.yaml"
        in unverified.err
    )

    reconciled(verified, done("M-001"), done("M-002"))
    path = verified.folder / "plan.yaml"
    path.write_text(path.read_text() + "# later\n")
    assert verified("design", "reconcile", "plan.yaml").err == ""
    path.write_text(path.read_text().replace("pytest ", "pytest -x "))
    assert "it was not verified in its current state" in verified("design", "reconcile", "plan.yaml").err

    verified.plan({"id": "M-001", "verify": "pytest"}, path="other.yaml")
    assert "it was not made from the design plan" in verified("design", "reconcile", "other.yaml").err
    assert verified("design", "reconcile", "none.yaml").status == 4
