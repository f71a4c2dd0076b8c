"""Reporters see each test once, with the results of a plain session of the same tests."""

from __future__ import annotations

import html
import json
import re
import shlex
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from example_project import Example, todo
from real_command import Finished, run_pytest
from reporting_driver import Reported, criterion, run_criteria
from text_bundles import read_bundle

from planner.model.outcome import Outcome
from pytest_planverify.reports.reporters import GivenOptions

SUPPORT = Path(__file__).parents[1] / "support"
FILES = read_bundle(SUPPORT / "reporters.txt")

COMMANDS = (
    "tests/test_price.py",
    "tests/test_red.py",
    "tests/test_discount.py tests/test_plugins.py"
    " tests/test_red.py::test_wrong tests/test_price.py::test_price[1]",
)
"""Commands of a run. The last one repeats a red and a green test of the others."""

GITHUB = {"GITHUB_ACTIONS": "true"}
BARE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Variables that prevent the loading of plugins, which takes most of a short session."""

ANNOTATIONS = ("-p", "pytest_github_actions_annotate_failures")
HTML = ("pytest_metadata.plugin", "pytest_html.plugin", "pytest_html.fixtures")
JSON = ("pytest_jsonreport.plugin", "pytest_reportlog.plugin", "ctrf.main")
ALL = {"PYTEST_PLUGINS": ",".join(("pytest_cov.plugin", "allure_pytest.plugin", *HTML, *JSON))}
"""The variable that loads all other reporters whose results are compared with plain pytest."""

OPTIONS = (
    *ANNOTATIONS,
    *("-rA", "--durations=3", "--durations-min=0", "--cov=shop", "--cov-branch", "--cov-report=term"),
    *("--junitxml=out/junit.xml", "--html=out/report.html", "--self-contained-html"),
    *("--json-report", "--json-report-file=out/report.json", "--report-log=out/log.jsonl"),
    *("--ctrf=out/ctrf.json", "--alluredir=out/allure", "--clean-alluredir"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same tests run by plain pytest, and by workers with a reporting session."""

    plain_root: Path
    plain: Finished
    reported: Reported

    def lines(self, pattern: str) -> tuple[list[str], list[str]]:
        """Return the matches of the pattern in both outputs, sorted."""
        ours = self.reported.text.replace(str(self.reported.root), "ROOT")
        plain = self.plain.output.replace(str(self.plain_root), "ROOT")
        return tuple(sorted(re.findall(pattern, text, re.MULTILINE)) for text in (ours, plain))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    files = {**FILES, "out/allure/stale-result.json": "{}"}
    plain = Example(tmp_path_factory.mktemp("plain") / "project", files)
    ours = Example(tmp_path_factory.mktemp("reported") / "project", files)
    selections = dict.fromkeys(
        word.partition("::")[0] for each in COMMANDS for word in each.split() if ".py" in word
    )
    env = GITHUB | BARE | ALL
    finished = run_pytest(*selections, *OPTIONS, cwd=plain.root, env=env, as_module=True, measured=False)
    given = GivenOptions(command_line=OPTIONS, directory=ours.root, on_github=True)
    reported = run_criteria(ours.root, given, COMMANDS, env=env)
    return Pair(plain_root=plain.root, plain=finished, reported=reported)


def test_the_exit_status_is_that_of_a_plain_session(pair: Pair):
    assert pair.reported.result.exit_status == pair.plain.exit_code, str(pair.reported)
    assert pair.reported.result.reason is None


def junit(out: Path) -> tuple[dict[str, str | None], Counter[tuple[str, ...]], list[str]]:
    (suite,) = ET.parse(out / "junit.xml").getroot()
    cases = Counter(
        (
            str(case.get("classname")),
            str(case.get("name")),
            *sorted(child.tag for child in case if child.tag != "properties"),
        )
        for case in suite.iter("testcase")
    )
    totals = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    names = [f"{each.get('name')}={each.get('value')}" for each in suite.iter("property")]
    return totals, cases, sorted(name for name in names if not name.startswith("todo="))


def pages(out: Path) -> dict[str, list[tuple[str, int]]]:
    (blob,) = re.findall(r'data-jsonblob="([^"]*)"', (out / "report.html").read_text(encoding="utf-8"))
    tests = json.loads(html.unescape(blob))["tests"]
    return {
        nodeid: [(re.sub("<.*?>", "", row["resultsTableRow"][0]), len(row["extras"])) for row in rows]
        for nodeid, rows in tests.items()
    }


