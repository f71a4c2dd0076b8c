"""Recorder of the product lines that each test executes, for fault localization.

Only confirmations are recorded, and only tests that the parent selects. Python 3.12 and newer use
``sys.monitoring``, which reports each line once; older versions use a trace function that detaches from
a function after enough calls. It takes the place of that of ``coverage`` for the phase. Nothing is recorded
if another tracer is active: recording must never change a test's result.

Recorded, too, is which functions returned ``None`` to code that uses it, as an error about ``None`` shows
only where it is used.

Set-up and call of a test are recorded, not its teardown. What runs after the failure, to render the
compared values, is left out, as it executes ``__repr__`` and ``__eq__`` of the product.
"""

from __future__ import annotations

import dis
import inspect
import re
import sys
from collections import Counter
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from planner.model.verdicts import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import CodeType, FrameType

    from pytest_planverify.observe.recorder import Recorder

_TOOL = "planverify"
_FREE_TOOLS = (4, 3)
"""Tool ids of ``sys.monitoring`` that are not reserved."""

_LONGEST_STACK = 200
"""Number of frames that are searched for callers."""
_MOST_LINES = 400
"""Limit of executed lines per function that the trace function follows in one test, for all its calls."""

_MOST_RETURNS = 10_000
"""Limit of returns per function that are inspected in one phase where each costs a call."""
_MOST_NONES = 50
"""Limit of kept returns of ``None``, the last ones, per phase."""
_POP, _RETURN = dis.opmap["POP_TOP"], dis.opmap["RETURN_VALUE"]
_WITHOUT_VALUE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Flags of code whose return of ``None`` only ends it."""
_WITH_VALUE = frozenset(("__call__", "__enter__", "__getitem__", "__getattr__", "__get__"))
"""Special methods whose result is a value of their caller; of others such as ``__init__`` it is not."""

_TRACING = re.compile(rb"\b(?:get|set)(?:trace|profile)\b|\bsys\.monitoring\b")
"""Names by which code uses tracing, searched in its source."""
_LARGEST = 1 << 20
"""Number of bytes of a source file that are searched, and of lines of a function that are recorded."""
_FAILURE_RENDERERS = ("_pytest/assertion/util.py", "_pytest/assertion/rewrite.py", "unittest/util.py")
"""Modules that render the values of a failed assertion; calls from there do not belong to the test."""
_REPRESENTATIONS = frozenset(
    ("_saferepr", "_should_repr_global_name", "_format_assertmsg", "_format_boolop", "_call_reprcompare")
)
"""Functions of the rewriter that do so; its others handle an import, after which the test continues."""


class Ran(NamedTuple):
    """A product function that was executed, with its lines."""

    code: CodeType
    depth: int
    """Number of product functions on the stack at its first call."""
    lines: set[int]
    nones: dict[int, tuple[CodeType, int]]
    """Functions that used a ``None`` which it returned, by id, with the last one's place in the order."""


