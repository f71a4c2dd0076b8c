"""A pytest plugin that writes the reports of a worker into a file, for the reporting session to replay.

One JSON line a record, in the order of events. What pytest-xdist sends to its controller is what is written
here: test reports, collection reports that did not pass, warnings.
"""

from __future__ import annotations

import os
from json import dumps  # as it is now: a test may have replaced functions of these modules
from os import close as close_file
from os import getpid
from os import open as open_file
from os import write as write_bytes
from typing import TYPE_CHECKING, Any

import pytest

from pytest_planverify.observe.results import writable

if TYPE_CHECKING:
    import warnings
    from pathlib import Path

_APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)

_UNSENT = ("node",)
"""Attributes of reports that mean something in their own process only: the connection to a xdist worker."""

_KNOWN = ("location", "keywords", "outcome", "when", "sections", "duration", "start", "stop", "wasxfail")
"""Attributes of reports that are written where the whole cannot be."""


def register(config: pytest.Config, path: Path) -> None:
    """Have the session's reports written to an absolute path; with pytest-xdist its controller writes."""
    if not hasattr(config, "workerinput") and not config.pluginmanager.hasplugin("planverify-relay"):
        config.pluginmanager.register(Relay(config, path), "planverify-relay")


class Relay:
    """Writes what reporters are told."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config = config
        self._path = path
        self._pid = getpid()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._write("session", rootdir=str(config.rootpath), cwd=os.getcwd())

    def _write(self, kind: str, **values: object) -> None:
        """Append one record by one system call, so that a crash takes no lines with it.

        The file is opened each time, for a test may close descriptors that it does not know. A copy of
        the process, which a test has forked and which goes on with the session, writes nothing.
        """
        if getpid() != self._pid:
            return
        descriptor = open_file(self._path, _APPENDING, 0o600)
        try:
            write_bytes(descriptor, dump_line({"kind": kind, **values}))
        finally:
            close_file(descriptor)

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        self._write("start", nodeid=nodeid, location=location)

    @pytest.hookimpl(trylast=True)  # after plugins that amend reports
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write("report", data=self._serialized(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._write("collect", data=self._serialized(report))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        category = warning_message.category
        self._write(
            "warning",
            message=str(warning_message.message),
            category=[category.__module__, category.__qualname__],
            filename=warning_message.filename,
            lineno=warning_message.lineno,
            line=warning_message.line,
            when=when,
            nodeid=nodeid,
            location=location,
        )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        from _pytest.junitxml import xml_key

        xml: Any = self._config.stash.get(xml_key, None)  # fixtures write there, and not into reports
        properties: list[tuple[str, str]] = [] if xml is None else xml.global_properties
        for name, value in properties:
            self._write("suite_property", name=name, value=value)

    def _serialized(self, report: pytest.TestReport | pytest.CollectReport) -> dict[str, Any]:
        try:
            data: dict[str, Any] | None = self._config.hook.pytest_report_to_serializable(
                config=self._config, report=report
            )
        except Exception:  # a plugin's own kind of failure, which only it can print
            data = None
        if data is None:
            data = {name: value for name, value in vars(report).items() if name in _KNOWN}
            data |= {"nodeid": report.nodeid, "longrepr": report.longreprtext}
            if isinstance(report, pytest.TestReport):
                data |= {"$report_type": "TestReport", "user_properties": report.user_properties}
            else:
                data |= {"$report_type": "CollectReport", "result": None}
        return {name: value for name, value in data.items() if name not in _UNSENT}


def dump_line(record: dict[str, Any]) -> bytes:
    """Write a record as a line of JSON; what of its data cannot be written is replaced by a word on it."""
    try:
        text = dumps(record, default=str)
    except (
        BaseException
    ):  # objects of strangers: circles, odd keys, a __str__ that raises or ends the program
        kept = {name: writable(value) for name, value in record.get("data", {}).items()}
        if properties := record.get("data", {}).get("user_properties"):
            kept["user_properties"] = [(str(name), writable(value)) for name, value in properties]
        text = dumps({**record, "data": kept})
    return text.encode("ascii") + b"\n"
