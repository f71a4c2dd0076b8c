"""Whose doing it is that something is reached for: the project's, or that of pytest and its plugins.

Told from the calls that are on the way: the innermost one that somebody answers for decides.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_PHASES = {
    "pytest_runtest_setup": "setup",
    "pytest_runtest_call": "call",
    "pytest_runtest_teardown": "teardown",
}
_RUNS_A_TEST = ("pytest_runtest_protocol", "runtestprotocol")
_RUNS_THE_PROJECT = ("runner.py", "python.py", "fixtures.py", "unittest.py", "doctest.py")
"""The modules of pytest whose hooks call tests and fixtures, whoever wrote those."""

_TOOLS = ("execnet", "xdist", "coverage", "pytest_cov", "pytest_timeout", "pytest_rerunfailures")
"""Packages that work for a session in ways of their own: other processes, threads, data files."""

_PROJECT, _PYTEST, _PLUGGY, _TOOL, _OURS, _OTHER = range(6)

_OUTERMOST = ("run_worker", "serve_group", "leave_interpreter")
"""Our own functions that a worker runs in, and what it does when its session is over."""


class Origin(NamedTuple):
    """Where the project stood when it reached for something."""

    in_test: bool
    """A test was being set up, called or torn down."""
    phase: str | None = None
    path: str | None = None
    """The outermost file of the project: the test file or conftest that is imported, or that called."""
    fixture: object = None
    """The fixture definition of a wider scope than a test that was being set up or torn down."""


def origin_finder(roots: tuple[str, ...]) -> Callable[[FrameType | None], Origin | None]:
    """What tells the origin from the innermost frame; ``None`` of it is a tool's own doing.

    The files of the project lie below the roots. Calls outside the session are not looked at: they are
    those of whoever started the run.
    """
    return partial(_origin, partial(_owner, {}, _owners(roots)))


def _origin(owner_of: Callable[[str], int], frame: FrameType | None) -> Origin | None:
    counts: bool | None = None
    phase: str | None = None
    path: str | None = None
    in_test = tool = framework = False
    fixture: object = None
    inner: FrameType | None = None
    while frame is not None:
        code = frame.f_code
        owner = owner_of(code.co_filename)
        if owner == _OURS and code.co_name in _OUTERMOST:
            break
        if owner == _PROJECT:
            path = code.co_filename
            counts = True if counts is None else counts
        elif owner == _PLUGGY:
            if counts is None and inner is not None:
                counts = not tool and _is_project_work(owner_of, inner)
        elif owner == _TOOL:
            tool = True
        elif owner == _PYTEST:
            framework = True
            name = code.co_name
            if name in _PHASES:
                phase = _PHASES[name]
            in_test = in_test or name in _RUNS_A_TEST
            if fixture is None:
                fixture = _fixture_of(frame, name)
        frame, inner = frame.f_back, frame
    if counts is None:
        counts = not (tool or framework)
    if not counts:
        return None
    wide = None if fixture is None or getattr(fixture, "scope", "function") == "function" else fixture
    return Origin(in_test, phase if in_test else None, path, wide)


def _fixture_of(frame: FrameType, name: str) -> object:
    """The fixture definition that a frame of pytest sets up or tears down."""
    if name == "pytest_fixture_setup":
        return frame.f_locals.get("fixturedef")
    if name == "finish" and frame.f_code.co_filename.endswith("fixtures.py"):
        return frame.f_locals.get("self")
    return None


def _is_project_work(owner_of: Callable[[str], int], hook: FrameType) -> bool:
    """Whether the implementation of a hook is pytest's own for running tests and fixtures."""
    file = hook.f_code.co_filename
    return owner_of(file) == _PYTEST and file.endswith(_RUNS_THE_PROJECT)


def _owners(roots: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    ours = ((f"{_folder('pytest_planverify')}{part}/", _OURS) for part in ("observe", "session"))
    project = ((f"{root.rstrip('/')}/", _PROJECT) for root in roots)
    tools = ((_folder(name), _TOOL) for name in _TOOLS)
    return (*ours, *project, (_folder("_pytest"), _PYTEST), (_folder("pluggy"), _PLUGGY), *tools)


def _folder(name: str) -> str:
    """The folder of a package, or the file of a module, that is imported or would stand beside pytest."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None:
        beside = os.path.dirname(os.path.dirname(str(sys.modules["_pytest"].__file__)))
        return f"{beside}/{name}/" if os.path.isdir(f"{beside}/{name}") else f"{beside}/{name}.py"
    return os.path.dirname(file) + "/" if os.path.basename(file) == "__init__.py" else file


def _owner(known: dict[str, int], owners: tuple[tuple[str, int], ...], file: str) -> int:
    owner = known.get(file)
    if owner is None:
        installed = "/site-packages/" in file or "/dist-packages/" in file
        owner = known[file] = next(
            (
                each
                for start, each in owners
                if file.startswith(start) and not (each == _PROJECT and installed)
            ),
            _OTHER,
        )
    return owner
