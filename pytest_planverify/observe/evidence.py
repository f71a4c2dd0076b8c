"""Capture of a failure while it happens: from pytest's items, calls and reports to plain facts.

Facts have the fields of :mod:`planner.model.evidence`, but are plain data: a session must not import
pydantic, as the project under test may itself be pydantic. The parent parses them. The inspected
objects belong to the tests, so each access may raise: see :func:`guarded`.

Everything is bounded (lengths of texts, numbers of frames, exceptions and names), as a test can raise an
error of any size. Nothing here judges: categories and owners are decided in
:mod:`pytest_planverify.diagnosis`.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import linecache
import os
import re
import sys
import types
from collections import deque
from pathlib import Path, PurePosixPath
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from planner.model.verdicts import EvidenceKind, Phase, Side
from planner.text.python_text import callee_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_planverify.observe.project_map import ProjectMap


_PURE_MODULES = frozenset(
    {"__future__", "abc", "collections", "copy", "dataclasses", "decimal", "enum", "fractions", "functools",
     "itertools", "math", "operator", "pytest", "random", "re", "statistics", "string", "textwrap",
     "typing", "unittest"}
)  # fmt: skip
"""Standard modules without side effects: they read no files and start no processes."""

_PURE_BUILTINS = frozenset(dir(builtins)) - {
    *("__import__", "breakpoint", "compile", "eval", "exec", "globals", "input", "open", "vars")
}
"""Builtins through which code reaches neither files, nor names that its own text does not show."""
_LOADING = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
"""Instructions that read a name of the module, or a builtin."""
_OF_UNITTEST = {"_classSetupFailed", "_class_cleanups"}
"""Attributes that ``unittest`` gives each class of tests."""
_DEFINITIONS = (type, types.FunctionType, types.BuiltinFunctionType)

Answer = TypeVar("Answer")

LONGEST_MESSAGE = 4_000
"""Default limit, in characters, of a recorded text."""
LONGEST_CHAIN = 10
"""Number of exceptions that are followed along causes and contexts."""
MOST_LEAVES = 20
"""Number of members of an exception group that are recorded."""
FIRST_FRAMES, LAST_FRAMES = 10, 40
"""Numbers of outermost and innermost frames that are kept of a deep traceback."""
_LONGEST_RENDERING = 8_000
_LONGEST_OUTPUT = 4_000
_LONGEST_HEADLINE = 300
_LONGEST_SOURCE = 300
_MOST_FIXTURES = 500
_MOST_NAMES = 200
_MOST_SUBJECTS = 5
_TIMEOUT_MESSAGE = re.compile(r"Timeout \(?>\d+(?:\.\d+)?s\)?")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,}(?=>)")
_PHASES = {phase.value: phase for phase in Phase}
_OF_PROJECT = frozenset({Side.TEST, Side.PRODUCT})
_WRAPPERS = frozenset(
    {"CollectError", "ConftestImportFailure", "PytestUnhandledThreadExceptionWarning"}
    | {"PytestUnraisableExceptionWarning"}
)
"""Exceptions that merely wrap another one."""


class Facts(dict[str, Any]):
    """A JSON object with attribute access; a missing member reads as ``None``."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)


# -- one failure -------------------------------------------------------------------------------------


