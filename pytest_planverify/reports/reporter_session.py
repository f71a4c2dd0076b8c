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

The first half of this module runs in the parent and starts the session, the second half, from :func:`main`,
runs inside it. They exchange a pickled :class:`_Spec`, a JSON file with the answer, and the process output.
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
from typing import TYPE_CHECKING, Any, cast

import pytest
from _pytest._code.code import ReprExceptionInfo, ReprFileLocation, ReprTracebackNative

from planner.catalog.pytest_arguments import split_options
from pytest_planverify.reports.reporters import allure_folder, measured_files, reporting_start

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from planner.model.outcome import OutcomeDocument
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.reports.reporters import GivenOptions, Reporting

_PROGRAM = (
    "import sys; from pytest_planverify.reports.reporter_session import main; sys.exit(main(sys.argv[1]))"
)

TIME_LIMIT_SECONDS = 600.0
"""Long enough for reporters that upload; one that hangs must not block the run for ever."""

_RED = frozenset({"failed", "error", "timeout", "crashed", "flaky"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionResult:
    """Verdict of one criterion, and the file with the reports of its tests.

    The session gets nothing else: it loads the user's conftests, and therefore none of our models.
    """

    nodeid: str
    """The node id under which the criterion itself is reported."""
    kind: str
    verdict: str
    outcome: str
    """``passed``, ``failed`` or ``skipped``, the outcomes that reporters know."""
    reason: str
    details: str
    """What the diagnosis adds to the reason; may be empty."""
    seconds: float
    properties: tuple[tuple[str, str], ...]
    """User properties of each report: its todo, and the run whose verdict was reused, if any."""
    root: str
    """Folder that the node ids of its tests are relative to."""
    relay: str | None
    """The file with the reports of its worker; ``None`` if it had none."""
    tests: tuple[tuple[str, str, float, str], ...]
    """Node id, outcome, seconds, reason of every test, even of those that the worker could not report."""

    def own_reports(self) -> list[pytest.TestReport]:
        """Return the reports of the criterion itself, in the form of a test."""
        reports = self._reports(self.nodeid, self.outcome, self.reason, self.seconds)
        for report in reports:
            report.user_properties.append(("verdict", self.verdict))
        return reports

    def reports_of_test(
        self, nodeid: str, outcome: str, seconds: float, reason: str
    ) -> list[pytest.TestReport]:
        """Return reports, made from the recorded outcome, for a test that no worker fully reported."""
        why = reason or self.reason or f"the test was not reported: {outcome}"
        reports = self._reports(nodeid, _reported_outcome(outcome), why, seconds)
        if outcome in ("xfailed", "xpassed"):
            reports[-2].wasxfail = reason
        return reports

    def _reports(self, nodeid: str, outcome: str, reason: str, seconds: float) -> list[pytest.TestReport]:
        """Return a report for each phase; the last but one carries the outcome."""
        path, _, name = nodeid.partition("::")
        longrepr: Any = None
        if outcome == "failed":  # summaries show the one-line message, reports the whole text
            text = f"{reason}\n\n{self.details}" if self.details else reason
            longrepr = ReprExceptionInfo(
                ReprTracebackNative([f"{text}\n"]), ReprFileLocation(path, 1, reason)
            )
        elif outcome == "skipped":
            longrepr = (path, 1, f"Skipped: {reason}")

        location = (path, None, name.replace("::", ".") or nodeid)
        phases: Any = ("setup", "teardown") if outcome == "skipped" else ("setup", "call", "teardown")
        told: dict[str, Any] = {phases[-2]: (outcome, longrepr, seconds)}
        reports: list[pytest.TestReport] = []
        for when in phases:
            result, shown, spent = told.get(when, ("passed", None, 0.0))
            properties = [*self.properties]
            reports.append(
                pytest.TestReport(
                    nodeid, location, {}, result, shown, when, (), spent, user_properties=properties
                )
            )
        return reports


def _reported_outcome(outcome: str) -> str:
    """Map the outcome of a test, or the verdict of a criterion, to one of pytest's three outcomes."""
    return "passed" if outcome in ("passed", "xpassed") else "failed" if outcome in _RED else "skipped"


def criterion_results(
    document: OutcomeDocument,
    owners: Mapping[tuple[str, str], LoadedPlan],
    relays: Mapping[tuple[Path, str, str], Path],
) -> Iterator[CriterionResult]:
    """Yield the criteria of a run in the order of its outcomes, which is that of the plan.

    ``owners`` has the plan file of each todo by plan id and todo id, ``relays`` the report files of workers
    by plan file, todo and criterion. Equal names of a todo's criteria are made unique by the criterion id.
    """
    paths = {plan.todo_list_id: plan.path for plan in document.plans}
    for outcome in document.outcomes:
        plan = paths.get(outcome.plan or "", outcome.plan or document.plans[0].path)
        owner = owners[outcome.plan or "", outcome.todo_id]
        taken: set[str] = set()
        for check in outcome.checks:
            relay = relays.get((owner.path, outcome.todo_id, check.id))
            failures = [each for each in outcome.failures if each.check_id == check.id]
            texts = (
                text
                for each in failures
                for text in (each.stack_trace_head, f"{each.category}: {each.suggestion or each.because}")
            )
            # Reporters would parse brackets as parameters, and double colons as a scope.
            text = check.cmd if check.cmd and check.kind == "test" else check.title or check.cmd or check.id
            name = f"{check.kind} ".replace("_", " ") + text.translate(_BRACKETS).replace("::", ":")
            nodeid = f"{plan}::{outcome.todo_id}::{name}"
            if nodeid in taken:
                nodeid += f" ({check.id.replace('[', ' ').replace(']', '')})"
            taken.add(nodeid)
            origin = () if check.taken_from is None else (("from_run", check.taken_from),)
            yield CriterionResult(
                nodeid=nodeid,
                kind=check.kind,
                verdict=check.verdict,
                outcome="skipped" if check.quarantined is not None else _reported_outcome(check.verdict),
                reason=check.reason
                or next((each.because for each in failures if each.because), "")
                or f"the verdict is {check.verdict}",
                details="\n\n".join(text for text in texts if text and text != check.reason),
                seconds=check.duration_ms / 1000,
                properties=(("todo", outcome.todo_id), *origin),
                root=str(owner.root),
                relay=None if relay is None else str(relay),
                tests=tuple(
                    (test.nodeid, str(test.outcome), test.duration_ms / 1000, test.reason or "")
                    for test in check.tests
                ),
            )


_BRACKETS = str.maketrans("[]", "()")


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
    tests: int = 0
    failed: int = 0


def report_criteria(
    reporting: Reporting,
    document: OutcomeDocument,
    plans: Sequence[FlatPlan],
    *,
    scratch: Path,
    script_paths: tuple[str, ...],
    color: bool,
) -> ReportingResult:
    """Run the user's reporters on all criteria of a run, and return their result.

    ``scratch`` is the folder in which workers left their data. Raises ``OSError`` as
    :func:`run_reporting_session` does.
    """
    assert reporting.given is not None
    owners = {
        (flat.loaded.plan.todo_list_id, todo.id): flat.owner(todo.id)
        for flat in plans
        for todo in flat.loaded.plan.items
    }
    selections = [
        text
        for flat in plans
        for each in flat.loaded.criteria.values()
        for criterion in each
        if criterion.command is not None and criterion.command.pytest is not None
        for text in criterion.command.pytest.selections
    ]
    return run_reporting_session(
        reporting.given,
        root=plans[0].loaded.root,
        selections=selections,
        criteria=criterion_results(document, owners, reporting.relays),
        scratch=scratch,
        python_path=script_paths,
        color=color,
    )


def run_reporting_session(
    given: GivenOptions,
    *,
    root: Path,
    selections: Iterable[str],
    criteria: Iterable[CriterionResult],
    scratch: Path,
    python_path: Iterable[str] = (),
    color: bool = False,
) -> ReportingResult:
    """Run the session in an interpreter of its own, and wait for it.

    ``root`` is the root of the top plan: the session runs there, and all node ids are relative to it.
    ``selections`` are the test selections of all commands, from which pytest determines the ini file and
    the initial conftests. ``scratch`` is the folder that was passed to :func:`.reporters.worker_start`.

    As the summary of the run shows both, pytest's own summary is printed only if ``-r`` is given, and its
    tracebacks only if ``--tb`` is. A session that hangs or dies gives a result with a reason and a status
    that is not 0. Raises ``OSError`` if the folder for Allure's results cannot be written.
    """
    start, results = reporting_start(given), tuple(criteria)
    paths = dict.fromkeys(selection.partition("::")[0] for selection in selections)
    existing = [path for path in paths if path and (root / path).exists()]
    # Without a log file: this session would replace that of the tests by an empty one.
    options = [f"--rootdir={root}", "-o", "log_file=", *(["--color=yes"] if color else [])]
    spec = _Spec(
        root=str(root),
        args=(*start.args, *options, "--", *existing),
        python_path=tuple(python_path),
        criteria=results,
        measured=tuple(map(str, measured_files(scratch))),
        shows_failures=any(option.name == "--tb" for option in split_options(given.command_line)),
        shows_summary=given.has("-r", "--report-chars"),
    )
    if (allure := allure_folder(given)) is not None:
        # In the order of the plan; the Allure folder of a worker has the same name as its relay file.
        parts = (scratch / "allure" / Path(each.relay).stem for each in results if each.relay)
        merge_allure_results(parts, allure[0], clean=allure[1])
    with tempfile.TemporaryDirectory(prefix="planverify-reporting-") as folder:
        spec_file, output = Path(folder, "spec"), Path(folder, "output")
        spec_file.write_bytes(pickle.dumps(spec))
        timed_out = False
        with output.open("wb") as stream:  # no pipe: a background process of a plugin could keep it open
            try:
                status = subprocess.run(
                    # -P, as -c would put the project first on sys.path, even where the run has not.
                    [sys.executable, "-P", "-c", _PROGRAM, str(spec_file)],
                    cwd=root,
                    env={**os.environ, **start.env},
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    timeout=TIME_LIMIT_SECONDS,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                status, timed_out = pytest.ExitCode.INTERNAL_ERROR, True
        text = output.read_bytes().decode("utf-8", "replace").strip("\n")
        with suppress(OSError, ValueError):
            answer = json.loads(_answer_file(spec_file).read_bytes())
            return ReportingResult(**answer, exit_status=status, text=text)
    what = f"took longer than {TIME_LIMIT_SECONDS:g} s" if timed_out else f"ended with status {status}"
    return ReportingResult(
        exit_status=status if status > 0 else int(pytest.ExitCode.INTERNAL_ERROR),
        text=text,
        reason=f"the session of the reporters {what} before it finished; its output shows why",
    )


def _answer_file(spec_file: Path) -> Path:
    return spec_file.with_name("answer.json")


def merge_allure_results(parts: Iterable[Path], target: Path, *, clean: bool) -> None:
    """Move the Allure results of the workers to ``target``, which is emptied first if ``clean`` is set.

    allure-pytest writes a file for each test and each fixture, and attachments, while tests run; so each
    worker has a folder of its own. Of several criteria that ran a test only the first result is kept, or
    the first failing one. Raises ``OSError`` if the folder cannot be written.
    """
    folders = [part for part in parts if part.is_dir()]
    if clean:
        shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    results: list[tuple[Path, Path, str]] = []
    is_red: dict[str, dict[Path, bool]] = {}
    """By Allure's identity of a test (name and parameters), whether it failed in each folder."""
    for folder in folders:
        for path in sorted(folder.glob("*-result.json")):
            try:
                result = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:  # incomplete, as the worker was killed: moved as it is, like an attachment
                continue
            test = str(result.get("historyId") or result.get("fullName") or result.get("uuid"))
            results.append((folder, path, test))
            of_test = is_red.setdefault(test, {})
            of_test[folder] = of_test.get(folder, False) or result.get("status") in ("failed", "broken")
    # Allure shows two results of one test as a retry, in which the later hides the earlier.
    for folder, path, test in results:
        if folder != max(is_red[test], key=lambda each: is_red[test][each]):  # the first of equal ones
            path.unlink()
    for folder in folders:
        for path in sorted(folder.iterdir()):
            shutil.move(path, target / path.name)


# -- in the session -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spec:
    """Input of one reporting session, pickled by the parent."""

    root: str
    args: tuple[str, ...]
    python_path: tuple[str, ...]
    """Entries that ``sys.path`` has because of the way the run was started."""
    criteria: tuple[CriterionResult, ...]
    measured: tuple[str, ...]
    """Coverage data files of the workers; the session moves them away."""
    shows_failures: bool
    shows_summary: bool


def main(spec_path: str) -> int:
    """Run the session of a pickled :class:`_Spec` in this process. Returns pytest's exit status.

    The answer is written only if the session was complete; the parent treats a missing one as a failure.
    """
    from pytest_planverify.observe import become_worker

    become_worker()  # an `addopts` with --planverify must not start a run within the run
    spec: _Spec = pickle.loads(Path(spec_path).read_bytes())
    sys.path[:0] = spec.python_path
    sys.argv[:] = ["pytest", *spec.args]
    replay = _Replay(spec)
    status = int(pytest.main(list(spec.args), plugins=[replay]))
    if replay.is_done:
        answer = {"reason": replay.reason(status), "tests": replay.tests, "failed": replay.failed}
        _answer_file(Path(spec_path)).write_text(json.dumps(answer))
    return status


@dataclass
class _Test:
    """Reports of one test by one worker, with the warnings and the location relayed with them."""

    nodeid: str
    reports: list[Any] = field(default_factory=list[Any])
    warnings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    location: Any = None

    @property
    def has_failed(self) -> bool:
        """Return whether a phase failed; an expected failure (xfail) does not count."""
        return any(each.failed and not hasattr(each, "wasxfail") for each in self.reports)

    @property
    def is_over(self) -> bool:
        """Return whether the reports are complete: if not, the worker died or was stopped in the test."""
        return any(each.when == "teardown" for each in self.reports)


class _RelayedReports:
    """Everything that one worker relayed, with node ids and paths made relative to the session's root."""

    def __init__(self, config: pytest.Config, path: str | None, root: str) -> None:
        """Read a relay file; without a ``path`` the criterion had no worker, and there are no reports."""
        self.tests: dict[str, _Test] = {}
        self.collect_reports: list[Any] = []
        self.warnings: list[dict[str, Any]] = []
        self.suite_properties: list[tuple[str, str]] = []
        self._config = config
        self._rootdir = self._cwd = self._root = root
        for record in () if path is None else _records(Path(path)):
            match record["kind"]:
                case "session":
                    self._rootdir, self._cwd = record["rootdir"], record["cwd"]
                case "start":
                    self._test(record["nodeid"]).location = self._named_from_root(record["location"])
                case "report":
                    test = self._test(record["data"]["nodeid"])
                    test.reports += self._report(record["data"])
                case "collect":
                    self.collect_reports += self._report(record["data"])
                case "suite_property":
                    self.suite_properties.append((record["name"], record["value"]))
                case "warning" if record["nodeid"]:
                    test = self._test(record["nodeid"])
                    test.warnings.append({**record, "nodeid": test.nodeid})
                case _:
                    self.warnings.append(record)

    def _test(self, nodeid: str) -> _Test:
        nodeid = renamed(nodeid, self._rootdir, self._root)
        return self.tests.setdefault(nodeid, _Test(nodeid))

    def _report(self, data: dict[str, Any]) -> list[Any]:
        """Return the report; none if its type belongs to a plugin that this session has not loaded."""
        data["nodeid"] = renamed(data["nodeid"], self._rootdir, self._root)
        if "location" in data:
            data["location"] = self._named_from_root(data["location"])
        longrepr: Any = data.get("longrepr")
        if isinstance(longrepr, list):  # of a skipped test; pytest's reporters expect a tuple
            data["longrepr"] = tuple(cast("list[Any]", longrepr))
        elif self._cwd != self._root and isinstance(longrepr, dict):
            # pytest writes the paths of a traceback relative to the current folder of the worker.
            failure = cast("dict[str, Any]", longrepr)
            tracebacks = [failure["reprtraceback"], *(link[0] for link in failure["chain"] or ())]
            for entry in (each for traceback in tracebacks for each in traceback["reprentries"]):
                place: dict[str, Any] | None = entry["data"].get("reprfileloc")
                if place and not os.path.isabs(place["path"]):
                    place["path"] = os.path.relpath(os.path.join(self._cwd, place["path"]), self._root)
        hook = self._config.hook
        # A report may be of a plugin's own type, which only that plugin can restore.
        report: Any = hook.pytest_report_from_serializable(config=self._config, data=data)
        return [] if report is None else [report]

    def _named_from_root(self, location: Any) -> Any:
        """Return pytest's location (file, line, name) with the file relative to the session's root."""
        return location and (renamed(location[0], self._rootdir, self._root), *location[1:])


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON lines of a file, nothing if it cannot be read."""
    with suppress(OSError):
        for line in path.read_bytes().splitlines():
            # The last line is incomplete if the process died while writing it.
            with suppress(ValueError):
                yield json.loads(line)


def renamed(nodeid: str, rootdir: str, root: str) -> str:
    """Return a node id or path relative to ``rootdir`` as one relative to ``root``."""
    # A sub-plan has a root of its own, which its node ids are relative to.
    path, colons, rest = nodeid.partition("::")
    if rootdir == root or not path:
        return nodeid
    moved = os.path.relpath(os.path.join(rootdir, path), root).replace(os.sep, "/")
    return f"{moved}{colons}{rest}"


class _Replay:
    """Plugin that replaces collection and the running of tests by the replay of recorded reports.

    It also silences the terminal reporter until the summary, and detects plugins that fail the session.
    """

    def __init__(self, spec: _Spec) -> None:
        self._spec = spec
        self._writer: Any = None
        self._limit_missed: str | None = None
        self._warnings_seen: set[tuple[object, ...]] = set()
        self.tests = self.failed = 0
        self.is_done = False

    def reason(self, status: int) -> str | None:
        """Return why the exit status of the session is not what the tests explain; ``None`` if it is."""
        if self._limit_missed is not None:
            return self._limit_missed
        expected = 1 if self.failed else 0 if self.tests else 5  # 5: no tests collected
        if status in (expected, 1 if self.failed else 0):
            return None
        if status == getattr(pytest.ExitCode, "MAX_WARNINGS_ERROR", 6):
            return "there are more warnings than --max-warnings allows"
        return f"a plugin ended the session of the reporters with status {status}"

    # Last, as pytest registers these plugins in the same hook.
    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep these reports out of pytest's cache, where the workers have stored their own."""
        for name in ("lfplugin", "nfplugin", "stepwiseplugin"):
            if config.pluginmanager.hasplugin(name):
                config.pluginmanager.unregister(name=name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._mute(session.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool:
        return True  # a first-result hook: no other implementation is called

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        config = session.config
        self._place_coverage(config)
        workers = [_RelayedReports(config, each.relay, self._spec.root) for each in self._spec.criteria]
        replayed = list(self._tests_once(workers))
        # The session counts failures itself, by the reports, but tests only when it collects.
        session.testscollected = self.tests = len(replayed)
        self._replay_sessions(config, workers)
        for test in replayed:
            self._replay_test(config, test)
        self.failed = session.testsfailed
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_runtestloop")
    def pytest_note_missed_limit(self, session: pytest.Session) -> Generator[None, bool, bool]:
        """Detect that a plugin fails the session after its tests, as pytest-cov does below its limit."""
        result = yield
        # pytest-cov adds a failure to the session in its own wrapper of this hook.
        if session.testsfailed > self.failed:
            self._limit_missed = (
                _coverage_reason(session.config) or "a plugin failed the session after its tests"
            )
        self.is_done = True
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None]:
        """Print everything that plugins report after the tests, except what the run's own summary shows."""
        self._unmute()
        if not self._spec.shows_failures:
            terminalreporter.summary_failures = terminalreporter.summary_errors = lambda: None
        if not self._spec.shows_summary:
            for name in ("short_test_summary", "summary_warnings"):
                setattr(terminalreporter, name, lambda: None)
        try:
            return (yield)
        finally:
            self._mute(terminalreporter.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self) -> None:
        self._unmute()

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        self._unmute()

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, nodeid: str) -> None:
        self._warnings_seen.add((str(warning_message.message), warning_message.filename, nodeid))

    def _mute(self, config: pytest.Config) -> None:
        """Discard what the terminal reporter prints about running tests, such as dots and headers."""
        from _pytest._io import TerminalWriter

        reporter: Any = config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and self._writer is None:
            self._writer = (reporter, reporter._tw)
            silent = TerminalWriter(io.StringIO())
            silent.hasmarkup, silent.fullwidth = reporter._tw.hasmarkup, reporter._tw.fullwidth
            reporter._tw = silent

    def _unmute(self) -> None:
        if self._writer is not None:
            reporter, reporter._tw = self._writer
            reporter.currentfspath = None  # the line begun for a file was discarded
            self._writer = None

    def _place_coverage(self, config: pytest.Config) -> None:
        """Move the coverage data of the workers beside pytest-cov's data file, where it combines them."""
        controller: Any = getattr(config.pluginmanager.getplugin("_cov"), "cov_controller", None)
        if controller is None:
            return
        # No code of the project runs in this session, so these warnings would be wrong.
        controller.cov._warn_no_data = controller.cov._warn_unimported_source = False
        controller.cov._warn_preimported_source = False
        data_file = os.path.join(str(controller.topdir), str(controller.cov.config.data_file))
        for number, path in enumerate(self._spec.measured):
            # Named like the data files of parallel processes, which coverage combines.
            shutil.move(path, f"{data_file}.planverify-{number}")

    def _tests_once(self, workers: Iterable[_RelayedReports]) -> Iterator[_Test]:
        """Yield each test once: of several criteria that ran it the first, or the first in which it failed.

        The criterion itself is added if it is no test, or if it did not pass and no failed test or failed
        collection shows it.
        """
        found: dict[str, _Test] = {}
        for criterion, worker in zip(self._spec.criteria, workers, strict=True):
            tests = self._tests_of(criterion, worker)
            explained = any(each.has_failed for each in tests) or any(
                each.failed for each in worker.collect_reports
            )
            if criterion.kind != "test" or (criterion.outcome != "passed" and not explained):
                tests.append(_Test(criterion.nodeid, criterion.own_reports()))
            for test in tests:
                earlier = found.get(test.nodeid)
                if earlier is None or (test.has_failed and not earlier.has_failed):
                    found[test.nodeid] = test
        yield from found.values()

    def _tests_of(self, criterion: CriterionResult, worker: _RelayedReports) -> list[_Test]:
        """Return the tests of a criterion; missing reports are completed from the recorded outcomes.

        Reports are missing or incomplete if the worker died or was stopped.
        """
        tests = worker.tests
        for report in (each for test in tests.values() for each in test.reports):
            report.user_properties = [*report.user_properties, *criterion.properties]
        outcomes = {
            renamed(nodeid, criterion.root, self._spec.root): result for nodeid, *result in criterion.tests
        }
        for nodeid in dict.fromkeys([*tests, *outcomes]):
            test = tests.get(nodeid)
            if test is not None and test.is_over:
                continue
            outcome, seconds, reason = outcomes.get(nodeid, ("crashed", 0.0, ""))
            reports = criterion.reports_of_test(nodeid, str(outcome), float(seconds), str(reason))
            if test is not None and test.reports:  # keep the output captured until then
                for report in reports[1:]:
                    report.sections = test.reports[-1].sections
            tests[nodeid] = _Test(nodeid, reports)
        return list(tests.values())

    def _replay_sessions(self, config: pytest.Config, workers: Iterable[_RelayedReports]) -> None:
        """Replay collection reports, warnings and suite properties, each once for all workers."""
        from _pytest.junitxml import xml_key

        xml = config.stash.get(xml_key, None)
        collected: set[str] = set()
        properties: dict[tuple[str, str], None] = {}
        for worker in workers:
            for report in worker.collect_reports:
                if report.nodeid not in collected:
                    collected.add(report.nodeid)
                    config.hook.pytest_collectreport(report=report)
            for record in worker.warnings:
                # Conftests are loaded here, too, so this session may have warned of the same already.
                if (record["message"], record["filename"], "") not in self._warnings_seen:
                    _replay_warning(config, record)
            properties |= dict.fromkeys(worker.suite_properties)
        if xml is not None:
            for name, value in properties:
                xml.add_global_property(name, value)

    def _replay_test(self, config: pytest.Config, test: _Test) -> None:
        hook = config.hook
        location = test.location or test.reports[0].location
        hook.pytest_runtest_logstart(nodeid=test.nodeid, location=location)
        for report in test.reports:
            hook.pytest_runtest_logreport(report=report)
        for record in test.warnings:
            _replay_warning(config, record)
        hook.pytest_runtest_logfinish(nodeid=test.nodeid, location=location)


def _replay_warning(config: pytest.Config, record: dict[str, Any]) -> None:
    """Pass a relayed warning to the session's plugins."""
    module, name = record["category"]
    known = getattr(builtins, name, None) if module == "builtins" else None
    # A category of the project is replaced by a class of the same name: its module is not imported here.
    category = known or type(name.rpartition(".")[2], (Warning,), {"__module__": module})
    message = warnings.WarningMessage(
        category(record["message"]), category, record["filename"], record["lineno"], line=record["line"]
    )
    # pluggy refuses any other call of a historic hook.
    config.hook.pytest_warning_recorded.call_historic(
        kwargs={
            "warning_message": message,
            "when": record["when"],
            "nodeid": record["nodeid"],
            "location": record["location"],
        }
    )


def _coverage_reason(config: pytest.Config) -> str | None:
    """Return a sentence with coverage and limit; ``None`` if pytest-cov has no limit or it is met."""
    plugin: Any = config.pluginmanager.getplugin("_cov")
    total = getattr(plugin, "cov_total", None)
    limit = getattr(getattr(plugin, "options", None), "cov_fail_under", None)
    if total is None or limit is None or total >= limit:
        return None
    precision = plugin.options.cov_precision or 0
    # Rounded down, so that 79.99 is not shown as 80, the limit that it misses.
    shown = int(total * 10**precision) / 10**precision
    return f"coverage {shown:.{precision}f} % is under --cov-fail-under {limit:g}"
