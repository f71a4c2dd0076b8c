"""Report formats for programs: red exactly if the exit status is, and harmless if rendering fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from outcome_samples import check, document, outcome, results, summary
from prometheus_client.parser import text_string_to_metric_families

from planner.model.evidence import Hunk
from planner.model.outcome import (
    Candidate,
    Cause,
    CauseTodo,
    Failure,
    Location,
    OutcomeDocument,
    TestResult,
)
from planner.model.plan import Todo
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import CheckKind, Since, TestOutcome, TodoState, Verdict
from planner.planfile.left_files import left_by_runs
from planner.planfile.tree import load_tree
from pytest_planverify.reports.cases import ReportInput, safe
from pytest_planverify.reports.formats import (
    FORMATS,
    Report,
    render,
    report_input,
    report_to_github,
    write_reports,
)
from pytest_planverify.reports.html import draw
from pytest_planverify.reports.reporter_session import merge_allure_results

HOSTILE = 't<script>alert(1)</script>&"\x1b[31m\u202e,::error::%0A\ufffe'
PLAN = "workflow_momentum_001"


def failure(number: int = 0, **rest: Any) -> Failure:
    fields: dict[str, Any] = {
        "category": Category.TEST_REGRESSION,
        "owner": Owner.PRODUCT,
        "signature": f"s{number}",
        "target_agent": Role.CODER,
        "check_id": "tests[0]",
        "tests": (f"tests/test_{number}.py::{HOSTILE}",),
        "stack_trace_head": f"AssertionError: {number}\n100%, {HOSTILE}",
        "location": Location(path=f"shop/tax,{number}:x.py", line=7),
        "suggestion": "tax gave 3 where 2 is expected.",
        "rerun": "pytest --planverify plan.yaml::tax",
    }
    return Failure(**(fields | rest))


def red(*failures: Failure, **run: Any) -> OutcomeDocument:
    """Return a run in which a todo has these failures, by default one; one is blocked, and one is done."""
    found = failures or (failure(),)
    names = (name for each in found for name in each.tests)
    tests = tuple(TestResult(nodeid=name, outcome=TestOutcome.FAILED) for name in names)
    failed = outcome(
        "tax",
        HOSTILE,
        TodoState.TEST_FAILED,
        check("tests[0]", verdict=Verdict.FAILED, tests=tests),
        failure_evidence=found[0],
        failures=found,
    )
    waits = check("tests[0]", verdict=Verdict.BLOCKED, reason="blocked by tax")
    blocked = outcome("inv", "Invoices", TodoState.BLOCKED, waits, blocked_by=("tax",))
    passed = check("tests[0]", tests=results("tests/test_ok.py", "a", "b"))
    return document(
        failed, blocked, outcome("ok", "Fine", TodoState.DONE, passed), **({"exit_status": 1} | run)
    )


def failures(count: int) -> list[Failure]:
    return [failure(number) for number in range(count)]


GREEN = document(outcome("a", "A", TodoState.DONE, check("x")))


def given(found: OutcomeDocument, folder: str = "") -> ReportInput:
    return ReportInput(found, {PLAN: folder})


def rendered(name: str, found: OutcomeDocument) -> str:
    return render(name, given(found))


def github_lines(found: OutcomeDocument, **environment: str) -> list[str]:
    """Return the lines that GitHub Actions gets."""
    return list(report_to_github(given(found), {"GITHUB_ACTIONS": "true", **environment}))


def only(kind: CheckKind, verdict: Verdict, exit_status: int, **rest: Any) -> OutcomeDocument:
    state = TodoState.TEST_FAILED if verdict.is_red else TodoState.TESTING
    return document(
        outcome("it", "It", state, check("it[0]", kind, verdict, title="it", **rest)),
        exit_status=exit_status,
    )


def junit(found: OutcomeDocument) -> Any:
    return JUnitXml.fromstring(rendered("junit", found).encode())


@pytest.mark.parametrize(
    "found",
    [
        red(),
        only(CheckKind.ARTIFACT, Verdict.FAILED, 1),
        only(CheckKind.GUARD, Verdict.FAILED, 13),
        only(CheckKind.TEST, Verdict.FLAKY, 1),
        only(CheckKind.MANUAL, Verdict.NEEDS_HUMAN, 11),
        document(exit_status=5),
        document(*GREEN.outcomes, exit_status=1, unexplained="coverage of 80 %"),
    ],
)
def test_formats_are_red_if_the_exit_status_is(found: OutcomeDocument) -> None:
    read = junit(found)
    assert read.failures > 0
    assert read.failures == sum(
        1 for suite in read for case in suite if case.result and not case.is_skipped
    )
    report = json.loads(rendered("ctrf", found))["results"]
    summary = report["summary"]
    assert summary["failed"] == read.failures
    assert [test["status"] for test in report["tests"]].count("failed") == read.failures
    assert summary["tests"] == summary["passed"] + summary["failed"] + summary["skipped"] == read.tests


def test_case_of_a_failed_test_says_why_in_each_criterion_that_ran_it() -> None:
    tests = results("t.py", "a", outcome=TestOutcome.FAILED)
    checks = [check(each, verdict=Verdict.FAILED, tests=tests) for each in ("tests[0]", "must_stay_green")]
    why = failure(tests=("t.py::a",), stack_trace_head="assert 1 == 2")
    todo = outcome("a", "A", TodoState.TEST_FAILED, *checks, failure_evidence=why, failures=(why,))
    cases = given(document(todo, exit_status=1)).cases
    assert [(each.name, each.message) for each in cases] == [
        ("t.py::a", "TEST_REGRESSION (coder): assert 1 == 2")
    ] * 2


def test_formats_are_not_red_if_the_exit_status_is_not() -> None:
    unclaimed, quarantined = (
        red(exit_status=0),
        only(CheckKind.TEST, Verdict.FLAKY, 0, quarantined="SHOP-1"),
    )
    for found in (GREEN, unclaimed, quarantined):
        assert junit(found).failures == 0
        assert json.loads(rendered("ctrf", found))["results"]["summary"]["failed"] == 0
        levels = [each["level"] for each in json.loads(rendered("sarif", found))["runs"][0]["results"]]
        assert "error" not in levels
        assert github_lines(found) == []


def test_junit_has_a_suite_per_todo_with_failure_reasons() -> None:
    suites = {suite.name: list(suite) for suite in junit(red())}
    assert list(suites) == ["tax", "inv", "ok"]
    [case] = suites["tax"]
    assert "shop/tax,0:x.py:7" in case.result[0].text
    assert suites["inv"][0].result[0].message == "blocked by tax"
    assert [each.name for each in suites["ok"]] == ["tests/test_ok.py::a", "tests/test_ok.py::b"]


def test_ctrf_report_has_the_required_fields() -> None:
    report = json.loads(rendered("ctrf", red()))
    assert (report["reportFormat"], report["specVersion"]) == ("CTRF", "0.0.0")
    whole, tests = report["results"]["summary"], report["results"]["tests"]
    assert whole["stop"] - whole["start"] == 1000
    assert {test["status"] for test in tests} == {"passed", "failed", "skipped"}
    assert all(test["name"] and isinstance(test["duration"], int) for test in tests)


def test_sarif_and_gitlab_paths_start_at_the_repository_root() -> None:
    placed = given(red(*failures(2)), "services/shop")
    [run] = json.loads(render("sarif", placed))["runs"]
    assert run["tool"]["driver"]["rules"] == [{"id": "TEST_REGRESSION"}]
    assert [each["ruleIndex"] for each in run["results"]] == [0, 0]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "services/shop/shop/tax%2C0%3Ax.py"
    assert place["region"]["startLine"] == 7
    listed = json.loads(render("gitlab", placed))
    assert len({each["fingerprint"] for each in listed}) == 2
    for each in listed:
        assert each["severity"] == "major"
        assert each["location"]["path"].startswith("services/shop/shop/tax,")
        assert each["location"]["lines"]["begin"] == 7


def test_failures_of_one_cause_are_one_problem_as_is_an_unexplained_check() -> None:
    found = red(*failures(3))
    cause = Cause(
        rank=1,
        signatures=("s0", "s1", "s2"),
        category=Category.TEST_REGRESSION,
        todos=(CauseTodo(todo_id="tax", plan=PLAN, tests=3),),
    )
    joined = found.model_copy(update={"causes": (cause,)})
    assert [len(problem.tests) for problem in given(joined).problems] == [3]
    [unexplained] = given(only(CheckKind.ARTIFACT, Verdict.FAILED, 1, reason="gone")).problems
    assert "gone" in unexplained.headline


def test_the_plan_is_the_place_of_a_failure_without_one_relative_to_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "services/shop"
    folder.mkdir(parents=True)
    (folder / "plan.yaml").write_text(f"todo_list_id: {PLAN}\nitems: [{{id: tax, title: Tax}}]\n")
    monkeypatch.chdir(folder)
    flat = load_tree(Path("plan.yaml")).load_all().flat()
    [problem] = report_input(red(failure(location=None)), [flat]).problems
    assert problem.path == "services/shop/plan.yaml"


def test_prometheus_output_is_parsable() -> None:
    families = {each.name: each for each in text_string_to_metric_families(rendered("prometheus", red()))}
    assert families["planverify_run_exit_status"].samples[0].value == 1
    todos = {sample.labels["state"]: sample.value for sample in families["planverify_run_todos"].samples}
    assert (todos["done"], todos["test_failed"], todos["blocked"], todos["pending"]) == (1, 1, 1, 0)
    criteria = families["planverify_run_criteria"].samples
    assert {sample.labels["verdict"] for sample in criteria} == {each.value for each in Verdict}


def test_markdown_has_location_role_and_rerun_or_one_line_when_green() -> None:
    text = rendered("markdown", red())
    rerun = "pytest --planverify plan.yaml::tax"
    for part in ("shop/tax,0:x.py:7", "who: `coder`", rerun, "blocked by `tax`"):
        assert part in text
    assert len(rendered("markdown", GREEN).strip().splitlines()) == 1


def test_a_blocked_todo_is_not_among_the_slowest() -> None:
    slowest = rendered("html", red()).partition("Slowest todos")[2]
    assert ("<td>ok</td>" in slowest, "<td>inv</td>" in slowest) == (True, False)


def test_todos_of_several_plans_are_named_with_their_plan() -> None:
    one = red(failure(signature=""))
    other = one.plans[0].model_copy(update={"todo_list_id": "other"})
    outcomes = (*one.outcomes, *(each.model_copy(update={"plan": "other"}) for each in one.outcomes))
    both = one.model_copy(update={"plans": (*one.plans, other), "outcomes": outcomes})
    names = [suite.name for suite in junit(both)]
    assert names == [f"{plan}::{name}" for plan in (PLAN, "other") for name in ("tax", "inv", "ok")]
    assert len({each["fingerprint"] for each in json.loads(rendered("gitlab", both))}) == 2
    for name in "markdown", "html":
        assert "other::inv" in rendered(name, both)


@pytest.mark.parametrize("name", ["markdown", "html", "terminal"])
def test_reports_show_only_changes_that_can_have_caused_the_failure(name: str) -> None:
    hunk = Hunk(path="shop/tax.py", line=7, text="+    return x * 3")
    took_part = Candidate(path="shop/tax.py", line=7, score=0.6, hunk=hunk)
    unrelated = took_part.model_copy(update={"score": 0.1})

    def is_shown(candidate: Candidate, **facts: Any) -> bool:
        found = red(failure(candidates=(candidate,), **facts))
        if name == "terminal":
            return "changed shop/tax.py:7" in summary(found)
        return hunk.text in rendered(name, found)

    assert is_shown(took_part)
    assert not is_shown(unrelated)
    assert not is_shown(took_part, since=Since.PRE_EXISTING)


def test_hostile_text_is_escaped_in_every_format() -> None:
    named = red(failure(location=Location(path=f"shop/{HOSTILE}.py"), suggestion=HOSTILE))
    for found in (red(), named):
        for text in (*(rendered(name, found) for name in FORMATS), *github_lines(found)):
            assert "\x1b" not in text
            assert "\u202e" not in text
            assert "\ufffe" not in text
    lines = github_lines(red())
    assert lines[0].startswith("::error file=shop/tax%2C0%3Ax.py,line=7,title=TEST_REGRESSION::")
    assert all("\n" not in line and "100%25" not in line.split("::")[1] for line in lines)


def test_github_annotations_are_limited_to_ten_and_the_last_counts_the_rest() -> None:
    lines = github_lines(red(*failures(30)))
    assert len(lines) == 10
    assert "and 21 more root causes" in lines[-1]
    assert list(report_to_github(given(red()), {})) == []
    [line] = github_lines(document(exit_status=5))
    assert "exit status 5" in line


def test_step_summary_is_appended_to_and_counts_as_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    github_lines(red(), GITHUB_STEP_SUMMARY=str(summary))
    assert summary.read_text().startswith("before\n### ")
    assert left_by_runs(tmp_path / ".planverify", tmp_path, ["summary.md"]) == {"summary.md"}
    lines = github_lines(red(), GITHUB_STEP_SUMMARY=str(tmp_path / "no" / "folder"))
    assert "GITHUB_STEP_SUMMARY: cannot be written" in lines[-1]


def test_report_error_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = [Report("junit", Path("/dev/full")), Report("sarif", None)]
    [line] = write_reports(given(red()), full, tmp_path)
    assert line.startswith("report junit: /dev/full: cannot be written")
    assert (tmp_path / ".planverify/reports/planverify.sarif").exists()
    monkeypatch.setattr("pytest_planverify.reports.sarif.render", lambda given: 1 / 0)
    [line] = write_reports(given(red()), [Report("sarif", None)], tmp_path)
    assert "ZeroDivisionError" in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("suggestion", "label"),
    [("Correct tax (shop/tax.py:7).", "fix"), ("tax gave 3 instead of 2.", "found")],
)
def test_suggestion_is_labelled_as_fix_or_finding(suggestion: str, label: str) -> None:
    found = red(failure(suggestion=suggestion))
    assert f"- {label}: `{suggestion}`" in rendered("markdown", found)
    assert f"<dt>{label}</dt><dd>{suggestion}</dd>" in rendered("html", found)


def test_a_finding_that_repeats_the_message_is_left_out() -> None:
    found = red(failure(suggestion="a.py does not exist.", stack_trace_head="a.py does not exist"))
    assert "- found:" not in rendered("markdown", found)
    texts = (rendered("junit", found), rendered("ctrf", found), github_lines(found)[0])
    # JUnit has it as attribute and text, CTRF as message and trace.
    assert [text.count("a.py does not exist") for text in texts] == [2, 2, 1]


def test_long_markdown_report_counts_omitted_entries_and_fits_a_comment() -> None:
    found = red(*failures(30))
    done = [outcome(f"d{number}", "D" * 60, TodoState.DONE, check("c")) for number in range(1900)]
    text = rendered("markdown", found.model_copy(update={"outcomes": (*done, *found.outcomes)}))
    assert "and 5 more causes" in text
    assert "and 1703 more todos" in text
    assert len(text) < 65_536
    assert "❌ `tax`" in text
    assert "exit status 10" in rendered("markdown", only(CheckKind.COMMAND, Verdict.INCONCLUSIVE, 10))
    gone = only(CheckKind.ARTIFACT, Verdict.FAILED, 1, reason="gone")
    assert "it[0] failed: gone" in rendered("markdown", gone)


def test_reports_for_people_are_headed_by_the_names_of_the_plans() -> None:
    one = ReportInput(GREEN, {PLAN: ""}, names={PLAN: "A shop"})
    assert "<h1>A shop</h1>" in render("html", one)
    assert render("markdown", one).startswith("### ✅ `A shop`: ")
    plans = (*GREEN.plans, GREEN.plans[0].model_copy(update={"todo_list_id": "till"}))
    several = ReportInput(GREEN.model_copy(update={"plans": plans}), {}, names=one.names)
    assert several.heading == f"A shop ({PLAN}), till"


def todo(name: str, *dependencies: str) -> Todo:
    return Todo(
        id=name,
        title=name,
        failure_routing={"implementation_bug": "coder"},
        dependencies=dependencies,
        acceptance_criteria={},
    )


def page_of(found: OutcomeDocument, *todos: Todo) -> str:
    return render("html", ReportInput(found, {PLAN: ""}, {PLAN: todos}))


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Any]:
    page = browser.new_page()
    seen: list[str] = []
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("dialog", lambda dialog: seen.append(dialog.message))
    page.on("request", lambda request: seen.append(request.url) if request.url.startswith("http") else None)

    def shown(text: str) -> Any:
        (tmp_path / "report.html").write_text(text, encoding="utf-8")
        page.goto((tmp_path / "report.html").as_uri())
        return page

    yield shown
    page.close()
    assert seen == []  # no script or policy error, no dialog, no request


def test_red_page_shows_graph_causes_with_hunks_and_todos_and_escapes_hostile_names(show: Any) -> None:
    hunk = Hunk(path="shop/tax.py", line=7, text="@@ -7 +7 @@\n-    return x * 2\n+    return x * 3")
    found = red(failure(candidates=(Candidate(path="shop/tax.py", line=7, score=0.6, hunk=hunk),)))
    page = show(page_of(found, todo("tax"), todo("inv", "tax"), todo("ok")))
    assert page.locator("svg g").count() == 3
    assert page.locator("svg path").count() == 1
    problem = page.locator("details.problem")
    assert problem.locator(".plus").inner_text() == "+    return x * 3"
    for part in ("tax gave 3", "coder", "pytest --planverify plan.yaml::tax", "shop/tax.py:7"):
        assert part in problem.inner_text()
    assert page.locator("details.todo").count() == 3
    assert page.locator("header").get_attribute("class") == "red"
    assert page.locator("script").count() == 1
    assert "<script>alert(1)</script>" in page.locator("details.todo").first.inner_text()
    assert HOSTILE not in page.content()


def test_filter_and_keys_find_a_todo_among_many(show: Any) -> None:
    tested = check("c", tests=results("t.py", "a"))
    todos = [outcome(f"todo-{n}", "T", TodoState.DONE, tested) for n in range(200)]
    page = show(page_of(document(*todos), *(todo(f"todo-{n}") for n in range(200))))
    page.keyboard.press("/")
    page.keyboard.type("todo-199")
    assert page.locator("details.todo:visible").count() == 1
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.locator("details.todo[open]").count() == 1
    for key in ("/", "Escape", "j", "j", "k"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.textContent").split()[1] == "todo-0"


def test_graph_columns_are_dependency_waves() -> None:
    graph = draw([todo("a"), todo("b", "a"), todo("c" * 40, "a")], [], PLAN)
    columns = {node.todo_id: node.x for node in graph.nodes}
    assert columns["a"] < columns["b"] == columns["c" * 40]
    assert [len(node.label) for node in graph.nodes] == [1, 1, 22]
    assert len(graph.edges) == 2


def write_result(folder: Path, name: str, status: str, test: str = "test") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    result = {"uuid": name, "historyId": test, "status": status}
    (folder / f"{name}-result.json").write_text(json.dumps(result))


def merged(folder: Path, *, clean: bool = False) -> list[str]:
    """Return the names of the results that are left of two workers, and of one without results."""
    merge_allure_results([folder / "c1", folder / "c2", folder / "none"], folder / "all", clean=clean)
    return sorted(path.name.removesuffix("-result.json") for path in (folder / "all").glob("*-result.json"))


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (["passed"], "passed", ["a0"]),
        (["passed"], "failed", ["b"]),
        (["broken"], "failed", ["a0"]),
        (["failed", "passed"], "passed", ["a0", "a1"]),
    ],
)
def test_allure_results_of_the_first_worker_count_unless_only_a_later_one_is_red(
    tmp_path: Path, first: list[str], second: str, kept: list[str]
) -> None:
    for number, status in enumerate(first):
        write_result(tmp_path / "c1", f"a{number}", status)
    write_result(tmp_path / "c2", "b", second)
    assert merged(tmp_path) == kept


@pytest.mark.parametrize(("clean", "kept"), [(True, ["a", "cut"]), (False, ["a", "cut", "old"])])
def test_allure_folder_is_emptied_on_request_and_gets_also_files_of_killed_workers(
    tmp_path: Path, clean: bool, kept: list[str]
) -> None:
    write_result(tmp_path / "all", "old", "passed", test="old")
    write_result(tmp_path / "c1", "a", "passed")
    (tmp_path / "c1/cut-result.json").write_text('{"historyId": "x", "sta')
    (tmp_path / "c1/shot-attachment.png").write_bytes(b"png")
    assert merged(tmp_path, clean=clean) == kept
    assert (tmp_path / "all/shot-attachment.png").is_file()


def test_a_secret_is_redacted_even_with_a_control_sequence_in_it() -> None:
    assert safe("token ghp_\x1b[0m16C7e42F292c6912E7710c838347Ae178B4a") == "token [redacted: github token]"
