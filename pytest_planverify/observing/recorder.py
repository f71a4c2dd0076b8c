"""The plugin of a session that runs for a plan: selects, observes, and writes records; never decides.

It is registered in the session's process and, with pytest-xdist, in each worker. Workers select and
gather evidence; only the process that reports are sent to writes down results.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import os
from collections import Counter
from json import dumps  # as it is now: a test may have replaced it while its failure is reported
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_planverify.observing import phases
from pytest_planverify.observing.bodies import Bodies
from pytest_planverify.observing.choosing import Choosing
from pytest_planverify.observing.crosstalk import Crosstalk
from pytest_planverify.observing.hostile import guarded
from pytest_planverify.observing.limits import SoftLimits
from pytest_planverify.observing.live_fixtures import LiveFixtures
from pytest_planverify.observing.nodeids import NodeIds
from pytest_planverify.observing.output import restore_output, stumbled_over_output
from pytest_planverify.observing.results import EVIDENCE, ResultLedger, writable
from pytest_planverify.observing.selection import alike_names
from pytest_planverify.observing.spec import SharedTests
from pytest_planverify.observing.witnessing import Witness

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_planverify.journal import JournalWriter
    from pytest_planverify.observing.audit import Audit
    from pytest_planverify.observing.evidence import ProjectMap
    from pytest_planverify.observing.spec import SessionSpec

WORKER_INPUT = "planverify"
"""Key of ``config.workerinput`` under which a worker finds its session's spec."""