class SpectrumRecorder:
    """Plugin that records what each selected test executed.

    Functions are numbered in the order of their first execution; a record describes each only once.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._wanted: frozenset[str] = frozenset(recorder.spec.recorded_tests)
        self._numbers: dict[CodeType, int] = {}
        self._sides: dict[str, bool] = {}
        self._read: set[str] = set()
        self._modules = 0
        self._ran: list[Ran] = []
        self._is_wanted = self._was_recorded = False
        self._nones = 0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Decide whether the test is recorded, and write its record at the end."""
        nodeid = self._recorder.nodeid_of(item)
        # From here on, for all tests of the session.
        if self._wanted and (self._project_traces() or _has_threshold(item.config)):
            self._wanted = frozenset[str]()
        if isinstance(item, pytest.Function):  # whatever the name of its file; a doctest's is the product's
            self._sides[str(item.path)] = False
        self._ran, self._is_wanted, self._was_recorded = [], nodeid in self._wanted, False
        self._nones = 0
        try:
            return (yield)
        finally:
            if self._was_recorded:  # that a test executed no function of the product is a fact, too
                self._write(nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        # Errors of fixtures and tests pass through this frame; pytest would render it for each failure.
        __tracebackhide__ = True
        return (yield from self._record_phase())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        __tracebackhide__ = True
        return (yield from self._record_phase())

    def _record_phase(self) -> Generator[None, object, object]:
        """Record the phase that runs inside of this generator, if the test is selected."""
        __tracebackhide__ = True
        probe = probe_of(self._is_product) if self._is_wanted else None
        if probe is not None:
            probe.nones = self._nones
        started = probe is not None and probe.start()
        try:
            return (yield)
        finally:
            if probe is not None and started:
                self._was_recorded = True
                self._ran += probe.stop()
                self._nones = probe.nones

    def _is_product(self, file: str) -> bool:
        """Return whether a file belongs to the product, cached. Never raises."""
        known = self._sides.get(file)
        if known is None:
            try:
                known = self._recorder.project.side(file) is Side.PRODUCT
            except Exception:  # must never surface in the traced test
                known = False
            self._sides[file] = known
        return known

    def _project_traces(self) -> bool:
        """Return whether imported project code uses tracing itself and might notice this tracer."""
        if len(sys.modules) == self._modules:  # cached while nothing new is imported
            return False
        self._modules = len(sys.modules)
        for module in list(sys.modules.values()):
            file = vars(module).get("__file__") if type(module) is ModuleType else None
            if isinstance(file, str) and file not in self._read:
                self._read.add(file)
                if self._recorder.project.side(file) in (Side.PRODUCT, Side.TEST):
                    with suppress(OSError), open(file, "rb") as source:
                        if _TRACING.search(source.read(_LARGEST)):
                            return True
        return False

    def _write(self, nodeid: str) -> None:
        """Write the functions that the test executed, each with its lines as a hexadecimal bit set.

        The lowest bit is the function's first line. ``functions`` describes, by number, those that no
        earlier record has; ``ran`` are the executed ones, each with the functions that used its ``None``.
        """
        functions: dict[int, tuple[str, int, str]] = {}
        found: list[tuple[int, int, str, list[tuple[int, str, str]]]] = []
        for code, depth, lines, nones in self._ran:
            number = self._numbers.get(code)
            if number is None:
                number = self._numbers[code] = len(self._numbers)
                path = self._recorder.project.relative(code.co_filename)
                functions[number] = (path, code.co_firstlineno, code.co_qualname)
            # Generated code may have any line numbers.
            places = {line - code.co_firstlineno for line in lines}
            bits = sum(1 << place for place in places if 0 <= place < _LARGEST)
            relative = self._recorder.project.relative
            users = [(at, relative(user.co_filename), user.co_qualname) for user, at in nones.values()]
            found.append((number, depth, f"{bits:x}", users))
        self._recorder.write("executed", nodeid=nodeid, functions=functions, ran=found)


def _has_threshold(config: pytest.Config) -> bool:
    """Return whether pytest-cov compares the coverage, which a tracer in its place would lower."""
    options = getattr(config.pluginmanager.get_plugin("_cov"), "options", None)
    return sys.version_info < (3, 12) and bool(getattr(options, "cov_fail_under", None))


def probe_of(is_product: Callable[[str], bool]) -> _Monitor | _Tracer:
    """Return the recording mechanism for this Python version."""
    return _Monitor(is_product) if sys.version_info >= (3, 12) else _Tracer(is_product)


class _Probe:
    """Recording of one phase: ``start`` returns whether it is possible, ``stop`` what was executed."""

    def __init__(self, is_product: Callable[[str], bool]) -> None:
        self._is_product = is_product
        self._found: dict[int, Ran] = {}
        self._has_failed = False
        self.nones = 0
        """Number of returns of ``None`` so far, also in the phases before."""
        self._uses: dict[tuple[int, int], bool] = {}
        """By place of a call, whether its result is used."""

    def _begin(self, code: CodeType, frame: FrameType) -> Ran | None:
        """Note the first call of a function; return its entry if it belongs to the product and the test."""
        if code.co_filename.endswith(_FAILURE_RENDERERS):
            is_rewriter = code.co_filename.endswith("rewrite.py")
            self._has_failed |= not is_rewriter or code.co_name in _REPRESENTATIONS
        if self._has_failed or not self._is_product(code.co_filename):
            return None
        if id(code) not in self._found:
            self._found[id(code)] = Ran(code, _depth(frame, self._is_product), set(), {})
        return self._found[id(code)]

    def _returned_none(self, frame: FrameType) -> None:
        """Note that a function of the product returned ``None`` to a function that uses the value."""
        user, code = frame.f_back, frame.f_code
        ran = self._found.get(id(code))
        is_special = code.co_name.startswith("__") and code.co_name not in _WITH_VALUE
        if user is None or ran is None or self._has_failed or is_special or code.co_flags & _WITHOUT_VALUE:
            return
        place = id(user.f_code), user.f_lasti  # code is slow to hash, and may have unhashable constants
        if place not in self._uses:
            self._uses[place] = _is_used(user.f_code, user.f_lasti)
        if self._uses[place]:
            self.nones += 1
            ran.nones[id(user.f_code)] = user.f_code, self.nones

    def _last_nones(self) -> list[Ran]:
        """Return what was executed, with the last returns of ``None`` only."""
        for ran in self._found.values():
            for user in [key for key, (_, at) in ran.nones.items() if at <= self.nones - _MOST_NONES]:
                del ran.nones[user]
        return list(self._found.values())


class _Monitor(_Probe):
    """Recording by ``sys.monitoring``; a line seen once costs nothing for the rest of the phase."""

    def __init__(self, is_product: Callable[[str], bool]) -> None:
        super().__init__(is_product)
        self._monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        self._tool = 0
        self._returns: Counter[int] = Counter()

    def start(self) -> bool:
        monitoring = self._monitoring
        free = [each for each in _FREE_TOOLS if monitoring.get_tool(each) is None]
        # A profiler of the test would also see our callbacks, which are Python functions.
        if not free or sys.getprofile() is not None:
            return False
        self._tool, events = free[0], monitoring.events
        monitoring.use_tool_id(self._tool, _TOOL)
        monitoring.register_callback(self._tool, events.PY_START, self._on_start)
        monitoring.register_callback(self._tool, events.LINE, self._on_line)
        monitoring.register_callback(self._tool, events.PY_RETURN, self._on_return)
        monitoring.restart_events()  # enables again what earlier tests have disabled by DISABLE
        monitoring.set_events(self._tool, events.PY_START | events.LINE | events.PY_RETURN)
        return True

    def stop(self) -> list[Ran]:
        monitoring, events = self._monitoring, self._monitoring.events
        if monitoring.get_tool(self._tool) != _TOOL:
            return []  # the test has freed our tool id, so lines may be missing
        monitoring.set_events(self._tool, events.NO_EVENTS)
        # Callbacks outlive their tool id; the next user of the id would receive them.
        for event in (events.PY_START, events.LINE, events.PY_RETURN):
            monitoring.register_callback(self._tool, event, None)
        monitoring.free_tool_id(self._tool)
        return self._last_nones()

    def _on_start(self, code: CodeType, _offset: int) -> object:
        self._begin(code, sys._getframe(1))
        return self._monitoring.DISABLE

    def _on_line(self, code: CodeType, line: int) -> object:
        # DISABLE ends the events of this one line, not those of the function.
        ran = self._found.get(id(code))
        if ran is not None and not self._has_failed:
            ran.lines.add(line)
        return self._monitoring.DISABLE

    def _on_return(self, code: CodeType, _offset: int, value: object) -> object:
        self._returns[id(code)] += 1
        if id(code) not in self._found or self._returns[id(code)] > _MOST_RETURNS:
            return self._monitoring.DISABLE
        if value is None:
            self._returned_none(sys._getframe(1))
        return None


class _Tracer(_Probe):
    """Recording by ``sys.settrace``, before Python 3.12."""

    def __init__(self, is_product: Callable[[str], bool]) -> None:
        super().__init__(is_product)
        self._left: dict[int, int] = {}
        """By function, the number of lines that are still to be followed."""
        self._hook = self._trace  # one bound method, to be compared by identity
        self._before = sys.gettrace()

    def start(self) -> bool:
        # The coverage of a confirmation is no result.
        # A method has the name of its module itself, an object of coverage's extension by its type.
        owner = getattr(self._before, "__module__", None) or type(self._before).__module__
        is_free = self._before is None or owner.partition(".")[0] == "coverage"
        if not is_free or sys.getprofile() is not None:
            return False
        sys.settrace(self._hook)
        return True

    def stop(self) -> list[Ran]:
        # There is none if the trace function itself exceeded the recursion limit, in the test's recursion.
        if sys.gettrace() not in (self._hook, None):
            return []  # the test has installed its own tracer, so lines may be missing
        sys.settrace(self._before)
        return self._last_nones()

    def _trace(self, frame: FrameType, _event: str, _arg: object) -> Any:
        """Handle a call: return the line tracer of a product function, while it has lines left."""
        key = id(frame.f_code)
        left = self._left.get(key)
        if left is None:
            ran = self._begin(frame.f_code, frame)
            left = self._left[key] = 0 if ran is None else _MOST_LINES
        return self._trace_line if left > 0 and not self._has_failed else None

    def _trace_line(self, frame: FrameType, event: str, value: object) -> Any:
        # An exception that leaves the function gives this event, too, but at another instruction.
        if event == "return" and value is None and frame.f_code.co_code[frame.f_lasti] == _RETURN:
            self._returned_none(frame)
        elif event == "line":
            key = id(frame.f_code)
            self._found[key].lines.add(frame.f_lineno)
            self._left[key] -= 1
            frame.f_trace_lines = self._left[key] > 0
        return self._trace_line


def _is_used(code: CodeType, place: int) -> bool:
    """Return whether code uses the result of the call at a place of its bytecode."""
    following = (opcode for opcode in code.co_code[place + 2 :: 2] if opcode)  # 0 is for caches
    return next(following, _POP) != _POP


def _depth(frame: FrameType, is_product: Callable[[str], bool]) -> int:
    """Return the number of product functions among the callers of a frame, of the nearest ones only."""
    depth = 0
    caller = frame.f_back
    for _ in range(_LONGEST_STACK):
        if caller is None:
            break
        depth += is_product(caller.f_code.co_filename)
        caller = caller.f_back
    return depth
