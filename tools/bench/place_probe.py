"""A pytest plugin that records the product functions that each test executed, and its last product frame.

It is loaded with ``-p place_probe`` into a plain run. From its records the benchmark of places computes the
baselines: the last product frame of the traceback, and Ochiai's coefficient of the executed functions.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = os.environ["PLACE_ROOT"] + os.sep
TESTS = tuple(os.environ["PLACE_TESTS"].split(os.pathsep))
OUTPUT = Path(os.environ["PLACE_OUTPUT"])


def _is_product(path: str) -> bool:
    return path.startswith(ROOT) and not any(
        path == each or path.startswith(each + os.sep) for each in TESTS
    )


def _place(code: CodeType) -> tuple[str, str]:
    return code.co_filename.removeprefix(ROOT), code.co_qualname.replace("<locals>.", "")


class Probe:
    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self._codes: set[CodeType] = set()

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            self._codes.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        self._codes.clear()
        sys.setprofile(self._profile)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            places = sorted({_place(code) for code in self._codes if _is_product(code.co_filename)})
            self.tests[item.nodeid] = {"places": places, "failed": False, "frame": None}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if (
            report.when == "call"
            and report.failed
            and item.nodeid in self.tests
            and call.excinfo is not None
        ):
            entry = self.tests[item.nodeid]
            entry["failed"] = True
            for step in call.excinfo.traceback:
                code = step.frame.raw.f_code
                if _is_product(code.co_filename):
                    entry["frame"] = _place(code)
        return report

    def pytest_sessionfinish(self) -> None:
        OUTPUT.write_text(json.dumps(self.tests), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Probe())
