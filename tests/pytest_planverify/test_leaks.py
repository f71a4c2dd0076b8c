"""Leaks: every change that reaches the next test is seen, ordinary use of a module is not one."""

from __future__ import annotations

import collections
import collections.abc
import copyreg
import datetime
import gc
import importlib
import importlib.util
import logging
import os
import random
import signal
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from pytest_planverify.observing import leaks, values
from pytest_planverify.observing.chance import Chance
from pytest_planverify.observing.leaks import LeakWatch, fingerprint_of

MODULE = """
import functools, logging
import collections

log = logging.getLogger(__name__)
COUNT = 0
NAMES = ["a"]
TABLE = {"k": [1]}
PAIR = (1, ["x"])
SEEN = {1}
QUEUE = collections.deque([1])
BUFFER = bytearray(b"x")
NAN = float("nan")

class Registry:
    entries = []
    def __init__(self): self.items = {}
    def method(self): return 1

REGISTRY = Registry()

@functools.lru_cache
def cached(n): return n

def plain(): log.warning("said"); return NAMES
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """An imported package of the project under test."""
    package = tmp_path / "leaky"
    package.mkdir()
    (package / "__init__.py").write_text(MODULE)
    (package / "stateful.py").write_text("STATE = []\n")
    (package / "stateless.py").write_text("LIMIT = 3\nNAMES = ('a', 1)\ndef f(): pass\n")
    (package / "empty.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("leaky")
    for name in [name for name in sys.modules if name.partition(".")[0] == "leaky"]:
        del sys.modules[name]


class Live:
    """The fixtures that are alive."""

    def __init__(self) -> None:
        self.values: list[tuple[str, Any, object]] = []

    def __call__(self) -> list[tuple[str, Any, object]]:
        return self.values


@pytest.fixture
def live() -> Live:
    return Live()


@pytest.fixture
def watch(project: types.ModuleType, live: Live) -> Iterator[LeakWatch]:
    root = os.path.dirname(str(project.__file__))
    watch = LeakWatch(lambda file: file.startswith(root), live, lambda entry: entry == "/expected")
    watch.start()
    yield watch
    watch.stop()


CHANGES: dict[str, tuple[Callable[[Any], object], list[str]]] = {
    "a rebound global": (lambda m: setattr(m, "COUNT", 1), ["module leaky"]),
    "a new global": (lambda m: setattr(m, "NEW", 1), ["module leaky"]),
    "a deleted global": (lambda m: delattr(m, "COUNT"), ["module leaky"]),
    "a replaced function": (lambda m: setattr(m, "plain", lambda: None), ["module leaky"]),
    "an appended list": (lambda m: m.NAMES.append("b"), ["module leaky"]),
    "a nested list": (lambda m: m.TABLE["k"].append(2), ["module leaky"]),
    "a dict's key": (lambda m: m.TABLE.pop("k"), ["module leaky"]),
    "a list in a tuple": (lambda m: m.PAIR[1].append("y"), ["module leaky"]),
    "a set": (lambda m: m.SEEN.add(2), ["module leaky"]),
    "a deque": (lambda m: m.QUEUE.append(2), ["module leaky"]),
    "a bytearray": (lambda m: m.BUFFER.extend(b"y"), ["module leaky"]),
    "an instance's attribute": (lambda m: m.REGISTRY.items.update(a=1), ["module leaky"]),
    "a class's list": (lambda m: m.Registry.entries.append(1), ["module leaky"]),
    "a class's method": (lambda m: setattr(m.Registry, "method", None), ["module leaky"]),
    "a reloaded module": (lambda m: importlib.reload(m), ["module leaky"]),
    "a cache that fills": (lambda m: m.cached(3), ["module leaky"]),
    "a module that is gone": (lambda m: sys.modules.pop("leaky"), ["module leaky"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_project_is_seen_once(change: str, project: types.ModuleType, watch: LeakWatch):
    make, seen = CHANGES[change]

    make(project)

    assert watch.changes(imports_count=True) == seen
    assert watch.changes(imports_count=True) == []


def setting_signal(patch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


PROCESS: dict[str, tuple[Callable[[pytest.MonkeyPatch], object], str]] = {
    "a path": (lambda patch: patch.setattr(sys, "path", [*sys.path, "/unexpected"]), "sys.path"),
    "a variable": (lambda patch: patch.setenv("LEAKS_TEST", "1"), "environment"),
    "the folder": (lambda patch: patch.chdir("/"), "working directory"),
    "a signal": (setting_signal, "signal handlers"),
    "a filter": (lambda patch: warnings.filterwarnings("ignore", "said so"), "warning filters"),
    "the root level": (lambda patch: patch.setattr(logging.root, "level", 3), "logging"),
    "a handler": (lambda patch: logging.root.addHandler(logging.NullHandler()), "logging"),
    "disabled logging": (lambda patch: logging.disable(logging.CRITICAL), "logging"),
    "a stand-in": (
        lambda patch: patch.setitem(sys.modules, "no_such_thing", types.ModuleType("x")),
        "stand-ins for modules",
    ),
    "no module at all": (
        lambda patch: patch.setitem(sys.modules, "no_such_thing", None),
        "stand-ins for modules",
    ),
    "time": (lambda patch: patch.setattr("time.time", lambda: 0.0), "time"),
    "os": (lambda patch: patch.setattr(os, "listdir", lambda path="": []), "os"),
}


@pytest.mark.parametrize("change", PROCESS)
@pytest.mark.filterwarnings("default")  # the filters that a test adds go with it
def test_a_change_of_the_process_is_seen(change: str, watch: LeakWatch, monkeypatch: pytest.MonkeyPatch):
    make, seen = PROCESS[change]
    handlers, handler = list(logging.root.handlers), signal.getsignal(signal.SIGUSR1)
    try:
        make(monkeypatch)
        changed = watch.changes(imports_count=True)
    finally:
        monkeypatch.undo()
        logging.disable(logging.NOTSET)
        logging.root.handlers[:] = handlers
        signal.signal(signal.SIGUSR1, handler)

    assert changed == [seen]


def test_a_working_directory_that_is_gone_is_a_change(
    watch: LeakWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    assert watch.changes(imports_count=True) == ["working directory"]

    (tmp_path / "gone").rmdir()
    assert watch.changes(imports_count=True) == ["working directory"]


USES: dict[str, Callable[[Any], object]] = {
    "nothing": lambda module: None,
    "a call": lambda module: module.plain(),
    "a submodule without state": lambda module: importlib.import_module("leaky.stateless"),
    "an empty submodule": lambda module: importlib.import_module("leaky.empty"),
    "a library": lambda module: importlib.import_module("wave"),
    "a warning": lambda module: warnings.warn("said so", stacklevel=2),
    "a logger": lambda module: logging.getLogger("another.one").info("x"),
    "an abstract check": lambda module: isinstance(module.REGISTRY, collections.abc.Iterable),
    "an expected path": lambda module: sys.path.append("/expected"),
    "the running test": lambda module: os.environ.update(PYTEST_CURRENT_TEST="x"),
    "pytest's log handler": lambda module: logging.root.addHandler(log_capture_handler()),
}


def log_capture_handler() -> logging.Handler:
    from _pytest.logging import LogCaptureHandler

    return LogCaptureHandler()


@pytest.mark.parametrize("use", USES)
@pytest.mark.filterwarnings("ignore:said so")
def test_ordinary_use_is_no_leak(use: str, project: types.ModuleType, watch: LeakWatch):
    handlers, current = list(logging.root.handlers), os.environ.get("PYTEST_CURRENT_TEST", "")
    try:
        USES[use](project)
        assert watch.changes(imports_count=True) == []
    finally:
        logging.root.handlers[:] = handlers
        os.environ["PYTEST_CURRENT_TEST"] = current
        while "/expected" in sys.path:
            sys.path.remove("/expected")


def test_a_first_import_is_no_leak_and_what_is_done_to_the_new_module_is_one(watch: LeakWatch):
    stateful = importlib.import_module("leaky.stateful")
    assert watch.changes(imports_count=True) == []

    del sys.modules["leaky.stateful"]
    watch.start()
    stateful = importlib.import_module("leaky.stateful")
    stateful.STATE.append(1)
    assert watch.changes(imports_count=False) == ["module leaky.stateful"]


def test_a_new_module_of_which_nobody_knows_what_it_was_counts_where_it_is_asked(watch: LeakWatch):
    watch.stop()
    importlib.import_module("leaky.stateful")
    assert watch.changes(imports_count=True) == ["module leaky.stateful (first imported)"]

    del sys.modules["leaky.stateful"]
    watch.start()
    watch.stop()
    importlib.import_module("leaky.stateful")
    assert watch.changes(imports_count=False) == []


def test_two_looks_without_a_start_find_nothing(live: Live):
    watch = LeakWatch(lambda file: False, live, lambda entry: False)

    assert watch.changes(imports_count=True) == []


# -- fixtures that outlive a test ------------------------------------------------------------------


def test_a_wide_fixture_that_a_test_changed_is_a_leak(watch: LeakWatch, live: Live):
    value = {"rows": [1]}
    live.values = [("database 1", value, fingerprint_of(value))]
    assert watch.changes(imports_count=True) == []

    value["rows"].append(2)
    assert watch.changes(imports_count=True) == ["fixture database 1"]


def test_a_new_fixture_that_was_changed_at_once_is_a_leak(watch: LeakWatch, live: Live):
    value = [1]
    live.values = [("database 1", value, fingerprint_of(value))]
    value.append(2)

    assert watch.changes(imports_count=True) == ["fixture database 1"]


def test_a_fixture_that_ends_is_no_leak(watch: LeakWatch, live: Live):
    live.values = [("database 1", [1], fingerprint_of([1]))]
    watch.start()
    live.values = []

    assert watch.changes(imports_count=True) == []


# -- what changes and reaches nobody ---------------------------------------------------------------


def test_a_cache_that_was_empty_is_emptied_where_that_is_asked_for(project: Any, watch: LeakWatch):
    project.cached(3)

    assert watch.changes(imports_count=True, empty_caches=True) == []
    assert project.cached.cache_info().currsize == 0

    project.cached(3)
    assert watch.changes(imports_count=True) == ["module leaky"]
    project.cached(4)
    assert watch.changes(imports_count=True, empty_caches=True) == ["module leaky"]
    assert project.cached.cache_info().currsize == 2


CACHES = """
import collections, logging, threading

