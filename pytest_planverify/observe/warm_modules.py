"""Preloading of third-party modules, imported once by a server for all of its workers.

Preloaded modules are removed from ``sys.modules`` and served by a finder on the worker's own import. It
first asks the ordinary finders and serves a module only if they would load the same file under the same
conditions. So a project's own ``yaml.py``, or a conftest that sets ``MPLBACKEND``, has the same effect
as when the command runs alone.

An import loads other modules in turn, so modules are served in units: a module with everything that its
import loads, and with the units that these modules need. Where one of them would be another file in the
worker, the whole package is refused: it is left to the ordinary import. Extension modules cannot be loaded
a second time, so for them the worker asks to be replaced by one without preloaded modules.

The names to preload are learned: each worker reports :func:`imported_modules`, and the parent passes them
on in :attr:`~pytest_planverify.observe.spec.Start.modules`.
"""

from __future__ import annotations

import builtins
import importlib
import os
import signal
import sys
import threading
import types
import warnings
from contextlib import contextmanager, suppress
from importlib import _bootstrap  # type: ignore[attr-defined]
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import resolve_name
from typing import TYPE_CHECKING, Any, cast

from pytest_planverify.guards.tamper_observer import environment_files
from pytest_planverify.observe.read_files import new_modules

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Generator, Iterable, Sequence

MOST_MODULES = 5_000
"""Number of modules that a worker reports at most."""

_READ_BY_C = ("OMP_", "MKL_", "OPENBLAS_", "BLIS_", "NUMEXPR_", "MALLOC_", "KMP_", "LC_", "LANG", "TZ")
"""Prefixes of variables that native code reads at load time, unnoticed by ``os.environ``."""

# As in warnings.filters: action, message, category, module, line.
_Filter = tuple[Any, "re.Pattern[str] | None", type[Warning], "re.Pattern[str] | None", int]


class Unfit(Exception):
    """Raised for a module that must not be preloaded, as its import has side effects.

    These would otherwise happen once in the server instead of in each worker that imports the module.
    """

    def __init__(self, module: str, effect: str) -> None:
        super().__init__(f"{module}: importing it changes {effect}")
        self.module = module


def imported_modules() -> list[str]:
    """Return installed modules imported since the session was prepared, in import order."""
    found: list[str] = []
    for name, module in new_modules():
        spec = getattr(module, "__spec__", None)
        origin = getattr(spec, "origin", None)
        # Only modules that a finder has found under this very name can be imported again by name.
        is_found = getattr(spec, "name", None) == name and not name.startswith(
            ("pytest_planverify", "planner")
        )
        if is_found and isinstance(origin, str) and environment_files()(origin):
            found.append(name)
    return found[:MOST_MODULES]


