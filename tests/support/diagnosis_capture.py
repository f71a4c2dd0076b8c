"""Evidence of the failures of a small project under pytest, for tests of the diagnosis."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest
from text_bundles import write_files

from planner.model.evidence import Evidence
from pytest_planverify.observe.evidence import collection_evidence, startup_evidence, test_evidence
from pytest_planverify.observe.project_map import ProjectMap
from pytest_planverify.observe.recorder import ComparedValues

IMPORTED_BEFORE = (asyncio,)
"""Modules imported up front: an in-process run drops its imports, and asyncio fails on a second import."""

QUIET = ("-q", "-p", "no:cacheprovider", "-p", "pytest_timeout")


class Catcher(ComparedValues):
    """A plugin that captures evidence in the same hooks as the real one."""

    def __init__(self, project: ProjectMap) -> None:
        self.project = project
        self.caught: list[Evidence] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            about = {"nodeid": report.nodeid, "tests": (report.nodeid,), "duration_seconds": call.duration}
            self._catch(test_evidence(item, call, report, self.project, self.compared) | about)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if report.failed:
            facts = collection_evidence(collector, report, self.project)
            self._catch(facts | {"nodeid": report.nodeid})
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_cmdline_parse(self) -> Generator[None, pytest.Config, pytest.Config]:
        try:
            return (yield)
        except BaseException as error:
            self._catch(startup_evidence(error, self.project))
            raise

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._catch(startup_evidence(excinfo.value, self.project))

    def _catch(self, facts: dict[str, Any]) -> None:
        self.caught.append(Evidence.model_validate(facts))


@dataclass
class Captured:
    evidence: list[Evidence]

    @property
    def first(self) -> Evidence:
        assert self.evidence, "the project did not fail"
        return self.evidence[0]


def capture(pytester: pytest.Pytester, files: dict[str, str], *args: str) -> Captured:
    """Run a project and return the evidence of every failure, in order of occurrence."""
    write_files(pytester.path, files)
    catcher = Catcher(ProjectMap.discover(pytester.path))
    pytester.syspathinsert(pytester.path)
    pytester._monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.inline_run(*QUIET, *args, plugins=[catcher], no_reraise_ctrlc=True)
    return Captured(catcher.caught)
