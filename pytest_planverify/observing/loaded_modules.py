"""Which modules are loaded, and whose they are; looks again only at what is new or replaced."""

from __future__ import annotations

import sys
from itertools import chain, islice
from typing import TYPE_CHECKING, cast

from pytest_planverify.observing.process_state import members_of

if TYPE_CHECKING:
    import types
    from collections.abc import Callable


class LoadedModules:
    """Sorts ``sys.modules``, looking again only at what is new or replaced."""

    def __init__(self, is_first_party: Callable[[str], bool]) -> None:
        self._is_first_party = is_first_party
        self._ids: tuple[int, ...] = ()
        self._seen: dict[str, int] = {}
        self.first_party: dict[str, types.ModuleType] = {}
        self.stand_ins: dict[str, int] = {}
        """Entries that no import made."""
        self.lost = 0
        """How often a module of a library was taken away or replaced."""

    def update(self) -> None:
        # a copy, made at once: where it takes objects, the collector may take a module away meanwhile
        modules = sys.modules.copy()
        ids = tuple(map(id, chain.from_iterable(modules.items())))
        if ids == self._ids:
            return
        known = len(self._ids) // 2 if ids[: len(self._ids)] == self._ids else 0
        self._ids = ids
        for name, module in islice(modules.items(), known, None):
            if self._seen.get(name) != id(module):
                self._forget(name)
                self._sort(name, module)
        if len(self._seen) != len(modules):
            for name in self._seen.keys() - modules.keys():
                self._forget(name)

    def _sort(self, name: str, module: object) -> None:
        self._seen[name] = id(module)
        members = members_of(module)
        if members.get("__spec__") is None:
            if not self._comes_with_a_library(name):
                self.stand_ins[name] = id(module)
            return
        file = members.get("__file__")
        if isinstance(file, str) and self._is_first_party(file):
            self.first_party[name] = cast("types.ModuleType", module)

    def _comes_with_a_library(self, name: str) -> bool:
        """Whether a library made the entry as it was imported: ``six.moves``, what Cython shares."""
        top, dot, _ = name.partition(".")
        if name == "__main__" or top.startswith(_MADE_BY_EXTENSIONS):
            return True
        owner = members_of(sys.modules.get(top)) if dot else {}
        file = owner.get("__file__") or ""
        return owner.get("__spec__") is not None and not self._is_first_party(file)

    def _forget(self, name: str) -> None:
        known = self._seen.pop(name, None)
        own = self.first_party.pop(name, None) is not None
        stood_in = self.stand_ins.pop(name, None) is not None
        if known is not None and not own and not stood_in and name != "conftest":
            self.lost += 1


_MADE_BY_EXTENSIONS = ("_cython_", "cython_runtime")
