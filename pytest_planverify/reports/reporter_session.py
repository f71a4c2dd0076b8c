"""The reporting session: one pytest session at the end of a run in which reporters see all tests.

It has the role of the controller of pytest-xdist. It is started with the user's options, plugins and
conftests, collects and runs nothing, and replays the reports that the workers wrote
(:mod:`pytest_planverify.observe.relay`) and those of criteria that are no tests, each test once. So
reporters write one file for the whole run, coverage is combined, reported and compared with its limit,
and what plugins print after the tests is printed once. It is a separate process, started when all
reports are known.

Reporters understand only reports of tests, so a criterion that is no test is reported as one, whose node
id names plan file, todo and criterion: ``plan.yaml::t2_indicators::artifact out/x.json``. A failed
criterion is reported as a failure with its reason. One that waits for a person, was not run or is
inconclusive is skipped with its reason, and never passed.

The parent merges all reports, as JSON data in the form of pytest; the session, from :func:`main`, replays
them in the given order. They exchange a pickled :class:`_Spec`, a file with the answer, and the output.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import ReprExceptionInfo, ReprFileLocation, ReprTracebackNative
from _pytest.reports import pytest_report_to_serializable

from planner.catalog.pytest_arguments import split_options
from pytest_planverify.reports.reporters import allure_folder, measured_files, reporting_start

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from planner.model.outcome import Check, Outcome, OutcomeDocument
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.reports.reporters import Reporting

_PROGRAM = (
    "import sys; from pytest_planverify.reports.reporter_session import main; sys.exit(main(sys.argv[1]))"
)

TIME_LIMIT_SECONDS = 600.0
"""Long enough for reporters that upload; one that hangs must not block the run for ever."""
_LAST_LINES = 12
"""Number of lines of output that are shown of a session that failed; a traceback ends with its error."""

_RED = frozenset({"failed", "error", "timeout", "crashed", "flaky"})
_BRACKETS = str.maketrans("[]", "()")

Record = dict[str, Any]
"""A record of a relay file, or the JSON data of a report in it."""


@dataclass(slots=True)
class ReplayedTest:
    """The reports of one test as JSON data, and the warnings issued in it."""

    nodeid: str
    reports: list[Record] = field(default_factory=list[Record])
    warnings: list[Record] = field(default_factory=list[Record])

    @property
    def has_failed(self) -> bool:
        """Return whether a phase failed; an expected failure (xfail) does not count."""
        return any(each["outcome"] == "failed" and "wasxfail" not in each for each in self.reports)

    @property
    def is_over(self) -> bool:
        """Return whether the reports are complete: if not, the worker died or was stopped in the test."""
        return any(each["when"] == "teardown" for each in self.reports)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportingResult:
    """Result of a reporting session."""

    exit_status: int
    """The exit status of pytest: 1 also if only tests failed."""
    text: str
    """Output of plugins and summaries at the end of the session, for the user's screen."""
    reason: str | None
    """Why the exit status is not the one that the tests explain, as ``coverage 71 % is under
    --cov-fail-under 80``; ``None`` if they explain it."""


# -- merging, in the parent -----------------------------------------------------------------------------


def merge_reports(
    document: OutcomeDocument, plans: Sequence[FlatPlan], relays: Mapping[tuple[Path, str, str], Path]
) -> tuple[list[ReplayedTest], list[Record]]:
    """Return each test of a run once, in the order of the plan, and the other records of all workers.

    Of several criteria that ran a test the first counts, or the first in which it failed. A criterion is
    added as a test itself if it is none, or if it did not pass and no failed test or failed collection
    shows it. ``relays`` has the report files of workers by plan file, todo and criterion. All node ids
    become relative to the root of the first plan.
    """
    root, by_id = plans[0].loaded.root, {flat.loaded.plan.todo_list_id: flat for flat in plans}
    found: dict[str, ReplayedTest] = {}
    others: dict[str, Record] = {}
    for outcome in document.outcomes:
        owner = by_id[outcome.plan or ""].owner(outcome.todo_id)
        for check in outcome.checks:
            tests, records = _read_relay(relays.get((owner.path, outcome.todo_id, check.id)), root)
            _complete(tests, check, os.path.relpath(owner.root, root))
            for record in records:
                is_collection = record["kind"] == "collect"
                others.setdefault(record["data"]["nodeid"] if is_collection else json.dumps(record), record)
            is_explained = any(each.has_failed for each in tests.values()) or any(
                each["kind"] == "collect" and each["data"]["outcome"] == "failed" for each in records
            )
            if check.kind != "test" or (check.counts_as != "passed" and not is_explained):
                own = _criterion_as_test(document, outcome, check, found)
                tests[own.nodeid] = own
            properties = [("todo", outcome.todo_id)]
            properties += [] if check.taken_from is None else [("from_run", check.taken_from)]
            for test in tests.values():
                for report in test.reports:
                    report["user_properties"] = [*report["user_properties"], *properties]
                earlier = found.get(test.nodeid)
                if earlier is None or (test.has_failed and not earlier.has_failed):
                    found[test.nodeid] = test
    return list(found.values()), list(others.values())


