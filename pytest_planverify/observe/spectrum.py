"""Record which functions of the product each test executes, so that a fault can be located.

Only a confirmation is recorded, and only the tests that the parent asks for. From Python 3.12 on
``sys.monitoring`` tells of the first call of each function; before that the profiler of the standard
library, which is written in C, counts the calls. Where a tool of the project is in the way nothing is
recorded: what a test says must not depend on it.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from planner.model.kinds import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import CodeType

    from pytest_planverify.observe.recorder import Recorder

_TOOL = "planverify"
_FREE_TOOLS = (4, 3)
"""Numbers of ``sys.monitoring`` that no tool of the standard library has."""

_LONGEST_STACK = 200


class Probe(Protocol):
    """Sees which functions are executed between its start and its stop."""

    def start(self) -> bool:
        """Begin; return whether that was possible."""
        ...

    def stop(self) -> dict[CodeType, int]:
        """Return the functions of the product, each with the number of them on the way to it."""
        ...


class SpectrumRecorder:
    """Writes down what each of some tests executed, when it is over."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._wanted = frozenset(recorder.spec.recorded_tests)
        self._numbers: dict[CodeType, int] = {}
        self._found: dict[CodeType, int] = {}
        self._probe: Probe | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        nodeid = self._recorder.nodeid_of(item)
        if nodeid in self._wanted:
            self._found, self._probe = {}, make_probe(self._is_product)
        try:
            return (yield)
        finally:
            if self._probe is not None:
                self._probe = None
                self._write(nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        return (yield from self._watched())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        return (yield from self._watched())

    def _watched(self) -> Generator[None, object, object]:
        probe = self._probe
        if probe is None or not probe.start():
            return (yield)
        try:
            return (yield)
        finally:
            for code, depth in probe.stop().items():
                self._found[code] = min(depth, self._found.get(code, depth))

    def _is_product(self, file: str) -> bool:
        return self._recorder.project.side(file) is Side.PRODUCT

    def _write(self, nodeid: str) -> None:
        if not self._found:
            return
        functions: dict[int, tuple[str, int, str]] = {}
        ran: list[tuple[int, int]] = []
        for code, depth in self._found.items():
            number = self._numbers.get(code)
            if number is None:
                number = self._numbers[code] = len(self._numbers)
                path = self._recorder.project.relative(code.co_filename)
                functions[number] = (path, code.co_firstlineno, code.co_qualname)
            ran.append((number, depth))
        self._recorder.write_executed(nodeid, functions, ran)


def make_probe(is_product: Callable[[str], bool]) -> Probe | None:
    """Return what this interpreter has to see functions with; ``None`` where it has nothing."""
    if sys.version_info >= (3, 12):
        return _Monitor(is_product)
    try:
        return _Profiler(is_product)
    except ImportError:
        return None


class _Monitor:
    """By ``sys.monitoring``: a function that has been seen costs nothing for the rest of the test."""

    def __init__(self, is_product: Callable[[str], bool]) -> None:
        self._monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        self._is_product = is_product
        self._known: dict[str, bool] = {}
        self._found: dict[CodeType, int] = {}
        self._tool: int | None = None

    def start(self) -> bool:
        monitoring = self._monitoring
        self._tool = next((each for each in _FREE_TOOLS if monitoring.get_tool(each) is None), None)
        if self._tool is None or sys.getprofile() is not None:
            return False
        monitoring.use_tool_id(self._tool, _TOOL)
        monitoring.register_callback(self._tool, monitoring.events.PY_START, self._started)
        monitoring.restart_events()
        monitoring.set_events(self._tool, monitoring.events.PY_START)
        return True

    def stop(self) -> dict[CodeType, int]:
        monitoring = self._monitoring
        if monitoring.get_tool(self._tool) != _TOOL:
            return {}  # the test has taken the tool away
        monitoring.set_events(self._tool, 0)
        monitoring.register_callback(self._tool, monitoring.events.PY_START, None)
        monitoring.free_tool_id(self._tool)
        return self._found

    def _started(self, code: CodeType, _offset: int) -> object:
        file = code.co_filename
        product = self._known.get(file)
        if product is None:
            try:
                product = self._known[file] = self._is_product(file)
            except Exception:  # it must not surface in what runs
                product = self._known[file] = False
        if product and code not in self._found:
            self._found[code] = self._depth()
        return self._monitoring.DISABLE

    def _depth(self) -> int:
        depth, frame = 0, sys._getframe(2).f_back
        for _ in range(_LONGEST_STACK):
            if frame is None:
                break
            depth += self._known.get(frame.f_code.co_filename, False)
            frame = frame.f_back
        return depth


class _Profiler:
    """By the C profiler of the standard library, which knows the callers of each function too."""

    def __init__(self, is_product: Callable[[str], bool]) -> None:
        from _lsprof import Profiler  # type: ignore[import-not-found, unused-ignore]

        self._make: Callable[..., Any] = Profiler
        self._is_product = is_product
        self._profiler: Any = None

    def start(self) -> bool:
        if sys.getprofile() is not None:
            return False
        self._profiler = self._make(subcalls=True, builtins=False)
        self._profiler.enable()
        return True

    def stop(self) -> dict[CodeType, int]:
        if sys.getprofile() is not self._profiler:
            return {}  # the test has one of its own
        self._profiler.disable()
        called: dict[CodeType, list[CodeType]] = {}
        for entry in self._profiler.getstats():
            if not isinstance(entry.code, str):
                called[entry.code] = [
                    each.code for each in entry.calls or () if not isinstance(each.code, str)
                ]
        return _depths(called, lambda code: self._is_product(code.co_filename))


def _depths(
    called: dict[CodeType, list[CodeType]], is_product: Callable[[CodeType], bool]
) -> dict[CodeType, int]:
    """Return the least number of product functions on the way to each, by who called whom."""
    inner = {code for each in called.values() for code in each}
    roots = [code for code in called if code not in inner] or list(called)[:1]
    depths: dict[CodeType, int] = dict.fromkeys(roots, 0)
    waiting: deque[CodeType] = deque(roots)
    product = {code for code in called if is_product(code)}
    while waiting:
        code = waiting.popleft()
        step = code in product
        for each in called.get(code, ()):
            depth = depths[code] + step
            if depth < depths.get(each, depth + 1):
                depths[each] = depth
                (waiting.append if step else waiting.appendleft)(each)
    return {code: depths.get(code, 0) for code in product}
