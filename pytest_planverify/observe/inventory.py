"""What a session is made of: the files of the project that implement hooks of pytest."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from functools import cache, partial
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

MOST_NAMES = 2_000
"""So many hooks or plugins are told of; a session with more is no session of one project."""

_UNKNOWN = "<unknown>"
_AROUND_TESTS = ("pytest_runtest", "pytest_pyfunc_call", "pytest_fixture")


class Inventory:
    """Sees plugins come, and tells in the end which hooks files of the project have implemented."""

    def __init__(self, is_environment: Callable[[str], bool] | None = None) -> None:
        """``is_environment`` says whether a file is of the interpreter or of what is installed."""
        self._is_environment = is_environment or environment_files()
        self._plugins: dict[str, None] = {}
        self._hooks: dict[tuple[str, str], None] = {}

    def registered(self, plugin: object, name: str | None, manager: pytest.PytestPluginManager) -> None:
        """A plugin is there. What it implements counts even where it has gone by the end."""
        home = _home_of(plugin)
        if isinstance(plugin, ModuleType) and home is not None and self._is_environment(home):
            self._plugins[name or plugin.__name__] = None
            return
        if home is None or not self._is_environment(home):
            self._plugins[f"{_shown_name(plugin, name)}"] = None
        for caller in manager.get_hookcallers(plugin) or ():
            for implementation in caller.get_hookimpls():
                if implementation.plugin is plugin:
                    self._note(caller.name, implementation)

    def facts(self, manager: pytest.PytestPluginManager) -> dict[str, Any]:
        """Plugins, and hooks with the absolute paths of the files that implement them."""
        callers = list(vars(manager.hook).items())
        for hook, caller in callers:
            find = getattr(caller, "get_hookimpls", None)
            if hook.startswith("_") or find is None:
                continue
            for implementation in find():
                self._note(hook, implementation)
        return {
            "plugins": sorted(self._plugins)[:MOST_NAMES],
            "hooks": [list(each) for each in sorted(self._hooks)][:MOST_NAMES],
        }

    def has_a_hand_in_tests(self) -> bool:
        """Whether a file of the project implements a hook that is called around tests."""
        return any(hook.startswith(_AROUND_TESTS) for hook, _ in self._hooks)

    def _note(self, hook: str, implementation: Any) -> None:
        file = defining_file(implementation.function, implementation.plugin)
        if not self._is_environment(file):
            self._hooks[hook, file] = None


def defining_file(function: object, holder: object = None) -> str:
    """The file that a function was written in; of one that was made of text, the file that made it."""
    function = inmost(function)
    code = getattr(function, "__code__", None)
    file = getattr(code, "co_filename", None)
    if isinstance(file, str) and (not file.startswith("<") or file.startswith("<frozen")):
        return file
    space = getattr(function, "__globals__", None)
    known = cast("dict[str, Any]", space).get("__file__") if isinstance(space, dict) else None
    if isinstance(known, str):
        return known
    if code is None:  # an object that can be called, of some class
        return _home_of(function) or _home_of(holder) or _UNKNOWN
    return _home_of(holder) or _UNKNOWN


def inmost(function: object) -> object:
    """What a method or a partial call calls in the end."""
    while True:
        if isinstance(function, MethodType):
            function = function.__func__
        elif isinstance(function, partial):
            function = cast("partial[Any]", function).func
        else:
            return function


@cache
def environment_files() -> Callable[[str], bool]:
    """Says of a path whether it belongs to the interpreter, to what is installed, or to the observer."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = {own, os.path.join(os.path.dirname(own), "planner"), os.path.dirname(os.__file__)}
    folders |= {path for name, path in sysconfig.get_paths().items() if "lib" in name}
    folders |= set(_site_folders())
    resolved = {os.path.realpath(folder) for folder in folders if folder}
    starts = tuple(f"{folder.rstrip(os.sep)}{os.sep}" for folder in sorted(folders | resolved) if folder)
    known: dict[str, bool] = {}

    def is_environment(file: str) -> bool:
        found = known.get(file)
        if found is None:
            found = known[file] = file.startswith(starts) or file.startswith("<frozen")
        return found

    return is_environment


def _site_folders() -> Iterator[str]:
    yield from getattr(site, "getsitepackages", list[str])()
    user = getattr(site, "USER_SITE", None)
    if isinstance(user, str):
        yield user


def _home_of(thing: object) -> str | None:
    """The file of a module, or of the module that an object's class comes from."""
    if thing is None:
        return None
    if isinstance(thing, ModuleType):
        file = vars(thing).get("__file__")
    else:
        kind: type[Any] = thing if isinstance(thing, type) else type(thing)
        module = sys.modules.get(kind.__module__)
        file = None if module is None else vars(module).get("__file__")
    return file if isinstance(file, str) else None


def _shown_name(plugin: object, name: str | None) -> str:
    """A name that is the same in every run; objects are registered by their number."""
    if name and not name.isdigit():
        return name if not os.path.isabs(name) else os.path.basename(name)
    kind = plugin if isinstance(plugin, type) else type(plugin)
    return f"{kind.__module__}.{kind.__qualname__}"