def _read_relay(path: Path | None, root: Path) -> tuple[dict[str, ReplayedTest], list[Record]]:
    """Return the tests that one worker reported, by node id, and its other records.

    Without a ``path`` the criterion had no worker, and there are no reports.
    """
    tests: dict[str, ReplayedTest] = {}
    others: list[Record] = []
    folder = "."
    for record in () if path is None else _records(path):
        kind, data = record["kind"], record["data"]
        nodeid = data["nodeid"] = _renamed(data.get("nodeid", ""), folder)
        if kind == "session":
            folder = os.path.relpath(data["rootdir"], root)
        elif kind == "report":
            if location := data.get("location"):
                data["location"] = (_renamed(location[0], folder), *location[1:])
            tests.setdefault(nodeid, ReplayedTest(nodeid)).reports.append(data)
        elif kind == "warning" and nodeid in tests:
            tests[nodeid].warnings.append(data)
        else:
            others.append(record)
        if isinstance(data.get("longrepr"), list):  # of a skipped test; pytest's reporters expect a tuple
            data["longrepr"] = tuple(data["longrepr"])
    return tests, others


def _records(path: Path) -> Iterator[Record]:
    """Yield the JSON lines of a file, nothing if it cannot be read."""
    with suppress(OSError):
        for line in path.read_bytes().splitlines():
            # The last line is incomplete if the process died while writing it.
            with suppress(ValueError, RecursionError):
                yield json.loads(line)


def _renamed(nodeid: str, folder: str) -> str:
    """Return a node id or path relative to ``folder``, itself relative to the root, from the root."""
    # A sub-plan has a root of its own, which its node ids are relative to.
    path, colons, rest = nodeid.partition("::")
    if folder == "." or not path:
        return nodeid
    return os.path.normpath(os.path.join(folder, path)).replace(os.sep, "/") + colons + rest


def _complete(tests: dict[str, ReplayedTest], check: Check, folder: str) -> None:
    """Replace missing and incomplete reports of tests by reports made from the recorded outcomes.

    Reports are missing or incomplete if the worker died or was stopped, or if a plugin was its witness.
    """
    for recorded in check.tests:
        nodeid, outcome = _renamed(recorded.nodeid, folder), str(recorded.outcome)
        test = tests.setdefault(nodeid, ReplayedTest(nodeid))
        if test.is_over:
            continue
        reason = recorded.reason or check.reason or f"the test was not reported: {outcome}"
        output: list[Any] = test.reports[-1]["sections"] if test.reports else []
        test.reports = _made_reports(nodeid, outcome, reason, recorded.duration_ms)
        for report in test.reports[1:]:
            report["sections"] = output
        if outcome in ("xfailed", "xpassed"):
            test.reports[-2]["wasxfail"] = recorded.reason or ""


def _criterion_as_test(
    document: OutcomeDocument, outcome: Outcome, check: Check, taken: Collection[str]
) -> ReplayedTest:
    """Return a criterion as a test. Its failure has the diagnosis in addition to the reason.

    A node id that is ``taken``, as a todo may have two criteria of one name, gets the id of the check.
    """
    plan = next((each.path for each in document.plans if each.todo_list_id == outcome.plan), outcome.plan)
    name = check.cmd if check.cmd and check.kind == "test" else check.title or check.cmd or check.id
    # Reporters would parse brackets as parameters, and double colons as a scope.
    name = f"{check.kind} ".replace("_", " ") + name.translate(_BRACKETS).replace("::", ":")
    nodeid = f"{plan or document.plans[0].path}::{outcome.todo_id}::{name}"
    nodeid += f" ({check.id.translate(_BRACKETS)})" if nodeid in taken else ""
    failures = [each for each in outcome.failures if each.check_id == check.id]
    reason = check.reason or next((each.because for each in failures if each.because), "")
    texts = [reason or f"the verdict is {check.verdict}"]
    for each in failures:
        texts += [each.stack_trace_head or "", f"{each.category}: {each.suggestion or each.because}"]
    verdict = "skipped" if check.quarantined is not None else str(check.verdict)
    whole = "\n\n".join(dict.fromkeys(filter(None, texts)))
    reports = _made_reports(nodeid, verdict, texts[0], check.duration_ms, whole)
    for report in reports:
        report["user_properties"] = [("verdict", str(check.verdict))]
    return ReplayedTest(nodeid, reports)


