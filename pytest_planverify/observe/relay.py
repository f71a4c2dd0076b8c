"""A pytest plugin that writes the reports of a worker into a file, for the reporting session to replay.

One JSON line a record, in the order of events. What pytest-xdist sends to its controller is what is written
here: test reports, collection reports that did not pass, warnings. Tuples and bytes are marked, as JSON has
neither and reporters tell them from lists and text.
"""

from __future__ import annotations

import base64
import json
import os
from json import dumps  # as it is now: a test may have replaced functions of these modules
from os import close as close_file
from os import getpid
from os import open as open_file
from os import write as write_bytes
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    import warnings
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)

_UNSENT = ("node",)
"""Attributes of reports that mean something in their own process only: the connection to a xdist worker."""

_KNOWN = ("location", "keywords", "outcome", "when", "sections", "duration", "start", "stop", "wasxfail")
"""Attributes of reports that are written where the whole cannot be."""

_DEPTH = 60
"""Deeper values are written as text: json gives up at about a thousand levels, and at circles."""


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

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._write("finish", nodeid=nodeid)

    @pytest.hookimpl(trylast=True)  # after plugins that amend reports
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write("report", data=self._serialized(report))

    @pytest.hookimpl(tryfirst=True, specname="pytest_runtest_logreport")
    def pytest_relay_xml_attributes(self, report: pytest.TestReport) -> None:
        """Write what the fixture ``record_xml_attribute`` was given, before pytest adds its own."""
        xml = self._xml() if report.when == "call" else None
        if xml is not None and (attributes := xml.node_reporter(report).attrs):
            self._write("xml_attributes", nodeid=report.nodeid, attributes=dict(attributes))

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
        xml = self._xml()
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

    def _xml(self) -> Any:
        """Return what ``--junitxml`` gathers here: fixtures write there, and not into reports."""
        from _pytest.junitxml import xml_key

        return self._config.stash.get(xml_key, None)


def dump_line(record: dict[str, object]) -> bytes:
    """Write a record as a line of JSON, whatever objects it holds."""
    return dumps(_marked(record, _DEPTH)).encode("ascii") + b"\n"


def load_lines(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Read records back; a line that was not written to its end, when the process died, is left out."""
    for line in lines:
        try:
            record = json.loads(line, object_hook=_unmarked)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield cast("dict[str, Any]", record)


def _marked(value: object, depth: int) -> object:
    """Return the value made of what JSON knows; tuples, bytes and odd keys stand in a marked object."""
    if value is None or isinstance(value, bool | float):
        return value if value is None or isinstance(value, bool) else float(value)
    if isinstance(value, int):  # an enum's member too; Python refuses to write very long ones in decimal
        return int(value) if value.bit_length() < _BITS else hex(value)
    if isinstance(value, str):
        return str.__str__(value)
    if depth:
        if isinstance(value, bytes | bytearray):
            return {"$bytes": base64.b64encode(value).decode("ascii")}
        if isinstance(value, list):
            return [_marked(each, depth - 1) for each in cast("list[object]", value)]
        if isinstance(value, tuple):
            return {"$tuple": [_marked(each, depth - 1) for each in cast("tuple[object, ...]", value)]}
        if isinstance(value, dict):
            pairs = list(cast("dict[object, object]", value).items())
            if all(isinstance(name, str) and name not in _MARKS for name, _ in pairs):
                return {str(name): _marked(each, depth - 1) for name, each in pairs}
            return {"$dict": [[_marked(name, depth - 1), _marked(each, depth - 1)] for name, each in pairs]}
    try:
        return str(value)
    except BaseException as error:  # the object is a stranger's; pytest.fail() is no Exception
        return f"<{type(value).__name__}: __str__ raised {type(error).__name__}>"


_BITS = 10_000
_MARKS = frozenset({"$bytes", "$tuple", "$dict"})


def _unmarked(value: dict[str, Any]) -> object:
    if len(value) == 1:
        ((mark, content),) = value.items()
        if mark == "$bytes":
            return base64.b64decode(content)
        if mark == "$tuple":
            return tuple(content)
        if mark == "$dict":
            return {_hashable(name): each for name, each in content}
    return value


def _hashable(value: object) -> object:
    try:
        hash(value)
    except TypeError:
        return str(value)
    return value