class ModuleShelf:
    """The preloaded modules of one server; in its workers, a finder at the head of ``sys.meta_path``.

    The server calls :meth:`fill` before it forks, each worker calls :meth:`hand_out` afterwards.
    """

    def __init__(self) -> None:
        self._modules: dict[str, types.ModuleType] = {}
        self._loaded_by: dict[str, str | None] = {}
        """By module, the module whose code was executing when it was loaded."""
        self._units: dict[str, list[str]] = {}
        """By module, itself and all modules that its import loads, in order."""
        self._needs: dict[str, set[str]] = {}
        """By module, the modules that it imports or whose objects it holds."""
        self._refused: set[str] = set()
        """Top-level packages left to the ordinary import."""
        self._filters: dict[str, list[_Filter]] = {}
        """By module, the warning filters that its import inserted in front, newest first."""
        self._environment: dict[str, str | None] = {}
        """Environment variables that the imports read, with their values in the server."""
        self._restart: Callable[[str], object] = lambda reason: None
        self._tell: Callable[[str], object] = lambda name: None
        self.collecting = True
        """No test has started, so the worker may still be replaced."""

    def fill(self, names: Iterable[str]) -> None:
        """Import modules in this order and put them on the shelf; modules that do not exist are skipped.

        Raises :class:`Unfit` for one with side effects: on the process, the list of warnings, or more of
        the warning filters than insertions in front, which can be repeated in the worker.
        """
        loaded = frozenset(sys.modules)
        read: set[str] = set()
        imports = _Imports(self._loaded_by)
        with imports.noted(), _recording_environment(read):
            state = _process_state()
            for name in names:
                if name in sys.modules:
                    continue
                with warnings.catch_warnings(record=True) as raised:
                    warnings.simplefilter("always")  # also those that were shown before
                    filters = list(warnings.filters)
                    with suppress(ImportError):  # the worker that reported it had another search path
                        importlib.import_module(name)
                    count = len(warnings.filters) - len(filters)
                    if count < 0 or warnings.filters[count:] != filters:
                        raise Unfit(name, "the warning filters")
                    self._filters[name] = cast("list[_Filter]", warnings.filters[:count])
                # pytest of the worker would report the warning, or fail by it.
                if raised:
                    raise Unfit(name, "the list of warnings")
                now = _process_state()
                for effect, value in state.items():
                    if now.get(effect) != value:
                        raise Unfit(name, effect)
                # Modules that code inserted into sys.modules by hand have bypassed the finders.
                for each in reversed(list(sys.modules)):
                    if each in loaded or each in self._loaded_by:
                        break
                    self._loaded_by[each] = name
        read |= {name for name in os.environ if name.startswith(_READ_BY_C)}
        self._environment = {name: os.environ.get(name) for name in read}
        self._take_away(loaded, imports.asked_for)

    def _take_away(self, loaded: frozenset[str], asked_for: dict[str, set[str]]) -> None:
        """Remove all preloaded modules from the process, as if nothing had been imported.

        Computes the units and the needs of each module on the way. Raises :class:`Unfit` if a submodule
        cannot be removed from its package.
        """
        self._modules = {name: module for name, module in sys.modules.items() if name not in loaded}
        for name, module in self._modules.items():
            del sys.modules[name]
            for each in self._loaders(name):
                self._units.setdefault(each, []).append(name)
            package, _, child = name.rpartition(".")
            holder = sys.modules.get(package) or self._modules.get(package)
            # A submodule that its package does not import by itself becomes its attribute when it is
            # served, not before.
            is_late = holder is not None and package not in self._loaders(name)
            if is_late and vars(holder).get(child) is module:
                try:
                    delattr(holder, child)
                except AttributeError:  # a proxy object in place of a module
                    raise Unfit(package, "the module itself") from None
        # A module may use one that another import had loaded before, so it needs more than its unit.
        for name, module in self._modules.items():
            owners = {_module_of(value) for value in list(vars(module).values())}
            self._needs[name] = (owners | asked_for.get(name, set())) & self._modules.keys() - {name}

    def _loaders(self, name: str) -> list[str]:
        """Return the module, the module that loaded it, and so on; ends at a cycle."""
        found = [name]
        while (each := self._loaded_by.get(found[-1])) is not None and each not in found:
            found.append(each)
        return found

    def hand_out(self, restart: Callable[[str], object], tell: Callable[[str], object]) -> None:
        """Start serving imports in this worker.

        ``restart`` requests a replacement for a worker whose conditions differ, by a reason, and does not
        return. ``tell`` is called with the name of each module whose unit has extension
        modules: if the worker dies, the parent can run it again without them.
        """
        self._restart, self._tell = restart, tell
        if self._modules:
            sys.meta_path.insert(0, cast("Any", self))

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a preloaded module if the ordinary finders would load the same file.

        All modules that it needs are inserted into ``sys.modules`` as well. If one of them is refused, or
        has been loaded in another way before, the whole package is refused.
        """
        if name not in self._modules:
            return None
        # A module that was refused or loaded otherwise is in the way wherever it is needed; files are only
        # compared for the units that would be served now.
        units, wanted = self._with_needs(name)
        replaced = any(each.partition(".")[0] in self._refused or each in sys.modules for each in wanted)
        if replaced or not all(self._is_same(unit, path if unit == name else None) for unit in units):
            self._refuse(name)
            return None
        module = self._modules[name]
        for unit in units:
            self._install(unit)
        del sys.modules[name]  # the import in progress inserts it itself
        original = cast("ModuleSpec", module.__spec__)
        # The loader returns the module as it is; its own spec is restored afterwards.
        spec = ModuleSpec(name, cast("Any", _PreloadedLoader(module, original)), origin=original.origin)
        spec.submodule_search_locations = original.submodule_search_locations
        return spec

    def _install(self, unit: str) -> None:
        """Insert a module and those that its import loads, as that import would have done."""
        names = [name for name in self._units[unit] if name in self._modules]
        if _has_extensions(self._modules[name] for name in names):
            self._tell(unit)
        for name in names:
            module = sys.modules[name] = self._modules.pop(name)
            package, _, child = name.rpartition(".")
            if package in sys.modules and package not in self._loaders(name):
                setattr(sys.modules[package], child, module)
            # Each call inserts in front: from the oldest to the newest, in the order of the import.
            for action, message, category, source, line in reversed(self._filters.pop(name, [])):
                texts = (each.pattern if each else "" for each in (message, source))
                warnings.filterwarnings(action, next(texts), category, next(texts), line)

    def _with_needs(self, name: str) -> tuple[list[str], set[str]]:
        """Return the units to serve together, packages first, and all modules that they need.

        Modules served before need nothing more. Refused ones stay in the result, so that
        :meth:`find_spec` refuses what needs them, too.
        """
        units: dict[str, None] = {}
        wanted: set[str] = set()
        pending = [name]
        while pending:
            parts = pending.pop().split(".")
            for unit in (".".join(parts[:end]) for end in range(1, len(parts) + 1)):
                if unit in wanted or not self._is_open(unit):
                    continue
                units[unit] = None
                for each in filter(self._is_open, self._units[unit]):
                    if each not in wanted:
                        wanted.add(each)
                        pending += self._needs[each] - wanted
        return [unit for unit in units if unit in self._modules], wanted

    def _is_open(self, name: str) -> bool:
        """Return whether a module is on the shelf, or was on it until its package was refused."""
        return name in self._modules or (name in self._needs and name.partition(".")[0] in self._refused)

    def _is_same(self, name: str, path: Sequence[str] | None) -> bool:
        """Return whether the ordinary finders, in the shelf's environment, would load the same file.

        ``path`` is the package's search path as the import system passes it; by default that of the loaded
        or preloaded package.
        """
        if any(os.environ.get(key) != value for key, value in self._environment.items()):
            return False
        known = getattr(self._modules[name], "__spec__", None)
        if known is None or known.name != name or not known.has_location:  # not from a finder
            return True
        package = name.rpartition(".")[0]
        parent = sys.modules.get(package) or self._modules.get(package)
        where = path if path is not None else getattr(parent, "__path__", None)
        for finder in list(sys.meta_path):
            find: Any = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, where, None)
            if spec is not None:
                return spec.origin == known.origin and type(spec.loader) is type(known.loader)
        return False

    def _refuse(self, name: str) -> None:
        """Leave a package to the ordinary import, or request a new worker.

        A new worker is needed for extension modules, which cannot be loaded twice in a process. While
        :attr:`collecting` is set it is requested in any case.
        """
        top = name.partition(".")[0]
        names = [each for each in self._modules if each.partition(".")[0] == top]
        modules = [self._modules.pop(each) for each in names]
        self._refused.add(top)
        if self.collecting or _has_extensions(modules):
            self._restart(f"{name} is another module here, or is imported under other conditions")


class _PreloadedLoader:
    """Loader of a module that has been executed in the server."""

    def __init__(self, module: types.ModuleType, spec: ModuleSpec) -> None:
        self._module, self._spec = module, spec

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec


def _has_extensions(modules: Iterable[types.ModuleType]) -> bool:
    origins = [getattr(module.__spec__, "origin", None) or "" for module in modules]
    return any(origin.endswith(tuple(EXTENSION_SUFFIXES)) for origin in origins)


def _module_of(value: object) -> str:
    """Return the module that defines a value, or the module's own name; empty if unknown."""
    name: object = ""
    with suppress(Exception):  # attribute access on arbitrary objects may raise
        name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "")
    return name if isinstance(name, str) else ""


