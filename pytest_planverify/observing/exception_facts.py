"""Exceptions to facts: the chain, the leaves of groups and the frames, whatever hostile objects take part."""

from __future__ import annotations

import inspect
import linecache
import sys
import threading
import types
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar, cast

from planner.model.evidence import ExceptionFact, Frame, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_planverify.observing.project_map import ProjectMap

T = TypeVar("T")

LONGEST_MESSAGE = 4_000
LONGEST_CHAIN = 10
MOST_LEAVES = 20
FIRST_FRAMES, LAST_FRAMES = 10, 40
_MESSAGE_SECONDS = 1.0
_LONGEST_SOURCE = 300
_MOST_NAMES = 200
T = TypeVar("T")
_PLAIN = (str, int, float, bool, bytes, type(None))
_ENVELOPES = frozenset(
    {
        "_pytest.nodes.CollectError",
        "_pytest.nodes.Collector.CollectError",
        "_pytest.config.ConftestImportFailure",
        "_pytest.warning_types.PytestUnhandledThreadExceptionWarning",
        "pytest.PytestUnhandledThreadExceptionWarning",
        "_pytest.warning_types.PytestUnraisableExceptionWarning",
        "pytest.PytestUnraisableExceptionWarning",
    }
)
"""Exceptions that only carry another one."""


def chain_of(exception: BaseException) -> tuple[BaseException, ...]:
    """The exception, then its cause or context, and so on; wrappers of the framework are taken off."""
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
        current = _next(current)
    return tuple(chain) or (exception,)


def leaves_of(exception: BaseException) -> tuple[BaseException, ...]:
    """The leaves of an exception group, and of a group's groups; nothing for another exception."""
    leaves: list[BaseException] = []
    seen = {id(exception)}
    waiting = deque(_members(exception))
    while waiting and len(leaves) < MOST_LEAVES:
        member = waiting.popleft()
        if id(member) in seen:
            continue
        seen.add(id(member))
        inner = _wrapped(member)
        member = member if inner is None else inner
        members = _members(member)
        if members:
            waiting.extend(members)
        else:
            leaves.append(member)
    return tuple(leaves)


def fact(exception: BaseException, project: ProjectMap) -> ExceptionFact:
    """All that can be told about one exception. Never raises."""
    kind = type(exception)
    frames = tuple(frames_of(exception.__traceback__, project))
    details = _guarded(lambda: _details(exception, project), cast("dict[str, Any]", {}))
    own_frames: tuple[Frame, ...] = details.pop("frames", ())
    return ExceptionFact(
        type=readable(kind.__name__, 200),
        qualified=_qualified(kind),
        bases=tuple(_qualified(base) for base in kind.__mro__[1:-1]),
        message=details.pop("message", None) or message_of(exception),
        frames=own_frames or frames,
        **details,
    )


def frames_of(traceback: types.TracebackType | None, project: ProjectMap) -> Iterator[Frame]:
    """Outermost call first; of a deep traceback the first and the last frames."""
    first: list[types.TracebackType] = []
    last: deque[types.TracebackType] = deque(maxlen=LAST_FRAMES)
    while traceback is not None:
        if len(first) < FIRST_FRAMES:
            first.append(traceback)
        else:
            last.append(traceback)
        traceback = traceback.tb_next
    for entry in (*first, *last):
        yield _frame(entry.tb_frame.f_code, entry.tb_lineno, entry.tb_frame.f_globals, project)


def message_of(exception: BaseException) -> str:
    """``str(exception)``, clipped, and safe from what a ``__str__`` may do."""
    plain = isinstance(type(exception).__str__, (types.WrapperDescriptorType, types.MethodDescriptorType))
    if plain and all(type(argument) in _PLAIN for argument in exception.args):
        return readable(_guarded(lambda: str(exception), ""))
    return readable(_within_limit(lambda: str(exception)))


