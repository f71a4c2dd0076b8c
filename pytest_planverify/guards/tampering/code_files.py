"""Tell in which file code was written, and whether that file is installed or part of the project."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache, partial
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

_UNKNOWN = "<unknown>"


@cache
def environment_files() -> Callable[[str], bool]:
    """Return a predicate on paths: a file of the interpreter, of an installed package, or of this one."""
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = {own, os.path.join(os.path.dirname(own), "planner"), os.path.dirname(os.__file__)}
    folders |= {path for name, path in sysconfig.get_paths().items() if "lib" in name}
    # Those that a .pth file adds stand on the path only.
    folders |= {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
    folders |= {os.path.realpath(folder) for folder in folders if folder}
    starts = tuple(f"{folder.rstrip(os.sep)}{os.sep}" for folder in sorted(folders) if folder)
    known: dict[str, bool] = {}

    def is_environment(file: str) -> bool:
        found = known.get(file)
        if found is None:
            found = known[file] = file.startswith(starts) or file.startswith("<frozen")
        return found

    return is_environment


def defining_file(function: object, holder: object = None) -> str:
    """Return the file that a function was written in; of one made of text, the file that made it.

    ``holder`` is the object that has the function, asked where the function does not tell.
    """
    function = innermost_function(function)
    code = getattr(function, "__code__", None)
    file = getattr(code, "co_filename", None)
    if isinstance(file, str) and (not file.startswith("<") or file.startswith("<frozen")):
        return file
    space = getattr(function, "__globals__", None)
    known = cast("dict[str, Any]", space).get("__file__") if isinstance(space, dict) else None
    if isinstance(known, str):
        return known
    # Without code it is an object that can be called, of some class.
    return (code is None and file_of_module(function)) or file_of_module(holder) or _UNKNOWN


def innermost_function(function: object) -> object:
    """Return what a method or a partial call calls in the end."""
    while True:
        if isinstance(function, MethodType):
            function = function.__func__
        elif isinstance(function, partial):
            function = cast("partial[Any]", function).func
        else:
            return function


def file_of_module(thing: object) -> str | None:
    """Return the file of a module, or of the module that defines a class or an object's class."""
    if thing is None:
        return None
    module: object = thing
    if not isinstance(thing, ModuleType):
        kind: type[Any] = thing if isinstance(thing, type) else type(thing)
        module = sys.modules.get(kind.__module__)
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return file if isinstance(file, str) else None