def _process_state() -> dict[str, object]:
    """Return the process-wide state that an import may change, by the words used in :class:`Unfit`."""
    import locale
    import logging
    import random

    state: dict[str, object] = {
        "the threads": [thread.name for thread in threading.enumerate()],
        "the environment": dict(os.environ),
        "sys.path": list(sys.path),
        "the working directory": os.getcwd(),
        "the import hooks": [id(each) for each in (*sys.meta_path, *sys.path_hooks)],
        "the excepthook": (id(sys.excepthook), id(threading.excepthook)),
        "the standard streams": (id(sys.stdin), id(sys.stdout), id(sys.stderr)),
        "the recursion limit": sys.getrecursionlimit(),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the random state": hash(random.getstate()),
        "logging": (logging.root.level, len(logging.root.handlers), logging.root.manager.disable),
        "the signal handlers": [repr(signal.getsignal(number)) for number in signal.valid_signals()],
    }
    with suppress(OSError):
        state["the open files"] = len(os.listdir("/proc/self/fd"))
    return state


class _Imports:
    """Records which module loads each module, and which modules each one asks for.

    The two differ: a module that is already loaded is asked for without being loaded. The first is observed
    by a finder, the second by replacing the functions behind ``import`` and ``importlib.import_module``.
    """

    def __init__(self, loaded_by: dict[str, str | None]) -> None:
        """``loaded_by`` is filled with the importer of each module; ``None`` if none was executing."""
        self._loaded_by = loaded_by
        self.asked_for: dict[str, set[str]] = {}

    @contextmanager
    def noted(self) -> Generator[None]:
        """Record imports inside of the context."""
        machinery: Any = _bootstrap
        importing, by_name = builtins.__import__, machinery._gcd_import

        def imported(
            name: str, space: Any = None, local: Any = None, names: Any = (), level: int = 0
        ) -> Any:
            module = importing(name, space, local, names, level)
            self._note_request(name, space.get("__package__") if space else "", level, names or ())
            return module

        def imported_by_name(name: str, package: Any = None, level: int = 0) -> Any:
            module = by_name(name, package, level)
            self._note_request(name, package, level, ())
            return module

        sys.meta_path.insert(0, cast("Any", self))
        builtins.__import__, machinery._gcd_import = imported, imported_by_name
        try:
            yield
        finally:
            builtins.__import__, machinery._gcd_import = importing, by_name
            sys.meta_path.remove(cast("Any", self))

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Record which module loads ``name``, and leave the search to the next finder."""
        self._loaded_by.setdefault(name, self._importer())

    def _note_request(self, name: str, package: str | None, level: int, names: Iterable[str]) -> None:
        # In "from a import b", b may be a submodule; if it is none, _take_away drops the name.
        with suppress(ImportError, TypeError):
            full = resolve_name("." * level + name, package or "")
            if (importer := self._importer()) is not None:
                self.asked_for.setdefault(importer, set()).update([full, *(f"{full}.{n}" for n in names)])

    def _importer(self) -> str | None:
        """Return the module whose top-level code is executing, through any function calls."""
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None:
            name = frame.f_globals.get("__name__")
            if frame.f_code.co_name == "<module>" and name in self._loaded_by:
                return name
            frame = frame.f_back
        return None


@contextmanager
def _recording_environment(read: set[str]) -> Generator[None]:
    """Record the variables that are read through ``os.environ`` inside of the context.

    ``get`` and ``in`` of the mapping end in ``__getitem__``, so replacing that one function suffices.
    """
    kind = cast("Any", type(os.environ))
    original = kind.__getitem__

    def getitem(self: Any, key: str) -> str:
        read.add(key)
        return original(self, key)

    kind.__getitem__ = getitem
    try:
        yield
    finally:
        kind.__getitem__ = original