def json_report(out: Path) -> tuple[dict[str, int], dict[str, Any]]:
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    tests = {
        test["nodeid"]: (
            test["outcome"],
            {when: test[when]["outcome"] for when in ("setup", "call", "teardown") if when in test},
            test.get("call", {}).get("stdout"),
            test.get("metadata"),
            [each for each in test.get("user_properties", []) if "todo" not in each],
        )
        for test in report["tests"]
    }
    return report["summary"], tests


def report_log(out: Path) -> Counter[tuple[object, ...]]:
    lines = map(json.loads, (out / "log.jsonl").read_text(encoding="utf-8").splitlines())
    names = ("$report_type", "nodeid", "when", "outcome", "message", "exitstatus")
    # xdist sends no reports of collections that passed, either.
    kept = (line for line in lines if line["$report_type"] != "CollectReport")
    return Counter(tuple(line.get(name) for name in names) for line in kept)


def ctrf(out: Path) -> list[tuple[object, ...]]:
    tests = json.loads((out / "ctrf.json").read_text(encoding="utf-8"))["results"]["tests"]
    found = ((test["name"], test["status"], test.get("tags"), test.get("parameters")) for test in tests)
    return sorted(found, key=str)


def allure(out: Path) -> list[tuple[str, str]]:
    texts = (path.read_text(encoding="utf-8") for path in (out / "allure").glob("*-result.json"))
    return sorted((result["historyId"], result["status"]) for result in map(json.loads, texts))


@pytest.mark.parametrize("read", [junit, pages, json_report, report_log, ctrf, allure])
def test_a_report_has_each_test_once_and_none_of_the_confirmations(
    pair: Pair, read: Callable[[Path], object]
):
    assert read(pair.reported.root / "out") == read(pair.plain_root / "out")


def test_junit_has_the_todo_of_each_test_as_a_property(pair: Pair):
    cases = ET.parse(pair.reported.root / "out/junit.xml").getroot().iter("testcase")
    todos = {
        case.get("name"): [p.get("value") for p in case.iter("property") if p.get("name") == "todo"]
        for case in cases
    }

    assert todos["test_price[1]"] == ["t0"]
    assert all(len(names) == 1 for names in todos.values())


@pytest.mark.parametrize(
    "pattern",
    [
        "::(?:error|warning) .*$",  # plain pytest prints them after its dots
        r"^(?:PASSED|FAILED|ERROR|SKIPPED|XFAIL) .*$",
        r"^(?:shop|TOTAL).*$",
        r"^.*prices will rise.*$",
    ],
    ids=["annotations", "short summary", "coverage", "warnings"],
)
def test_the_output_has_each_line_of_a_plain_session_once(pair: Pair, pattern: str):
    ours, plain = pair.lines(pattern)

    assert ours
    assert ours == plain


def test_coverage_does_not_warn_about_the_session_that_only_reports(pair: Pair):
    assert "CoverageWarning" not in pair.plain.output
    assert "CoverageWarning" not in pair.reported.text


def test_workers_print_no_annotations_and_leave_no_coverage_data(pair: Pair):
    assert all("::error" not in worker.output for worker in pair.reported.workers)
    assert sorted(path.name for path in pair.reported.root.glob(".coverage*")) == [".coverage"]


def test_the_slowest_durations_include_all_tests(pair: Pair):
    ours, plain = pair.lines(r"^[\d.]+s (?:setup|call|teardown) ")

    assert len(ours) == len(plain) == 3


def test_no_progress_header_or_traceback_is_shown(pair: Pair):
    text = pair.reported.text

    assert "test session starts" not in text
    assert "FAILURES" not in text
    assert "%]" not in text


# --- reports without a counterpart in plain pytest --------------------------------------------------------


GREEN = ("tests/test_price.py", "tests/test_discount.py")
WITH_HTML = tuple(word for plugin in HTML for word in ("-p", plugin))
COVERAGE = ("-p", "pytest_cov", "--cov=shop")


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return Example(tmp_path / "project", FILES)