class Recorder:
    """Observes one session for the parent."""

    def __init__(self, spec: SessionSpec, journal: JournalWriter) -> None:
        self.spec = spec
        self.journal = journal
        self.worker = ""
        self.running: str | None = None
        self._root = Path(spec.root)
        self._nodeids = NodeIds(spec.root, spec.root)
        self._native_keyword = ""
        self._native_markexpr = ""
        self._ledger: ResultLedger | None = None
        self._failed_files: set[Path] = set()
        self._groups: dict[str, tuple[str, ...]] = {}
        self._fixture_paths: dict[str, str | None] = {}
        self.live_fixtures = LiveFixtures()
        self.soft_limits = SoftLimits()
        self._stacks: Any = None
        self.audit: Audit | None = None
        """What watches the process, to be told which test runs."""
        self._project: ProjectMap | None = None
        self._bodies = Bodies()
        self.witness = Witness()
        self._crosstalk = Crosstalk(spec, journal, self.live_fixtures, self.witness)
        self._config: pytest.Config

    # -- configuration ---------------------------------------------------------------------------

    def attach_to_worker(self, config: pytest.Config, worker: str) -> None:
        """Take over a worker's configuration, which was parsed before this object existed."""
        self.worker = self._crosstalk.worker = worker
        self._crosstalk.chance.distrust()
        self._native_keyword = str(config.workerinput.get("planverify_keyword", ""))  # type: ignore[attr-defined]
        self._native_markexpr = str(config.workerinput.get("planverify_markexpr", ""))  # type: ignore[attr-defined]
        self.adopt(config)

    def adopt(self, config: pytest.Config) -> None:
        """Make the session's options those of a shared one: everything runs, in order, in this process."""
        self._config = config
        self._nodeids = NodeIds(str(config.rootpath), self.spec.root)
        self._ledger = ResultLedger(self.journal, self._nodeids)
        if self.spec.verbatim:
            return
        option = config.option
        self._native_keyword = option.keyword or self._native_keyword
        self._native_markexpr = option.markexpr or self._native_markexpr
        overrides: dict[str, object] = {
            "keyword": "",
            "markexpr": "",
            "maxfail": self.spec.maxfail,
            "continue_on_collection_errors": True,
            "lf": False,
            "failedfirst": False,
            "newfirst": False,
            "stepwise": False,
            "stepwise_skip": False,
            "randomly_reorganize": False,
            "random_order_bucket": "none",
        }
        if not self.spec.distributed and not self.worker:
            overrides |= {"numprocesses": None, "dist": "no", "tx": [], "distload": False}
        for name, value in overrides.items():
            if hasattr(option, name):
                setattr(option, name, value)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        self.watch_for_crashes()  # once more: pytest has a plugin of its own for it
        if self.spec.collect_only:
            config.option.collectonly = True

    def watch_for_crashes(self) -> None:
        """Let the stacks be written down when a signal ends the process."""
        if self._stacks is None:
            name = self.spec.stacks + (f".{self.worker}" if self.worker else "")
            self._stacks = open(name, "w")  # noqa: SIM115  # it is written to until the process ends
        faulthandler.enable(self._stacks)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[WORKER_INPUT] = self.spec.to_json()
        node.workerinput["planverify_keyword"] = self._native_keyword
        node.workerinput["planverify_markexpr"] = self._native_markexpr

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        self.journal.write("session_started", worker=self.worker, pid=os.getpid())

    # -- collection ------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        if isinstance(collector, pytest.Package):
            self._crosstalk.package_comes(collector)
        if not isinstance(collector, pytest.File):
            return None
        nodeid = self._nodeids.of(collector.nodeid)
        if nodeid in self.spec.skip_files:
            return pytest.CollectReport(collector.nodeid, "passed", None, result=[])
        self._crosstalk.file_comes(collector)
        self.journal.write("file_collecting", worker=self.worker, nodeid=nodeid)
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_make_collect_report")
    def pytest_observe_collection(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        if isinstance(collector, pytest.Session):
            self._crosstalk.collection_begins()
        report = yield
        if isinstance(collector, pytest.Session):
            self._note_missing(collector)
        elif isinstance(collector, pytest.File):
            self._crosstalk.file_was_imported(collector)
        if report.failed:
            self._failed_files.add(collector.path)
            self._write_collection_failure(collector, report)
        elif report.skipped:
            self.journal.write(
                "file_skipped",
                worker=self.worker,
                nodeid=self._nodeids.of(collector.nodeid),
                reason=_skip_text(report.longrepr),
            )
        return report

    def _write_collection_failure(self, collector: pytest.Collector, report: pytest.CollectReport) -> None:
        from pytest_planverify.observing.evidence import collection_evidence

        evidence = collection_evidence(collector, report, self.project)
        self.journal.write(
            "collection_failure",
            worker=self.worker,
            nodeid=self._nodeids.of(collector.nodeid),
            path=str(collector.path),
            evidence=evidence,
        )

    def _note_missing(self, session: pytest.Session) -> None:
        missing: list[Any] = getattr(session, "_notfound", [])
        if missing:
            arguments: list[str] = [entry[0] for entry in missing]
            nearest = {argument: alike_names(argument, self._root) for argument in arguments}
            self.journal.write("not_found", worker=self.worker, arguments=arguments, nearest=nearest)
            if not self.spec.verbatim:
                missing.clear()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        self.journal.write("collection_started", worker=self.worker)
        self._crosstalk.begin(self._config, lambda: self.project.side)
        try:
            return (yield)
        except pytest.UsageError as error:
            self.journal.write("usage_error", worker=self.worker, message=str(error))
            raise

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        self.journal.write("files_collected", worker=self.worker)
        choosing = Choosing(self.spec, self._nodeids, self._native_keyword, self._native_markexpr)
        choosing.before_other_plugins(config, items)
        yield
        selections = choosing.after_other_plugins(config, items, self._failed_files)
        self._groups = choosing.groups
        self.journal.write(
            "collected",
            worker=self.worker,
            planned=[self._nodeids.of(item.nodeid) for item in items],
            selections=[dataclasses.asdict(selection) for selection in selections],
        )
        self._prepare_running(items)

    # -- running ---------------------------------------------------------------------------------

    def _prepare_running(self, items: list[pytest.Item]) -> None:
        to_come: Counter[str] = Counter()
        conflicts: set[str] = set()
        asked: dict[tuple[str, ...], SharedTests] = {}
        for item in items:
            group = self._groups.get(self._nodeids.of(item.nodeid), ())
            each = asked.get(group)
            if each is None:
                each = asked[group] = SharedTests.by(
                    [wanted for wanted in self.spec.wanted if wanted.key in group]
                )
            each.tests += 1
            self._fixture_paths[item.nodeid] = each.fixture_path
            if self.spec.soft_limits and each.limit_seconds:
                self.soft_limits.set(item, each.limit_seconds)
        for group, each in asked.items():
            to_come.update(dict.fromkeys(group, each.tests))
            if each.conflict:
                conflicts.update(group)
        self._crosstalk.collected(to_come)
        if conflicts:
            self.journal.write("fixture_conflict", worker=self.worker, keys=sorted(conflicts))

    def wanted_by(self, item: pytest.Item) -> tuple[str, ...]:
        """The keys of the criteria that select the test."""
        return self._groups.get(self._nodeids.of(item.nodeid), ())

    def fixture_path_of(self, nodeid: str) -> str | None:
        """The data file that the criterion behind that test names, by pytest's own node id."""
        return self._fixture_paths.get(nodeid)

    def record_metric(self, name: str, value: object) -> None:
        """Write down a number recorded for the suite: by a wide fixture, or else by the running test."""
        via = self.live_fixtures.starting
        nodeid = None if via else self.running
        kept = writable(value)
        self.journal.write("metric", worker=self.worker, name=str(name), value=kept, via=via, nodeid=nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        nodeid = self._nodeids.of(item.nodeid)
        group = self._groups.get(nodeid, ())
        self._crosstalk.test_begins(item, group, is_last=nextitem is None)
        self.running = nodeid
        if self.audit is not None:
            self.audit.nodeid = nodeid
        if "record_testsuite_property" in getattr(item, "fixturenames", ()):
            self.journal.write("fixtures_used", nodeid=nodeid, names=list(item.fixturenames))  # type: ignore[attr-defined]
        body = f'"nodeid": {dumps(nodeid)}'
        if self.worker:
            body += f', "worker": "{self.worker}", "pid": {os.getpid()}'
        phases.board.put(phases.SETUP)
        self.journal.write_raw("test_started", body)
        self._bodies.begin()
        result = yield
        if hidden := self._bodies.hidden():
            self.journal.write("hidden_failure", worker=self.worker, nodeid=nodeid, **hidden)
        elif self._bodies.unproved:
            self.witness.passed_without_body(item, nodeid)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self) -> None:
        phases.board.put(phases.TEARDOWN)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when != "call":  # of which each subtest makes a report, too
            phases.board.put(phases.after(call.when, passed=report.outcome == "passed"))
        if report.outcome == "failed" or report.outcome == "rerun":  # type: ignore[comparison-overlap]
            if not self.spec.verbatim and stumbled_over_output(call):
                restore_output(self._config)
            # What the test has replaced for itself, such as os.path.exists, is still replaced here.
            evidence = self._evidence_of(item, call, report)
            setattr(report, EVIDENCE, evidence)
        if call.excinfo is not None or self._bodies.raised:
            self._bodies.made(call, report, lambda: self._evidence_of(item, call, report))
        return report

    def _evidence_of(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> str | None:
        from pytest_planverify.observing.evidence import test_evidence

        return guarded(lambda: dumps(test_evidence(item, call, report, self.project), default=str), None)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """The innermost look at a test's body: nothing that others do with its answer is done yet."""
        self.witness.body_begins(pyfuncitem)
        try:
            result = yield
        except BaseException as error:
            self._bodies.ran(error)
            raise
        self._bodies.ran(None)
        return result

    @property
    def project(self) -> ProjectMap:
        """Whose file is whose; found out when the first failure asks."""
        if self._project is None:
            from pytest_planverify.observing.evidence import ProjectMap

            self._project = ProjectMap.discover(self._root, planned=self.spec.planned)
        return self._project

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        """Whoever turns a report round has done so by the end."""
        try:
            yield
        finally:
            if not self.worker and self._ledger is not None:
                self._ledger.add(report)
            if report.outcome != "passed":
                self._bodies.reported(report)
            elif report.when == "call":
                self._bodies.passed = True

    # -- the end ---------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: object) -> None:
        self.journal.write("internal_error", worker=self.worker, text=str(excrepr)[-20_000:])

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        from pytest_planverify.observing.evidence import startup_evidence

        evidence = guarded(lambda: startup_evidence(excinfo.value, self.project), None)
        reason = f"{excinfo.typename}: {excinfo.value}"
        self.journal.write("stopped", worker=self.worker, reason=reason, evidence=evidence)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        self._crosstalk.end()
        yield
        self.witness.write(self.journal, self.worker, session.config.pluginmanager)
        stopped = session.shouldstop or session.shouldfail
        self.journal.write(
            "session_finished",
            worker=self.worker,
            exit_status=int(exitstatus),
            stopped=str(stopped) if stopped else None,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.flush()
        self.journal.write("summary_begins", offset=_log_size(self.spec.log))

    @pytest.hookimpl(trylast=True, specname="pytest_terminal_summary")
    def pytest_summary_ends(self, terminalreporter: Any) -> None:
        terminalreporter.flush()
        self.journal.write("summary_ends", offset=_log_size(self.spec.log))


def _skip_text(longrepr: object) -> str:
    if isinstance(longrepr, tuple):
        return str(longrepr[-1]).removeprefix("Skipped: ")  # pyright: ignore
    return str(longrepr)


def _log_size(log: str | None) -> int:
    if log is None:
        return 0
    try:
        return os.path.getsize(log)
    except OSError:
        return 0
