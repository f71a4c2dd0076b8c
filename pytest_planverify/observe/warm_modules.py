"""Preloading of third-party modules, imported once by a server for all of its workers.

Preloaded modules are removed from ``sys.modules`` and served by a finder on the worker's own import. It
first asks the ordinary finders and serves a module only if they would load the same file under the same
conditions. So a project's own ``yaml.py``, or a conftest that sets ``MPLBACKEND``, has the same effect
as when the command runs alone.

Only packages in :data:`~pytest_planverify.observe.spec.PRELOADED` are preloaded. Their imports are known to
have no effects on the process, which would otherwise happen once in the server instead of in each worker
that imports the module.

An import loads other modules in turn, so a module is served with all that it needs. Where one of these
would be another file in the worker, the whole package is refused: it is left to the ordinary import.
Extension modules cannot be loaded a second time, so for them the worker asks to be replaced by one without
preloaded modules.

The names to preload are learned: each worker reports :func:`imported_modules`, and the parent passes those
of listed packages on in :attr:`~pytest_planverify.observe.spec.Start.modules`.
"""

from __future__ import annotations

import builtins
import importlib
import os
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
from pytest_planverify.observe.spec import PRELOADED

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

MOST_MODULES = 5_000
"""Number of modules that a worker reports at most."""

_READ_BY_C = ("OMP_", "MKL_", "OPENBLAS_", "BLIS_", "NUMEXPR_", "MALLOC_", "KMP_", "LC_", "LANG", "TZ")
"""Prefixes of variables that native code reads at load time, unnoticed by ``os.environ``."""

# As in warnings.filters: action, message, category, module, line.
_Filter = tuple[Any, "re.Pattern[str] | None", type[Warning], "re.Pattern[str] | None", int]


