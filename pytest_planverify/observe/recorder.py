"""Recorder: the plugin of a worker's session. It narrows the selection, observes, and writes records.

It is registered in the session's process and, with pytest-xdist, in each xdist worker. xdist workers
select tests and capture evidence, which travels to the controlling process as an attribute of the report;
only the controlling process writes results.

Nearly all hooks are ``tryfirst`` or wrappers: records must be written before a plugin of the project can
stop the hook, and reports are read after all plugins that may change them.
"""

from __future__ import annotations

import faulthandler
import math
import os
from fnmatch import fnmatch
from functools import cached_property
from itertools import chain, islice
from json import dumps  # bound early: a test may have replaced it while its failure is reported
from typing import TYPE_CHECKING, Any

import pytest
from _pytest import main, mark
from _pytest._io.saferepr import saferepr

from pytest_planverify.guards.tamper_observer import FailureTally, TamperingObserver
from pytest_planverify.observe.audit import PLUGIN, WORKER_VARIABLE, spec_for_workers
from pytest_planverify.observe.results import EVIDENCE, NodeIds, ResultLedger, skip_reason
from pytest_planverify.observe.supervision import CALL, SETUP, TEARDOWN, SoftLimits, board
from pytest_planverify.observe.warm_modules import imported_modules

if TYPE_CHECKING:
    import warnings
    from collections.abc import Generator, Iterable
    from pathlib import Path

    from pytest_planverify.journal import JournalWriter
    from pytest_planverify.observe.audit import Audit
    from pytest_planverify.observe.project_map import ProjectMap
    from pytest_planverify.observe.spec import Narrowing, WorkerSpec

WORKER_INPUT = "planverify"
"""Key of ``config.workerinput`` under which a worker finds its session's spec."""


_MOST_NAMES = 20_000
"""Limit of names that are searched for tests in an ignored folder; a larger one is taken to have some."""
_LONGEST_OPERAND = 200
"""Limit of characters of each value of a comparison that pytest clips."""

_RETURNS = "It is deprecated to return a value that is not None from a test case"
"""Beginning of the warning of unittest for a test that returns a value."""