def report(
    example: Example,
    options: Sequence[str],
    commands: Sequence[str],
    *,
    env: dict[str, str] | None = None,
    ini: str = "",
    criteria: Sequence[Outcome] = (),
    crashed: str | None = None,
) -> Reported:
    """Run the commands without confirmations, and report them to the reporters that the options select."""
    env = {**BARE, **(env or {})}
    given = GivenOptions(
        command_line=tuple(options),
        addopts=tuple(shlex.split(f"{ini} {env.get('PYTEST_ADDOPTS', '')}")),
        directory=example.root,
        on_github=env.get("GITHUB_ACTIONS") == "true",
    )
    return run_criteria(
        example.root, given, commands, env=env, criteria=criteria, crashed=crashed, confirm=False
    )


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """Return a run of commands that fail in all ways."""
    example = Example(tmp_path_factory.mktemp("red"), read_bundle(SUPPORT / "reporters_red.txt"))
    reported = report(
        example,
        ["-rA", "--junitxml=j.xml", "--tb=short", *ANNOTATIONS],
        [
            "tests/test_env.py",
            "tests/test_env.py tests/test_dies.py --sale=1",
            "tests/test_env.py --sale=2",
            "-c sub/pytest.ini sub/tests/test_a.py",
            "tests/test_broken.py",
            "tests/test_broken.py::test_x",
        ],
        env=GITHUB,
        crashed="tests/test_dies.py::test_dies",
    )
    assert reported.result.exit_status == 1, str(reported)
    return reported


def test_a_failure_is_not_hidden_behind_the_pass_of_an_earlier_criterion(red: Reported):
    assert "FAILED tests/test_env.py::test_env" in red.text, str(red)
    assert "PASSED tests/test_env.py" not in red.text


def test_a_test_that_killed_its_worker_is_a_failure(red: Reported):
    assert "PASSED tests/test_dies.py::test_a" in red.text, str(red)
    assert "FAILED tests/test_dies.py::test_dies" in red.text


def test_tests_below_another_rootdir_are_named_from_the_plans_root(red: Reported):
    assert "FAILED sub/tests/test_a.py::test_red" in red.text, str(red)
    assert "::error file=sub/tests/test_a.py,line=3::" in red.text


def test_a_collection_that_fails_is_reported_once(red: Reported):
    assert red.text.count("ERROR tests/test_broken.py") == 1, str(red)
    (suite,) = ET.parse(red.root / "j.xml").getroot()
    assert suite.get("errors") == "1"


def test_tracebacks_are_shown_with_an_explicit_tb_option(red: Reported):
    assert "= FAILURES =" in red.text, str(red)
    assert "wrong price" in red.text