class Unfit(Exception):
    """Raised for a module that must not be preloaded, for a reason that its installed version adds."""

    def __init__(self, module: str, effect: str) -> None:
        super().__init__(f"{module}: importing it {effect}")
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
        """The modules that are still to be served."""
        self._present: dict[str, types.ModuleType | None] = {}
        """Those that pytest had loaded before, those that were served, and ``None`` for others."""
        self._missing: set[str] = set()
        """Top-level modules that imports asked for and no finder finds."""
        self._needs: dict[str, set[str]] = {}
        """By preloaded module, its package and the modules that it loads, imports, or holds objects of."""
        self._inner: set[str] = set()
        """Modules that the import of their package loads."""
        self._filters: dict[str, tuple[list[_Filter], list[_Filter]]] = {}
        """By module, the warning filters that its import inserted in front, newest first, and appended."""
        self._rewritten: set[str] = set()
        """Packages that may be served although pytest would rewrite their assertions."""
        self._environment: dict[str, str | None] = {}
        """Environment variables that the imports read, with their values in the server."""
        self._restart: Callable[[str], object] = lambda reason: None
        self._tell: Callable[[str], object] = lambda name: None
        self.collecting = True
        """No test has started, so the worker may still be replaced."""

    def fill(self, names: Iterable[str]) -> None:
        """Import modules in this order and put them on the shelf; modules that do not exist are skipped.

        Raises :class:`Unfit` for one that warns, raises an error, changes :func:`_process_state`, imports a
        package that is not :data:`PRELOADED`, or changes more of the warning filters than insertions in
        front and at the end, which can be repeated in the worker.
        """
        loaded = frozenset(sys.modules)
        state = _process_state()
        read: set[str] = set()
        with _Imports(self._needs, self._inner).noted(), _recording_environment(read):
            for name in names:
                if name in sys.modules:
                    continue
                before = set(sys.modules)
                with warnings.catch_warnings(record=True) as raised:
                    warnings.simplefilter("always")  # also those that were shown before
                    filters = list(warnings.filters)
                    try:
                        importlib.import_module(name)
                    except ImportError:  # the worker that reported it had another search path
                        pass
                    except Exception as error:  # such as for models of Django, which require settings
                        raise Unfit(name, f"raises {type(error).__name__}") from error
                    now = cast("list[_Filter]", list(warnings.filters))
                    # urllib3 and aiohttp.web append theirs to the list, others insert in front.
                    count = next(
                        (at for at in range(len(now)) if now[at : at + len(filters)] == filters), -1
                    )
                    if count < 0:
                        raise Unfit(name, "changes the warning filters")
                    self._filters[name] = now[:count], now[count + len(filters) :]
                # pytest of the worker would report the warning, or fail by it.
                if raised:
                    raise Unfit(name, "warns")
                for effect, value in _process_state().items():
                    if state[effect] != value:
                        raise Unfit(name, effect)
                new = sys.modules.keys() - before
                if other := next((each for each in new if _is_unlisted(sys.modules[each])), None):
                    raise Unfit(name, f"imports {other}, whose effects are not known")
                # Modules that code inserted into sys.modules by hand have bypassed the finders. No import
                # makes them attributes of their package, so those that are have to stay.
                for each in new - self._needs.keys():
                    # Such as cython_runtime, which each extension module uses that finds it.
                    if "." not in each and getattr(sys.modules[each], "__spec__", None) is None:
                        loaded |= {each}
                        continue
                    self._needs[each] = set()
                    self._inner.add(each)
                    self._needs.setdefault(name, set()).add(each)
        read |= {name for name in os.environ if name.startswith(_READ_BY_C)}
        self._environment = {name: os.environ.get(name) for name in read}
        self._take_away(loaded)

    def _take_away(self, loaded: frozenset[str]) -> None:
        """Remove all preloaded modules from the process, as if nothing had been imported.

        Completes the needs of each module.
        """
        self._modules = {name: module for name, module in sys.modules.items() if name not in loaded}
        for name, module in self._modules.items():
            del sys.modules[name]
            package, _, child = name.rpartition(".")
            holder = sys.modules.get(package) or self._modules.get(package)
            # A submodule that its package does not import by itself becomes its attribute when it is
            # served, not before.
            if name not in self._inner and holder is not None and vars(holder).get(child) is module:
                delattr(holder, child)
        # An import may ask for a module that is not installed, such as an optional dependency.
        known = loaded | self._needs.keys()
        self._present = {name: sys.modules.get(name) for name in known - self._modules.keys()}
        # One that a finder finds could not be imported, or was only searched for.
        absent = {name for name, module in self._present.items() if module is None and "." not in name}
        self._missing = {name for name in absent if self._is_same(name, None)}
        known |= self._modules.keys()
        for name, module in self._modules.items():
            held = {name.rpartition(".")[0], *map(_module_of, list(vars(module).values()))}
            self._needs[name] = self._needs.get(name, set()) | held
        self._needs = {name: needs & known - {name} for name, needs in self._needs.items()}

    def hand_out(self, restart: Callable[[str], object], tell: Callable[[str], object]) -> None:
        """Start serving imports in this worker.

        ``restart`` requests a replacement for a worker whose conditions differ, by a reason, and does not
        return. ``tell`` is called with the name of a module that is served with extension modules: if the
        worker dies, the parent can run it again without them.
        """
        self._restart, self._tell = restart, tell
        if self._modules:
            sys.meta_path.insert(0, cast("Any", self))

    def precede_rewriting(self) -> None:
        """Go before the import hook that pytest has installed since, and accept what it would rewrite now.

        That are the packages of plugins, such as Hypothesis; rewriting changes their own assertions only. A
        server in which pytest is not configured has loaded them without it.
        """
        self._rewritten.update(*(getattr(each, "_must_rewrite", ()) for each in sys.meta_path))
        if self in sys.meta_path:
            sys.meta_path.remove(cast("Any", self))
            sys.meta_path.insert(0, cast("Any", self))

    def begin_tests(self) -> None:
        """Leave modules that can be executed again to the ordinary import from now on.

        A test may import one under other conditions, such as with a patched ``sys.platform`` or without an
        optional dependency. Extension modules can be loaded only once; with them stay the modules that they
        need, and those that import them directly, because their C code may have imported these in turn.
        """
        self.collecting = False
        native = {name for name, module in self._modules.items() if _has_extensions([module])}
        tops = {name.partition(".")[0] for name in self._modules if native & {name, *self._needs[name]}}
        kept = self._with_needs(name for name in self._modules if name.partition(".")[0] in tops)
        self._modules = {name: module for name, module in self._modules.items() if name in kept}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a preloaded module if the ordinary finders would load the same file.

        All modules that it needs are inserted into ``sys.modules`` as well. If one of them is refused, or
        has been loaded in another way before, the whole package is refused.
        """
        if name not in self._modules:
            return None
        wanted = self._with_needs([name])
        own = wanted & self._modules.keys()
        # What is there already has to be the module that was there for the preloaded one.
        is_replaced = not own.isdisjoint(sys.modules) or any(
            each not in self._present or sys.modules.get(each) is not self._present[each]
            for each in wanted - own
        )
        # Of submodules only the imported one is compared, with the search path of its package: the others
        # are those of the package's file. Missing modules have to be missing still.
        tops = {each.partition(".")[0] for each in own} & self._modules.keys() | wanted & self._missing
        compared = {**dict.fromkeys(tops), name: path}
        is_changed = any(os.environ.get(key) != value for key, value in self._environment.items())
        if is_replaced or is_changed or not all(map(self._is_same, compared, compared.values())):
            self._refuse(name)
            return None
        module = self._modules[name]
        self._install(name, own)
        del sys.modules[name]  # the import in progress inserts it itself
        original = _spec_of(module) or ModuleSpec(name, None)
        spec = ModuleSpec(name, cast("Any", _PreloadedLoader(module)), origin=original.origin)
        spec.submodule_search_locations = original.submodule_search_locations
        return spec

    def _install(self, asked: str, wanted: set[str]) -> None:
        """Insert the module that is asked for and those that it needs, as its import would have done."""
        names = [name for name in self._modules if name in wanted]
        if _has_extensions(self._modules[name] for name in names):
            self._tell(asked)
        for name in names:
            module = sys.modules[name] = self._present[name] = self._modules.pop(name)
            package, _, child = name.rpartition(".")
            if package in sys.modules and name not in self._inner:
                setattr(sys.modules[package], child, module)
            # Each call inserts in front: from the oldest to the newest, in the order of the import.
            inserted, appended = self._filters.pop(name, ([], []))
            for filters, append in (inserted[::-1], False), (appended, True):
                for action, message, category, source, line in filters:
                    texts = (each.pattern if each else "" for each in (message, source))
                    warnings.filterwarnings(action, next(texts), category, next(texts), line, append)

    def _with_needs(self, names: Iterable[str]) -> set[str]:
        """Return modules with all that they need, directly or not."""
        wanted: set[str] = set()
        pending = list(names)
        while pending:
            each = pending.pop()
            if each not in wanted:
                wanted.add(each)
                pending += self._needs.get(each, ())
        return wanted

    def _is_same(self, name: str, path: Sequence[str] | None) -> bool:
        """Return whether the ordinary finders would load the same file, or none for a missing module.

        ``path`` is as they expect it.
        """
        known = getattr(self._modules.get(name), "__spec__", None)
        if name in self._modules and (known is None or known.name != name or not known.has_location):
            return True  # not from a finder
        with suppress(ImportError):  # a finder of a test may simulate a missing module
            for finder in list(sys.meta_path):
                find: Any = None if finder is self else getattr(finder, "find_spec", None)
                spec = None if find is None else find(name, path, None)
                if spec is not None:
                    is_rewritten = finder is spec.loader and name.partition(".")[0] in self._rewritten
                    is_alike = is_rewritten or type(spec.loader) is type(getattr(known, "loader", None))
                    return known is not None and spec.origin == known.origin and is_alike
        return known is None

    def _refuse(self, name: str) -> None:
        """Leave a package to the ordinary import, or request a new worker.

        A new worker is needed for extension modules, which cannot be loaded twice in a process. While
        :attr:`collecting` is set it is requested in any case.
        """
        top = name.partition(".")[0]
        names = [each for each in self._modules if each.partition(".")[0] == top]
        modules = [self._modules.pop(each) for each in names]
        if self.collecting or _has_extensions(modules):
            self._restart(f"{name} is another module here, or is imported under other conditions")


class _PreloadedLoader:
    """Loader of a module that has been executed in the server.

    It returns the module as it is and restores its spec afterwards. An object without a spec, which the
    code of the module has inserted in its own place, is inserted again.
    """

    def __init__(self, module: types.ModuleType) -> None:
        self._module, self._spec = module, _spec_of(module)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        return self._module if self._spec else None

    def exec_module(self, module: types.ModuleType) -> None:
        if self._spec:
            module.__spec__ = self._spec
        else:
            sys.modules[module.__name__] = self._module


def _spec_of(module: object) -> ModuleSpec | None:
    """Return the spec of a module; ``None`` for another object that stands in the place of one."""
    spec = getattr(module, "__spec__", None)
    return spec if isinstance(spec, ModuleSpec) else None


def _has_extensions(modules: Iterable[types.ModuleType]) -> bool:
    origins = [getattr(_spec_of(module), "origin", None) or "" for module in modules]
    return any(origin.endswith(tuple(EXTENSION_SUFFIXES)) for origin in origins)


def _module_of(value: object) -> str:
    """Return the module that defines a value, or the module's own name; empty if unknown."""
    name: object = ""
    with suppress(Exception):  # attribute access on arbitrary objects may raise
        name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "")
    return name if isinstance(name, str) else ""


