"""Exceptions to facts: the chain, the leaves of groups, the frames, whatever hostile objects take part."""

from __future__ import annotations

import inspect
import linecache
import sys
import types
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.model.kinds import Side
from planner.text.python_messages import callee_of
from pytest_planverify.observe import facts
from pytest_planverify.observe.hostile import code_of, guarded, module_name, readable, within_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_planverify.observe.facts import Facts
    from pytest_planverify.observe.project_map import ProjectMap

LONGEST_CHAIN = 10
MOST_LEAVES = 20
FIRST_FRAMES, LAST_FRAMES = 10, 40
_LONGEST_SOURCE = 300
_MOST_NAMES = 200
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


def fact(exception: BaseException, project: ProjectMap) -> Facts:
    """All that can be told about one exception. Never raises."""
    kind = type(exception)
    frames = tuple(frames_of(exception.__traceback__, project))
    details = guarded(lambda: _details(exception, project), cast("dict[str, Any]", {}))
    own_frames: tuple[Facts, ...] = details.pop("frames", ())
    return facts.exception_fact(
        type=readable(kind.__name__, 200),
        qualified=_qualified(kind),
        bases=tuple(_qualified(base) for base in kind.__mro__[1:-1]),
        message=details.pop("message", None) or message_of(exception),
        frames=own_frames or frames,
        **details,
    )


def frames_of(traceback: types.TracebackType | None, project: ProjectMap) -> Iterator[Facts]:
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
        return readable(guarded(lambda: str(exception), ""))
    return readable(within_limit(lambda: str(exception)))


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
        group = cast("BaseExceptionGroup[BaseException]", exception)
        return group.exceptions
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
    return (
        Side.STDLIB
        if top in sys.builtin_module_names or top == "builtins"
        else project.side("<module>", module)
    )


def _syntax_error(exception: SyntaxError, project: ProjectMap) -> dict[str, Any]:
    filename = exception.filename
    if not isinstance(filename, str) or filename.startswith("<"):
        return {"path": filename if isinstance(filename, str) else None, "line": exception.lineno}
    if not Path(filename).is_file():  # a name that the compiling code made up
        return {"path": f"<{readable(filename)}>", "line": exception.lineno}
    return {
        "message": readable(exception.msg),
        "path": readable(project.relative(filename)),
        "line": exception.lineno,
        "object_side": project.side(filename),
    }


def _os_error(exception: OSError, project: ProjectMap) -> dict[str, Any]:
    filename = exception.filename
    if isinstance(filename, bytes):
        filename = filename.decode("utf-8", "backslashreplace")
    name = str(filename) if isinstance(filename, str) or hasattr(filename, "__fspath__") else None
    bare = name is not None and "/" not in name and "\\" not in name
    path = name if bare or name is None else project.relative(name)
    return {
        "errno": exception.errno if isinstance(exception.errno, int) else None,
        "path": path and readable(path),
    }


def _name_error(exception: NameError, project: ProjectMap) -> dict[str, Any]:
    return {"name": exception.name if isinstance(exception.name, str) else None}


def _type_error(exception: TypeError, project: ProjectMap) -> dict[str, Any]:
    """Whose the function is that a call did not fit, looked up by the name in the message."""

    callee = callee_of(message_of(exception))
    traceback = exception.__traceback__
    if callee is None or traceback is None:
        return {}
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    for value in _callables(traceback.tb_frame, callee):
        code = code_of(value)
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
        "message": readable(
            f"{str(example.source).strip()} gave {got or 'nothing'} where {wanted or 'nothing'} stands"
        ),
    }


def _fixture_lookup(exception: Any, project: ProjectMap) -> dict[str, Any]:
    name = exception.argname
    asking = (
        exception.fixturestack[-1].func if exception.fixturestack else exception.request._pyfuncitem.obj
    )
    code = code_of(asking)
    frames: tuple[Facts, ...] = ()
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


def _frame(code: types.CodeType, line: int | None, names: dict[str, Any], project: ProjectMap) -> Facts:
    filename, module = code.co_filename, module_name(names)
    source = guarded(lambda: linecache.getline(filename, line or 0, names).strip(), "")
    return facts.frame(
        path=readable(project.relative(filename)),
        line=line or code.co_firstlineno,
        function=readable(code.co_qualname, 300),
        module=readable(module, 300) or None,
        side=project.side(filename, module),
        source=readable(source, _LONGEST_SOURCE) or None,
    )


def _qualified(kind: type) -> str:
    return readable(f"{kind.__module__}.{kind.__qualname__}", 300)
