"""What a test can change in the interpreter, in its libraries and in pytest for the tests after it.

Each entry of the tables tells one part of that state, as something that compares by content. Modules that
nobody has imported have no state; none is imported to be asked.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]  # has no stubs
import faulthandler
import gc
import logging
import os
import signal
import sys
import threading
import types
import warnings
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, cast

from pytest_planverify.observing.first_imports import FirstImports
from pytest_planverify.observing.value_readers import is_number, is_plain, module_members
from pytest_planverify.observing.values import fingerprint_of, is_library, is_library_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_IGNORED_VARIABLES = frozenset(
    {b"PYTEST_CURRENT_TEST", b"COLUMNS", b"LINES", b"PYTEST_VERSION"}
    | {b"COV_CORE_SOURCE", b"COV_CORE_CONFIG", b"COV_CORE_DATAFILE"}
)
_SIGNALS = sorted(
    number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)
)
_OFTEN_PATCHED = (
    "builtins", "datetime", "io", "json", "locale", "logging", "os", "os.path", "pathlib", "random",
    "shutil", "socket", "subprocess", "tempfile", "threading", "time", "urllib.request", "warnings",
    "zoneinfo",
)  # fmt: skip
_MADE_ON_USE = frozenset(
    {
        "tempdir",
        "_name_sequence",
        "__warningregistry__",
        "_filters_version",
        "filters",  # pytest has its own while it collects
        "_showwarnmsg_impl",
        "onceregistry",
        "_onceregistry",
    }
)
_HOOKS = (
    "excepthook", "unraisablehook", "displayhook", "breakpointhook", "pycache_prefix",
    "dont_write_bytecode", "tracebacklimit", "stdin", "stdout", "stderr",
    "__stdin__", "__stdout__", "__stderr__", "modules",
)  # fmt: skip


def process_state() -> Iterator[tuple[str, object]]:
    """Name and present state of each part that is there."""
    for name, ask in _INTERPRETER.items():
        yield name, ask()
    for name in _OFTEN_PATCHED:
        module = sys.modules.get(name)
        if module is not None:
            label = f"members of {name}" if name in _INTERPRETER or name == "random" else name
            yield label, _stamps_of(name, members_of(module))
    yield from library_state(_LIBRARIES)


def _stamps_of(name: str, members: dict[str, Any]) -> list[object]:
    """What a module binds; the same list as before where it binds the same objects."""
    known = _stamps.get(name)
    if known is None or len(members) != len(known[0]) or not all(map(is_, members.values(), known[0])):
        items = list(members.items())
        known = _stamps[name] = (
            [value for _, value in items],
            [stamp(value) for key, value in items if _may_matter(key, value)],
        )
    return known[1]


_stamps: dict[str, tuple[list[Any], list[object]]] = {}
"""By module, what it bound when it was last looked at, and what that comes to."""


def _may_matter(name: str, value: object) -> bool:
    # freezegun leaves None in the place of a function that Python no longer has.
    return name not in _MADE_ON_USE and not (name == "clock" and value is None)


def library_state(names: Iterable[str]) -> Iterator[tuple[str, object]]:
    """What modules of these names have of such state, if they are loaded."""
    for needed in names:
        name, ask = _LIBRARIES.get(needed, (needed, None))
        module = sys.modules.get(needed)
        if module is not None and ask is not None:
            try:
                yield name, ask(module)
            except Exception:  # a stand-in for the module, or another version of it: it has no such state
                continue


def pytest_state(config: Any) -> Iterator[tuple[str, object]]:
    """What tests can reach of pytest itself."""
    options = cast("dict[str, object]", vars(config.option))
    yield "pytest's options", [(name, stamp(value)) for name, value in options.items()]
    plugins = frozenset[str](config.pluginmanager._name2plugin)
    stored = sum(not _is_empty(each) for each in config.stash._storage.values())
    yield "pytest's configuration", (_names(config), stored, plugins)
    if config.pluginmanager.hasplugin("randomly"):
        yield from (("random", None), ("numpy.random", None))  # which are seeded anew before each test
    cache: object = getattr(config, "cache", None)
    session: object = config.pluginmanager.get_plugin("session")
    for name, holder in (("cache", cache), ("session", session)):
        if holder is not None:
            yield f"pytest's {name}", _names(holder)


def _is_empty(value: object) -> bool:
    """Whether it is a container that a plugin has for a test, which it empties afterwards."""
    return any(type(value) is each for each in (list, dict, set)) and not value


def _names(holder: object) -> frozenset[str]:
    return frozenset(vars(holder))


def stamp(value: object) -> object:
    """Numbers and texts by what they are, for some are made anew; all else by identity."""
    kind = type(value)
    if is_number(kind):
        return value
    if issubclass(kind, tuple):
        entries = list(tuple[object, ...].__iter__(cast("tuple[object, ...]", value)))
        return tuple(entries) if all(is_plain(each) for each in entries) else id(value)
    return id(value)


def members_of(module: object) -> dict[str, Any]:
    """What a module binds; nothing where something else stands in for one."""
    return module_members(module) if issubclass(type(module), types.ModuleType) else {}


def _environment() -> dict[bytes, bytes]:
    data = dict(getattr(os.environ, "_data", {}))
    for name in _IGNORED_VARIABLES:
        data.pop(name, None)
    return data


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "(gone)"


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _handler(number: int) -> int:
    # signal.getsignal makes an enumeration of each, at some cost
    handler = cast("object", _signal.getsignal(number))  # pyright: ignore[reportUnknownMemberType]
    return handler if isinstance(handler, int) else id(handler)


def _signals() -> object:
    timers = tuple(bool(signal.getitimer(each)[0]) for each in (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF))
    return tuple(map(_handler, _SIGNALS)), frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ())), timers


_LOGGER = attrgetter("level", "disabled", "propagate")
_QUIET_LOGGER = (0, False, True)


def _logging() -> object:
    root = logging.root
    manager = root.manager
    changed: list[object] = []
    for name, logger in list(manager.loggerDict.items()):
        if not isinstance(logger, logging.Logger):
            continue
        handlers = [id(each) for each in logger.handlers if type(each) is not logging.NullHandler]
        if handlers or logger.filters or _LOGGER(logger) != _QUIET_LOGGER:
            changed.append((name, _LOGGER(logger), handlers, list(map(id, logger.filters))))
    handlers = tuple(
        type(handler).__name__
        for handler in root.handlers
        if not type(handler).__module__.startswith("_pytest")
    )
    factories = (id(manager.logRecordFactory), id(manager.loggerClass))
    return (root.level, handlers, manager.disable, factories, dict(logging._levelToName), changed)


def _import_system() -> object:
    finders = (id(finder) for finder in sys.meta_path if type(finder) is not FirstImports)
    return tuple(finders), tuple(map(id, sys.path_hooks))


def _limits() -> object:
    digits = getattr(sys, "get_int_max_str_digits", int)()
    stack = threading.stack_size()  # which asking has reset
    if stack:
        threading.stack_size(stack)
    return sys.getrecursionlimit(), digits, sys.getswitchinterval(), stack, os.sysconf("SC_OPEN_MAX")


def _hooks() -> object:
    asynchronous = tuple(map(id, sys.get_asyncgen_hooks()))
    threads = (
        id(threading.gettrace()),
        id(threading.getprofile()),
        id(sys.getprofile()),
        id(sys.gettrace()),
    )
    return tuple(stamp(getattr(sys, name, None)) for name in _HOOKS), asynchronous, threads


def _collector() -> object:
    # A library that times collections once it is used does so for itself.
    callbacks = tuple(
        id(each)
        for each in gc.callbacks
        if type(each) is not types.FunctionType or not is_library_file(each.__code__.co_filename)
    )
    return gc.isenabled(), gc.get_threshold(), gc.get_debug(), callbacks


def _threads() -> frozenset[int]:
    return frozenset(map(id, threading.enumerate()))


_INTERPRETER: dict[str, Callable[[], object]] = {
    "sys.path": lambda: tuple(sys.path),
    "environment": _environment,
    "working directory": _working_directory,
    "umask": _umask,
    "signal handlers": _signals,
    "warning filters": lambda: tuple(warnings.filters),
    "logging": _logging,
    "import hooks": _import_system,
    "sys.argv": lambda: tuple(sys.argv),
    "limits of the interpreter": _limits,
    "hooks of the interpreter": _hooks,
    "garbage collector": _collector,
    "faulthandler": faulthandler.is_enabled,
    "threads": _threads,
}


def _event_loop(module: Any) -> object:
    policy = module._event_loop_policy
    local = getattr(policy, "_local", None)
    loop = getattr(local, "_loop", None)
    usual = policy is None or type(policy).__module__.startswith("asyncio.")
    return None if usual else id(policy), None if loop is None else (id(loop), loop.is_closed())


def _decimal(module: Any) -> object:
    context = module.getcontext()
    traps = tuple(context.traps.values())
    return (
        context.prec,
        context.rounding,
        context.Emin,
        context.Emax,
        context.capitals,
        context.clamp,
        traps,
    )


def _pickling(module: Any) -> object:
    """How types are pickled, but for what libraries say of their own as they are imported."""
    return frozenset(
        (id(kind), id(reduce))
        for kind, reduce in list(module.dispatch_table.items())
        if not is_library(_top_module(kind)) or _top_module(reduce) != _top_module(kind)
    )


def _top_module(thing: Any) -> str:
    """The package of a class or function; classes written in C hold no such name themselves."""
    name = type.__getattribute__(thing, "__module__") if isinstance(thing, type) else thing.__module__
    return str(name).partition(".")[0]


def _temporary(module: Any) -> object:
    usual = {None, "/tmp", "/var/tmp", "/usr/tmp", *map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))}
    return None if module.tempdir in usual else module.tempdir


def _numpy_random(module: Any) -> object:
    state = module._rand._bit_generator.state["state"]
    return {name: value if is_plain(value) else bytes(value) for name, value in state.items()}


_LIBRARIES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "_locale": ("locale in use", lambda module: module.setlocale(module.LC_ALL, None)),
    "asyncio.events": ("event loop", _event_loop),
    "decimal": ("decimal context", _decimal),
    "tempfile": ("temporary directory", _temporary),
    "_socket": ("time limit of sockets", lambda module: module.getdefaulttimeout()),
    "resource": ("limits of the process", lambda module: tuple(
        module.getrlimit(each) for each in (module.RLIMIT_NOFILE, module.RLIMIT_STACK, module.RLIMIT_AS)
    )),
    "csv": ("dialects of csv", lambda module: (tuple(module.list_dialects()), module.field_size_limit())),
    "mimetypes": ("types of files", lambda module: (
        module._db and [len(each) for each in (*module._db.types_map, *module._db.types_map_inv)]
    )),
    "urllib.request": ("opener of URLs", lambda module: id(module._opener)),
    "copyreg": ("pickling", _pickling),
    "xml.etree.ElementTree": ("namespaces of XML", lambda module: len(module._namespace_map)),
    "calendar": ("calendar", lambda module: module.c.firstweekday),
    "multiprocessing.context": ("way of starting processes", lambda module: id(
        module._default_context._actual_context
    )),
    "numpy.random.mtrand": ("numpy.random", _numpy_random),
    "numpy": ("numpy", lambda module: (repr(module.get_printoptions()), repr(module.geterr()))),
    "pandas._config.config": ("options of pandas", lambda module: fingerprint_of(module._global_config)),
    "matplotlib": ("settings of matplotlib", lambda module: fingerprint_of(module.rcParams)),
}  # fmt: skip
"""By the module that must have been imported: the name of its state, and how to ask for it."""
