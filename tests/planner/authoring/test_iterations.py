"""Plans of iterations: the choice of a gap, the actions for it, and protected files."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.authoring.iterations import (
    PROTECTED,
    TOOL_CRITERIA,
    Gap,
    GapReport,
    IterationOutcome,
    IterationPlan,
    IterationRecord,
    Planner,
    ProjectState,
    is_protected,
    plan_of_iteration,
    read_gap_report,
    read_log,
    write_log,
)
from planner.errors import PlannerError
from planner.planfile.loader import load_plan_text
from planner.planfile.writer import dump_plan

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NO_FILES = Planner(SimpleNamespace(read_text={}.get))
FAILURE, ROLLBACK, SUCCESS = IterationOutcome.FAILURE, IterationOutcome.ROLLBACK, IterationOutcome.SUCCESS


def roadmap(description: str = "Create module `prices`", **more: Any) -> Gap:
    return Gap(category="roadmap", description=description, **more)


def planned(
    *gaps: Gap,
    records: list[IterationRecord] | None = None,
    files: tuple[str, ...] = (),
    texts: dict[str, str] | None = None,
) -> IterationPlan:
    report, state = GapReport(gaps=gaps, most_critical=gaps[0]), ProjectState(files=files, now=NOW)
    found = Planner(SimpleNamespace(read_text=(texts or {}).get)).plan(report, records or [], state)
    assert found is not None
    return found


def record(gap: Gap, outcome: IterationOutcome | None = FAILURE) -> IterationRecord:
    return IterationRecord(
        iteration_id="iter-0001-20260101-000000",
        gap_category=gap.category,
        gap_description=gap.description,
        outcome=outcome,
    )


def targets(plan: IterationPlan) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.action_type, each.target_files) for each in plan.actions]


def test_a_report_without_gaps_gives_no_plan() -> None:
    for report in (GapReport(), GapReport(gaps=(roadmap(),), most_critical=None)):
        assert NO_FILES.plan(report, [], ProjectState()) is None


def test_paths_are_found_in_hostile_evidence_in_linear_time() -> None:
    started = time.process_time()
    planned(Gap(category="quality", description="ruff is red", evidence=("+" * 40_000,)))
    assert time.process_time() - started < 2


def test_a_quality_gap_targets_the_files_of_its_evidence() -> None:
    evidence = ("/home/me/shop/shop/cart.py:12:5: F401 unused import\nshop/prices.py:1:1: E501",)
    plan = planned(
        Gap(category="quality", description="ruff is red", evidence=evidence),
        files=("shop/cart.py", "shop/prices.py", "cart.py"),
    )
    assert targets(plan) == [("modify", ("shop/cart.py", "shop/prices.py"))]
    assert plan.actions[0].description == "Fix ruff failures"


@pytest.mark.parametrize("path", ["seed.py", "VISION.md", "kernel/core.py", "a/../seed.py", "Seed.py"])
def test_a_plan_with_only_protected_targets_is_not_made(path: str) -> None:
    report = GapReport(gaps=(roadmap(f"Create `{path}`"),))
    assert NO_FILES.plan(report, [], ProjectState()) is None
    assert all(map(is_protected, ("../other.py", "/etc/passwd", "a/../../b.py"))), "outside of the project"


def test_other_actions_remain_when_a_protected_file_is_dropped() -> None:
    gap = Gap(category="inbox", description="Split `seed.py` into `parts.py`")
    assert targets(planned(gap, files=("seed.py",))) == [("create", ("parts.py",))]


FIRST, OTHER = roadmap("Create `a.py`"), roadmap("Create `b.py`")


@pytest.mark.parametrize(
    ("records", "waits"),
    [
        ([record(FIRST)] * 2, False),
        ([record(FIRST), record(FIRST, ROLLBACK), record(FIRST)], True),
        ([*[record(FIRST)] * 2, record(FIRST, SUCCESS), record(FIRST), record(OTHER)], False),
        ([*[record(FIRST)] * 2, record(FIRST, None)], False),  # an open iteration is no failure
        ([*[record(FIRST)] * 3, *[record(OTHER, SUCCESS)] * 3], False),  # only the last five records count
    ],
)
def test_a_gap_with_three_consecutive_failures_is_postponed(records: list[IterationRecord], waits: bool):
    assert planned(FIRST, OTHER, records=records).gap == (OTHER if waits else FIRST)


def test_if_every_gap_is_exhausted_the_first_is_planned_at_high_risk() -> None:
    gap = roadmap("Create `a.py`")
    plan = planned(gap, records=[record(gap)] * 4)
    assert plan.gap == gap
    assert plan.estimated_risk == "high"
    assert plan.actions[0].description.startswith("Warning: this gap and all others have failed 4 times")


@pytest.mark.parametrize(
    ("description", "files", "risk"),
    [
        ("Create `shop/new.py`", (), "low"),
        ("Implement rounding in `tests/test_cart.py`", ("tests/test_cart.py",), "low"),
        ("Implement rounding in `shop/cart.py`", ("shop/cart.py",), "medium"),
        ("Implement rounding in the domain", ("domain/money.py",), "high"),
    ],
)
def test_the_risk_follows_from_the_changed_files(description: str, files: tuple[str, ...], risk: str):
    assert planned(roadmap(description), files=files).estimated_risk == risk


@pytest.mark.parametrize(
    ("records", "risk"),
    [
        ([record(roadmap(), ROLLBACK)], "high"),
        ([record(roadmap()), *[record(roadmap("Other"), SUCCESS)] * 6], "high"),
        ([record(roadmap(), None)], "low"),
    ],
    ids=["rollback", "long-ago", "open"],
)
def test_a_gap_with_any_earlier_failure_has_high_risk(records: list[IterationRecord], risk: str) -> None:
    assert planned(roadmap(), records=records).estimated_risk == risk


def test_the_iteration_id_contains_the_record_count_and_the_time() -> None:
    plan = planned(roadmap(), records=[record(roadmap("Other"))] * 11)
    assert plan.iteration_id == "iter-0012-20260304-050607"


@given(
    description=st.text(min_size=1, max_size=80), category=st.sampled_from(["quality", "inbox", "roadmap"])
)
def test_every_plan_requires_ruff_and_pyright_and_targets_nothing_protected(
    description: str, category: Any
) -> None:
    gap = Gap(category=category, description=description)
    found = NO_FILES.plan(GapReport(gaps=(gap,)), [], ProjectState(now=NOW))
    if found is not None:
        assert found.acceptance_criteria[:2] == tuple(TOOL_CRITERIA)
        assert len(found.acceptance_criteria) > 2
        assert not any(is_protected(each) for action in found.actions for each in action.target_files)
        assert re.fullmatch(r"iter-\d{4}-\d{8}-\d{6}", found.iteration_id)


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Tests for module cart", ("create", ("modules/cart/tests/",))),
        ("Tests for cart", ("create", ("modules/cart/tests/",))),
        ("Tests for `modules/cart/core.py`", ("create", ("modules/cart/tests/",))),
        ("Tests for the cart: `tests/test_cart.py`", ("create", ("tests/test_cart.py",))),
        ("All code passes ruff", ("modify", ("shop/cart.py",))),
        ("Make everything better, e.g. the cart", ("create", ())),
        ("Create module `prices`", ("create", ("modules/prices/",))),
        ("Refactor shop/, w/o a change of input/output", ("modify", ("shop/",))),
        ("Implement module cart", ("modify", ("src/shop/cart/__init__.py",))),
    ],
)
def test_roadmap_items_map_to_files(description: str, expected: tuple[str, tuple[str, ...]]) -> None:
    files = (
        ("shop/cart.py", "src/shop/cart/__init__.py") if "Implement" in description else ("shop/cart.py",)
    )
    gap = roadmap(description, evidence=("shop/cart.py:3: bad",))
    assert targets(planned(gap, files=files)) == [expected]


def test_the_roadmap_is_no_target_of_an_item_about_all_code() -> None:
    plan = planned(roadmap("All code passes ruff", evidence=("ROADMAP.md:3",)), files=("ROADMAP.md",))
    assert targets(plan) == [("create", ())]


@pytest.mark.parametrize("files", [(), ("tests/test_speed.py",)])
def test_a_missing_test_of_a_gaps_command_may_be_written_and_an_existing_one_not(files: tuple[str]) -> None:
    gap = roadmap("Speed up `cart.py`", commands=("pytest tests/test_speed.py::test_fast -q",))
    (todo,) = plan_of_iteration(planned(gap, files=("cart.py",)), tools=[], files=files).items
    written = [] if files else ["tests/test_speed.py"]
    assert list(todo.allowed_files or ()) == ["cart.py", *written]
    assert [each.path for each in todo.acceptance_criteria.expected_artifacts] == written


@pytest.mark.parametrize(
    ("description", "constraint", "expected"),
    [
        ("Move parts of `cart.py` to `money.py`", "Keep `cart.py`'s tests", "create money.py"),
        ("Speed up module shop", "Keep `shop/api.py`", "modify shop/__init__.py shop/cart.py"),
        ("Speed up `cart.py` and `other.py`", "Change only `cart.py`", "modify cart.py"),
    ],
)
def test_a_constraint_of_an_inbox_item_leaves_out_the_files_that_it_names_unless_it_says_only(
    description: str, constraint: str, expected: str
) -> None:
    gap = Gap(category="inbox", description=description, constraints=(constraint, "Prices stay decimal"))
    plan = planned(gap, files=("cart.py", "other.py", "shop/__init__.py", "shop/api.py", "shop/cart.py"))
    ((kind, files),) = targets(plan)
    assert " ".join((kind, *files)) == expected
    assert "Prices stay decimal" in plan.acceptance_criteria


def test_the_documents_of_a_module_are_read() -> None:
    texts = {"modules/cart/SPEC.md": "The cart is `core.py` and `api.py`.", "modules/cart/CONTRACT.md": "…"}
    plan = planned(Gap(category="inbox", description="Write module cart"), texts=texts)
    assert targets(plan) == [("create", ("modules/cart/core.py", "modules/cart/api.py"))]
    documents = "modules/cart/CONTRACT.md, modules/cart/SPEC.md"
    assert plan.actions[0].description == f"Write module cart (comply with {documents})"


@given(
    description=st.text(min_size=1, max_size=80).filter(str.strip),
    commands=st.lists(st.sampled_from(["pytest tests/test_a.py", "rm -rf /", "ruff check ."]), max_size=2),
)
def test_every_iteration_becomes_a_plan_file_that_loads(
    description: str, commands: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    title = " ".join(description.split())
    if not title.isprintable():
        return
    found = NO_FILES.plan(
        GapReport(gaps=(roadmap(title, commands=tuple(commands)),)), [], ProjectState(now=NOW)
    )
    if found is not None:
        plan = plan_of_iteration(found, tools=["ruff check"], files=())
        loaded = load_plan_text(dump_plan(plan, format="yaml"), folder / "plan.yaml").plan
        assert loaded == plan
        assert not any(each.cmd.startswith("rm ") for each in loaded.items[0].acceptance_criteria.tests)


def test_code_that_is_to_pass_an_installed_tool_needs_no_new_test() -> None:
    plan = planned(roadmap("- All code passes ruff"))
    (todo,), (other,) = (
        plan_of_iteration(plan, tools=tools, files=()).items for tools in (["ruff check"], [])
    )
    assert [each.cmd for each in todo.acceptance_criteria.tests] == ["ruff check ."]
    assert other.acceptance_criteria.expected_artifacts


@pytest.mark.parametrize(
    ("description", "protected"), [("Create `a.py`", ("kernel/**",)), ("Make it faster", PROTECTED)]
)
def test_a_plan_protects_what_exists_or_all_protected_files_if_any_file_may_be_written(
    description: str, protected: tuple[str, ...]
) -> None:
    plan = plan_of_iteration(
        planned(roadmap(description)), tools=[], files=("shop/seed.py", "kernel/a/b.py")
    )
    assert plan.metadata.protected_files == protected


def test_the_log_of_iterations_holds_any_text(tmp_path: Path) -> None:
    records = [record(roadmap("Create `a.py`\u2028and `b.py`")), record(FIRST, None)]
    write_log(tmp_path, records)
    assert read_log(tmp_path) == records


def test_an_overlong_description_in_a_gap_report_is_refused(tmp_path: Path) -> None:
    report = {"gaps": [{"category": "roadmap", "description": "x" * 2_001}]}
    (tmp_path / "gaps.json").write_text(json.dumps(report))
    with pytest.raises(PlannerError, match=r"gaps.json: gaps.0.description: String should have"):
        read_gap_report(tmp_path / "gaps.json")


def test_the_instructions_name_the_evidence_of_the_gap() -> None:
    gap = Gap(category="inbox", description="Round prices", evidence=("inbox/prices.md",))
    (todo,) = plan_of_iteration(planned(gap), tools=[], files=()).items
    assert "Evidence: inbox/prices.md" in (todo.intent or "")


@pytest.mark.parametrize("tools", [[], ["ruff check"], ["ruff check", "pyright"]])
def test_the_instructions_list_criteria_that_no_command_checks(tools: list[str]) -> None:
    (todo,) = plan_of_iteration(planned(roadmap("Create `shop/prices.py`")), tools=tools, files=()).items
    checked = {spec.cmd.removesuffix(" shop/prices.py") for spec in todo.acceptance_criteria.tests}
    _, _, unchecked = (todo.intent or "").partition("Required, but not checked by a command:\n")
    assert checked.issuperset(tools)
    for criterion in TOOL_CRITERIA:
        assert f"- {criterion}" not in unchecked, "a tool that the project does not use is no demand"
    assert "- Done: Create `shop/prices.py`" in unchecked
