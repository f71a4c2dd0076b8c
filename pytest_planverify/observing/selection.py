"""Which collected items a command selects, exactly as pytest itself would when it ran alone.

pytest is given files and folders only; which of their items a criterion wants is decided here, so
that one id that does not exist costs its own criterion and no other.
"""

from __future__ import annotations

import ast
import difflib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.mark import KeywordMatcher, MarkMatcher
from _pytest.mark.expression import Expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_planverify.observing.spec import Wanted

Problem = dict[str, Any]
"""A selector that selects nothing: ``text``, ``problem`` and ``nearest``."""


@dataclass(frozen=True, slots=True)
class Target:
    """One positional argument of a pytest command."""

    text: str
    path: Path
    names: tuple[str, ...] = ()
    parametrization: str | None = None
    """``[...]`` of the last name; ``None`` accepts every parametrisation."""

    @classmethod
    def parse(cls, text: str, root: Path) -> Target:
        """Split a node id at the first ``[`` and at ``::`` before it."""
        base, bracket, rest = text.partition("[")
        file, *names = base.split("::")
        return cls(
            text,
            Path(os.path.abspath(root / file)),
            tuple(names),
            bracket + rest if bracket else None,
        )

    def accepts(self, path: Path, chain: Sequence[str]) -> bool:
        """Whether the item of that file and those names below it is selected."""
        if not self.names:
            return path == self.path or self.path in path.parents
        if path != self.path or len(chain) < len(self.names):
            return False
        *parents, last = self.names
        if list(chain[: len(parents)]) != parents:
            return False
        name = chain[len(parents)]
        if self.parametrization is not None:
            return name == last + self.parametrization
        return name == last or name.split("[")[0] == last


@dataclass(slots=True)
class Selection:
    """What one criterion selects of the items of a session."""

    key: str
    nodeids: list[str] = field(default_factory=list[str])
    narrowed: list[str] = field(default_factory=list[str])
    """Selected by the command, left out by the user of this run."""
    problems: list[Problem] = field(default_factory=list[Problem])


class ItemFacts:
    """An item with what matching needs of it, computed once."""

    __slots__ = ("chain", "item", "nodeid", "path")

    def __init__(self, item: pytest.Item, nodeid: str) -> None:
        self.item = item
        self.nodeid = nodeid
        self.path: Path = item.path
        chain: list[str] = []
        node: Any = item
        while node is not None and not isinstance(node, pytest.File):
            chain.append(node.name)
            node = node.parent
        self.chain = tuple(reversed(chain))


class Selector:
    """The selecting part of a command: its arguments, ``-k``, ``-m`` and ``--deselect``."""

    def __init__(
        self, wanted: Wanted, root: Path, *, fallback_keyword: str, fallback_markexpr: str
    ) -> None:
        self.key = wanted.key
        self.targets = [Target.parse(text, root) for text in wanted.selections]
        self.matched: set[Target] = set()
        """The targets that name at least one item."""
        self._deselect = wanted.deselect
        self._expressions: list[tuple[str, str, Callable[[pytest.Item], bool]]] = []
        self.problems: list[Problem] = []
        keyword, markexpr = wanted.keyword, wanted.markexpr  # empty ones replace those of the ini file, too
        keyword = fallback_keyword if keyword is None else keyword
        markexpr = fallback_markexpr if markexpr is None else markexpr
        self._add_expression("-k", keyword, KeywordMatcher.from_item)
        self._add_expression("-m", markexpr, _marks_of)

    def _add_expression(self, option: str, text: str | None, matcher: Callable[[pytest.Item], Any]) -> None:
        if not text or not text.strip():
            return
        try:
            compiled = Expression.compile(text.strip())
        except SyntaxError as error:
            problem = {"text": f"{option} {text}", "problem": "bad_expression", "nearest": [str(error)]}
            self.problems.append(problem)
            return
        self._expressions.append((option, text, lambda item: bool(compiled.evaluate(matcher(item)))))

    def wants(self, facts: ItemFacts) -> bool:
        """Whether the item passes ``-k``, ``-m`` and ``--deselect``."""
        if facts.item.nodeid.startswith(self._deselect):
            return False
        return all(accepts(facts.item) for _, _, accepts in self._expressions)

    def unmatched(self, items: Sequence[ItemFacts], blamed: Iterable[Path]) -> list[Problem]:
        """The arguments that name nothing, with what looks alike; files that failed to load are passed.

        To be asked after :func:`named_items`.
        """
        failed = list(blamed)
        problems: list[Problem] = []
        for target in self.targets:
            if target in self.matched:
                continue
            if not target.path.exists():
                problems.append(
                    {"text": target.text, "problem": "missing_file", "nearest": alike_paths(target.path)}
                )
            elif any(path == target.path or target.path in path.parents for path in failed):
                continue
            elif target.names:
                problems.append(
                    {
                        "text": target.text,
                        "problem": "missing_id",
                        "nearest": _alike_ids(target, items),
                    }
                )
        return problems

    def expression_text(self) -> str:
        """The expressions as the command says them."""
        texts = [f"{option} {text!r}" for option, text, _ in self._expressions]
        texts += [f"--deselect {prefix}" for prefix in self._deselect]
        return " ".join(texts)