class Recent:
    def __init__(self):
        self.entries, self.order, self.lock = {}, collections.deque(), threading.Lock()
    def keep(self, key):
        self.entries[key] = 1
        self.order.append(key)

class Owner:
    _memo = {}
    def __init__(self): self.name_cache = set()

def spelled(word, times=1, _cache={}): return _cache.setdefault(word, word * times)

templates_cache, OWNER, MEMORY, FULL_CACHE = Recent(), Owner(), {}, {"a": 1}
log_cache = logging.Filterer()
"""
OWN_CACHES: dict[str, Callable[[Any], object]] = {
    "an object's": lambda module: module.templates_cache.keep("x"),
    "a class's": lambda module: module.Owner._memo.update(x=1),
    "an attribute": lambda module: module.OWNER.name_cache.add(1),
    "a default": lambda module: module.spelled("x"),
}
OTHER_STORES: dict[str, Callable[[Any], object]] = {
    "called otherwise": lambda module: module.MEMORY.update(x=1),
    "not empty before": lambda module: module.FULL_CACHE.update(b=2),
    "a library's": lambda module: module.log_cache.filters.append("x"),
}


@pytest.mark.parametrize("use", sorted(OWN_CACHES | OTHER_STORES))
def test_what_is_called_a_cache_is_emptied_if_it_was_empty(use: str, watch: LeakWatch, tmp_path: Path):
    (tmp_path / "leaky" / "caching.py").write_text(CACHES)
    module: Any = importlib.import_module("leaky.caching")
    held = [module.templates_cache, module.Owner._memo, module.OWNER, module.spelled]
    fresh = fingerprint_of(held)
    watch.changes(imports_count=False)

    (OWN_CACHES | OTHER_STORES)[use](module)
    changed = watch.changes(imports_count=True, empty_caches=True)

    assert changed == ([] if use in OWN_CACHES else ["module leaky.caching"])
    assert fingerprint_of(held) == fresh


def test_no_cache_is_emptied_while_a_fixture_may_hold_what_is_in_it(
    project: Any, watch: LeakWatch, live: Live
):
    live.values = [("settings 1", [1], fingerprint_of([1]))]
    watch.changes(imports_count=True)
    project.cached(3)

    assert watch.changes(imports_count=True, empty_caches=True) == ["module leaky"]


def test_a_new_subclass_concerns_only_those_who_ask_for_subclasses(
    project: Any, watch: LeakWatch, tmp_path: Path
):
    asking, another = tmp_path / "test_asking.py", tmp_path / "test_another.py"
    asking.write_text("def test(): assert leaky.Registry.__subclasses__()\n")
    another.write_text("def test(): pass\n")
    files = [str(asking), str(another)]
    assert list(watch.dependents(files)) == []

    kept = type("Derived", (project.Registry,), {})

    assert watch.changes(imports_count=True) == []
    assert list(watch.dependents(files)) == [(str(asking), ["__subclasses__"])]
    assert kept.__subclasses__() == []


@pytest.mark.parametrize(
    ("elsewhere", "own"),
    [
        ("", True),
        ("from leaky import test_own", False),
        ("import leaky\nleaky.NAMES.append(leaky.sys.modules['leaky.test_' + 'own'].handler)", False),
    ],
    ids=["known to nobody", "named by another", "reached through the product"],
)
def test_what_a_test_file_holds_concerns_its_own_tests_unless_others_know_of_it(
    elsewhere: str, own: bool, project: Any, watch: LeakWatch, tmp_path: Path
):
    folder = tmp_path / "leaky"
    project.sys = sys
    (folder / "test_own.py").write_text("SEEN = []\ndef handler(): return len(SEEN)\n")
    (folder / "test_other.py").write_text(elsewhere)
    for name in ("test_own", "test_other"):
        watch.import_for(str(folder / f"{name}.py"))
        importlib.import_module(f"leaky.{name}")
    watch.changes(imports_count=True)

    sys.modules["leaky.test_own"].SEEN.append(1)

    changed = watch.changes(imports_count=True)
    file = str(folder / "test_own.py") if own else None
    assert watch.only_for(changed) == {file: ["module leaky.test_own"]}
    assert watch.only_for(["random"]) == {None: ["random"]}


def test_chance_that_is_used_is_no_leak_and_a_seed_is_one(watch: LeakWatch):
    kept = random.getstate()
    try:
        random.random()
        random.shuffle([*range(5_000)])
        assert watch.changes(imports_count=True) == []
        random.setstate(kept)
        assert watch.changes(imports_count=True) == ["random"]
        random.random()
        assert watch.changes(imports_count=True) == ["random"]
    finally:
        random.setstate(kept)


def test_chance_that_is_put_back_is_a_leak(watch: LeakWatch):
    random.random()  # so that the next number is of the same round
    assert watch.changes(imports_count=True) == []
    kept = random.getstate()
    random.random()
    assert watch.changes(imports_count=True) == []

    random.setstate(kept)

    assert watch.changes(imports_count=True) == ["random"]


def test_chance_that_others_may_have_seeded_is_a_leak_when_it_is_used(live: Live):
    chance = Chance()
    chance.distrust()
    watch = LeakWatch(lambda file: False, live, lambda entry: False, chance=chance)
    watch.changes(imports_count=True)
    random.random()

    assert watch.changes(imports_count=True) == ["random"]


def test_a_library_may_tell_how_its_own_types_are_pickled(
    watch: LeakWatch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(copyreg, "dispatch_table", dict(copyreg.dispatch_table))
    watch.changes(imports_count=True)
    copyreg.pickle(collections.UserDict, collections.namedtuple)  # type: ignore[arg-type]
    assert watch.changes(imports_count=True) == []

    copyreg.pickle(collections.UserList, lambda value: "x")
    assert watch.changes(imports_count=True) == ["pickling"]


def test_a_library_that_patches_another_as_it_is_imported_is_no_leak(
    watch: LeakWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "patching.py").write_text(
        "import textwrap\ndef dedent(text): return text\ntextwrap.dedent = dedent\ndef indent(text): pass\n"
    )
    monkeypatch.syspath_prepend(installed)
    monkeypatch.setattr("textwrap.dedent", textwrap.dedent)
    monkeypatch.setattr("textwrap.indent", textwrap.indent)
    patching: Any = importlib.import_module("patching")

    assert watch.changes_since_start() == []

    textwrap.indent = patching.indent
    assert watch.changes_since_start() == ["textwrap.indent"]
    del sys.modules["patching"]


def test_what_pytest_and_libraries_do_for_themselves_is_no_leak_and_the_same_of_the_project_is_one(
    watch: LeakWatch, monkeypatch: pytest.MonkeyPatch
):
    library = {"__name__": "timing"}
    file = str(Path("site-packages", "timing.py").resolve())
    exec(compile("def tell(phase, info): pass\ndef show(message): pass", file, "exec"), library)
    monkeypatch.setattr(gc, "callbacks", [*gc.callbacks])
    with warnings.catch_warnings(record=True):
        monkeypatch.setattr(warnings, "_showwarnmsg_impl", library["show"])
        gc.callbacks.append(cast("Any", library["tell"]))
        assert watch.changes(imports_count=True) == []
        assert watch.changes_since_start() == []

    gc.callbacks.append(lambda phase, info: None)
    assert watch.changes(imports_count=True) == ["garbage collector"]


def test_what_a_library_replaces_for_one_test_is_a_leak_only_if_it_is_left_behind(
    watch: LeakWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "false_clock.py").write_text(
        "import datetime\nclass FalseDate(datetime.date): pass\ndef dedented(text): return text\n"
    )
    (installed / "late.py").write_text("from datetime import date\nfrom textwrap import dedent, indent\n")
    monkeypatch.syspath_prepend(installed)
    clock: Any = importlib.import_module("false_clock")
    assert watch.changes_since_start() == []

    with monkeypatch.context() as patched:
        patched.setattr("datetime.date", clock.FalseDate)
        patched.setattr("textwrap.dedent", clock.dedented)
        late: Any = importlib.import_module("late")
        assert watch.changes_since_start(in_test=True) == []
    late.date, late.dedent = datetime.date, textwrap.dedent
    assert watch.changes_since_start() == []

    late.indent = clock.dedented
    monkeypatch.setattr("textwrap.dedent", clock.dedented)
    assert watch.changes_since_start(in_test=True) == []
    assert watch.changes_since_start() == ["late.indent", "textwrap.dedent"]
    for name in ("late", "false_clock"):
        del sys.modules[name]


def test_what_a_path_and_a_type_note_for_themselves_is_no_change(project: Any, watch: LeakWatch):
    project.PLACE = [Path("a") / "b"]
    kinds: list[Any] = [collections.abc.Callable[[int], str], list[int]]
    project.KIND = [*kinds, TypeVar("T")]
    watch.changes(imports_count=True)

    _ = str(project.PLACE[0]), hash(project.PLACE[0]), [each.__parameters__ for each in kinds]

    assert watch.changes(imports_count=True) == []


# -- values ----------------------------------------------------------------------------------------


class Raising(type):
    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("metaclass")

    def __hash__(cls) -> int:
        raise RuntimeError("metaclass")

    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError("metaclass")


class Hostile:
    """Whatever is asked of it, it raises."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("getattr")

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("getattribute")


