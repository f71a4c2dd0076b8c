"""The reporting session: reports of criteria that are not tests, and its options and plugins."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from outcome_samples import PLAN, document, outcome

from planner.model.outcome import Check, Failure
from planner.model.taxonomy import Category
from planner.model.verdicts import TodoState
from pytest_planverify.reports.reporter_session import ReplayedTest, merge_reports
from pytest_planverify.reports.reporters import (
    ANNOTATIONS,
    GivenOptions,
    ProcessStart,
    confirmation_start,
    is_reporting_needed,
    options_for,
    reporting_start,
    worker_start,
)
from pytest_planverify.session.workers import conftest_texts

PATH = "examples/momentum/plan.yaml"
"""The plan of the sample documents."""
LOADED = SimpleNamespace(
    path=Path("/project/plan.yaml"), root=Path("/project"), plan=SimpleNamespace(todo_list_id=PLAN)
)
FLAT: Any = SimpleNamespace(loaded=LOADED, owner=lambda todo_id: LOADED)


def merged(*checks: Check, failures: tuple[Failure, ...] = ()) -> dict[str, ReplayedTest]:
    """Return the tests and criteria as reporters see them, by node id; no worker has reported any."""
    found = document(outcome("t1", "T", TodoState.TEST_FAILED, *checks, failures=failures), exit_status=1)
    tests, _ = merge_reports(found, [FLAT], {})
    return {test.nodeid: test for test in tests}


def check(kind: str, verdict: str, **keys: Any) -> Check:
    return Check.model_validate({"id": f"{kind}[0]", "kind": kind, "verdict": verdict, **keys})


def test_criterion_is_named_by_plan_todo_and_subject() -> None:
    found = merged(
        check("artifact", "passed", title="out/x.json"),
        check("artifact", "failed", title="out/x.json", id="artifact[1]"),
        check("test", "failed", cmd="pytest a.py::test_x[1]"),
        check("sub_plan", "failed"),
    )

    assert list(found) == [
        f"{PATH}::t1::artifact out/x.json",
        f"{PATH}::t1::artifact out/x.json (artifact(1))",
        f"{PATH}::t1::test pytest a.py:test_x(1)",
        f"{PATH}::t1::sub plan sub_plan(0)",
    ]
    assert all(report["nodeid"] == name for name, test in found.items() for report in test.reports)


@pytest.mark.parametrize(
    ("verdict", "keys", "outcomes"),
    [
        ("passed", {"taken_from": "r0"}, ["passed", "passed", "passed"]),
        ("flaky", {}, ["passed", "failed", "passed"]),
        ("flaky", {"quarantined": "TICKET-1"}, ["skipped", "passed"]),
        ("inconclusive", {}, ["skipped", "passed"]),
        ("blocked", {}, ["skipped", "passed"]),
    ],
)
def test_only_a_passed_criterion_is_reported_as_passed(
    verdict: str, keys: dict[str, Any], outcomes: list[str]
) -> None:
    (found,) = merged(check("artifact", verdict, reason="because", **keys)).values()
    assert (("from_run", "r0") in found.reports[0]["user_properties"]) == bool(keys.get("taken_from"))
    assert [report["outcome"] for report in found.reports] == outcomes


def test_failure_has_the_reason_and_the_diagnosis(pytestconfig: pytest.Config) -> None:
    failure = Failure(
        category=Category.ARTIFACT_MISSING,
        check_id="artifact[0]",
        stack_trace_head="out/x.json does not exist",
        suggestion="Write out/x.json.",
    )
    gone = check("artifact", "failed", reason="out/x.json does not exist")
    (found,) = merged(gone, failures=(failure,)).values()

    call = pytestconfig.hook.pytest_report_from_serializable(config=pytestconfig, data=found.reports[1])
    assert call.longrepr.reprcrash.message == "out/x.json does not exist"
    assert call.longreprtext == "out/x.json does not exist\n\nARTIFACT_MISSING: Write out/x.json."
    assert call.location == (PATH, None, "t1.artifact artifact(0)")
    assert call.user_properties == [("verdict", "failed"), ("todo", "t1")]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [("xpassed", "passed"), ("timeout", "failed"), ("crashed", "failed"), ("xfailed", "skipped")],
)
def test_test_without_worker_reports_has_the_recorded_outcome(outcome: str, expected: str) -> None:
    found = merged(check("test", "failed", tests=[{"nodeid": "a.py::test_x", "outcome": outcome}]))
    decisive = found["a.py::test_x"].reports[-2]
    assert decisive["outcome"] == expected
    assert ("wasxfail" in decisive) == outcome.startswith("x")


SCRATCH = Path("/run")
HERE = Path("/here")


def given(
    command_line: str = "", ini: str = "", environment: str = "", *, on_github: bool = False
) -> GivenOptions:
    return GivenOptions(
        command_line=tuple(command_line.split()),
        addopts=(*ini.split(), *environment.split()),
        directory=HERE,
        on_github=on_github,
    )


def worker(options: GivenOptions, command: str = "tests") -> ProcessStart:
    return worker_start(options, command.split(), scratch=SCRATCH, name="c1")


def confirmation(options: GivenOptions, command: str = "tests") -> ProcessStart:
    return confirmation_start(options, command.split(), scratch=SCRATCH)


OMITTING = "--json-report-omit log streams"
SELECTING = "-n 2 -x --lf --maxfail=3 -k a"


@pytest.mark.parametrize(
    ("options", "in_worker", "in_confirmation", "in_reporting"),
    [
        ("-qrA --durations=3", "-q", "-q", "-q -r A --durations=3"),
        ("--html a.html --css=b.css", "", "", "--html=/here/a.html --css=/here/b.css"),
        (
            "--json-report --json-report-file=r.json",
            "--json-report --json-report-file=none",
            "",
            "--json-report --json-report-file=/here/r.json",
        ),
        (OMITTING, f"{OMITTING} -p no:end_of_options", "", OMITTING),
        ("--ctrf=c --report-log=l", "--ctrf=/run/unused", "", "--ctrf=/here/c --report-log=/here/l"),
        ("--alluredir=al --clean-alluredir", "--alluredir=/run/allure/c1", "", ""),
        (SELECTING, SELECTING, SELECTING, ""),
        ("--strange=1 -p x --timeout 3", *["--strange=1 -p x --timeout 3"] * 3),
        ("--planverify --planverify-scope=all -v", "-v", "-v", "-v"),
        (
            "--cov=shop --cov-report=html:cov --cov-report term --cov-fail-under=80",
            "--cov=shop --cov-report= --cov-fail-under=0",
            "",
            "--cov=shop --cov-report=html:/here/cov --cov-report=term --cov-fail-under=80",
        ),
    ],
)
def test_options_are_routed_by_the_table(
    options: str, in_worker: str, in_confirmation: str, in_reporting: str
) -> None:
    found = given(options)
    reporting = " ".join(reporting_start(found).args)
    assert worker(found).args == (*in_worker.split(), "tests")
    assert confirmation(found).args == (*in_confirmation.split(), "tests")
    assert reporting.replace("--cov-report term", "--cov-report=term") == in_reporting


def test_remaining_addopts_are_passed_to_workers_also_beside_options_of_the_command() -> None:
    start = worker(given(ini="-rA --strict-markers -k quick", environment="--html=a.html -v"))
    assert start.args == ("-o", "addopts=", "--strict-markers", "-k", "quick", "-v", "tests")
    assert start.env == {"PYTEST_ADDOPTS": ""}
    covered = worker(given(ini="--cov=shop --cov-fail-under=80"), "tests --cov-report=xml")
    options = "-o addopts= --cov=shop --cov-fail-under=80 tests --cov-report=xml"
    assert " ".join(covered.args) == options


def test_reporters_of_a_command_override_those_of_the_run() -> None:
    found = given("--json-report --cov=shop --junitxml=j.xml")
    command = "tests --json-report --cov=other --cov-fail-under=9"
    start = worker(found, command)
    assert start.args == ("--junitxml=/run/unused", *command.split())
    assert "COVERAGE_FILE" not in start.env


@pytest.mark.parametrize(
    ("command", "autoload", "kept"),
    [
        ("-p no:junitxml", True, "--cov=shop --no-cov --strange 1"),
        ("-p no:cov", True, "--junitxml=j.xml --strange 1"),
        ("--disable-plugin-autoload", True, "--junitxml=j.xml --strange 1"),
        ("tests", False, "--junitxml=j.xml --strange 1"),
        ("-p pytest_cov.plugin", False, "--junitxml=j.xml --cov=shop --no-cov --strange 1"),
        ("-p no:terminal", True, "--junitxml=j.xml --cov=shop --no-cov --strange 1"),
    ],
)
def test_command_without_a_plugin_of_the_run_gets_none_of_its_options(
    command: str, autoload: bool, kept: str
) -> None:
    words = ["--junitxml=j.xml", "--cov=shop", "--no-cov", "--strange", "1"]
    quiet = [] if "terminal" in command else ["-q", "--tb=short"]
    found = options_for([*words, "-q", "--tb=short"], command.split(), autoload=autoload)
    assert found == (*kept.split(), *quiet)


def test_confirmation_drops_reporters_but_keeps_options_that_affect_the_verdict() -> None:
    reporters = "--html=a.html -rA --json-report --log-file=l"
    command = f"tests {reporters} --cov=shop --cov-fail-under=9 --max-warnings=2 -k a"
    start = confirmation(given(), command)
    assert " ".join(start.args) == "tests --cov=shop --cov-fail-under=9 --max-warnings=2 -k a --cov-report="
    assert start.env["COVERAGE_FILE"].startswith(str(SCRATCH))


def test_coverage_source_folder_is_made_absolute(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    found = GivenOptions(command_line=("--cov=src", "--cov=shop"), directory=tmp_path)
    assert reporting_start(found).args == (f"--cov={tmp_path / 'src'}", "--cov=shop")


def test_run_without_reporters_needs_no_reporting_session(pytestconfig: pytest.Config) -> None:
    own = os.path.dirname(pytest.__file__)
    plugins = [
        (name, plugin)
        for name, plugin in pytestconfig.pluginmanager.list_name_plugin()
        if not str(getattr(plugin, "__file__", own)).endswith("conftest.py")
        and type(plugin).__module__ != "__channelexec__"  # added by xdist in its workers
    ]
    assert not is_reporting_needed(given("-q -x -n2 --strict-markers --planverify-scope=all"), plugins, ())


@pytest.mark.parametrize("options", ["-rA", "--html=a", "--strange=x", "--cov", "--alluredir=a"])
def test_reporter_or_unknown_option_needs_a_reporting_session(options: str) -> None:
    assert is_reporting_needed(given(options), (), ())
    everywhere = options != "-rA"  # in an ini file alone it does not count
    assert is_reporting_needed(given(ini=options), (), ()) is everywhere
    assert is_reporting_needed(given(environment=options), (), ()) is everywhere


def test_plugin_with_reporting_hooks_needs_a_reporting_session() -> None:
    listening, silent = ModuleType("loud_plugin"), ModuleType("other_plugin")
    listening.pytest_runtest_logreport = lambda report: None
    assert is_reporting_needed(given(), [("loud", listening)], ())
    assert not is_reporting_needed(given(), [("other", silent), ("blocked", SimpleNamespace())], ())
    for name in (ANNOTATIONS, f"{ANNOTATIONS}.plugin"):  # of the entry point, and in PYTEST_PLUGINS
        assert is_reporting_needed(given(on_github=True), [(name, silent)], ())
        assert not is_reporting_needed(given(), [(name, silent)], ())
        assert f"no:{name}" in worker(given(on_github=True)).args


def test_conftest_with_reporting_hooks_needs_a_reporting_session(tmp_path: Path) -> None:
    (tmp_path / "tests/unit").mkdir(parents=True)
    (tmp_path / "tests/conftest.py").write_text("def pytest_terminal_summary(terminalreporter): pass\n")
    (tmp_path / "tests/unit/conftest.py").write_text("def pytest_configure(config): pass\n")
    root = str(tmp_path)
    found = conftest_texts(root, ("tests/unit/test_a.py::test_x",))
    assert ["configure" in text for text in found] == [False, True]
    assert is_reporting_needed(given(), (), found)
    assert not is_reporting_needed(given(), (), found[1:])
