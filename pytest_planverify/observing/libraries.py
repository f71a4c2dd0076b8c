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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_CODE = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, staticmethod, classmethod, property,
    types.MethodDescriptorType, types.WrapperDescriptorType, type,
)  # fmt: skip
_NOT_WATCHED = ("_pytest.", "pytest_planverify.", "pluggy.", "coverage.", "xdist.", "execnet.", "__main__")
_class_name: Callable[[object], str] = type.__dict__["__name__"].__get__


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

    def changes(self) -> list[str]:
        """What was replaced since the last look, by name; a library that is new must hold its own code."""
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
                replaced = _is_replaced(key, before, now, is_class=isinstance(owner, type))
                if replaced and not self._patched_by_library(label, key, now):
                    yield f"{label}.{key}"
        elif is_new_wrong:
            for key, value in watched.items():
                if type(value) is types.FunctionType and self._is_first_party(value.__code__.co_filename):
                    yield f"{label}.{key}"

    def _patched_by_library(self, label: str, key: str, now: object) -> bool:
        """Whether another library did it as it was imported, as ``typing_extensions`` does to ``typing``.

        Its own text must say so, and where it does, it does so whoever imports it.
        """
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


def _is_watched(value: object) -> bool:
    return issubclass(type(value), _CODE) or is_plain(value)


def _is_replaced(name: str, before: Any, now: Any, *, is_class: bool) -> bool:
    if before is now:
        return False
    if issubclass(type(before), _CODE):
        return True
    if before is None or not (name.isupper() or is_class) or name.startswith("_"):
        return False  # made when it is needed, or counted
    return not is_plain(now) or before != now
