"""Export of a frozen design as a plan, and its reconciliation with that plan, outcomes and code."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from design_samples import PLANNING, begin_complete, begin_frozen, change, pass_gates
from hypothesis import given, settings
from hypothesis import strategies as st
from planner_command import Command, done, failed, pending, undecided

from planner.authoring.design.export import EXTENSION, plan_of_design
from planner.authoring.design.parts import add_part, change_part
from planner.authoring.design.state_folder import StateFolder, render
from planner.cli.design import STEPS, render_step
from planner.errors import DesignError
from planner.model.plan import Todo
from planner.planfile.loader import load_plan, load_plan_text
from planner.planfile.writer import dump_plan
from planner.text.glob_patterns import matches


def exported(folder: StateFolder) -> Todo:
    """Freeze a complete design, and return the first todo of its plan."""
    pass_gates(folder, *PLANNING)
    return plan_of_design(folder.plan()).items[0]


def test_a_milestone_becomes_a_todo_that_depends_on_the_previous_wave(folder: StateFolder) -> None:
    with folder.edit() as data:
        for number in (3, 4):
            words = [f"name=Page {number}", f"files=docs/{number}.md", "requirements=a"]
            words += ["acceptance_criteria=b", "is_documentation_only=true"]
            add_part(data, "milestone", [*words, "documentation.module_comment=c"])
        change_part(data, "W-1", ["milestones+=M-003"])
        add_part(data, "wave", ["milestones="])
        add_part(data, "wave", ["wave=9", "milestones=M-004"])
    pass_gates(folder, *PLANNING)

    design = folder.plan()
    plan = plan_of_design(design)

    assert {each.id: (each.title, each.dependencies) for each in plan.items} == {
        "M-001": ("Round total", ()),
        "M-003": ("Page 3", ()),
        "M-002": ("Round tax", ("M-001", "M-003")),
        "M-004": ("Page 4", ("M-002",)),
    }
    assert plan.todo_list_id.startswith("design-round-prices-")
    assert plan.extensions == {EXTENSION: str(design.plan_id)}


def test_test_files_and_command_criteria_become_commands(folder: StateFolder) -> None:
    words = ["acceptance_criteria=`ruff check shop`", "acceptance_criteria+=pytest tests/test_total.py"]
    change(folder, "M-001", *words, "acceptance_criteria+=halves go up")
    todo = exported(folder)
    commands = [each.cmd for each in todo.acceptance_criteria.tests]
    assert commands == ["pytest tests/test_total.py", "ruff check shop"]
    assert not todo.acceptance_criteria.manual
    listed = "It is done when:\n- `ruff check shop`\n- pytest tests/test_total.py\n- halves go up"
    assert listed in (todo.intent or "")


def test_criteria_become_questions_if_nothing_can_be_run(folder: StateFolder) -> None:
    change(folder, "M-001", "tests.files=", "tests.skip_reason=nothing to run")
    criteria = exported(folder).acceptance_criteria
    assert not criteria.tests
    assert [each.question for each in criteria.manual] == ["Is this true: halves go up"]


def test_the_files_of_a_milestone_are_allowed_with_their_pages_and_expected_unless_deleted(
    folder: StateFolder,
) -> None:
    change(folder, "M-001", "files+=shop/rates.csv")
    change(folder, "CC-001", "diff=--- a/shop/cart.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n")
    todo = exported(folder)
    files = ("shop/cart.py", "shop/rates.csv", "tests/test_total.py")
    assert tuple(each.path for each in todo.acceptance_criteria.expected_artifacts) == files[1:]
    pages = [f"{above}{page}" for above in ("", "shop/", "tests/") for page in ("README.md", "CLAUDE.md")]
    assert todo.allowed_files == (*files, *pages)


def test_the_intent_of_a_todo_contains_the_design(folder: StateFolder) -> None:
    with folder.edit() as data:
        add_part(data, "constraint", ["type=MUST", "description=no new dependency"])
        change_part(data, "invisible_knowledge", ["invariants=totals are never negative"])
        change_part(data, "M-001", ["tests.scenarios.edge=half a cent"])
        change_part(data, "CI-001", ["params.digits=2"])

    intent = exported(folder).intent or ""

    for part in (
        "Requirements:\n- two digits",
        "Intents:\n- CI-001 shop/cart.py total: round, digits = 2\n  because of DL-001: Round half up",
        "Tests, edge:\n- half a cent",
        "Keep:\n- totals are never negative",
        "Constraints:\n- no new dependency",
        "CC-001 for CI-001, shop/cart.py:\n--- a/shop/cart.py",
    ):
        assert part in intent


ODD = st.text(max_size=20) | st.sampled_from(
    [
        *("\x00", "\ufffe", "\u202ea", "`", "<a>&]]>", "\r\na", "- x: y #", "'\""),
        "x" * 9_000,
        "pytest \x1b[31m",
    ]
)


@settings(deadline=None, max_examples=15)
@given(st.dictionaries(st.sampled_from(["name", "requirements+", "acceptance_criteria+"]), ODD), ODD)
def test_any_design_can_be_shown_and_exported(
    tmp_path_factory: pytest.TempPathFactory, odd: dict[str, str], title: str
) -> None:
    folder = begin_complete(tmp_path_factory.mktemp("state"))
    for name, words in (
        ("M-001", [f"{key}={text}" for key, text in odd.items()]),
        ("overview", [f"title={title}"]),
    ):
        with suppress(DesignError):  # an empty text is refused
            change(folder, name, *words)
    pass_gates(folder, *PLANNING)

    design = folder.plan()
    assert "\x1b" not in render("plan.md", plan=design)
    assert ET.fromstring(render_step(STEPS["execute", 3], folder.path)).tag == "step"
    made = plan_of_design(design)
    loaded = load_plan_text(dump_plan(made, format="yaml"), folder.path / "plan.yaml")
    assert [each.acceptance_criteria for each in loaded.plan.items] == [
        each.acceptance_criteria for each in made.items
    ]


@pytest.mark.parametrize("file", ["pages/[id].tsx", "a*.py"])
def test_a_file_name_with_glob_characters_is_escaped(file: str, folder: StateFolder) -> None:
    change(folder, "M-001", f"files={file}")
    todo = exported(folder)
    assert todo.allowed_files is not None
    assert matches(file, todo.allowed_files[0])
    assert not matches("pages/i.tsx", todo.allowed_files[0])
    assert not matches("ab.py", todo.allowed_files[0])


@pytest.fixture
def verified(planner: Command) -> Command:
    """Return the command with a frozen design and the exported plan."""
    begin_frozen(planner.folder / "state")
    planner("design", "export", "-o", "plan.yaml")
    return planner


def reconciled(planner: Command, *outcomes: dict[str, Any]) -> list[str]:
    """Return the lines about the two milestones, given these outcomes."""
    name = load_plan(planner.folder / "plan.yaml").plan.todo_list_id
    planner.outcomes(*({**each, "plan": name} for each in outcomes))
    ran = planner("design", "reconcile", "plan.yaml")
    assert (ran.status, ran.err) == (0 if "2 verified, 0 missing, 0 deviating" in ran.out else 1, "")
    return ran.out.splitlines()[:2]


@pytest.mark.parametrize(
    ("outcomes", "line"),
    [
        ([done("M-001")], "M-001 verified: Round total"),
        ([failed("M-001")], "deviating: Round total – it is test_failed; planner next shows the details"),
        ([undecided("M-001", "needs_human")], "deviating: Round total – it is testing"),
        ([pending("M-001")], "missing: Round total – it was not verified"),
        ([failed("M-001") | {"state": "blocked"}], "missing: Round total – it was not verified"),
        ([], "missing: Round total – it was not verified"),
    ],
)
def test_a_milestone_is_verified_missing_or_deviating_by_its_outcome(
    outcomes: list[dict[str, Any]], line: str, verified: Command
) -> None:
    first, second = reconciled(verified, *outcomes, done("M-002"))
    assert line in first
    assert second == "M-002 verified: Round tax"


def test_criteria_weakened_or_removed_in_the_plan_are_detected(verified: Command) -> None:
    path = verified.folder / "plan.yaml"
    text = path.read_text().replace("pytest tests/test_total.py", "pytest tests/test_tax.py")
    path.write_text(text[: text.index("- id: M-002")] + text[text.index("x-design-plan") :])
    for line in reconciled(verified, done("M-001")):
        assert "deviating" in line
        assert "its criteria in the plan differ from the design; export it again" in line


def test_unverified_plans_and_outcomes_of_another_plan_are_refused(verified: Command) -> None:
    unverified = verified("design", "reconcile", "plan.yaml")
    assert (unverified.status, unverified.err.count("\n")) == (4, 1)
    assert unverified.err.startswith(
        "planner: plan.yaml: it was not verified in its current state; run first"
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