class OwnDict:
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("dict")


class Lazy:
    """A stand-in for something that must not be woken up."""

    def __init__(self) -> None:
        object.__setattr__(self, "woken", False)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        object.__setattr__(self, "woken", True)
        return str

    def __getattr__(self, name: str) -> Any:
        object.__setattr__(self, "woken", True)
        raise AttributeError(name)


def strangers() -> list[Any]:
    class WithSlots:
        __slots__ = ("a",)

    return [
        Hostile(), OwnDict(), Raising("Odd", (), {}), type.__call__(Raising("Odd", (), {})), WithSlots(),
        object(), type, Lazy(), types.SimpleNamespace(a=1), iter([1]), lambda: 1, sys,
        collections.namedtuple("Point", "x")(1), Exception("x"), memoryview(b"x"),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(len(strangers())))
def test_no_object_breaks_the_comparison(number: int, project: Any, watch: LeakWatch, live: Live):
    stranger = strangers()[number]
    live.values = [("stranger 1", stranger, fingerprint_of(stranger))]
    project.STRANGER = stranger
    project.TABLE["stranger"] = [stranger, {"x": stranger}]
    if number != 0:
        project.PAIR = (stranger,)

    assert watch.changes(imports_count=True) == ["module leaky"]
    assert watch.changes(imports_count=True) == []