def _made_reports(
    nodeid: str, verdict: str, reason: str, duration_ms: int, text: str | None = None
) -> list[Record]:
    """Return a report for each phase; the last but one carries the outcome.

    ``verdict`` is the outcome of a test or the verdict of a criterion. Summaries show the ``reason``, in
    one line, reports the whole ``text``, by default the same.
    """
    path, _, name = nodeid.partition("::")
    location = (path, None, name.replace("::", ".") or nodeid)
    is_red, is_green = verdict in _RED, verdict in ("passed", "xpassed")
    phases: Any = ("setup", "call", "teardown") if is_red or is_green else ("setup", "teardown")
    reports = [pytest.TestReport(nodeid, location, {}, "passed", None, when) for when in phases]
    decisive = reports[-2]
    decisive.duration = duration_ms / 1000
    if is_red:
        decisive.outcome = "failed"
        traceback = ReprTracebackNative([f"{text or reason}\n"])
        decisive.longrepr = ReprExceptionInfo(traceback, ReprFileLocation(path, 1, reason))
    elif not is_green:
        decisive.outcome = "skipped"
        decisive.longrepr = (path, 1, f"Skipped: {reason}")
    return [pytest_report_to_serializable(report) or {} for report in reports]


def merge_allure_results(parts: Iterable[Path], target: Path, *, clean: bool) -> None:
    """Move the Allure results of the workers to ``target``, which is emptied first if ``clean`` is set.

    allure-pytest writes a file for each test and each fixture, and attachments, while tests run; so each
    worker has a folder of its own. Of several criteria that ran a test only the first result is kept, or
    the first failing one. Raises ``OSError`` if the folder cannot be written.
    """
    if clean:
        shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    kept: dict[str, tuple[Path, bool]] = {}
    """By Allure's identity of a test, the folder of the result to keep, and whether that is red."""
    results: list[tuple[Path, str]] = []
    for path in [path for part in parts for path in sorted(part.glob("*"))]:
        result: Record = {}
        if path.name.endswith("-result.json"):
            # It is incomplete if the worker was killed, and is moved as it is.
            with suppress(ValueError, RecursionError):
                result = json.loads(path.read_bytes())
        test = str(result.get("historyId") or result.get("fullName") or path)
        is_red = result.get("status") in ("failed", "broken")
        if test not in kept or (is_red and not kept[test][1]):
            kept[test] = (path.parent, is_red)
        results.append((path, test))
    # Allure shows two results of one test as a retry, in which the later hides the earlier.
    for path, test in results:
        if path.parent == kept[test][0]:
            shutil.move(path, target / path.name)


# -- the process, started by the parent -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spec:
    """Input of one reporting session, pickled by the parent."""

    args: tuple[str, ...]
    python_path: tuple[str, ...]
    tests: list[ReplayedTest]
    records: list[Record]
    measured: list[Path]
    """Coverage data files of the workers; the session moves them away."""
    shows_failures: bool
    shows_summary: bool


