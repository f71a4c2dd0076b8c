"""Tells when modules have just been imported, while nobody has touched them yet, and on whose account."""

from __future__ import annotations

import re
import sys
from functools import partial
from importlib.machinery import ExtensionFileLoader, SourceFileLoader, SourcelessFileLoader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_LOADERS = (SourceFileLoader, SourcelessFileLoader, ExtensionFileLoader)
_PLAIN_IMPORT = re.compile(r"^[ \t]*import[ \t]+([\w., \t]+)", re.MULTILINE)
_FROM_IMPORT = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)


class FirstImports:
    """A finder that finds nothing by itself: it asks the others, and watches what they found being run.

    A module that imports others of its kind belongs together with them: what modules of the project do to
    each other while they are imported happens whoever imports the first of them, as it is with libraries.
    """

    def __init__(
        self, is_first_party: Callable[[str], bool], imported: Callable[[list[str]], None]
    ) -> None:
        """``imported`` is given the names of modules as soon as the outermost of them is ready."""
        self.importing_for = ""
        """The test file on whose account modules are imported now."""
        self._is_first_party = is_first_party
        self._imported = imported
        self._before: frozenset[str] = frozenset()
        self._running: list[tuple[str, bool]] = []
        """The modules that are being imported now, and whether they are the project's."""
        self._new: dict[bool, list[str]] = {True: [], False: []}
        self._inside: dict[str, set[str]] = {}
        """By module, those that it imported first."""
        self._first_for: dict[str, str] = {}
        """By module, the test file on whose account it was imported first."""

    @property
    def count(self) -> int:
        """How many modules have been imported under its eyes."""
        return len(self._first_for)

    def install(self) -> None:
        """Be asked before all others."""
        if self not in sys.meta_path:
            self._before = self._before or frozenset(sys.modules)
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Be asked no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find."""
        for finder in list(sys.meta_path):
            find: Any = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                loader: Any = spec.loader
                if type(loader) in _LOADERS:
                    loader.exec_module = partial(self._run, loader, self._is_first_party(loader.path))
                return spec
        return None

    def borrowed(self, text: str, test_file: str | None = None) -> list[str]:
        """Modules that a file uses as a part of their package, which others imported for it.

        ``pkg.sub`` works after a mere ``import pkg`` only if somebody has imported ``pkg.sub``.
        """
        return [
            name
            for name in _parts_used(text)
            if name in self._first_for
            and name not in self._before
            and name not in self._inside.get(name.rpartition(".")[0], ())
            and (test_file is None or self._first_for[name] != test_file)
        ]

    def _run(self, loader: Any, own: bool, module: ModuleType) -> None:
        del loader.exec_module
        name = module.__name__
        self._running.append((name, own))
        try:
            loader.exec_module(module)
            self._new[own].append(name)
            self._first_for.setdefault(name, self.importing_for)
        finally:
            self._running.pop()
            for outer, _ in self._running:
                self._inside.setdefault(outer, set()).add(name)
            if self._is_outermost(own) and self._new[own]:
                new, self._new[own] = self._new[own], []
                self._imported(new)

    def _is_outermost(self, own: bool) -> bool:
        """Of the project's modules, the first one; of libraries, any that the project itself imports."""
        if own:
            return not any(each for _, each in self._running)
        return not self._running or self._running[-1][1]


def _parts_used(text: str) -> Iterator[str]:
    """``pkg.sub`` for each attribute of a package that the text imports, but for parts imported as well."""
    own = set(_imported_names(text))
    for names in _PLAIN_IMPORT.findall(text):
        for entry in names.split(","):
            package, _, alias = (word.strip() for word in entry.partition(" as "))
            if not package:
                continue
            used = re.findall(rf"(?<![\w.]){re.escape(alias or package)}\.(\w+)", text)
            yield from (
                name for name in dict.fromkeys(f"{package}.{each}" for each in used) if name not in own
            )


def _imported_names(text: str) -> Iterable[str]:
    for names in _PLAIN_IMPORT.findall(text):
        for entry in names.split(","):
            parts = entry.partition(" as ")[0].strip().split(".")
            yield from (".".join(parts[: count + 1]) for count in range(len(parts)))
    for package, names in _FROM_IMPORT.findall(text):
        yield package
        for entry in names.strip("()").split(","):
            yield f"{package}.{entry.partition(' as ')[0].strip()}"
