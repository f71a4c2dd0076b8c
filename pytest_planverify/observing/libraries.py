"""Whether the project has replaced functions or classes of the libraries that it uses.

All modules that are loaded are looked at, which is too much for every change of criteria: it is done before
the first test and after the last one.
"""

from __future__ import annotations

import re
import sys
import types
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_planverify.observing.value_readers import class_members, is_plain, module_members
from pytest_planverify.observing.values import is_library_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_CODE = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, staticmethod, classmethod, property,
    types.MethodDescriptorType, types.WrapperDescriptorType, type,
)  # fmt: skip
_NOT_WATCHED = ("_pytest.", "pytest_planverify.", "pluggy.", "coverage.", "xdist.", "execnet.", "__main__")
_PYTESTS_HABIT = frozenset({"warnings._showwarnmsg_impl", "warnings.showwarning", "sys.last_type"})
"""What pytest sets while tests run, whatever they do to it."""
_class_name: Callable[[object], str] = type.__dict__["__name__"].__get__
_class_module: Callable[[object], object] = type.__dict__["__module__"].__get__


class _Bindings(NamedTuple):
    owner: object
    ids: tuple[int, ...]
    watched: dict[str, Any]
    """Code and plain values by name."""


class LibraryWatch:
    """Remembers what each library's module and class binds to code and to plain values."""

    def __init__(self, is_first_party: Callable[[str], bool]) -> None:
        self._is_first_party = is_first_party
        self._known: dict[int, _Bindings] = {}
        self._in_test = False

    def changes(self, *, in_test: bool = False) -> list[str]:
        """What was replaced since the last look, by name; a library that is new must hold its own code.

        ``in_test`` tells that a test is running: what plugins have put in place for it is not looked at
        before it is over.
        """
        self._in_test = in_test
        return self.note(list(sys.modules), is_new_wrong=bool(self._known))

    def note(self, names: Iterable[str], *, is_new_wrong: bool = False) -> list[str]:
        """Look at the modules of these names only."""
        found: list[str] = []
        for name in names:
            module = sys.modules.get(name)
            if not issubclass(type(module), types.ModuleType) or name.startswith(_NOT_WATCHED):
                continue
            members = module_members(module)
            file = members.get("__file__")
            if type(file) is str and self._is_first_party(file):
                continue
            found += self._compare(name, module, members, is_new_wrong=is_new_wrong)
            for owner in list(members.values()):
                if issubclass(type(owner), type) and class_members(owner).get("__module__") == name:
                    label = f"{name}.{_class_name(owner)}"
                    found += self._compare(label, owner, class_members(owner), is_new_wrong=is_new_wrong)
        return found

    def _compare(
        self, label: str, owner: object, members: Mapping[str, Any], *, is_new_wrong: bool
    ) -> Iterator[str]:
        known = self._known.get(id(owner))
        items = list(members.items())
        ids = tuple(id(value) for _, value in items)
        if known is not None and known.ids == ids:
            return
        watched = {key: value for key, value in items if _is_watched(value)}
        self._known[id(owner)] = _Bindings(owner, ids, watched)
        if known is not None:
            for key, before in known.watched.items():
                now = members.get(key)
                if not _is_replaced(key, before, now, is_class=isinstance(owner, type)):
                    continue
                if self._in_test and is_library_file(_file_of(now)):
                    watched[key] = before
                    self._known[id(owner)] = _Bindings(owner, (), watched)
                elif not self._patched_by_library(label, key, now):
                    yield f"{label}.{key}"
        elif is_new_wrong:
            for key, value in watched.items():
                if type(value) is types.FunctionType and self._is_first_party(value.__code__.co_filename):
                    yield f"{label}.{key}"

    def _patched_by_library(self, label: str, key: str, now: object) -> bool:
        """Whether another library did it as it was imported, as ``typing_extensions`` does to ``typing``.

        Its own text must say so, and where it does, it does so whoever imports it.
        """
        if f"{label}.{key}" in _PYTESTS_HABIT:
            return True
        if type(now) is not types.FunctionType:
            return False
        file = now.__code__.co_filename
        if self._is_first_party(file):
            return False
        patch = re.compile(rf"^[ \t]*{re.escape(label)}\.{re.escape(key)}[ \t]*=[^=]", re.MULTILINE)
        try:
            with open(file, encoding="utf-8", errors="replace") as stream:
                return patch.search(stream.read()) is not None
        except OSError:
            return False


def _file_of(value: Any) -> str:
    """Where a function or a class was written; empty for all else."""
    if type(value) is types.FunctionType:
        return value.__code__.co_filename
    if not issubclass(type(value), type):
        return ""
    file = module_members(module).get("__file__") if (module := _module_of(value)) is not None else None
    return file if type(file) is str else ""


def _module_of(value: Any) -> types.ModuleType | None:
    name: object = _class_module(value) if issubclass(type(value), type) else value.__module__
    module = sys.modules.get(name) if type(name) is str else None
    return module if type(module) is types.ModuleType else None


def _is_known_as(name: str, value: Any) -> bool:
    """Whether a function or a class is what its own module calls by that name."""
    if _name_of(value) != name:
        return False
    module = _module_of(value)
    return module is not None and module_members(module).get(name) is value


def _name_of(value: Any) -> str | None:
    if issubclass(type(value), type):
        return _class_name(value)
    return value.__name__ if type(value) in (types.FunctionType, types.BuiltinFunctionType) else None


def _is_watched(value: object) -> bool:
    return issubclass(type(value), _CODE) or is_plain(value)


def _is_replaced(name: str, before: Any, now: Any, *, is_class: bool) -> bool:
    if before is now:
        return False
    if issubclass(type(before), _CODE):
        # A library that was imported while the clock was a false one gets the true one later.
        return _name_of(before) == name or not _is_known_as(name, now)
    if before is None or not (name.isupper() or is_class) or name.startswith("_"):
        return False  # made when it is needed, or counted
    return not is_plain(now) or before != now
