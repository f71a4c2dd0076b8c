"""The HTML report, opened in a browser: one file, no network, hostile text shown as text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from outcome_samples import check, document, outcome, results
from playwright.sync_api import sync_playwright
from test_report_formats import HOSTILE, PLAN, red

from planner.model.evidence import Hunk
from planner.model.outcome import Candidate, OutcomeDocument
from planner.model.plan import Todo
from planner.model.verdicts import TodoState
from pytest_planverify.reports.cases import ReportInput
from pytest_planverify.reports.formats import render
from pytest_planverify.reports.html import draw

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def todo(name: str, *dependencies: str) -> Todo:
    return Todo(
        id=name,
        title=name,
        failure_routing={"implementation_bug": "coder"},  # type: ignore[arg-type]
        dependencies=dependencies,
        acceptance_criteria={},  # type: ignore[arg-type]
    )


def page_of(found: OutcomeDocument, *todos: Todo) -> str:
    return render("html", ReportInput(found, {PLAN: ""}, {PLAN: todos}))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Any]:
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)

    def shown(text: str) -> Any:
        (tmp_path / "report.html").write_text(text, encoding="utf-8")
        page.goto((tmp_path / "report.html").as_uri())
        return page

    yield shown
    page.close()
    assert said == []  # no error of a script or the policy, no dialog, no request


def test_a_red_page_has_the_graph_the_cause_beside_its_hunk_and_the_todos(show: Any) -> None:
    hunk = Hunk(path="shop/tax.py", line=7, text="@@ -7 +7 @@\n-    return x * 2\n+    return x * 3")
    candidate = Candidate(path="shop/tax.py", line=7, function="tax", reasons=("changed",), hunk=hunk)
    found = red()
    first, *rest = found.outcomes
    told = first.failures[0].model_copy(update={"candidates": (candidate,)})
    first = first.model_copy(update={"failures": (told,), "failure_evidence": told})
    page = show(
        page_of(
            found.model_copy(update={"outcomes": (first, *rest)}),
            todo("tax"),
            todo("inv", "tax"),
            todo("ok"),
        )
    )
    assert page.locator("svg g").count() == 3
    assert page.locator("svg path").count() == 1
    problem = page.locator("details.problem")
    assert problem.locator(".plus").inner_text() == "+    return x * 3"
    for said in ("tax gave 3", "coder", "pytest --planverify plan.yaml::tax", "shop/tax.py:7"):
        assert said in problem.inner_text()
    assert page.locator("details.todo").count() == 3
    assert page.locator("header").get_attribute("class") == "red"


def test_hostile_names_are_text(show: Any) -> None:
    page = show(page_of(red(), todo("tax")))
    assert page.locator("script").count() == 1
    assert "<script>alert(1)</script>" in page.locator("details.todo").first.inner_text()
    assert HOSTILE not in page.content()


def test_the_filter_and_the_keys_find_a_todo_among_two_thousand(show: Any) -> None:
    todos = [
        outcome(f"todo-{n}", "T", TodoState.DONE, check("c", tests=results("t.py", "a")))
        for n in range(2000)
    ]
    page = show(page_of(document(*todos), *(todo(f"todo-{n}") for n in range(2000))))
    page.keyboard.press("/")
    page.keyboard.type("todo-1999")
    assert page.locator("details.todo:visible").count() == 1
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.locator("details.todo[open]").count() == 1
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.textContent").split()[1] == "todo-0"


def test_columns_of_the_graph_are_waves() -> None:
    graph = draw([todo("a"), todo("b", "a"), todo("c", "a")], [], PLAN)
    columns = {node.todo_id: node.x for node in graph.nodes}
    assert columns["a"] < columns["b"] == columns["c"]
    assert len(graph.edges) == 2


def test_a_circle_of_dependencies_and_a_long_name_are_drawn_all_the_same() -> None:
    graph = draw([todo("a" * 40, "b"), todo("b", "a" * 40)], [], PLAN)
    assert [len(node.label) for node in graph.nodes] == [22, 1]