def report_criteria(
    reporting: Reporting,
    document: OutcomeDocument,
    plans: Sequence[FlatPlan],
    *,
    scratch: Path,
    script_paths: Sequence[str],
    color: bool,
) -> ReportingResult:
    """Run the user's reporters on all criteria of a run, in an interpreter of its own.

    The session runs in the root of the first plan. ``scratch`` is the folder that was passed to
    :func:`.reporters.worker_start`; ``script_paths`` are the entries that ``sys.path`` has because of the
    way the run was started.

    As the summary of the run shows both, pytest's own summary is printed only if ``-r`` is given, and its
    tracebacks only if ``--tb`` is. A session that hangs or dies gives a result with a reason and a status
    that is not 0. Raises ``OSError`` if the folder for Allure's results cannot be written.
    """
    given, relays, root = reporting.given, reporting.relays, plans[0].loaded.root
    assert given is not None
    start = reporting_start(given)
    tests, records = merge_reports(document, plans, relays)
    # From the selections of all commands pytest determines the ini file and the initial conftests.
    criteria = [criterion for flat in plans for each in flat.loaded.criteria.values() for criterion in each]
    commands = [each.command.pytest for each in criteria if each.command and each.command.pytest]
    paths = [selection.partition("::")[0] for command in commands for selection in command.selections]
    existing = dict.fromkeys(path for path in paths if path and (root / path).exists())
    # No log file, as this session would replace that of the tests by an empty one; and no warnings of its
    # own, as the workers have loaded the same conftests and relayed them.
    options = [f"--rootdir={root}", "-o", "log_file=", "-W", "ignore", *(["--color=yes"] if color else [])]
    spec = _Spec(
        args=(*start.args, *options, "--", *existing),
        python_path=tuple(script_paths),
        tests=tests,
        records=records,
        measured=measured_files(scratch),
        shows_failures=any(option.name == "--tb" for option in split_options(given.command_line)),
        shows_summary=given.has("-r", "--report-chars"),
    )
    if (allure := allure_folder(given)) is not None:
        parts = (scratch / "allure" / relay.stem for relay in relays.values())
        merge_allure_results(parts, allure, clean=given.has("--clean-alluredir"))
    with tempfile.TemporaryDirectory(prefix="planverify-reporting-") as folder:
        spec_file, answer, output = (Path(folder, name) for name in ("spec", "answer", "output"))
        spec_file.write_bytes(pickle.dumps(spec))
        status = int(pytest.ExitCode.INTERNAL_ERROR)
        what = f"took longer than {TIME_LIMIT_SECONDS:g} s"
        # No pipe for the output: a background process of a plugin could keep it open.
        with output.open("wb") as stream, suppress(subprocess.TimeoutExpired):
            status = subprocess.run(
                # -P, as -c would put the project first on sys.path, even where the run has not.
                [sys.executable, "-P", "-W", "ignore", "-c", _PROGRAM, str(spec_file)],
                cwd=root,
                env={**os.environ, **start.env},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                timeout=TIME_LIMIT_SECONDS,
                check=False,
            ).returncode
            what = f"ended with status {status}"
        text = output.read_bytes().decode("utf-8", "replace").strip("\n")
        with suppress(OSError, ValueError, RecursionError):
            return ReportingResult(exit_status=status, text=text, reason=json.loads(answer.read_bytes()))
    return ReportingResult(
        exit_status=status if status > 0 else int(pytest.ExitCode.INTERNAL_ERROR),
        text="\n".join(text.splitlines()[-_LAST_LINES:]),
        reason=f"plugins that report the tests could not: their pytest {what}; see the end of its output",
    )


# -- in the session -------------------------------------------------------------------------------------


def main(spec_path: str) -> int:
    """Run the session of a pickled :class:`_Spec` in this process. Returns pytest's exit status.

    The answer, the :attr:`ReportingResult.reason` as JSON, is written beside the spec, but only if the
    session was complete: the parent treats a missing answer as a failure.
    """
    from pytest_planverify.observe import become_worker

    become_worker()  # an `addopts` with --planverify must not start a run within the run
    spec: _Spec = pickle.loads(Path(spec_path).read_bytes())
    sys.path[:0] = spec.python_path
    sys.argv[:] = ["pytest", *spec.args]
    replay = _Replay(spec)
    status = int(pytest.main(list(spec.args), plugins=[replay]))
    if replay.is_done:
        Path(spec_path).with_name("answer").write_text(json.dumps(replay.reason(status)))
    return status


