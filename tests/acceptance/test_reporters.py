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
from example_project import Example, Verified, todo
from real_command import Finished, run_pytest
from text_bundles import read_bundle

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

ANNOTATIONS = ("-p", "pytest_github_actions_annotate_failures")
HTML = ("pytest_metadata.plugin", "pytest_html.plugin", "pytest_html.fixtures")
JSON = ("pytest_jsonreport.plugin",)
ALL = {"PYTEST_PLUGINS": ",".join(("pytest_cov.plugin", "allure_pytest.plugin", *HTML, *JSON))}
"""The variable that loads all other reporters whose results are compared with plain pytest."""

OPTIONS = (
    *ANNOTATIONS,
    *("-rA", "--durations=3", "--durations-min=0", "--cov=shop", "--cov-branch", "--cov-report=term"),
    *("--junitxml=out/junit.xml", "--html=out/report.html", "--self-contained-html"),
    *("--json-report", "--json-report-file=out/report.json"),
    *("--alluredir=out/allure", "--clean-alluredir"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same tests run by plain pytest, and by the workers of a plan."""

    plain_root: Path
    plain: Finished
    root: Path
    run: Verified

    def lines(self, pattern: str) -> tuple[list[str], list[str]]:
        """Return the matches of the pattern in both outputs, sorted."""
        ours = self.run.output.replace(str(self.root), "ROOT")
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
    env = GITHUB | ALL
    bare = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    finished = run_pytest(*selections, *OPTIONS, cwd=plain.root, env=env | bare, as_module=True)
    ours.plan(*(todo(f"t{number}", f"pytest {command}") for number, command in enumerate(COMMANDS)))
    run = ours.verify(*OPTIONS, env=env, as_module=True)
    return Pair(plain_root=plain.root, plain=finished, root=ours.root, run=run)


def test_the_exit_status_is_that_of_a_plain_session(pair: Pair):
    assert pair.run.exit_code == pair.plain.exit_code, str(pair.run)
    assert reason(pair.run) is None


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


def allure(out: Path) -> list[tuple[str, str]]:
    texts = (path.read_text(encoding="utf-8") for path in (out / "allure").glob("*-result.json"))
    return sorted((result["historyId"], result["status"]) for result in map(json.loads, texts))


@pytest.mark.parametrize("read", [junit, pages, json_report, allure])
def test_a_report_has_each_test_once_and_none_of_the_confirmations(
    pair: Pair, read: Callable[[Path], object]
):
    assert read(pair.root / "out") == read(pair.plain_root / "out")


def test_junit_has_the_todo_of_each_test_as_a_property(pair: Pair):
    cases = ET.parse(pair.root / "out/junit.xml").getroot().iter("testcase")
    todos = {
        case.get("name"): [p.get("value") for p in case.iter("property") if p.get("name") == "todo"]
        for case in cases
    }

    assert todos["test_price[1]"] == ["t0"]
    assert all(len(names) == 1 for names in todos.values())


@pytest.mark.parametrize(
    "pattern",
    [
        r"::(?:error|warning) file=[^,]*,line=\d+::.*$",  # plain pytest prints them after its dots
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


def test_the_session_that_only_reports_shows_and_leaves_nothing_of_its_own(pair: Pair):
    assert "CoverageWarning" not in pair.plain.output
    for text in ("CoverageWarning", "test session starts", "FAILURES", "%]"):
        assert text not in pair.run.output
    assert sorted(path.name for path in pair.root.glob(".coverage*")) == [".coverage"]


def test_the_slowest_durations_include_all_tests(pair: Pair):
    ours, plain = pair.lines(r"^[\d.]+s (?:setup|call|teardown) ")

    assert len(ours) == len(plain) == 3


# --- reports without a counterpart in plain pytest --------------------------------------------------------


GREEN = ("tests/test_price.py", "tests/test_discount.py")
WITH_HTML = tuple(word for plugin in HTML for word in ("-p", plugin))
COVERAGE = ("-p", "pytest_cov", "--cov=shop")


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return Example(tmp_path / "project", FILES)


def report(
    example: Example, options: Sequence[str], commands: Sequence[str], *, env: dict[str, str] | None = None
) -> Verified:
    """Verify a plan with a todo for each command, without confirmations."""
    example.plan(*(todo(f"t{number}", f"pytest {command}") for number, command in enumerate(commands)))
    return example.verify("--planverify-confirm=0", *options, env=env)


def reason(run: Verified) -> str | None:
    """Return why a run is not accepted although no criterion explains it."""
    assert run.document is not None
    return run.document["run"].get("unexplained")


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return a run of commands that fail in all ways."""
    example = Example(tmp_path_factory.mktemp("red"), read_bundle(SUPPORT / "reporters_red.txt"))
    commands = [
        "tests/test_env.py",
        "tests/test_env.py tests/test_dies.py --sale=1",
        "tests/test_env.py --sale=2",
        "-c sub/pytest.ini sub/tests/test_a.py",
        "tests/test_broken.py",
        "tests/test_broken.py::test_x",
    ]
    return report(example, ["-rA", "--tb=short", *ANNOTATIONS], commands, env=GITHUB)


@pytest.mark.parametrize(
    "shown",
    [
        ["PASSED tests/test_dies.py::test_a", "FAILED tests/test_dies.py::test_dies"],
        ["FAILED sub/tests/test_a.py::test_red", "::error file=sub/tests/test_a.py,line=3::"],
        ["= FAILURES =", "wrong price"],
    ],
    ids=["after a killed worker", "with names from the plan's root", "with tracebacks by --tb"],
)
def test_failures_are_shown(red: Verified, shown: list[str]):
    for line in shown:
        assert line in red.output, str(red)


def test_a_failure_is_not_hidden_behind_the_pass_of_an_earlier_criterion(red: Verified):
    assert "FAILED tests/test_env.py::test_env" in red.output, str(red)
    assert "PASSED tests/test_env.py" not in red.output


def test_a_collection_that_fails_is_reported_once(red: Verified):
    assert red.output.count("ERROR tests/test_broken.py") == 1, str(red)


@pytest.fixture(scope="module")
def uncovered(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return a run of two green commands that cover too little, with a summary by a conftest."""
    summary = """
        def pytest_terminal_summary(terminalreporter):
            passed = terminalreporter.stats.get("passed", [])
            terminalreporter.write_line(f"counted {len(passed)} green")
    """
    example = Example(tmp_path_factory.mktemp("uncovered"), {**FILES, "conftest.py": summary})
    return report(example, [*COVERAGE, "--cov-fail-under=80"], GREEN)


def test_a_missed_coverage_limit_is_returned_with_its_reason(uncovered: Verified):
    assert uncovered.exit_code == 1, str(uncovered)
    assert reason(uncovered) == "coverage 75 % is under --cov-fail-under 80"
    assert "Required test coverage of 80% not reached" in uncovered.output
    assert uncovered.verdicts == {"t0": "passed", "t1": "passed"}


def test_a_custom_terminal_summary_sees_all_results(uncovered: Verified):
    assert "counted 3 green" in uncovered.output, str(uncovered)


def test_options_of_the_ini_file_and_the_environment_reach_reporters_once(example: Example):
    addopts = "-rA -p pytest_cov --cov=shop --cov-fail-under=90 --strict-markers --junitxml=ini.xml"
    example.write({"pytest.ini": f"[pytest]\naddopts = {addopts}\n"})

    run = report(
        example,
        [],
        GREEN[:1],
        env={"PYTEST_ADDOPTS": shlex.join([*WITH_HTML, "--html=env.html", "--durations=2"])},
    )

    # The limit of the project applies to each command, as if run alone.
    assert run.verdicts == {"t0": "failed"}, str(run)
    assert reason(run) == "coverage 50 % is under --cov-fail-under 90"
    assert ET.parse(example.root / "ini.xml").getroot()[0].get("tests") == "4"  # with the red criterion
    assert (example.root / "env.html").is_file()
    assert run.output.count("slowest 2 durations") == 1


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
    assert "75%" in run.output, str(run)
    assert (run.exit_code, reason(run)) == (0, None), str(run)
    contexts = {"earlier", "tests/test_discount.py::TestDiscount::test_quiet|run"}
    assert contexts <= data.measured_contexts()


def test_a_command_that_uses_xdist_is_reported_once(example: Example):
    run = report(
        example,
        ["-rA", "--junitxml=j.xml"],
        ["-p xdist -n1 tests/test_price.py tests/test_discount.py"],
    )

    assert run.output.count("PASSED tests/test_price.py::test_price[1]\n") == 1, str(run)
    assert ET.parse(example.root / "j.xml").getroot()[0].get("tests") == "5"


def test_a_reporter_that_cannot_start_is_an_error(example: Example):
    run = report(example, [*WITH_HTML, "--html=r.html", "--css=nowhere.css"], GREEN[:1])

    assert run.exit_code != 0, str(run)
    assert "plugins that report the tests could not" in str(reason(run))
    assert "Missing CSS file" in run.output


def test_a_run_that_starts_no_test_is_reported_too_but_not_measured(tmp_path: Path):
    addopts = "--junitxml=j.xml -p pytest_cov.plugin --cov=shop --cov-fail-under=80"
    example = Example(tmp_path, {"pytest.ini": f"[pytest]\naddopts = {addopts}\n", "a.txt": "a"})
    example.plan(*(todo(each, expected_artifacts=[f"{each}.txt"]) for each in "ab"))

    green, red = example.verify("plan.yaml::a"), example.verify()

    assert (green.exit_code, red.exit_code) == (0, 1), f"{green}{red}"
    (suite,) = ET.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
