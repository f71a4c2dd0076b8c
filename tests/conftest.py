"""Shared by all tests: the `pytester` fixture, the hypothesis profiles, and which processes are measured.

By default the suite is repeatable: the same code gives the same results. To explore other examples in each
run: ``pytest --hypothesis-profile explore -m hypothesis``.
"""

from __future__ import annotations

import compileall
import gc
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from real_command import MEASURING, TEMPORARY_FOLDERS

pytest_plugins = ["pytester"]

MEASURED = frozenset(
    {
        "test_baseline",
        "test_mcp",
        "test_parallel_turns",
        "test_qualification",
        "test_reporters",
        "test_run_with_agents",
    }
)
"""Modules whose processes are measured for coverage. Measurement adds half of the run time, and the other
modules execute the same lines, in more projects; where tracers are tested, it would change the results.
"""

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
hypothesis.settings.register_profile("explore", max_examples=2000, deadline=None)
hypothesis.settings.load_profile("repeatable")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Restore signal handlers, and compile both packages once, as the tests' commands write no bytecode.

    Under ``nohup``, or in the background of a script, signals are ignored, which child processes inherit.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if not hasattr(session.config, "workerinput"):
        for package in ("planner", "pytest_planverify"):
            compileall.compile_dir(Path(__file__).parents[1] / package, quiet=2)


def pytest_collection_finish() -> None:
    """Exclude all objects that exist after collection from later garbage collections; none is garbage.

    Processes forked by tests, and pytest sessions inside tests, each collect garbage when they end.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def measure_only_what_counts(request: pytest.FixtureRequest) -> Generator[None]:
    """Measure the processes that a module starts only if the module is in `MEASURED`."""
    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__ not in MEASURED:
            for name in MEASURING:
                patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    if (chromium := next(filter(None, found), None)) is None:
        pytest.skip("no chromium is installed")
    from playwright.sync_api import sync_playwright  # late: few tests need it

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(autouse=True, scope="session")
def keep_apart_from_other_suites(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Let the sessions that tests start keep their temporary folders in this suite's own.

    At its end pytest removes what earlier sessions of the user have left, which takes minutes after a suite
    as large as this one.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TEMPORARY_FOLDERS, str(tmp_path_factory.mktemp("sessions")))
        yield
