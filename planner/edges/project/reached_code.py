"""Which of the project's definitions a test or a failing line goes through, the likeliest culprit first.

It is found out from the source alone: by the names and attributes that a definition uses, through imports,
classes and their bases. What nobody can tell without running the code is left out.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path
from planner.edges.project.essential_lines import words_of
from planner.edges.project.imported_names import Imported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from planner.edges.project.python_places import PythonFile

MOST_UNITS = 60
"""Definitions that are followed for one todo."""

_NEARER = 0.85
"""How much less likely each further call is."""

_SILENT = 0.35
"""How likely a definition is that has no word of the failure, against one that has them."""

_OFF = 0.35
"""The same of a call in a line that has none."""

_UNNAMED = 0.3
"""How likely a method is that is called without being named."""

_AMONG_FRIENDS = 0.6
"""How likely a method is that others of its class call, against the class."""

_CLOSE = 3
"""Lines."""

_COSTLY = 60
"""Lines of a definition that has to be twice as likely to be shown as early."""

_MOST_TELLING = 4
"""Lines of a definition that speak for it."""

_ENOUGH = 4.0
"""What such lines say together where they say all that can be wished."""

_MOST_LINES = 400
"""Of one definition that are looked at."""

_BY_ITSELF = (
    *("__init__", "__new__", "__post_init__", "__call__", "__get__", "__set_name__"),
    *("__getattr__", "__getattribute__", "__init_subclass__"),
)
"""Methods that are called without being named."""

_PLAIN_BASES = frozenset(
    (*dir(builtins), "Generic", "Protocol", "ABC", "Enum", "NamedTuple", "t", "typing")
)
"""Bases that call nothing of the class."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One definition: a function, a method, a class or an assignment of a module."""

    path: str
    names: tuple[str, ...]
    """``("Cart", "total")``."""


class ReachedCode:
    """Walks from definitions to those that they use."""

    def __init__(
        self,
        structure: Callable[[str], PythonFile | None],
        modules: Callable[[str, Imported], Iterable[str]],
    ) -> None:
        self._structure = structure
        self._modules = modules

    def ranked(self, roots: Mapping[Unit, int | None], words: Mapping[str, float]) -> list[Unit]:
        """All that is reached, the roots too, the likeliest first.

        ``roots`` are the definitions where the failure shows, each with its line there; ``words`` are those
        of the failure with their weights.
        """
        likely = _Walk(self, roots, words).likely
        worth = {unit: score / (1 + self._length(unit) / _COSTLY) for unit, score in likely.items()}
        return sorted(worth, key=lambda unit: (-worth[unit], unit.path, unit.names))

    def _length(self, unit: Unit) -> int:
        file = self._structure(unit.path)
        return min(len(file.code_lines(unit.names)), _COSTLY) if file else 0

    def structure(self, unit: Unit) -> PythonFile | None:
        return self._structure(unit.path)

    def classes(self, unit: Unit) -> Iterator[Unit]:
        """The class that a definition is, or lies in, and its bases."""
        file = self._structure(unit.path)
        if file is None or not file.is_class(unit.names[:1]):
            return
        own = Unit(unit.path, unit.names[:1])
        yield own
        for name, attribute in file.bases(own.names):
            yield from self.named(unit.path, name, attribute)

    def called_from_outside(self, owner: Unit) -> list[str]:
        """The methods of a class that a base of another project may call."""
        file = self._structure(owner.path)
        bases = file.bases(owner.names) if file is not None and not is_test_path(owner.path) else []
        if file is None or all(
            name in _PLAIN_BASES or any(True for _ in self.named(owner.path, name, attribute))
            for name, attribute in bases
        ):
            return []
        return file.methods(owner.names)

    def method(self, owner: Unit, name: str) -> Unit | None:
        file = self._structure(owner.path)
        names = (*owner.names, name)
        return Unit(owner.path, names) if file is not None and file.has(names) else None

    def named(
        self,
        path: str,
        name: str,
        attribute: str | None,
        within: tuple[str, ...] = (),
        depth: int = 4,
    ) -> Iterator[Unit]:
        """The definition that a name stands for in a file, ``within`` a definition of it."""
        file = self._structure(path)
        if file is None or not depth:
            return
        if file.has((name,)):
            if attribute is not None and file.has((name, attribute)):
                yield Unit(path, (name, attribute))
            yield Unit(path, (name,))
            return
        source = file.imported(name, within)
        if "." in name:  # ``package.module`` of a statement that imports both
            source = Imported(name, None, 0) if file.imported(name.partition(".")[0]) else None
            if source is None:
                return
        wanted = name if source is None else source.name or attribute
        for origin in file.stars if source is None else (source,):
            for module in self._modules(path, origin) if wanted is not None else ():
                found = list(self.named(module, wanted or "", attribute, depth=depth - 1))
                if found:
                    yield from found
                    return