def named_items(selectors: Sequence[Selector], items: Sequence[ItemFacts]) -> dict[str, list[ItemFacts]]:
    """The items that each selector's arguments name, by key; a command without arguments names all.

    Expressions are asked later, after the project's own hooks. The cost grows with the items and with the
    matches, not with their product.
    """
    named: dict[str, list[ItemFacts]] = {selector.key: [] for selector in selectors}
    everything = [selector for selector in selectors if not selector.targets]
    by_path: dict[Path, list[tuple[Selector, Target]]] = {}
    for selector in selectors:
        for target in selector.targets:
            by_path.setdefault(target.path, []).append((selector, target))
    by_name: dict[tuple[Path, str], list[tuple[Selector, Target]]] = {}
    around: dict[Path, list[tuple[Selector, Target]]] = {}
    for facts in items:
        if facts.path not in around:
            around[facts.path] = [
                pair
                for folder in (facts.path, *facts.path.parents)
                for pair in by_path.get(folder, ())
                if not pair[1].names
            ]
            for pair in by_path.get(facts.path, ()):
                if pair[1].names:
                    by_name.setdefault((facts.path, pair[1].names[0]), []).append(pair)
        first = facts.chain[0] if facts.chain else ""
        wanting = dict.fromkeys(everything)
        for selector, target in around[facts.path]:
            selector.matched.add(target)
            wanting[selector] = None
        if by_name:
            candidates = by_name.get((facts.path, first.split("[")[0]), [])
            if "[" in first:
                candidates = candidates + by_name.get((facts.path, first), [])
            for selector, target in candidates:
                if target.accepts(facts.path, facts.chain):
                    selector.matched.add(target)
                    wanting[selector] = None
        for selector in wanting:
            named[selector.key].append(facts)
    return named


def asking_for(file: Path, wanted: Iterable[Wanted], root: Path) -> list[str]:
    """The keys of the criteria whose commands import the file when they run alone."""
    return [
        each.key
        for each in wanted
        if not each.selections
        or any(
            target.path == file or target.path in file.parents
            for target in (Target.parse(text, root) for text in each.selections)
        )
    ]


def _marks_of(item: pytest.Item) -> MarkMatcher:
    return MarkMatcher.from_markers(item.iter_markers())


def alike_names(text: str, root: Path) -> list[str]:
    """The tests of the file that an argument names which look like the one that it asks for."""
    return _alike_names(Target.parse(text, root), ())


def _alike_ids(target: Target, items: Sequence[ItemFacts]) -> list[str]:
    file = target.text.partition("[")[0].split("::")[0]
    return [f"{file}::{name}" for name in _alike_names(target, items)]


def _alike_names(target: Target, items: Sequence[ItemFacts]) -> list[str]:
    known = {"::".join(facts.chain) for facts in items if facts.path == target.path}
    known |= _names_in(target.path)
    wanted = "::".join(target.names) + (target.parametrization or "")
    return _alike(wanted, known, cutoff=0.5)


def _alike(wanted: str, names: Iterable[str], *, cutoff: float) -> list[str]:
    """The names most alike, apart from what all tests have in common."""
    bare = {_bare(name): name for name in sorted(names, reverse=True)}
    return [bare[each] for each in difflib.get_close_matches(_bare(wanted), bare, n=3, cutoff=cutoff)]


def _bare(name: str) -> str:
    return name.replace("test_", "").removesuffix(".py").removesuffix("_test")


def _names_in(path: Path) -> set[str]:
    """The functions of a test file and the methods of its classes, as far as its text shows them."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}::{member.name}" for member in node.body if isinstance(member, _FUNCTIONS)
            }
        elif isinstance(node, _FUNCTIONS):
            names.add(node.name)
    return {name for name in names if name.rpartition("::")[2].startswith("test")}


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def alike_paths(path: Path) -> list[str]:
    """Names beside a path that does not exist which look like it, the most alike first."""
    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []
    return _alike(path.name, names, cutoff=0.6)
