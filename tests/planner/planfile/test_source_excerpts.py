"""Files read for a repair: the failure report of the same run, and relevant lines of source."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from repair_samples import CART_FRAME, PLAN_ID, TEST_FRAME, evidence, failure, outcome, project, report

from planner.model.evidence import ArtifactFact, ExceptionFact, Selector
from planner.model.outcome import Location, PlanRef, ReportedTodo, evidence_of
from planner.model.taxonomy import Category
from planner.model.verdicts import Phase
from planner.planfile.project_files import LARGEST_READ, RootedFiles
from planner.planfile.source_excerpts import (
    EXCERPT_LINES,
    FUNCTION_LINES,
    LARGEST_EVIDENCE,
    load_failure_context,
    read_excerpts,
)

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.evidence import Evidence
    from planner.model.outcome import Failure, FailureContext, FailureReport, Outcome
    from planner.planfile.loader import LoadedPlan

REPORT = "diagnostics/t1_failure_report.json"


@pytest.fixture
def shop(tmp_path: Path) -> LoadedPlan:
    return project(tmp_path)


def write_report(plan: LoadedPlan, written: FailureReport) -> None:
    (plan.root / REPORT).parent.mkdir(exist_ok=True)
    (plan.root / REPORT).write_text(written.model_dump_json(), encoding="utf-8")


def context(plan: LoadedPlan, seen: Outcome | None = None) -> FailureContext:
    return load_failure_context(seen or outcome(), PLAN_ID, root=plan.root, reports=plan.root)


def lines_shown(root: Path, deciding: Failure, *facts: Evidence) -> list[tuple[str, int, int]]:
    """Return path, first line and last line of each excerpt."""
    found = read_excerpts(RootedFiles(root), deciding, facts)
    return [(each.path, each.first_line, each.first_line + len(each.lines) - 1) for each in found]


def test_the_report_of_the_same_failure_is_read(shop: LoadedPlan) -> None:
    written = report()
    write_report(shop, written)
    found = context(shop)
    assert (found.evidence, found.excerpts, found.report_path) == (written.evidence, (), REPORT)


def test_a_large_report_is_named_and_its_evidence_looked_up_but_not_kept(shop: LoadedPlan) -> None:
    artifact = ArtifactFact(path="data/orders.json", problem="missing")
    write_report(shop, report(None, evidence(artifact=artifact, longrepr="x" * LARGEST_EVIDENCE)))
    found = context(shop)
    assert (found.evidence, found.report_path) == ((), REPORT)
    assert "data/orders.json" in found.present


@pytest.mark.parametrize(
    ("other", "seen"),
    [
        ({"plan": PlanRef(todo_list_id="another plan", path="plan.yaml", digest="")}, outcome()),
        ({"todo": ReportedTodo(id="t2")}, outcome()),
        ({"schema_version": 2}, outcome()),
        ({"failures": ()}, outcome()),
        ({}, outcome(failure(signature="ffffffffffff"))),
        ({}, outcome(failure(signature=None))),
    ],
    ids=["plan", "todo", "newer", "nameless", "another-failure", "no-signature"],
)
def test_a_report_of_another_plan_todo_or_failure_is_ignored(
    shop: LoadedPlan, other: dict[str, Any], seen: Outcome
) -> None:
    write_report(shop, report(**other))
    assert context(shop, seen).report_path is None


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"schema_version": 1}', "\0"])
def test_a_broken_report_is_ignored(shop: LoadedPlan, text: str) -> None:
    (shop.root / REPORT).parent.mkdir()
    (shop.root / REPORT).write_text(text)
    assert context(shop).report_path is None


def test_files_that_were_missing_but_exist_now_are_listed(shop: LoadedPlan) -> None:
    unknown = ExceptionFact(type="ModuleNotFoundError", qualified="ModuleNotFoundError", name="shop.cart")
    facts = (
        evidence(artifact=ArtifactFact(path="data/orders.json", problem="missing")),
        evidence(selectors=(Selector(text="tests/test_cart.py::test_new", problem="missing_file"),)),
        evidence(exceptions=(unknown,)),
        evidence(artifact=ArtifactFact(path="out/gone.json", problem="missing")),
    )
    write_report(shop, report(None, *facts))
    assert set(context(shop).present) == {"data/orders.json", "tests/test_cart.py", "shop/cart.py"}


def test_evidence_is_assigned_to_failures_by_test_or_else_by_criterion() -> None:
    setup, call, other = evidence(phase=Phase.SETUP), evidence(), evidence(nodeid="a.py::b")
    metric = evidence(nodeid=None, check_id="metrics[0]")
    facts = (setup, other, metric, call)
    assert evidence_of(failure(), facts) == (call, setup)
    assert evidence_of(failure(check_id="metrics[0]", tests=(), top_failing_tests=()), facts) == (metric,)


def test_functions_are_quoted_to_their_end_and_that_of_the_diagnosis_comes_first(shop: LoadedPlan) -> None:
    frames = (TEST_FRAME, CART_FRAME)
    fact = evidence(exceptions=(ExceptionFact(type="KeyError", qualified="KeyError", frames=frames),))
    shown = lines_shown(shop.root, failure(), fact)
    assert shown == [("shop/cart.py", 4, 5), ("shop/cart.py", 8, 9), ("tests/test_cart.py", 8, 9)]


def test_without_frames_the_failing_test_is_quoted(shop: LoadedPlan) -> None:
    deciding = failure(location=None, top_failing_tests=("tests/test_cart.py::test_total[1]",))
    assert lines_shown(shop.root, deciding) == [("tests/test_cart.py", 8, 9)]
    gone = failure(location=None, top_failing_tests=("tests/test_cart.py::test_gone",))
    assert lines_shown(shop.root, gone) == []


def test_a_long_function_is_quoted_only_around_the_location(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n" + "    x = 1\n" * 300)
    ((_, first, last),) = lines_shown(tmp_path, failure(location=Location(path="a.py", line=200)))
    assert first <= 195
    assert last - first + 1 == EXCERPT_LINES


def test_a_docstring_that_fills_the_excerpt_gives_way_to_the_code_unless_the_signature_is_at_issue(
    tmp_path: Path,
) -> None:
    lines = ["def f(a):", '    """Explain.', *["    More."] * FUNCTION_LINES, '    """', "    return a"]
    (tmp_path / "a.py").write_text("\n".join(lines) + "\n")
    place = Location(path="a.py", line=1)
    code = len(lines)
    assert lines_shown(tmp_path, failure(location=place)) == [("a.py", code, code)]
    mismatch = failure(location=place, category=Category.SPEC_MISMATCH)
    assert lines_shown(tmp_path, mismatch) == [("a.py", 1, FUNCTION_LINES)]


@pytest.mark.parametrize("text", ["def f(:\n", "x = 1\n", "\0\n"], ids=["broken", "module", "binary"])
def test_a_location_outside_functions_is_quoted_with_a_window_of_lines(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.py").write_text("# a comment\n" * 100 + text)
    shown = lines_shown(tmp_path, failure(location=Location(path="a.py", line=100)))
    assert shown == ([] if "\0" in text else [("a.py", 92, 101)])


def test_secrets_in_source_excerpts_are_redacted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("PASSWORD = 'hunter2'\nx\x1b[2J = 1\n")
    (found,) = read_excerpts(RootedFiles(tmp_path), failure(location=Location(path="a.py", line=2)), ())
    assert found.lines == ("PASSWORD = '[redacted: password]'", "x = 1")
    key = ["-----BEGIN PRIVATE KEY-----", *["QUJD" * 16] * 30, "-----END PRIVATE KEY-----", ""]
    (tmp_path / "a.py").write_text("\n".join(key))
    assert read_excerpts(RootedFiles(tmp_path), failure(location=Location(path="a.py", line=20)), ()) == ()


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "link", "away/secret", "pipe", "folder", "missing", "nul\0", ""]
)
def test_only_regular_files_below_the_root_are_read(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret\n")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "away").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    assert RootedFiles(root).read(path) is None
    assert lines_shown(root, failure(location=Location(path=path, line=1), top_failing_tests=())) == []


def test_a_large_file_is_read_only_partly_and_no_file_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"x" * (LARGEST_READ + 10))
    files = RootedFiles(tmp_path)
    file = files.read("a")
    assert file is not None
    assert (len(file.data), file.is_whole) == (LARGEST_READ, False)
    monkeypatch.setattr(os, "open", None)
    assert files.read("./a") is file


def test_the_reports_of_a_sub_plan_are_below_the_root_of_the_top_plan(tmp_path: Path) -> None:
    sub = tmp_path / "sub"
    sub.mkdir()
    project(sub)
    written = report(todo=ReportedTodo(id="phase/t1"))
    (tmp_path / "diagnostics").mkdir()
    path = tmp_path / "diagnostics/phase__t1_failure_report.json"
    path.write_text(written.model_dump_json())
    found = load_failure_context(outcome(todo_id="phase/t1"), PLAN_ID, root=sub, reports=tmp_path)
    assert found.report_path == "diagnostics/phase__t1_failure_report.json"
