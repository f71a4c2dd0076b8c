"""Plugin that writes a worker's reports to a file, for replay in the reporting session.

One JSON line per record, in order of events: what pytest-xdist would send to its controller, that is
test reports, collection reports that did not pass, and warnings. The reporters of the user's plugins then
see each test once, in a session of their own (:mod:`pytest_planverify.reports.reporter_session`).
"""

from __future__ import annotations

import os
from copy import copy
from json import dumps  # bound early: tests may monkeypatch these modules
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


def register(config: pytest.Config, path: Path) -> None:
    """Register a relay that writes to an absolute path; with pytest-xdist only the controller writes."""
    if not hasattr(config, "workerinput") and not config.pluginmanager.hasplugin("planverify-relay"):
        config.pluginmanager.register(Relay(config, path), "planverify-relay")


class Relay:
    """Writes the session's reports to a file."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config = config
        self._path = path
        self._pid = getpid()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._write("session", {"rootdir": str(config.rootpath)})

    def _write(self, kind: str, data: dict[str, Any]) -> None:
        """Append one record by a single system call, so that a crash loses no complete record.

        The file is opened each time, as tests may close unknown descriptors. Forked children of tests
        write nothing.
        """
        if getpid() != self._pid:
            return
        descriptor = open_file(self._path, _APPENDING, 0o600)
        try:
            write_bytes(descriptor, dump_line({"kind": kind, "data": data}))
        finally:
            close_file(descriptor)

    @pytest.hookimpl(trylast=True)  # after plugins that modify reports
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the report of a phase."""
        self._write("report", self._serialized(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write a failed or skipped collection."""
        if not report.passed:
            self._write("collect", self._serialized(report))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        """Write a warning; its category by name, as classes of the project cannot be serialized."""
        category = warning_message.category
        data = {name: getattr(warning_message, name) for name in ("filename", "lineno", "line")}
        data |= {"message": str(warning_message.message), "when": when, "nodeid": nodeid}
        data |= {"location": location, "category": [category.__module__, category.__qualname__]}
        self._write("warning", data)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the suite properties, which no report contains."""
        from _pytest.junitxml import xml_key

        # record_testsuite_property writes into the object that pytest keeps for its JUnit file.
        xml: Any = self._config.stash.get(xml_key, None)
        properties: list[tuple[str, str]] = [] if xml is None else xml.global_properties
        for name, value in properties:
            self._write("suite_property", {"name": name, "value": value})

    def _serialized(self, report: pytest.TestReport | pytest.CollectReport) -> dict[str, Any]:
        """Return a report as pytest-xdist transfers it, or with the mere text of its failure."""
        hook = self._config.hook
        try:
            data = hook.pytest_report_to_serializable(config=self._config, report=report)
        except Exception:  # a plugin's own kind of longrepr that pytest cannot serialize
            plain = copy(report)
            plain.longrepr = report.longreprtext
            data = hook.pytest_report_to_serializable(config=self._config, report=plain)
        # The connection to an xdist worker is only valid in its own process.
        return {name: value for name, value in data.items() if name != "node"}


def dump_line(record: dict[str, Any]) -> bytes:
    """Return a record as a line of JSON, with placeholders for unserializable data."""
    try:
        text = dumps(record, default=str)
    except BaseException:  # arbitrary objects: cycles, odd keys, a __str__ that raises or exits
        kept = {name: writable(value) for name, value in record["data"].items()}
        if properties := record["data"].get("user_properties"):
            kept["user_properties"] = [(str(name), writable(value)) for name, value in properties]
        text = dumps({**record, "data": kept})
    return text.encode("ascii") + b"\n"