def test_evidence(
    item: pytest.Item,
    call: pytest.CallInfo[Any],
    report: pytest.TestReport,
    project: ProjectMap,
    compared: tuple[str, str],
) -> Facts:
    """Return the facts of a failed setup, call or teardown of a test.

    In the message of its assertion, the first text of ``compared`` is replaced by the second.
    The parent adds those that the record of the whole test has: node id, duration and limit.
    """
    error = call.excinfo.value if call.excinfo is not None else None  # none for a strict xpass
    facts = _evidence(EvidenceKind.TEST, _PHASES.get(str(report.when)), error, project, item, report)
    first = next(iter(facts.exceptions), None)
    if first is not None and compared[0] and compared[0] in first.message:
        first["message"] = readable(first.message.replace(*compared, 1))
        facts["headline"] = headline(first)
    facts |= {
        "fixtures": _names(getattr(item, "fixturenames", ())),
        "known_fixtures": guarded(lambda: _known_fixtures(error), ()),
        "self_contained": report.when == "call"
        and guarded(lambda: is_self_contained(item), otherwise=False),
        "timed_out": _is_timeout(facts.exceptions),
        # Of unittest, pytest reports it as a failure of this text, below which hints may follow.
        "strict_xpass": facts.longrepr.startswith("[XPASS(strict)]")
        if error is None
        else facts.longrepr.partition("\n")[0].strip() == "Unexpected success",
    }
    return facts


def is_self_contained(item: pytest.Item) -> bool:
    """Return whether a test uses only its own values, builtins, pure modules and functions of its file.

    The failure of such a test cannot be the product's fault. ``False`` in doubt, as for tests that have
    arguments or use values of their module or class: the product may have computed these.
    """
    # A fixture without a value, demanded by the mark, may replace what the test uses.
    if not isinstance(item, pytest.Function) or item.get_closest_marker("usefixtures"):
        return False
    test = cast("object", item.function)  # pyright: ignore[reportUnknownMemberType]
    if not isinstance(test, types.FunctionType):  # such as a functools.partial
        return False
    code, functions = test.__code__, [test]
    if item.cls is not None:
        members = cast("dict[str, object]", vars(item.cls)).items()
        functions += [each for _, each in members if isinstance(each, types.FunctionType)]
        values = {name for name, each in members if not isinstance(each, types.FunctionType)}
        if any(not name.startswith("__") for name in values - _OF_UNITTEST):
            return False
        if not all(_is_pure_module(base.__module__) for base in item.cls.__mro__[1:-1]):
            return False
    has_arguments = code.co_argcount > (item.cls is not None) or code.co_kwonlyargcount
    seen = set[types.FunctionType]()
    # A function of another file may be the product's, however pure it is.
    space = vars(item.module)
    are_pure = all(each.__globals__ is space and _is_pure(each, seen) for each in functions)
    return not has_arguments and are_pure


def _is_pure(function: types.FunctionType, seen: set[types.FunctionType]) -> bool:
    """Return whether a function, with those of its file that it calls, names nothing that has effects."""
    if function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    seen.add(function)
    space, codes = function.__globals__, [function.__code__]
    for code in codes:  # which grows by the functions and classes inside
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    for instruction in (each for code in codes for each in dis.get_instructions(code)):
        name = str(instruction.argval)
        if instruction.opname == "IMPORT_NAME":
            is_harmless = _is_pure_module(name)  # the name of a relative import is empty
        elif instruction.opname not in _LOADING or name.startswith("@"):  # pytest's assertion rewriting
            continue
        elif isinstance(value := space.get(name), types.FunctionType) and value.__globals__ is space:
            is_harmless = value in seen or _is_pure(value, seen)
        elif isinstance(value, types.ModuleType):
            is_harmless = _is_pure_module(value.__name__)
        elif name in space:
            is_harmless = isinstance(value, _DEFINITIONS) and _is_pure_module(value.__module__ or "")
        else:
            is_harmless = name in _PURE_BUILTINS
        if not is_harmless:
            return False
    return True


def _is_pure_module(name: str) -> bool:
    return name.partition(".")[0] in _PURE_MODULES


test_evidence.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it by its name


def collection_evidence(
    collector: pytest.Collector, report: pytest.CollectReport, project: ProjectMap
) -> Facts:
    """Return the facts of a failed collection, from the error in the report's ``call``."""
    call = cast("pytest.CallInfo[Any] | None", getattr(report, "call", None))
    error = call.excinfo.value if call is not None and call.excinfo is not None else None
    return _evidence(EvidenceKind.COLLECTION, Phase.COLLECT, error, project, collector, report)