@pytest.fixture(scope="module")
def criteria(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """Return a run whose results are all from outcomes; no worker reported any."""
    example = Example(tmp_path_factory.mktemp("criteria"))
    tests = (
        ("tests/test_a.py::test_a", "passed", 100, ""),
        ("tests/test_a.py::test_b", "timeout", 20_000, "no end in 20 s"),
        ("tests/test_a.py::test_c", "not_run", 0, "the run had ended"),
    )
    return report(
        example,
        ["--junitxml=junit.xml", "-rA", *ANNOTATIONS],
        [],
        env=GITHUB,
        criteria=[
            criterion("t1", "artifact", "out/x.json", "failed", "out/x.json does not exist"),
            criterion("t1", "guard", "hygiene", "failed", "test_a.py was changed"),
            criterion("t1", "metric", "rows >= 10", "passed"),
            criterion("t1", "manual", "Good?", "needs_human", "a person is asked"),
            criterion("t2", "test", "pytest tests/test_red.py", "blocked", "blocked by t1"),
            criterion("t2", "command", "make", "inconclusive", "make is not installed"),
            criterion("t3", "test", "other/python -m pytest", "failed", tests=tests),
        ],
    )


def test_criteria_other_than_tests_are_reported_with_their_reasons(criteria: Reported):
    (suite,) = ET.parse(criteria.root / "junit.xml").getroot()
    told = {
        f"{case.get('classname')} {case.get('name')}": next(
            (f"{child.tag}: {child.get('message')}" for child in case if child.tag != "properties"),
            "passed",
        )
        for case in suite.iter("testcase")
        if str(case.get("classname")).startswith("plan.yaml.")
    }
    assert told == {
        "plan.yaml.t1 artifact out/x.json": "failure: out/x.json does not exist",
        "plan.yaml.t1 guard hygiene": "failure: test_a.py was changed",
        "plan.yaml.t1 metric rows >= 10": "passed",
        "plan.yaml.t1 manual Good?": "skipped: a person is asked",
        "plan.yaml.t2 test pytest tests/test_red.py": "skipped: blocked by t1",
        "plan.yaml.t2 command make": "skipped: make is not installed",
    }
    assert (suite.get("failures"), suite.get("skipped")) == ("3", "4")
    assert criteria.result.exit_status == 1
    assert "SKIPPED [1] plan.yaml:1: blocked by t1" in criteria.text
    assert re.search(r"^::error file=plan.yaml::.*does not exist", criteria.text, re.MULTILINE)


def test_tests_not_reported_by_a_worker_are_reported_from_the_outcome(criteria: Reported):
    assert "PASSED tests/test_a.py::test_a" in criteria.text
    assert "FAILED tests/test_a.py::test_b - no end in 20 s" in criteria.text
    assert "the run had ended" in criteria.text


@pytest.fixture(scope="module")
def uncovered(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """Return a run of two green commands that cover too little, with a summary by a conftest."""
    summary = """
        def pytest_terminal_summary(terminalreporter):
            passed = terminalreporter.stats.get("passed", [])
            terminalreporter.write_line(f"counted {len(passed)} green")
    """
    example = Example(tmp_path_factory.mktemp("uncovered"), {**FILES, "conftest.py": summary})
    return report(example, [*COVERAGE, "--cov-fail-under=80"], GREEN)


def test_a_missed_coverage_limit_is_returned_with_its_reason(uncovered: Reported):
    assert uncovered.result.exit_status == 1, str(uncovered)
    assert uncovered.result.reason == "coverage 75 % is under --cov-fail-under 80"
    assert "Required test coverage of 80% not reached" in uncovered.text
    assert [worker.exit_code for worker in uncovered.workers] == [0, 0]


def test_a_custom_terminal_summary_sees_all_results(uncovered: Reported):
    assert "counted 3 green" in uncovered.text, str(uncovered)


def test_options_of_the_ini_file_and_the_environment_reach_reporters_once(example: Example):
    addopts = "-rA -p pytest_cov --cov=shop --cov-fail-under=90 --strict-markers --junitxml=ini.xml"
    example.write({"pytest.ini": f"[pytest]\naddopts = {addopts}\n"})

    run = report(
        example,
        [],
        GREEN[:1],
        ini=addopts,
        env={"PYTEST_ADDOPTS": shlex.join([*WITH_HTML, "--html=env.html", "--durations=2"])},
    )

    # The limit of the project applies to each command, as if run alone.
    assert [worker.exit_code for worker in run.workers] == [1], str(run)
    assert run.result.reason == "coverage 50 % is under --cov-fail-under 90"
    assert ET.parse(example.root / "ini.xml").getroot()[0].get("tests") == "4"  # with the red criterion
    assert (example.root / "env.html").is_file()
    assert run.text.count("slowest 2 durations") == 1
    assert "slowest" not in run.workers[0].output


def test_coverage_contexts_and_appended_data_are_kept(example: Example):
    import coverage

    earlier = coverage.CoverageData(basename=str(example.root / ".coverage"))
    earlier.set_context("earlier")
    earlier.add_lines({str(example.root / "shop/prices.py"): [2]})  # the body of price()
    earlier.write()
    options = [*COVERAGE, "--cov-context=test", "--cov-append", "--cov-fail-under=70"]

    run = report(example, options, ["tests/test_discount.py"])

    data = coverage.CoverageData(basename=str(example.root / ".coverage"))
    data.read()
    assert "75%" in run.text, str(run)
    assert (run.result.exit_status, run.result.reason) == (0, None), str(run)
    contexts = {"earlier", "tests/test_discount.py::TestDiscount::test_quiet|run"}
    assert contexts <= data.measured_contexts()


def test_coverage_warns_of_a_module_that_no_test_imports_and_of_no_other(example: Example):
    run = report(example, [*COVERAGE, "--cov=shop.prices", "--cov=typo"], GREEN)

    assert re.findall(r"Module ([\w.]+) was never", run.text) == ["typo"], str(run)


def test_a_command_that_uses_xdist_is_reported_once(example: Example):
    run = report(
        example,
        ["-rA", "--junitxml=j.xml"],
        ["-p xdist -n1 tests/test_price.py tests/test_discount.py"],
    )

    assert run.text.count("PASSED tests/test_price.py::test_price[1]\n") == 1, str(run)
    assert ET.parse(example.root / "j.xml").getroot()[0].get("tests") == "5"


def test_reports_accept_any_recorded_value(example: Example):
    example.write(
        {
            "tests/test_odd.py": """
                import decimal, os
                class Unprintable:
                    def __str__(self): raise ValueError("no text")
                def test_odd(record_property, monkeypatch):
                    record_property("price", decimal.Decimal("1.50"))
                    record_property("long", 10 ** 10_000)
                    record_property("odd", Unprintable())
                    print("\\udcff \\x00")
                    monkeypatch.setattr(os, "write", None)
                def test_forks():
                    if os.fork() == 0:
                        return
            """
        }
    )

    options = ["-p", "pytest_reportlog.plugin", "--report-log=log.jsonl"]
    run = report(example, options, ["tests/test_odd.py"])

    lines = map(json.loads, (example.root / "log.jsonl").read_text(encoding="utf-8").splitlines())
    recorded = {nodeid: dict(line["user_properties"]) for line in lines if (nodeid := line.get("nodeid"))}
    assert run.result.exit_status == 0, str(run)
    assert recorded["tests/test_odd.py::test_odd"] == {
        "price": "1.50",
        "long": "a int that cannot be shown",
        "odd": "a Unprintable that cannot be shown",
        "todo": "t0",
    }


def test_a_reporter_that_cannot_start_is_an_error(example: Example):
    run = report(example, [*WITH_HTML, "--html=r.html", "--css=nowhere.css"], [])

    assert run.result.exit_status != 0, str(run)
    assert run.result.reason is not None
    assert "Missing CSS file" in run.text


def test_a_run_that_starts_no_test_is_reported_too_but_not_measured(tmp_path: Path):
    addopts = "--junitxml=j.xml -p pytest_cov.plugin --cov=shop --cov-fail-under=80"
    example = Example(tmp_path, {"pytest.ini": f"[pytest]\naddopts = {addopts}\n", "a.txt": "a"})
    example.plan(*(todo(each, expected_artifacts=[f"{each}.txt"]) for each in "ab"))

    green, red = example.verify("plan.yaml::a"), example.verify()

    assert (green.exit_code, red.exit_code) == (0, 1), f"{green}{red}"
    (suite,) = ET.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_a_command_outside_of_workers_writes_the_report_that_it_requests(tmp_path: Path):
    flaky = """
        from pathlib import Path
        def test_flaky():
            first = not Path("ran").exists()
            Path("ran").touch()
            assert not first
    """
    example = Example(tmp_path, {"test_a.py": "def test_a(): pass", "test_f.py": flaky})
    command = "PYTHONHASHSEED=1 pytest"  # read when an interpreter starts
    example.plan(
        todo("json", f"{command} test_a.py -p pytest_jsonreport.plugin --json-report"),
        todo("xml", f"{command} test_f.py --junitxml=out/f.xml"),
    )

    run = example.verify()

    checks = {name: outcome["checks"][0] for name, outcome in run.outcomes.items()}
    assert {name: check["witness"] for name, check in checks.items()} == {
        "json": "json_report",
        "xml": "junit_xml",
    }, str(run)
    assert json.loads((tmp_path / ".report.json").read_text())["summary"]["passed"] == 1
    (suite,) = ET.parse(tmp_path / "out/f.xml").getroot()
    assert (checks["xml"]["verdict"], suite.get("failures")) == ("flaky", "1")


def test_only_the_end_of_an_internal_error_of_a_reporter_is_shown(example: Example):
    hook = "def pytest_sessionstart(session): raise RuntimeError('no disk')\n"
    (example.root / "broken_reporter.py").write_text(hook)

    run = report(example, ["-p", "broken_reporter"], [], env={"PYTHONPATH": str(example.root)})

    assert run.result.exit_status == 3, str(run)
    assert "INTERNALERROR> RuntimeError: no disk" in run.text
    assert len(run.text.splitlines()) <= 12
