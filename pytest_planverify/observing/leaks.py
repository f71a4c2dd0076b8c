"""Finds out whether tests changed the process that the next criterion's tests run in.

What is compared is the state of the interpreter and of its libraries, the globals of the project's own
modules with all that they hold, and the values of fixtures that outlive a test. It is looked at only where
the running criterion changes, so the cost does not grow with the number of tests. What is too large
for that is looked at before the first test and before the last one.
"""

from __future__ import annotations

import re
import types
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pytest_planverify.observing.caches import is_unused, make_empty, says_cache
from pytest_planverify.observing.chance import Chance
from pytest_planverify.observing.first_imports import FirstImports
from pytest_planverify.observing.libraries import LibraryWatch
from pytest_planverify.observing.loaded_modules import LoadedModules
from pytest_planverify.observing.process_state import library_state, members_of, process_state, stamp
from pytest_planverify.observing.value_readers import NUMBERS, class_members, learn_types
from pytest_planverify.observing.values import (
    MAX_VALUES,
    caches_in,
    fingerprint_of,
    origins_of,
    snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_planverify.observing.values import Snapshot

__all__ = ["LeakWatch", "fingerprint_of"]

MOST_VALUES = 200_000
"""How much of a module is looked at before the first test and after the last one."""

MOST_A_LOOK = 100_000
"""How much of all modules together is looked at between tests."""

_WITHOUT_STATE = (*NUMBERS, float, range, types.BuiltinFunctionType, types.ModuleType, types.CodeType)
_MODULE_NOISE = frozenset(
    {"__builtins__", "__cached__", "__loader__", "__spec__", "__warningregistry__", "__path__"}
)
_LOOKS_AROUND = re.compile(
    r"session\.items|testscollected|testsfailed|config\.args\b|invocation_params"
    r"|(?<![\"'])\bsys\.argv\b(?!\s*=[^=])|(?<![\"'])(?<!dict\()(?<!item\()\bsys\.modules\b(?!\[__name__\])|\bget_objects\("
)
"""What tells a test which other tests run, or what others have imported."""
_ASKS_FOR_SUBCLASSES = "__subclasses__"
_TOO_MUCH = "more than can be watched"

Fingerprint = dict[str, object]
State = tuple[object, ...]


class _ModuleShape(NamedTuple):
    """What a module's namespace binds, and those of its values that can change in place."""

    names: tuple[str, ...]
    bindings: tuple[tuple[str, object], ...]
    mutable: tuple[Any, ...]
    held: tuple[Any, ...]
    """What is bound, so that no new value takes the place of an old one in memory."""
    called_caches: tuple[Any, ...]


class LeakWatch:
    """Compares the state of the process with what it was when last looked at."""

    def __init__(
        self,
        is_first_party: Callable[[str], bool],
        live_fixtures: Callable[[], Iterable[tuple[str, Any, object]]],
        is_expected_path: Callable[[str], bool],
        pytest_state: Callable[[], Iterable[tuple[str, object]]] = tuple,
        chance: Chance | None = None,
    ) -> None:
        """``live_fixtures`` gives name, value and the value's fingerprint when it was made."""
        self._live_fixtures = live_fixtures
        self._is_expected_path = is_expected_path
        self._pytest_state = pytest_state
        self._chance = chance or Chance()
        self._modules = LoadedModules(is_first_party)
        self._libraries = LibraryWatch(is_first_party)
        self._imports = FirstImports(is_first_party, self._imported)
        self._shapes: dict[str, _ModuleShape] = {}
        self._made: Fingerprint = {}
        """What modules were when they had just been imported."""
        self._large: dict[str, State | None] = {}
        """Modules that hold too much for a look between tests, and what they held at first."""
        self._looked_at = 0
        """How much of modules the present look has seen."""
        self._last: Fingerprint | None = None
        self._test_files: set[str] = set()
        self._subclasses: dict[str, tuple[int, ...]] = {}
        self._was_derived_from = False
        """Whether classes of modules that were known by then have got new subclasses."""
        self._known_of_dependents: tuple[int, int, bool] | None = None
        self._texts: dict[str, str] = {}
        self._reached: dict[str, tuple[object, set[str]]] = {}
        """By module, its state, and the modules whose code could be reached from it then."""
        self._caches: dict[int, Any] = {}
        """Caches that the present look has met."""
        self._empty: dict[int, Any] = {}
        """Those that held nothing when last looked at, or as they were imported."""

    def start(self) -> None:
        """Remember the state as it is now, and from now on that of modules as soon as they are imported."""
        self._imports.install()
        learn_types()
        if self._last is None:
            self._libraries.changes()
        self._last, _ = self._take()
        self._empty = self._unused_caches()

    def stop(self) -> None:
        """Watch no more imports."""
        self._imports.remove()

    def import_for(self, test_file: str) -> None:
        """From now on, what is imported is imported on account of that test file."""
        self._imports.importing_for = test_file
        self._test_files.add(test_file)

    def dependents(self, test_files: Iterable[str]) -> Iterator[tuple[str | None, list[str]]]:
        """Files whose tests may need their company, and what of it; ``None`` stands for all of them.

        To be asked at the end, when it is known who imported what; if no more is known than when it was
        asked last, there is nothing to add.
        """
        known = (self._imports.count, len(self._modules.first_party), self._was_derived_from)
        if known == self._known_of_dependents:
            return
        self._known_of_dependents = known
        files = dict.fromkeys(test_files)
        for file in files:
            text = _text_of(file)
            needed = self._imports.borrowed(text, file) + list(dict.fromkeys(_LOOKS_AROUND.findall(text)))
            if needed := needed + self._wants_subclasses(text):
                yield file, needed
        for module in list(self._modules.first_party.values()):
            file = members_of(module).get("__file__")
            if type(file) is str and file not in files:
                text = _text_of(file)
                if needed := self._imports.borrowed(text) + self._wants_subclasses(text):
                    yield None, needed

    def _wants_subclasses(self, text: str) -> list[str]:
        return [_ASKS_FOR_SUBCLASSES] if self._was_derived_from and _ASKS_FOR_SUBCLASSES in text else []

    def _imported(self, names: list[str]) -> None:
        """Remember modules that have just been imported as they are, until the next look."""
        self._modules.update()
        learn_types()
        for name in names:
            module = self._modules.first_party.get(name)
            if module is not None:
                self._made[f"module {name}"] = self._module_state(name, module)
        self._empty |= self._unused_caches()
        self._made.update(library_state(names))
        self._libraries.note(names)

    def changes(self, *, imports_count: bool, empty_caches: bool = False) -> list[str]:
        """What has changed since the last look, by name.

        With ``imports_count`` a module that is new and holds state counts, too, unless it is known what it
        was when it had been imported: whoever imports it next no longer gets it fresh. With
        ``empty_caches`` caches of functions that held nothing are made to hold nothing again.
        """
        now, made = self._take()
        if empty_caches and self._empty_caches():
            now = self._take()[0]
        self._empty = self._unused_caches()
        before = dict(self._last if self._last is not None else now)
        self._last = dict(now)
        for state in (before, now):  # what is expected may have become known only since the last look
            entries = cast("tuple[str, ...]", state["sys.path"])
            state["sys.path"] = [entry for entry in entries if not self._is_expected_path(entry)]
        _forgive_ended_threads(before, now)
        changed = [name for name, value in now.items() if before.get(name, made.get(name, value)) != value]
        changed += [name for name in before if name not in now and name.startswith("module ")]
        if imports_count:
            changed += [
                f"{name} (first imported)"
                for name in now
                if name not in before
                and name not in made
                and self._shapes.get(name.removeprefix("module "), _NO_SHAPE).mutable
            ]
        return sorted(changed)

    def changes_since_start(self, *, in_test: bool = False) -> list[str]:
        """What is too large to be looked at between tests and has changed, whoever changed it."""
        changed = self._libraries.changes(in_test=in_test)
        for name, before in self._large.items():
            module = self._modules.first_party.get(name)
            if module is not None and (before is None or self._deep_state(name, module) != before):
                changed.append(f"module {name}" if before is not None else f"module {name} ({_TOO_MUCH})")
        return sorted(changed)

    def only_for(self, changed: Iterable[str]) -> dict[str | None, list[str]]:
        """The changes by the test file whose own affair they are; under ``None`` what everybody can see.

        What a test file holds is of no concern to others which neither name it nor get at its code.
        """
        found: dict[str | None, list[str]] = {}
        for change in changed:
            module = self._modules.first_party.get(change.removeprefix("module "))
            file = None if module is None else members_of(module).get("__file__")
            own = file in self._test_files and not self._is_known_elsewhere(change, cast("str", file))
            found.setdefault(cast("str", file) if own else None, []).append(change)
        return found

    def _is_known_elsewhere(self, change: str, own_file: str) -> bool:
        name = change.removeprefix("module ")
        word = re.compile(rf"\b{re.escape(name.rpartition('.')[2])}\b")
        roots = [value for _, value, _ in self._live_fixtures()]
        if name in origins_of(roots, MOST_VALUES):
            return True
        for other, module in self._modules.first_party.items():
            file = members_of(module).get("__file__")
            if file != own_file and type(file) is str:
                self._texts[file] = text = self._texts.get(file) or _text_of(file)
                if word.search(text):
                    return True
            if file not in self._test_files and name in self._origins(other):
                return True
        return False

    def _origins(self, name: str) -> set[str]:
        """Whose code can be reached from a module, as far as it was when last looked at."""
        shape, state = self._shapes.get(name, _NO_SHAPE), (self._last or {}).get(f"module {name}")
        known = self._reached.get(name)
        if known is None or known[0] != state or name in self._large:
            known = (state, origins_of(shape.mutable, MOST_VALUES, module=name))
            self._reached[name] = known
        return known[1]

    def _take(self) -> tuple[Fingerprint, Fingerprint]:
        """The state now, and that of fixtures and modules when they were made."""
        self._modules.update()
        self._looked_at = 0
        self._caches = {}
        state: Fingerprint = dict(process_state())
        state["random"] = self._chance.state()
        state.update(self._pytest_state())
        state["stand-ins for modules"] = dict(self._modules.stand_ins)
        state["modules taken away"] = self._modules.lost
        for name, module in self._modules.first_party.items():
            state[f"module {name}"] = self._module_state(name, module)
        made, self._made = self._made, {}
        for name, value, when_made in self._live_fixtures():
            state[f"fixture {name}"] = fingerprint_of(value)
            made[f"fixture {name}"] = when_made
        return state, made

    def _module_state(self, name: str, module: types.ModuleType) -> object:
        shape = self._shape(name, members_of(module))
        if name in self._large or not shape.mutable:
            return (id(module), shape.bindings)
        found = self._note(name, snapshot(shape.mutable, MAX_VALUES, module=name))
        self._looked_at += len(found.state)
        if found.complete and self._looked_at < MOST_A_LOOK:
            return (id(module), shape.bindings, found.state)
        self._looked_at -= len(found.state)
        self._large[name] = self._deep_state(name, module)
        return (id(module), shape.bindings)

    def _deep_state(self, name: str, module: types.ModuleType) -> State | None:
        """The whole state of a large module, ``None`` if even that is too much."""
        shape = self._shape(name, members_of(module))
        found = self._note(name, snapshot(shape.mutable, MOST_VALUES, module=name))
        return found.state if found.complete else None

    def _note(self, name: str, found: Snapshot) -> Snapshot:
        self._was_derived_from |= self._subclasses.setdefault(name, found.subclasses) != found.subclasses
        called = (cache for value in self._shapes[name].called_caches for cache in caches_in(value))
        self._caches |= {id(cache): cache for cache in (*found.caches, *called)}
        return found

    def _unused_caches(self) -> dict[int, Any]:
        return {key: cache for key, cache in self._caches.items() if is_unused(cache)}

    def _empty_caches(self) -> bool:
        """Undo what tests did to caches; nobody holds anything by a cache that was empty before."""
        filled = [
            cache for key, cache in self._caches.items() if key in self._empty and not is_unused(cache)
        ]
        if any(self._live_fixtures()):  # which may hold what was cached
            return False
        for cache in filled:
            make_empty(cache)
        return bool(filled)

    def _shape(self, name: str, members: dict[str, Any]) -> _ModuleShape:
        known = self._shapes.get(name)
        if known is not None and _is_same(members, known.names, known.held):
            return known
        names, values = tuple(members), tuple(members.values())
        kept = [(each, value) for each, value in list(members.items()) if not _is_noise(name, each, value)]
        shape = _ModuleShape(
            names,
            tuple((each, stamp(value)) for each, value in kept),
            tuple(value for each, value in kept if _has_state(name, each, value)),
            values,
            tuple(value for each, value in kept if says_cache(each)),
        )
        self._shapes[name] = shape
        return shape


def _is_same(members: dict[str, Any], names: tuple[str, ...], held: tuple[Any, ...]) -> bool:
    """Whether a namespace binds the same names to the same objects, in the same order."""
    return (
        len(members) == len(held)
        and all(map(is_, members.values(), held))
        and all(map(is_, members, names))
    )


_NO_SHAPE = _ModuleShape((), (), (), (), ())


def _text_of(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def _forgive_ended_threads(before: Fingerprint, now: Fingerprint) -> None:
    """A thread that has ended since is no leak, only one that has begun."""
    running = cast("frozenset[int]", before["threads"])
    now["threads"] = cast("frozenset[int]", now["threads"]) - running
    before["threads"] = frozenset[int]()


def _is_noise(module: str, name: str, value: object) -> bool:
    """What comes and goes by itself: import machinery, and submodules that somebody imports."""
    if name in _MODULE_NOISE or name.startswith("@"):
        return True
    return members_of(value).get("__name__") == f"{module}.{name}"


def _has_state(module: str, name: str, value: object) -> bool:
    kind = type(value)
    if issubclass(kind, type):
        return class_members(value).get("__module__") == module
    if issubclass(kind, types.FunctionType):
        return not name.startswith("test")  # whatever wraps a test belongs to it alone
    return not issubclass(kind, _WITHOUT_STATE)