class ComparedValues:
    """Part of a plugin that records the values of a failing comparison beyond what its message shows."""

    compared = ("", "")
    """The last comparison of which pytest clipped the values, and the same with longer values."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_assertrepr_compare(
        self, op: str, left: object, right: object
    ) -> Generator[None, list[list[str] | None], list[list[str] | None]]:
        """Record compared values, of which pytest shows some 30 characters; its message is unchanged."""
        explanations = yield
        clipped = next((each[0] for each in explanations if each and "..." in each[0]), None)
        are_texts = isinstance(left, str) and isinstance(right, str)  # of which pytest shows a diff
        if clipped is not None and not are_texts:
            shown = (saferepr(value, maxsize=_LONGEST_OPERAND) for value in (left, right))
            self.compared = clipped, f" {op} ".join(shown)
        return explanations


class Recorder(ComparedValues):
    """Plugin that observes one worker's session for the parent.

    A server registers it before forking, so hooks may be called before there is a spec. :meth:`begin` sets
    the spec and the journal in the worker.
    """

    spec: WorkerSpec
    journal: JournalWriter
    config: pytest.Config
    """To be set before the collection; in a forked worker, that of the server."""

    def __init__(self) -> None:
        self.worker = ""
        """Id of the xdist worker that this process is; empty in the controlling process."""
        self.soft_limits = SoftLimits()
        self._stacks: Any = None
        self.audit: Audit | None = None
        self._failures = FailureTally()
        self.tampering = TamperingObserver()
        self._ignored: list[str] = []
        """Files and folders with test files that the user left out with ``--ignore``."""
        self._narrowed: list[str] | None = None
        """These and the node ids that the user deselected; ``None`` until the selection is complete."""

    # -- configuration ---------------------------------------------------------------------------

    def begin(self, spec: WorkerSpec, journal: JournalWriter, worker: str = "") -> None:
        """Start observing, in the worker; ``worker`` is the id of an xdist worker."""
        self.spec, self.journal, self.worker = spec, journal, worker

    @cached_property
    def _nodeids(self) -> NodeIds:
        return NodeIds(str(self.config.rootpath), self.spec.root)

    @cached_property
    def _ledger(self) -> ResultLedger:
        return ResultLedger(self.journal, self._nodeids)

    @cached_property
    def project(self) -> ProjectMap:
        """Map of file ownership, built at the first failure."""
        from pytest_planverify.observe.project_map import ProjectMap

        return ProjectMap.discover(self.spec.root, planned=self.spec.planned)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        if hasattr(self, "spec"):
            self.watch_for_crashes()  # again, as pytest's own faulthandler plugin has redirected it
            if self.spec.collect_only:
                config.option.collectonly = True

    def watch_for_crashes(self) -> None:
        """Enable faulthandler, so that a fatal signal leaves stacks in the worker's file.

        May be called repeatedly.
        """
        if self._stacks is None:
            name = self.spec.stacks + (f".{self.worker}" if self.worker else "")
            # Written to until the process ends.
            self._stacks = os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w")
        faulthandler.enable(self._stacks)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Pass the spec to an xdist worker; its plugin reads it from there once it is configured."""
        node.workerinput[WORKER_INPUT] = self.spec.to_json()

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config) -> None:
        """Pass to xdist workers what they need earlier, to audit the loading of conftests."""
        os.environ[WORKER_VARIABLE] = spec_for_workers(self.spec)
        if not config.pluginmanager.has_plugin("planverify"):  # plugins are not loaded by themselves
            others = os.environ.get("PYTEST_PLUGINS")
            os.environ["PYTEST_PLUGINS"] = f"{others},{PLUGIN}" if others else PLUGIN

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        if self.worker:
            self.write("session_started", pid=os.getpid())

    def nodeid_of(self, item: pytest.Item) -> str:
        """Return the item's node id relative to the plan's root."""
        return self._nodeids.of(item.nodeid)

    def write(self, kind: str, **facts: object) -> None:
        """Write a record of this process, be it the controlling one or an xdist worker."""
        self.journal.write(kind, worker=self.worker, **facts)

    # -- collection ------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Record a file before it is imported, and errors and skips of collectors afterwards."""
        nodeid = self._nodeids.of(collector.nodeid)
        if isinstance(collector, pytest.File):
            # If the process dies or hangs in the import, this record is all that names the file.
            self.write("file_collecting", nodeid=nodeid)
        report = yield
        if isinstance(collector, pytest.Session) and (missing := getattr(collector, "_notfound", None)):
            from pytest_planverify.observe.evidence import guarded

            reports = getattr(collector, "_collection_cache", {})
            nearest: dict[str, list[str]] = {}
            for argument, nodes in missing:
                beside = [each for node in nodes if node in reports for each in reports[node].result]
                # Methods, too: the argument may lack the class of its test, or misspell it.
                inner = (
                    guarded(lambda it=it: it.collect(), ()) for it in beside if isinstance(it, pytest.Class)
                )
                nearest[argument] = alike_names(argument, [each.nodeid for each in chain(beside, *inner)])
            self.write("not_found", arguments=list(nearest), nearest=nearest)
        if report.failed:
            from pytest_planverify.observe.evidence import collection_evidence

            evidence = collection_evidence(collector, report, self.project)
            self.write("collection_failure", nodeid=nodeid, path=str(collector.path), evidence=evidence)
        elif report.skipped:
            self.write("file_skipped", nodeid=nodeid, reason=skip_reason(report.longrepr))
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Record the start of the collection, and a usage error in it, which pytest itself only prints."""
        self.write("collection_started")
        try:
            return (yield)
        except pytest.UsageError as error:
            self.write("usage_error", message=str(error))
            raise

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Leave out what the user of this run ignores; pytest's own option would do so without a record."""
        narrowing = self.spec.narrowing
        path = str(collection_path)
        if path not in narrowing.ignore and not any(fnmatch(path, each) for each in narrowing.ignore_glob):
            return None
        folder = config.invocation_params.dir
        selected = [folder / each.partition("::")[0] for each in config.args]
        # pytest also asks for what lies beside a selected file, of which the command has no test.
        is_selected = any(each in (collection_path, *collection_path.parents) for each in selected)
        if is_selected and _may_hold_tests(collection_path, config):
            self._ignored.append(os.path.relpath(path, config.rootpath).replace(os.sep, "/"))
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Narrow the selection after all other plugins."""
        self.write("files_collected")
        yield
        self._narrowed = self._ignored + narrow(config, items, self.spec.narrowing)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Record which tests remain, also after wrappers around the above (``--lf``, a conftest)."""
        if self._narrowed is None:  # pytest comes here although the collection has failed
            return
        self.write(
            "collected",
            nodeids=[self._nodeids.of(item.nodeid) for item in session.items],
            narrowed=[self._nodeids.of(nodeid) for nodeid in self._narrowed],
        )
        if not self.worker:
            self.journal.write("imported", modules=imported_modules())

    # -- running ---------------------------------------------------------------------------------

    @property
    def fixture_path(self) -> str | None:
        """Absolute path of the criterion's data file, or ``None``."""
        return self.spec.fixture_path if hasattr(self, "spec") else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record the start of a test, and afterwards a failure that no report has shown."""
        nodeid = self._nodeids.of(item.nodeid)
        if self.audit is not None:
            self.audit.nodeid = nodeid
        # Written for each test, so as text, without the work of encoding a dictionary.
        body = f'"nodeid": {dumps(nodeid)}'
        if self.worker:
            body += f', "worker": "{self.worker}", "pid": {os.getpid()}'
        board.put(SETUP)
        self.journal.write_raw("test_started", body)
        self._failures.begin()
        result = yield
        if hidden := self._failures.hidden():
            self.write("hidden_failure", nodeid=nodeid, **hidden)
        elif self._failures.unproved:
            self.tampering.passed_without_body(item, nodeid)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        board.put(SETUP)  # reruns do not pass through the protocol hook

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self) -> None:
        board.put(TEARDOWN)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Take the evidence of a failure as soon as its report is made."""
        report = yield
        # After a failed phase the byte stays: if the process dies while it reports, the phase was this one.
        if call.when == "setup" and report.outcome == "passed":
            board.put(CALL)
        if report.outcome == "failed" or report.outcome == "rerun":  # type: ignore[comparison-overlap]
            # Monkeypatches of the test, for example of os.path.exists, are still active here.
            evidence = self._evidence_of(item, call, report)
            setattr(report, EVIDENCE, evidence)
        if call.excinfo is not None or self._failures.raised:
            self._failures.made(call, report, lambda: self._evidence_of(item, call, report))
        return report

    def _evidence_of(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> str | None:
        """Return the evidence as JSON; ``None`` if it cannot be taken. Never raises."""
        from pytest_planverify.observe.evidence import guarded, test_evidence

        def take() -> str:
            return dumps(test_evidence(item, call, report, self.project, self.compared), default=str)

        return guarded(take, None)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Observe the test body's result innermost, before other plugins can change it."""
        self.tampering.body_begins(pyfuncitem)
        try:
            result = yield
        except BaseException as error:
            self._failures.ran(error)
            raise
        self._failures.ran(None)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        """Process a report last, after all plugins that may have changed it."""
        try:
            yield
        finally:  # also if one of these plugins has raised
            if not self.worker:
                self._ledger.add(report)
            if report.outcome != "passed":
                self._failures.reported(report)
            elif report.when == "call":
                self._failures.passed = True

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, nodeid: str) -> None:
        """Record a test that returns a value instead of asserting it, of which pytest only warns."""
        # Compared by name, as pytest 8.4.0 lacks the class.
        returns = warning_message.category.__name__ == "PytestReturnNotNoneWarning"
        if not self.worker and (returns or str(warning_message.message).startswith(_RETURNS)):
            self.write("value_returned", nodeid=nodeid)

    # -- the end ---------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: object) -> None:
        """Record an error of pytest itself or of a plugin, clipped at its beginning."""
        # Relative to the root as in all evidence: else the place of the error seems to be outside of it.
        text = str(excrepr).replace(f"{self.project.root}{os.sep}", "")
        self.write("internal_error", text=text[-20_000:])

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Record that the session was stopped: by an interrupt, or by ``pytest.exit``."""
        from pytest_planverify.observe.evidence import guarded, startup_evidence

        evidence = guarded(lambda: startup_evidence(excinfo.value, self.project), None)
        reason = f"{excinfo.typename}: {excinfo.value}"
        self.write("stopped", reason=reason, evidence=evidence)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        """Record the end of the session after all other plugins, with the final exit status."""
        yield
        self.tampering.write(self.journal, self.worker, session.config.pluginmanager)
        stopped = session.shouldstop or session.shouldfail
        self.write(
            "session_finished",
            exit_status=int(exitstatus),
            stopped=str(stopped) if stopped else None,
            coverage=unmet_coverage(session.config),
        )


def unmet_coverage(config: pytest.Config) -> tuple[float, float] | None:
    """Return the coverage and the limit of pytest-cov that it misses; ``None`` if there is no such miss."""
    plugin: Any = config.pluginmanager.getplugin("_cov")
    total = getattr(plugin, "cov_total", None)
    options: Any = getattr(plugin, "options", None)
    limit = getattr(options, "cov_fail_under", None)
    if not (isinstance(total, float | int) and isinstance(limit, float | int)):
        return None
    misses = total < limit
    if misses and hasattr(options, "cov_precision"):
        # pytest-cov compares the rounded coverage since version 6.1, and then refuses limits above 100.
        from coverage.results import should_fail_under

        misses = limit <= 100 and should_fail_under(total, limit, options.cov_precision or 0)
    if not misses:
        return None
    # Rounded down, so that 79.999 is not shown as 80, the limit that it misses.
    return math.floor(total * 100) / 100, limit


# -- selection of tests --------------------------------------------------------------------------------
# A worker runs its command's own -k, -m and --deselect, so those of the user are applied after the
# collection.


def _may_hold_tests(path: Path, config: pytest.Config) -> bool:
    """Return whether a file is one of tests by its name, or a folder has one or is very large."""
    walked = (names for _, _, names in os.walk(path)) if path.is_dir() else [[path.name]]
    names = list(islice(chain.from_iterable(walked), _MOST_NAMES))
    python = [name for name in names if name.endswith(".py")]
    is_test = any(fnmatch(name, each) for each in config.getini("python_files") for name in python)
    return is_test or len(names) == _MOST_NAMES


def narrow(config: pytest.Config, items: list[pytest.Item], narrowing: Narrowing) -> list[str]:
    """Deselect items that the user of this run did not request, as pytest does; return their node ids.

    ``items`` is changed in place.
    """
    before, option = list(items), vars(config.option)
    # pytest reads the options, which are those of the command.
    own = {name: option[name] for name in ("keyword", "markexpr", "deselect")}
    option |= {"keyword": narrowing.keyword or "", "markexpr": narrowing.markexpr or ""}
    option["deselect"] = narrowing.deselect
    try:
        mark.pytest_collection_modifyitems(items, config)
        main.pytest_collection_modifyitems(items, config)
    finally:
        option |= own
    kept = set(map(id, items))
    return [item.nodeid for item in before if id(item) not in kept]


def alike_names(argument: str, nodeids: Iterable[str]) -> list[str]:
    """Return up to three similar test names of the same file or class, for an argument that matched none.

    ``nodeids`` are those of the tests and classes there. Names are those after the file: ``TestB::test_a``.
    """
    names = {each.partition("[")[0].partition("::")[2] for each in nodeids} - {""}
    wanted = argument.partition("::")[2]
    # A class that is missing or misspelt would make the name of its test look different.
    same = [each for each in sorted(names) if each.rpartition("::")[2] == wanted.rpartition("::")[2]]
    return same[:3] or _similar(wanted, names)


def alike_paths(path: Path) -> list[str]:
    """Return up to three similar names beside a missing path, most similar first.

    If its folder is missing, too, names in the nearest existing folder are compared.
    """
    folder = path.parent
    while not os.path.isdir(folder):  # unlike Path.is_dir(), it accepts names of any length
        folder = folder.parent
    try:
        return _similar(path.name, os.listdir(folder))
    except OSError:
        return []


def _similar(wanted: str, names: Iterable[str]) -> list[str]:
    try:
        from planner.text.display import similar_names
    except ImportError:  # in a worker of pytest-xdist, a package of the project may be named planner
        return []
    return similar_names(wanted, names)