def readable(text: object, limit: int = LONGEST_MESSAGE) -> str:
    """Text that every encoder takes: no lone surrogates, and no longer than a limit."""
    string = text if isinstance(text, str) else ""
    if len(string) > limit:
        string = f"{string[:limit]}… ({len(string)} characters)"
    return string.encode("utf-8", "backslashreplace").decode("utf-8")


def subjects_of(exception: BaseException, project: ProjectMap) -> tuple[Frame, ...]:
    """The product's functions and classes that the raising test frame names, where they are defined."""
    raising: types.FrameType | None = None
    traceback = exception.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if project.side(code.co_filename, _module_name(traceback.tb_frame.f_globals)) is Side.TEST:
            raising = traceback.tb_frame
        traceback = traceback.tb_next
    if raising is None:
        return ()
    found = {(frame.path, frame.line): frame for frame in _guarded(lambda: tuple(_named(raising, project)), ())}
    return tuple(found.values())[:5]


def definition(value: object, project: ProjectMap) -> Frame | None:
    """Where a function or class of the product is defined, ``None`` for anything else."""
    code = _code_of(value)
    if code is None:
        return None
    module = str(getattr(value, "__module__", "") or "")
    if project.side(code.co_filename, module) is not Side.PRODUCT:
        return None
    function = value.__qualname__ if isinstance(value, type) else code.co_qualname
    return Frame(
        path=readable(project.relative(code.co_filename)),
        line=code.co_firstlineno,
        function=readable(function, 300),
        module=module or None,
        side=Side.PRODUCT,
    )


def _code_of(value: object) -> types.CodeType | None:
    if isinstance(value, type):
        members = (vars(value).get("__init__"), *vars(value).values())
        return next((m.__code__ for m in members if isinstance(m, types.FunctionType)), None)
    function = inspect.unwrap(value) if callable(value) else value
    function = getattr(function, "__func__", function)
    return function.__code__ if isinstance(function, types.FunctionType) else None


def _named(frame: types.FrameType, project: ProjectMap) -> Iterator[Frame]:
    """Definitions behind the names in the frame's code: globals, attributes of its modules, kinds of its locals."""
    code = frame.f_code
    values: list[object] = []
    for name in code.co_names[:_MOST_NAMES]:
        value = frame.f_globals.get(name)
        if isinstance(value, types.ModuleType):
            values.extend(vars(value).get(attribute) for attribute in code.co_names[:_MOST_NAMES])
        elif value is not None:
            values.append(value)
    for value in list(frame.f_locals.values())[:_MOST_NAMES]:
        values.append(value if isinstance(value, (type, types.FunctionType)) else type(value))
    for value in values:
        if found := _guarded(lambda value=value: definition(value, project), None):
            yield found


def _wrapped(exception: BaseException) -> BaseException | None:
    """What an envelope carries."""
    name = _qualified(type(exception))
    if name == "doctest.UnexpectedException":
        info = getattr(exception, "exc_info", None)
        inner = cast("tuple[object, ...]", info)[1] if isinstance(info, tuple) else None
    elif name in _ENVELOPES:
        inner = getattr(exception, "cause", None) or exception.__cause__
    else:
        return None
    return inner if isinstance(inner, BaseException) else None


def _next(exception: BaseException) -> BaseException | None:
    if exception.__cause__ is not None:
        return exception.__cause__
    return None if exception.__suppress_context__ else exception.__context__


def _members(exception: BaseException) -> tuple[BaseException, ...]:
    if isinstance(exception, BaseExceptionGroup):
        return tuple(cast("Iterable[BaseException]", exception.exceptions))
    failures = getattr(exception, "failures", None)
    if _qualified(type(exception)) == "_pytest.doctest.MultipleDoctestFailures" and failures:
        return tuple(cast("Iterable[BaseException]", failures))
    return ()