class _Replay:
    """Plugin that replaces collection and the running of tests by the replay of recorded reports.

    It also silences the terminal reporter until the summary, and detects plugins that fail the session.
    """

    def __init__(self, spec: _Spec) -> None:
        self._spec = spec
        self._muted: Any = None
        self._limit_missed: str | None = None
        self._failed = 0
        self.is_done = False

    def reason(self, status: int) -> str | None:
        """Return why the exit status of the session is not what the tests explain; ``None`` if it is."""
        if self._limit_missed is not None:
            return self._limit_missed
        if status in ((1,) if self._failed else (0, pytest.ExitCode.NO_TESTS_COLLECTED)):
            return None
        if status == getattr(pytest.ExitCode, "MAX_WARNINGS_ERROR", 6):
            return "there are more warnings than --max-warnings allows"
        return f"a plugin that reports the tests ended its pytest with status {status}"

    # Last, as pytest registers these plugins in the same hook.
    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep these reports out of pytest's cache, where the workers have stored their own."""
        for name in ("lfplugin", "nfplugin", "stepwiseplugin"):
            if config.pluginmanager.hasplugin(name):
                config.pluginmanager.unregister(name=name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Discard what the terminal reporter prints about running tests, such as dots and headers."""
        from _pytest._io import TerminalWriter

        reporter: Any = session.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            self._muted = (reporter, reporter._tw)
            reporter._tw = TerminalWriter(io.StringIO())

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool:
        return True  # a first-result hook: no other implementation is called

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        config, hook = session.config, session.config.hook
        self._place_coverage(config)
        # The session counts failures itself, by the reports, but tests only when it collects.
        session.testscollected = len(self._spec.tests)
        for record in self._spec.records:
            _replay_record(config, record)
        for test in self._spec.tests:
            # A report may be of a plugin's own type, which only that plugin can restore.
            restored = [
                hook.pytest_report_from_serializable(config=config, data=data) for data in test.reports
            ]
            reports: list[Any] = [report for report in restored if report is not None]
            if reports:
                location = reports[0].location
                hook.pytest_runtest_logstart(nodeid=test.nodeid, location=location)
                for report in reports:
                    hook.pytest_runtest_logreport(report=report)
                for data in test.warnings:
                    _replay_warning(config, data)
                hook.pytest_runtest_logfinish(nodeid=test.nodeid, location=location)
        self._failed = session.testsfailed
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_runtestloop")
    def pytest_note_missed_limit(self, session: pytest.Session) -> Generator[None, bool, bool]:
        """Detect that a plugin fails the session after its tests, as pytest-cov does below its limit."""
        result = yield
        # pytest-cov adds a failure to the session in its own wrapper of this hook.
        if session.testsfailed > self._failed:
            from pytest_planverify.observe.recorder import unmet_coverage

            self._limit_missed = "a plugin failed the session after its tests"
            if unmet := unmet_coverage(session.config):
                self._limit_missed = f"coverage {unmet[0]:g} % is under --cov-fail-under {unmet[1]:g}"
        self.is_done = True
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None]:
        """Print everything that plugins report after the tests, except what the run's own summary shows."""
        self._unmute()
        terminalreporter.summary_stats = lambda: None
        if not self._spec.shows_failures:
            terminalreporter.summary_failures = terminalreporter.summary_errors = lambda: None
        if not self._spec.shows_summary:
            terminalreporter.short_test_summary = terminalreporter.summary_warnings = lambda: None
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self) -> None:
        self._unmute()

    def _unmute(self) -> None:
        if self._muted is not None:
            reporter, reporter._tw = self._muted
            reporter.currentfspath = None  # the line begun for a file was discarded
            self._muted = None

    def _place_coverage(self, config: pytest.Config) -> None:
        """Move the coverage data of the workers beside pytest-cov's data file, where it combines them."""
        controller: Any = getattr(config.pluginmanager.getplugin("_cov"), "cov_controller", None)
        if controller is None:
            return
        data_file = os.path.join(str(controller.topdir), str(controller.cov.config.data_file))
        controller.cov._warn_no_data = False
        # This process imports nothing of the project: coverage would warn of all that it was to measure.
        controller.cov._warn_unimported_source = False
        for number, path in enumerate(self._spec.measured):
            # Named like the data files of parallel processes, which coverage combines.
            shutil.move(path, f"{data_file}.planverify-{number}")


def _replay_record(config: pytest.Config, record: Record) -> None:
    """Replay a record that belongs to no test: a failed collection, a warning or a suite property."""
    from _pytest.junitxml import xml_key

    data, xml = record["data"], config.stash.get(xml_key, None)
    if record["kind"] == "warning":
        _replay_warning(config, data)
    elif record["kind"] == "collect":
        hook = config.hook
        if report := hook.pytest_report_from_serializable(config=config, data=data):
            hook.pytest_collectreport(report=report)
    elif xml is not None:
        xml.add_global_property(data["name"], data["value"])


def _replay_warning(config: pytest.Config, data: Record) -> None:
    """Pass a relayed warning to the session's plugins."""
    module, name = data["category"]
    known = getattr(builtins, name, None) if module == "builtins" else None
    # A category of the project is replaced by a class of the same name: its module is not imported here.
    category = known or type(name.rpartition(".")[2], (Warning,), {"__module__": module})
    message = warnings.WarningMessage(
        category(data["message"]), category, data["filename"], data["lineno"], line=data["line"]
    )
    rest = {name: data[name] for name in ("when", "nodeid", "location")}
    # pluggy refuses any other call of a historic hook.
    config.hook.pytest_warning_recorded.call_historic(kwargs={"warning_message": message, **rest})