def startup_evidence(error: BaseException, project: ProjectMap) -> Facts:
    """Return the facts of an error that prevented or aborted the session."""
    return _evidence(EvidenceKind.SESSION, Phase.SESSION, error, project)


def _evidence(
    kind: EvidenceKind,
    phase: Phase | None,
    error: BaseException | None,
    project: ProjectMap,
    node: pytest.Item | pytest.Collector | None = None,
    report: pytest.TestReport | pytest.CollectReport | None = None,
) -> Facts:
    """Return the facts of any failure; ``node`` and ``report`` are those of a test or a collector.

    Without an error, the first line of pytest's own report is the headline.
    """
    project = _with_test_file_of(node, project)
    chain, leaves = exception_facts(error, project) if error is not None else ((), ())
    facts = Facts() if report is None else _report_facts(report, project)
    first = next((line.strip() for line in (facts.longrepr or "").splitlines() if line.strip()), "")
    facts |= {
        "kind": kind,
        "phase": phase,
        "exceptions": chain,
        "exceptions_in_group": leaves,
        "headline": headline(chain[0]) if chain else readable(first, _LONGEST_HEADLINE),
        "first_party": tuple(sorted(project.first_party)),
        "test_packages": tuple(sorted(project.test_packages)),
        "subjects": subjects_of(chain_of(error)[0], project) if error is not None and report else (),
    }
    return facts


def _report_facts(report: pytest.TestReport | pytest.CollectReport, project: ProjectMap) -> Facts:
    """Return a report's text and captured output; of long texts the end, where pytest shows the error."""
    try:
        rendering = str(report.longrepr or "")
    except Exception as failure:  # rendering calls repr() of test objects
        rendering = f"<rendering raised {type(failure).__name__}>"

    def output(stream: str) -> str:
        text = "".join(text for title, text in report.sections if title.startswith(f"Captured {stream}"))
        # Paths in printed tracebacks become relative, as those of all other frames are.
        text = text[-_LONGEST_OUTPUT:].replace(f'File "{project.root}{os.sep}', 'File "')
        return readable(text, _LONGEST_OUTPUT)

    return Facts(
        longrepr=readable(rendering[-_LONGEST_RENDERING:], _LONGEST_RENDERING),
        stdout_tail=output("stdout"),
        stderr_tail=output("stderr"),
    )


def headline(error: Facts) -> str:
    """Return the one-line summary of an error: ``AssertionError: assert 32.1 == 28.5``.

    If the assertion has a message of its own, the compared values follow it in parentheses.
    """
    lines = [line for line in error.message.splitlines() if line.strip()]
    first = lines[0].strip() if lines else ""
    compared = next((line.strip() for line in lines[1:] if line.startswith("assert ")), "")
    text = f"{first} ({compared})" if compared and not first.startswith("assert ") else first
    text = _ADDRESS.sub("", text)  # differs in each run
    return readable(f"{error.type}: {text}" if text else error.type, _LONGEST_HEADLINE)


def _with_test_file_of(node: pytest.Item | pytest.Collector | None, project: ProjectMap) -> ProjectMap:
    """Return the map with the file of a collected node as a test file, whatever its name."""
    # Not doctests, which are collected from product modules, and not the __init__.py of packages.
    is_python = isinstance(node, (pytest.Function, pytest.Class, pytest.Module))
    if is_python and not isinstance(node, pytest.Package):
        real = os.path.realpath(node.path)
        if not project.is_test(real):
            return project.with_tests([real])
    return project


def _is_timeout(chain: tuple[Facts, ...]) -> bool:
    """Return whether pytest-timeout raised the error."""
    frames = chain[0].frames[-5:] if chain else ()
    is_plugin = any(
        each.module == "pytest_timeout" or each.path.endswith("pytest_timeout.py") for each in frames
    )
    return is_plugin and _TIMEOUT_MESSAGE.match(chain[0].message) is not None