def _details(exception: BaseException, project: ProjectMap) -> dict[str, Any]:
    """What exceptions of some types say besides their message."""
    for kind, reader in _READERS:
        if isinstance(exception, kind):
            return reader(exception, project)
    name = _qualified(type(exception))
    if name == "doctest.DocTestFailure":
        return _doctest(exception, project)
    if name == "_pytest.fixtures.FixtureLookupError":
        return _fixture_lookup(exception, project)
    return {}


def _import_error(exception: ImportError, project: ProjectMap) -> dict[str, Any]:
    name = exception.name if isinstance(exception.name, str) else None
    if isinstance(exception, ModuleNotFoundError):
        own = name is not None and name.partition(".")[0] in project.first_party | project.test_packages
        return {"name": name, "path": project.locate(name) if own and name else None}
    path = exception.path if isinstance(exception.path, str) else None
    return {
        "name": name,
        "path": readable(project.relative(path)) if path else None,
        "object_type": f"module {name}" if name else None,
        "object_side": project.side(path, name) if path else None,
    }


def _attribute_error(exception: AttributeError, project: ProjectMap) -> dict[str, Any]:
    name = exception.name if isinstance(exception.name, str) else None
    if name is None:
        return {}
    object_type, side = _kind_of(exception.obj, project)
    return {"name": readable(name, 300), "object_type": object_type, "object_side": side}


def _kind_of(value: object, project: ProjectMap) -> tuple[str, Side]:
    if isinstance(value, types.ModuleType):
        module = str(vars(value).get("__name__", "?"))
        file = vars(value).get("__file__")
        return f"module {module}", _module_side(module, file, project)
    kind = value if isinstance(value, type) else type(value)
    module = str(kind.__module__)
    name = _qualified(kind)
    file = getattr(sys.modules.get(module), "__file__", None)
    return (f"class {name}" if isinstance(value, type) else name), _module_side(module, file, project)


def _module_side(module: str, file: object, project: ProjectMap) -> Side:
    if isinstance(file, str):
        return project.side(file, module)
    top = module.partition(".")[0]
    return Side.STDLIB if top in sys.builtin_module_names or top == "builtins" else project.side("<module>", module)


def _syntax_error(exception: SyntaxError, project: ProjectMap) -> dict[str, Any]:
    filename = exception.filename
    if not isinstance(filename, str) or filename.startswith("<"):
        return {"path": filename if isinstance(filename, str) else None, "line": exception.lineno}
    exists = linecache.getline(filename, 1) != "" or linecache.checkcache(filename) is None
    return {
        "message": readable(exception.msg) if isinstance(exception.msg, str) else None,
        "path": readable(project.relative(filename)),
        "line": exception.lineno,
        "object_side": project.side(filename) if exists else None,
    }


def _os_error(exception: OSError, project: ProjectMap) -> dict[str, Any]:
    filename = exception.filename
    if isinstance(filename, bytes):
        filename = filename.decode("utf-8", "backslashreplace")
    name = str(filename) if isinstance(filename, str) or hasattr(filename, "__fspath__") else None
    bare = name is not None and "/" not in name and "\\" not in name
    path = name if bare or name is None else project.relative(name)
    return {"errno": exception.errno if isinstance(exception.errno, int) else None, "path": path and readable(path)}


def _name_error(exception: NameError, project: ProjectMap) -> dict[str, Any]:
    return {"name": exception.name if isinstance(exception.name, str) else None}


def _type_error(exception: TypeError, project: ProjectMap) -> dict[str, Any]:
    """Whose the function is that a call did not fit, looked up by the name in the message."""
    from pytest_planverify.diagnosis.rules.boundary import callee_of

    callee = callee_of(message_of(exception))
    traceback = exception.__traceback__
    if callee is None or traceback is None:
        return {}
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    for value in _callables(traceback.tb_frame, callee):
        code = _code_of(value)
        if code is not None:
            module = str(getattr(value, "__module__", "") or "")
            side = project.side(code.co_filename, module)
            return {"object_type": f"function {readable(callee, 300)}", "object_side": side}
    return {}