def test_a_lazy_object_is_not_woken_up(project: Any, watch: LeakWatch):
    lazy = Lazy()
    project.LAZY = lazy

    watch.changes(imports_count=True)

    assert not object.__getattribute__(lazy, "woken")


def test_modules_that_raise_are_told_apart_all_the_same(watch: LeakWatch, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "no_such_thing", Hostile())

    assert watch.changes(imports_count=True) == ["stand-ins for modules"]


def test_equal_values_are_equal_and_others_are_not():
    value: dict[str, Any] = {"a": [1, 2.0, None, float("nan")], "b": {"c": (1, "x")}}
    assert fingerprint_of(value) == fingerprint_of(value)

    before = fingerprint_of(value)
    value["b"]["c"] = (1, "y")
    assert fingerprint_of(value) != before


def test_a_value_that_holds_itself_ends():
    value: list[Any] = []
    value.append(value)

    assert fingerprint_of(value) == fingerprint_of(value)


def test_what_is_too_large_for_a_look_between_tests_is_looked_at_in_the_end(project: Any, watch: LeakWatch):
    project.HUGE = [[object()] for _ in range(2 * values.MAX_VALUES)]
    project.NAMES.append("b")
    assert watch.changes(imports_count=True) == ["module leaky"]
    assert watch.changes_since_start() == []

    project.HUGE[-1].append(1)
    assert watch.changes(imports_count=True) == []
    assert watch.changes_since_start() == ["module leaky"]