def _names(names: Iterable[object]) -> tuple[str, ...]:
    """Return the fixture names that are texts, clipped and bounded."""
    return tuple(readable(name, 200) for name in names if isinstance(name, str))[:_MOST_FIXTURES]


def _known_fixtures(error: Any) -> tuple[str, ...]:
    """Return the names of available fixtures, if the error is a failed fixture lookup.

    May raise, as the names are only in pytest's private API.
    """
    if not isinstance(error, pytest.FixtureLookupError):
        return ()
    manager: Any = error.request._fixturemanager
    # Only newer versions of pytest tell which fixtures are visible for the test.
    if hasattr(manager, "_get_all_fixture_defs_for_node"):
        node = error.request._pyfuncitem.parent
        found = {definition.argname for definition in manager._get_all_fixture_defs_for_node(node)}
    else:
        found = set(manager._arg2fixturedefs)
    return tuple(sorted(_names(found)))


# -- its exceptions ----------------------------------------------------------------------------------


def exception_facts(
    error: BaseException, project: ProjectMap
) -> tuple[tuple[Facts, ...], tuple[Facts, ...]]:
    """Return facts on the chain of exceptions, and on the leaves of all exception groups in it.

    The first of the chain is the exception that surfaced, the next ones are its causes or contexts.
    """
    chain = chain_of(error)
    leaves = [leaf for link in chain for leaf in _leaves_of(link)]
    return tuple(_fact(link, project) for link in chain), tuple(_fact(leaf, project) for leaf in leaves)


def chain_of(exception: BaseException) -> tuple[BaseException, ...]:
    """Return the exception and its causes or contexts in order, without framework wrappers."""
    chain: list[BaseException] = []
    seen: set[int] = set()
    current: BaseException | None = exception
    while current is not None and id(current) not in seen and len(chain) < LONGEST_CHAIN:
        seen.add(id(current))
        inner = _wrapped(current)
        if inner is not None and id(inner) not in seen:
            current = inner
            continue
        chain.append(current)
        # As Python prints them: the cause, else the context unless "raise ... from None" suppresses it.
        cause, context = current.__cause__, current.__context__
        current = cause if cause is not None or current.__suppress_context__ else context
    return tuple(chain) or (exception,)


def _leaves_of(exception: BaseException) -> tuple[BaseException, ...]:
    """Return the leaves of a nested exception group; empty for other exceptions."""
    leaves: list[BaseException] = []
    seen = {id(exception)}
    pending = deque(_members(exception))
    while pending and len(leaves) < MOST_LEAVES:
        member = pending.popleft()
        if id(member) in seen:
            continue
        seen.add(id(member))
        inner = _wrapped(member)
        member = member if inner is None else inner
        members = _members(member)
        if members:
            pending.extend(members)
        else:
            leaves.append(member)
    return tuple(leaves)


def _fact(exception: BaseException, project: ProjectMap) -> Facts:
    """Return all facts on one exception. Never raises.

    A reader of :data:`_READERS` may replace the message and the frames by better ones.
    """
    kind = type(exception)
    frames = tuple(_frames_of(exception.__traceback__, project))
    details = guarded(lambda: _details(exception, project), cast("dict[str, Any]", {}))
    own_frames: tuple[Facts, ...] = details.pop("frames", ())
    return Facts(
        type=readable(kind.__name__, 200),
        qualified=_qualified(kind),
        bases=tuple(_qualified(base) for base in kind.__mro__[1:-1]),  # without itself and object
        message=details.pop("message", None) or message_of(exception),
        frames=own_frames or frames,
        **details,
    )