def _callables(frame: types.FrameType, qualname: str) -> Iterator[object]:
    """Functions of that qualified name that the frame can reach by the names in its code."""
    owner, _, name = qualname.rpartition(".")
    names = frame.f_code.co_names[:_MOST_NAMES]
    reachable = [frame.f_globals[n] for n in names if n in frame.f_globals]
    reachable += list(frame.f_locals.values())[:_MOST_NAMES]
    for value in list(reachable):
        if isinstance(value, types.ModuleType):
            reachable.extend(vars(value)[n] for n in names if n in vars(value))
    for value in reachable:
        if isinstance(value, types.FunctionType) and value.__qualname__ == qualname:
            yield value
        kind = value if isinstance(value, type) else type(value)
        if owner and any(base.__qualname__ == owner for base in kind.__mro__):
            member = inspect.getattr_static(kind, name, None)
            member = getattr(member, "__func__", member)
            if isinstance(member, types.FunctionType):
                yield member


def _doctest(exception: Any, project: ProjectMap) -> dict[str, Any]:
    test, example = exception.test, exception.example
    wanted, got = str(example.want).strip(), str(exception.got).strip()
    return {
        "name": str(test.name),
        "path": readable(project.relative(str(test.filename))) if test.filename else None,
        "line": (test.lineno or 0) + example.lineno + 1,
        "message": readable(f"{str(example.source).strip()} gave {got or 'nothing'} where {wanted or 'nothing'} stands"),
    }


def _fixture_lookup(exception: Any, project: ProjectMap) -> dict[str, Any]:
    name = exception.argname
    asking = exception.fixturestack[-1].func if exception.fixturestack else exception.request._pyfuncitem.obj
    code = _code_of(asking)
    frames: tuple[Frame, ...] = ()
    if code is not None:
        frames = (_frame(code, code.co_firstlineno, getattr(asking, "__globals__", {}), project),)
    message = exception.msg or f"fixture '{name}' not found"
    return {"name": str(name) if name else None, "message": readable(message), "frames": frames}


_READERS: tuple[tuple[type[BaseException], Callable[[Any, ProjectMap], dict[str, Any]]], ...] = (
    (ImportError, _import_error),
    (AttributeError, _attribute_error),
    (SyntaxError, _syntax_error),
    (OSError, _os_error),
    (NameError, _name_error),
    (TypeError, _type_error),
)


def _frame(code: types.CodeType, line: int | None, names: dict[str, Any], project: ProjectMap) -> Frame:
    filename, module = code.co_filename, _module_name(names)
    source = _guarded(lambda: linecache.getline(filename, line or 0, names).strip(), "")
    return Frame(
        path=readable(project.relative(filename)),
        line=line or code.co_firstlineno,
        function=readable(code.co_qualname, 300),
        module=readable(module, 300) or None,
        side=project.side(filename, module),
        source=readable(source, _LONGEST_SOURCE) or None,
    )


def _module_name(names: dict[str, Any]) -> str:
    module = names.get("__name__")
    return module if isinstance(module, str) else ""


def _qualified(kind: type) -> str:
    module = kind.__module__ if isinstance(kind.__module__, str) else "?"
    return readable(f"{module}.{kind.__qualname__}", 300)


def _guarded(ask: Callable[[], T], otherwise: T) -> T:
    try:
        return ask()
    except Exception:  # the objects asked are strangers': whatever they raise, the other facts stand
        return otherwise


def _within_limit(ask: Callable[[], str]) -> str:
    """Ask in a thread of its own: a ``__str__`` that never returns must not hold up the run."""
    answers: list[str] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # SystemExit from a __str__ included
            answers.append(f"<__str__ raised {type(error).__name__}>")

    thread = threading.Thread(target=run, daemon=True, name="exception-message")
    thread.start()
    thread.join(_MESSAGE_SECONDS)
    return answers[0] if answers else "<__str__ did not return>"