def test_more_than_can_be_watched_is_never_believed(
    project: Any, watch: LeakWatch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(leaks, "MOST_VALUES", values.MAX_VALUES + 1)
    project.HUGE = [[object()] for _ in range(2 * values.MAX_VALUES)]
    watch.changes(imports_count=True)

    assert watch.changes_since_start() == ["module leaky (more than can be watched)"]


def test_what_is_held_beside_a_strange_object_is_looked_at(project: Any, watch: LeakWatch):
    project.holder_cache = project.Registry()
    project.holder_cache.stranger = type.__call__(Raising("Odd", (), {}))
    watch.changes(imports_count=False)

    project.holder_cache.items["new"] = 1

    assert watch.changes(imports_count=True) == ["module leaky"]


def test_a_module_that_was_loaded_past_the_finders_is_asked_for_what_it_needs(
    watch: LeakWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "leaky" / "part.py").write_text("")
    file = tmp_path / "leaky_user.py"
    file.write_text("import leaky\ndef use(): return leaky.part\n")
    watch.import_for("test_other.py")
    importlib.import_module("leaky.part")
    assert list(watch.dependents([])) == []

    spec = importlib.util.spec_from_file_location("leaky_user", file)
    assert spec is not None
    monkeypatch.setitem(sys.modules, "leaky_user", importlib.util.module_from_spec(spec))
    watch.changes(imports_count=False)

    assert list(watch.dependents([])) == [(None, ["leaky.part"])]
