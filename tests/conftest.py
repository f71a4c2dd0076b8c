"""Shared by all tests: pytest's own fixture for running pytest on small projects, and how far properties
are explored.

The suite says the same each time that it runs on the same code. To look further, with other examples each
time: ``pytest --hypothesis-profile explore -m hypothesis``.
"""

from __future__ import annotations

import compileall
import gc
import signal
from pathlib import Path

import hypothesis
import pytest

pytest_plugins = ["pytester"]

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
hypothesis.settings.register_profile("explore", max_examples=2000, deadline=None)
hypothesis.settings.load_profile("repeatable")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Restore signals, and compile both packages once: the tests' commands write no bytecode.

    Under ``nohup``, or in the background of a script, signals are ignored, and so by all that is started.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if not hasattr(session.config, "workerinput"):
        for package in ("planner", "pytest_planverify"):
            compileall.compile_dir(Path(__file__).parents[1] / package, quiet=2)


def pytest_collection_finish() -> None:
    """Spare every later search for garbage what was imported and collected: none of it is any.

    Processes that tests fork, and the pytest sessions inside of tests, each search at their ends.
    """
    gc.collect()
    gc.freeze()