def _frames_of(traceback: types.TracebackType | None, project: ProjectMap) -> Iterator[Facts]:
    """Yield a traceback's frames, outermost first; of a deep one only the first and last frames."""
    entries = list(walk_tb(traceback))
    # Leading frames of pytest are always the same, and would be two thirds of a large journal. They are
    # dropped up to the first frame of another side: those further inside belong to the failure.
    sides = (_side(frame, project) for frame, _ in entries)
    del entries[: next((at for at, side in enumerate(sides) if side is not Side.FRAMEWORK), 0)]
    if len(entries) > FIRST_FRAMES + LAST_FRAMES:
        entries[FIRST_FRAMES:-LAST_FRAMES] = []
    for frame, line in entries:
        yield _frame(frame.f_code, line, frame.f_globals, project)


def message_of(exception: BaseException) -> str:
    """Return ``str(exception)``, clipped; safe against a misbehaving ``__str__``."""
    try:
        return readable(str(exception))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # pytest.skip() and SystemExit included
        return f"<__str__ raised {type(error).__name__}>"


def _wrapped(exception: BaseException) -> BaseException | None:
    """Return the exception inside a wrapper of pytest or doctest; ``None`` if it is no wrapper."""
    name = _qualified(type(exception))
    if name == "doctest.UnexpectedException":
        info = getattr(exception, "exc_info", None)
        inner = cast("tuple[object, ...]", info)[1] if isinstance(info, tuple) else None
    elif name.startswith(("_pytest.", "pytest.")) and name.rpartition(".")[2] in _WRAPPERS:
        inner = getattr(exception, "cause", None) or exception.__cause__
    else:
        return None
    return inner if isinstance(inner, BaseException) else None