class _Walk:
    """One walk, always on from the likeliest: every class that was met is asked for every member that was
    named."""

    def __init__(
        self, code: ReachedCode, roots: Mapping[Unit, int | None], words: Mapping[str, float]
    ) -> None:
        self._code = code
        self._roots = roots
        self._words = words
        self._scores: dict[Unit, float] = {}
        self._classes: dict[Unit, float] = {}
        self._members: dict[str, float] = dict.fromkeys(_BY_ITSELF, _UNNAMED)
        self._open: list[tuple[float, str, tuple[str, ...]]] = []
        for root in roots:
            self._meet(root, 1.0)
        done: set[Unit] = set()
        while self._open and len(done) < MOST_UNITS:
            _, path, names = heappop(self._open)
            unit = Unit(path, names)
            if unit not in done:
                done.add(unit)
                self._follow(unit)
        self.likely = {unit: self._scores[unit] for unit in done}

    def _meet(self, unit: Unit, likely: float) -> None:
        likely = likely if unit in self._roots else likely * self._own(unit)
        if likely > self._scores.get(unit, 0.0):
            self._scores[unit] = likely
            heappush(self._open, (-likely, unit.path, unit.names))

    def _own(self, unit: Unit) -> float:
        """How much a definition speaks of the failure by itself."""
        told = sorted(self._told(unit).values())[-_MOST_TELLING:]
        named = max((self._words.get(part, 0.0) for part in words_of(unit.names[-1])), default=0.0)
        return _SILENT + min((sum(told) + named) / _ENOUGH, 1.0) * (1.0 - _SILENT)

    def _told(self, unit: Unit) -> dict[int, float]:
        file = self._code.structure(unit)
        lines = file.code_lines(unit.names)[:_MOST_LINES] if file else ()
        return {line: file.told(line, self._words) for line in lines} if file else {}

    def _follow(self, unit: Unit) -> None:
        file = self._code.structure(unit)
        if file is None:
            return
        pull = self._pulls(unit)
        for (name, attribute), line in file.uses(unit.names).items():
            for used in self._code.named(unit.path, name, attribute, unit.names):
                self._meet(used, pull(line))
        # What the methods of the class under suspicion call of each other is as suspect as they are.
        least = _AMONG_FRIENDS * self._classes.get(Unit(unit.path, unit.names[:1]), 0.0)
        for name, line in file.members_used(unit.names).items():
            likely = max(pull(line), least)
            if likely > self._members.get(name, 0.0):
                self._members[name] = likely
                for owner in self._classes:
                    self._ask(owner, name)
        for owner in self._code.classes(unit):
            if owner not in self._classes:
                self._classes[owner] = self._scores[unit]
                self._meet(owner, self._scores[unit] * _NEARER)
                for name in list(self._members):
                    self._ask(owner, name)
                for name in self._code.called_from_outside(owner):
                    self._members.setdefault(name, _UNNAMED)
                    self._ask(owner, name)

    def _ask(self, owner: Unit, name: str) -> None:
        method = self._code.method(owner, name)
        if method is not None:
            self._meet(method, min(self._members[name], max(self._classes[owner], _UNNAMED)))

    def _pulls(self, unit: Unit) -> Callable[[int], float]:
        """How likely what is used at a line is to matter."""
        base = self._scores[unit] * _NEARER
        at = self._roots.get(unit)
        if at is not None:
            return lambda line: base * (1.0 if abs(line - at) < _CLOSE else 0.7 if line < at else 0.2)
        if unit in self._roots:
            return lambda _: base
        told = self._told(unit)
        most = max(told.values(), default=0.0) or 1.0
        return lambda line: base * (_OFF + (1 - _OFF) * told.get(line, 0.0) / most)