def _process_state() -> dict[str, object]:
    """Return what modules of listed packages that are rarely imported change, by the words for it."""
    return {
        "starts a thread": threading.active_count(),  # it would not survive a fork
        "changes sys.path": list(sys.path),
        "replaces sys.displayhook": sys.displayhook,  # as the debugger of Werkzeug does
    }


def _is_unlisted(module: object) -> bool:
    """Return whether a module is an installed one of a package that is not :data:`PRELOADED`."""
    spec = getattr(module, "__spec__", None)
    name, origin = getattr(spec, "name", None), getattr(spec, "origin", None)
    return "-packages/" in str(origin) and str(name).partition(".")[0] not in PRELOADED


class _Imports:
    """Records which modules each module loads or asks for while its own code is executing.

    The two differ: a module that is already loaded is asked for without being loaded. The first is observed
    by a finder, the second by replacing the functions behind ``import`` and ``importlib.import_module``.
    """

    def __init__(self, needs: dict[str, set[str]], inner: set[str]) -> None:
        """``needs`` and ``inner`` are filled, as described at :class:`ModuleShelf`."""
        self._needs, self._inner = needs, inner

    @contextmanager
    def noted(self) -> Generator[None]:
        """Record imports inside of the context."""
        machinery: Any = _bootstrap
        importing, by_name = builtins.__import__, machinery._gcd_import

        # The names of the parameters are those of the builtin function.
        def imported(
            name: str,
            globals: Any = None,
            locals: Any = None,
            fromlist: Any = (),
            level: int = 0,
        ) -> Any:
            module = importing(name, globals, locals, fromlist, level)
            self._note_request(name, globals.get("__package__") if globals else "", level, fromlist or ())
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
        """Record what loads ``name``, and leave the search to the next finder."""
        importers = list(self._importers())
        self._needs.setdefault(name, set())
        for importer in importers[:1]:
            self._needs[importer].add(name)
        if name.rpartition(".")[0] in importers:
            self._inner.add(name)

    def _note_request(self, name: str, package: str | None, level: int, names: Iterable[str]) -> None:
        # In "from a import b", b may be a submodule; if it is none, _take_away drops the name.
        with suppress(ImportError, TypeError):
            full = resolve_name("." * level + name, package or "")
            if (importer := next(self._importers(), None)) is not None:
                self._needs[importer].update([full, *(f"{full}.{each}" for each in names)])

    def _importers(self) -> Iterator[str]:
        """Yield the modules whose top-level code is executing, innermost first."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_globals.get("__name__")
            if frame.f_code.co_name == "<module>" and name in self._needs:
                yield name
            frame = frame.f_back


@contextmanager
def _recording_environment(read: set[str]) -> Generator[None]:
    """Record the variables that are read through ``os.environ`` inside of the context.

    ``get`` and ``in`` of the mapping end in ``__getitem__``, so replacing that one function suffices.
    """
    kind = cast("Any", type(os.environ))
    original = kind.__getitem__

    def getitem(self: Any, key: str | bytes) -> Any:
        read.add(os.fsdecode(key))  # os.environb is of the same class
        return original(self, key)

    kind.__getitem__ = getitem
    try:
        yield
    finally:
        kind.__getitem__ = original