def _members(exception: BaseException) -> tuple[BaseException, ...]:
    """Return the direct members of an exception group, or of the multiple failures of a doctest."""
    if isinstance(exception, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", exception)
        return group.exceptions
    failures = getattr(exception, "failures", None)
    if _qualified(type(exception)) == "_pytest.doctest.MultipleDoctestFailures" and failures:
        return tuple(cast("Iterable[BaseException]", failures))
    return ()


# -- readers of single exception types ---------------------------------------------------------------


def _details(exception: BaseException, project: ProjectMap) -> dict[str, Any]:
    """Return the further facts that the reader of the nearest known base class finds. May raise."""
    readers = (_READERS.get(_qualified(base)) for base in type(exception).__mro__)
    reader = next(filter(None, readers), None)
    return {} if reader is None else reader(exception, project)


def _import_error(exception: ImportError, project: ProjectMap) -> dict[str, Any]:
    """Return the module that is missing, or the one that lacks a name.

    ``path`` is where a missing module of the project exists, though it cannot be imported; ``place`` is the
    file that would have to be created.
    """
    name = exception.name if isinstance(exception.name, str) else None
    if isinstance(exception, ModuleNotFoundError):
        own = name is not None and name.partition(".")[0] in project.first_party | project.test_packages
        if not own or name is None:
            return {"name": name, "path": None}
        package, _, module = name.rpartition(".")
        # A source folder before the package is part of the path that would have to be created.
        folder = (project.locate(package) or "").removesuffix("/__init__.py") if package else ""
        place = f"{folder}/{module}.py" if folder and not folder.endswith(".py") else None
        return {"name": name, "path": project.locate(name), "place": place}
    path = exception.path if isinstance(exception.path, str) else None
    return {
        "name": name,
        "path": readable(project.relative(path)) if path else None,
        "object_type": f"module {name}" if name else None,
        "object_side": project.side(path, name) if path else None,
    }


def _attribute_error(exception: AttributeError, project: ProjectMap) -> dict[str, Any]:
    """Return the missing attribute, the type of the object that lacks it, and who owns that type.

    If a property raised the error, no attribute is missing, and the property is the last frame.
    """
    if not isinstance(exception.name, str):
        return {}
    value = exception.obj
    # After an AttributeError of a property, Python calls __getattr__, whose error replaces it.
    member = inspect.getattr_static(type(value), exception.name, None)
    code = _code_of(getattr(member, "fget", getattr(member, "func", None)))
    raising = [frame.f_code for frame, _ in walk_tb(exception.__traceback__)]
    is_fallback = bool(raising) and raising[-1].co_name == "__getattr__"
    if code is not None and is_fallback and all(each is not code for each in raising):
        frames = tuple(_frames_of(exception.__traceback__, project))
        cause = f"property {readable(exception.name, 300)} raises AttributeError"
        own = _frame(code, None, {"__name__": type(value).__module__}, project)
        return {"message": f"{message_of(exception)} ({cause})", "frames": (*frames, own)}
    if isinstance(value, types.ModuleType):
        # By vars(): attribute access could call the module's own __getattr__.
        module = str(vars(value).get("__name__", "?"))
        shown, file = f"module {module}", vars(value).get("__file__")
    else:
        kind = value if isinstance(value, type) else type(value)
        module = str(kind.__module__)
        shown = f"class {_qualified(kind)}" if isinstance(value, type) else _qualified(kind)
        file = getattr(sys.modules.get(module), "__file__", None)
    if isinstance(file, str):
        side = project.side(file, module)
    elif module.partition(".")[0] in sys.builtin_module_names:
        side = Side.STDLIB
    else:
        side = project.side("<module>", module)
    return {"name": readable(exception.name, 300), "object_type": shown, "object_side": side}


def _syntax_error(exception: SyntaxError, project: ProjectMap) -> dict[str, Any]:
    """Return the place of a syntax error; ``path`` is in angle brackets if it names no file."""
    filename = exception.filename
    if filename is None and (entries := list(walk_tb(exception.__traceback__))):
        # Python names no file with a null byte; ast.parse(), which pytest calls for tests, knows it.
        last = entries[-1][0]
        filename = last.f_locals.get("filename") if _module_name(last.f_globals) == "ast" else None
    if not isinstance(filename, str) or filename.startswith("<"):
        return {"path": filename if isinstance(filename, str) else None, "line": exception.lineno}
    if not Path(filename).is_file():  # a name that was invented for compile()
        return {"path": f"<{readable(filename)}>", "line": exception.lineno}
    return {
        "message": readable(exception.msg),
        "path": readable(project.relative(filename)),
        "line": exception.lineno,
        "object_side": project.side(filename),
    }


def _os_error(exception: OSError, project: ProjectMap) -> dict[str, Any]:
    """Return the error number and the path, relative to the root if it lies below."""
    name: Any = exception.filename
    if isinstance(name, bytes):
        name = name.decode("utf-8", "backslashreplace")
    given = path = str(name) if isinstance(name, str) or hasattr(name, "__fspath__") else None
    if path is not None and ("/" in path or "\\" in path):
        path = project.relative(path)
    number = exception.errno if isinstance(exception.errno, int) else None
    found: dict[str, Any] = {"errno": number, "path": path and readable(path)}
    if isinstance(exception, FileNotFoundError) and given and path and not os.path.isabs(given):
        found["nearest"] = guarded(lambda: _in_other_folders(path, exception, project), ())
    return found


def _in_other_folders(path: str, exception: OSError, project: ProjectMap) -> tuple[str, ...]:
    """Return the files that a relative path means in the folders around the project's code that reads it.

    There are none if the code has changed the working directory: then it has to write the file.
    """
    sides = ((frame, _side(frame, project)) for frame, _ in walk_tb(exception.__traceback__))
    readers = [frame.f_code.co_filename for frame, side in sides if side in _OF_PROJECT]
    if not readers or Path.cwd() != project.root:
        return ()
    folders = PurePosixPath(project.relative(readers[-1])).parents[:-1]
    return tuple(f"{each}/{path}" for each in folders if (project.root / each / path).is_file())


def _name_error(exception: NameError, project: ProjectMap) -> dict[str, Any]:
    return {"name": exception.name if isinstance(exception.name, str) else None}


def _type_error(exception: TypeError, project: ProjectMap) -> dict[str, Any]:
    """Return which function a call did not fit, and who owns it.

    A function of the project that only other code called, as unittest calls tests, is the only frame.
    """
    # The error itself has no reference to the function; it is looked up by the name in the message.
    callee = callee_of(message_of(exception))
    entries = list(walk_tb(exception.__traceback__))
    for value in _callables(entries[-1][0], callee) if callee and entries else ():
        code = _code_of(value)
        if code is not None:
            module = str(getattr(value, "__module__", "") or "")
            side = project.side(code.co_filename, module)
            found: dict[str, Any] = {
                "object_type": f"function {readable(callee, 300)}",
                "object_side": side,
            }
            calling = {_side(frame, project) for frame, _ in entries}
            if side in _OF_PROJECT and calling.isdisjoint(_OF_PROJECT):
                found["frames"] = (_frame(code, code.co_firstlineno, {"__name__": module}, project),)
            return found
    return {}


def _callables(frame: types.FrameType, qualname: str) -> Iterator[object]:
    """Yield functions with that qualified name that the frame's code can refer to."""
    owner, _, name = qualname.rpartition(".")
    for value in _named_values(frame):
        function = value.__func__ if isinstance(value, types.MethodType) else value
        if isinstance(function, types.FunctionType) and function.__qualname__ == qualname:
            yield function
        kind = value if isinstance(value, type) else type(value)
        if owner and any(base.__qualname__ == owner for base in kind.__mro__):
            # Plain getattr() would execute descriptors and metaclasses of the project.
            member = inspect.getattr_static(kind, name, None)
            member = getattr(member, "__func__", member)
            if isinstance(member, types.FunctionType):
                yield member


def _doctest_failure(exception: Any, project: ProjectMap) -> dict[str, Any]:
    """Return the example that failed, with its file and line, and what it printed instead."""
    test, example = exception.test, exception.example
    wanted, got = str(example.want).strip() or "nothing", str(exception.got).strip() or "nothing"
    return {
        "name": str(test.name),
        "path": readable(project.relative(str(test.filename))) if test.filename else None,
        "line": (test.lineno or 0) + example.lineno + 1,
        "message": readable(f"{str(example.source).strip()} gave {got} where {wanted} is expected"),
    }


def _fixture_lookup(exception: Any, project: ProjectMap) -> dict[str, Any]:
    """Return the missing fixture, and as only frame the test or fixture that requests it."""
    # pytest raises the error in its own code, so that the traceback shows nothing of the project.
    name, stack = exception.argname, exception.fixturestack
    requester = stack[-1].func if stack else exception.request._pyfuncitem.obj
    code = _code_of(requester)
    frames: tuple[Facts, ...] = ()
    if code is not None:
        frames = (_frame(code, code.co_firstlineno, getattr(requester, "__globals__", {}), project),)
    message = exception.msg or f"fixture '{name}' not found"
    return {"name": str(name) if name else None, "message": readable(message), "frames": frames}


_READERS: dict[str, Callable[[Any, ProjectMap], dict[str, Any]]] = {
    "builtins.ImportError": _import_error,
    "builtins.AttributeError": _attribute_error,
    "builtins.SyntaxError": _syntax_error,
    "builtins.OSError": _os_error,
    "builtins.NameError": _name_error,
    "builtins.TypeError": _type_error,
    "doctest.DocTestFailure": _doctest_failure,
    "_pytest.fixtures.FixtureLookupError": _fixture_lookup,
}
"""Readers by qualified name of the exception; a reader serves the derived classes, too."""


# -- frames, and what they name ----------------------------------------------------------------------


def _frame(code: types.CodeType, line: int | None, names: dict[str, Any], project: ProjectMap) -> Facts:
    """Return the facts on one frame; ``names`` are its globals. Without a line, that of its beginning."""
    filename, module = code.co_filename, _module_name(names)
    source = guarded(lambda: linecache.getline(filename, line, names).strip(), "") if line else ""
    return Facts(
        path=readable(project.relative(filename)),
        line=line or code.co_firstlineno,
        function=readable(code.co_qualname, 300),
        module=readable(module, 300) or None,
        side=project.side(filename, module),
        source=readable(source, _LONGEST_SOURCE) or None,
    )


def subjects_of(exception: BaseException, project: ProjectMap) -> tuple[Facts, ...]:
    """Return the definitions of the product functions and classes that the raising test frame names.

    That frame is the innermost one in a test file. Empty if the error did not pass through any.
    """
    frames = [frame for frame, _ in walk_tb(exception.__traceback__) if _side(frame, project) is Side.TEST]
    # An instance counts as its class.
    found = [
        guarded(lambda value=value: definition(value, project) or definition(type(value), project), None)
        for frame in frames[-1:]
        for value in _named_values(frame)
    ]
    return tuple({(each.path, each.line): each for each in found if each}.values())[:_MOST_SUBJECTS]


def definition(value: object, project: ProjectMap) -> Facts | None:
    """Return where a product function or class is defined; ``None`` for anything else. May raise."""
    code = _code_of(value)
    if code is None:
        return None
    module = str(getattr(value, "__module__", "") or "")
    found = _frame(code, None, {"__name__": module}, project)
    if found.side is not Side.PRODUCT:
        return None
    if isinstance(value, type):
        name = readable(value.__qualname__, 300)
        found.update(function=name, source=f"class {name}")
        if found.path.startswith("<"):  # the generated __init__ of a dataclass
            file, line = inspect.getfile(value), inspect.getsourcelines(value)[1]
            found.update(path=readable(project.relative(file)), line=line)
    return found


def _named_values(frame: types.FrameType) -> Iterator[object]:
    """Yield the globals that the frame's code names, its local values, and named attributes of modules."""
    # For "import shop", the code names both shop and, as an attribute of it, the function that it calls.
    names = frame.f_code.co_names[:_MOST_NAMES]
    values = [frame.f_globals[name] for name in names if name in frame.f_globals]
    for value in (*values, *list(frame.f_locals.values())[:_MOST_NAMES]):
        yield value
        if isinstance(value, types.ModuleType):
            yield from (vars(value)[name] for name in names if name in vars(value))


def _code_of(value: object) -> types.CodeType | None:
    """Return the code of a function, method, or of a class's constructor or first function. May raise."""
    # A class has no code of its own; its functions lie in the same file.
    if isinstance(value, type):
        own = vars(value)
        members = (own.get("__init__"), getattr(own.get("__new__"), "__func__", None), *own.values())
        return next((m.__code__ for m in members if isinstance(m, types.FunctionType)), None)
    function = inspect.unwrap(value) if callable(value) else value
    function = getattr(function, "__func__", function)
    return function.__code__ if isinstance(function, types.FunctionType) else None


def _side(frame: types.FrameType, project: ProjectMap) -> Side:
    return project.side(frame.f_code.co_filename, _module_name(frame.f_globals))


def _module_name(names: dict[str, Any]) -> str:
    module = names.get("__name__")
    return module if isinstance(module, str) else ""


def _qualified(kind: type) -> str:
    return readable(f"{kind.__module__}.{kind.__qualname__}", 300)


# -- reading of untrusted objects --------------------------------------------------------------------


def readable(text: object, limit: int = LONGEST_MESSAGE) -> str:
    """Return text without lone surrogates, clipped to ``limit`` characters: every encoder accepts it.

    Anything but a string is returned as an empty one.
    """
    string = text if isinstance(text, str) else ""
    if len(string) > limit:
        string = f"{string[:limit]}… ({len(string)} characters)"
    return string.encode("utf-8", "backslashreplace").decode("utf-8")


def guarded(ask: Callable[[], Answer], otherwise: Answer) -> Answer:
    """Return ``ask()``, or ``otherwise`` if it raises: an object that raises costs its own fact only."""
    try:
        return ask()
    except Exception:
        return otherwise
