"""What the tests ask and expect, as literals: which stand together in one case, and in one call."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import NOTHING, fold

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pytest_planverify.guards.hygiene.reading import Module

_GROUPS = (ast.Tuple, ast.List, ast.Dict, ast.Assert, ast.Call)


@dataclass(slots=True)
class TestFacts:
    """Of those literals that somebody asked about."""

    __test__ = False

    literals: set[str] = field(default_factory=set[str])
    """All that the tests and their data hold."""
    cases: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """By literal, the cases, calls and rows that hold it."""
    calls: dict[str, list[frozenset[str]]] = field(default_factory=lambda: defaultdict(list))
    """By the name of what is called, the literals of its arguments."""
    names: set[str] = field(default_factory=set[str])
    """Of classes and functions that the tests name."""
    _count: int = 0

    def together(self, one: Collection[str], other: Collection[str]) -> bool:
        """Whether one case of the tests holds all of both."""
        every = [self.cases.get(text, set[int]()) for text in (*one, *other)]
        return bool(every) and bool(every[0].intersection(*every[1:]))

    def called_with(self, name: str, literals: Collection[str]) -> bool:
        """Whether some test calls it with just these."""
        return any(set(literals) <= given for given in self.calls.get(name, ()))

    def add_module(self, module: Module, wanted: Collection[str]) -> None:
        """Take in the literals of a file of tests."""
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and repr(node.value) in wanted:
                self.literals.add(repr(node.value))
            elif isinstance(node, ast.Name):
                self.names.add(node.id)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = ast.Module(node.body, [])
                self.add_group(_inside(body), wanted)
            elif isinstance(node, _GROUPS):
                self.add_group(_inside(node), wanted)
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                given = frozenset(
                    repr(value)
                    for arg in (*node.args, *(keyword.value for keyword in node.keywords))
                    if (value := fold(arg)) is not NOTHING
                )
                if given:
                    self.calls[name].append(given)

    def add_group(self, literals: Iterable[str], wanted: Collection[str]) -> None:
        """Take in what stands together in one case."""
        held = {text for text in literals if text in wanted}
        self.literals |= held
        if len(held) > 1:
            self._count += 1
            for text in held:
                self.cases[text].add(self._count)


def _inside(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Tuple | ast.List) and len(node.elts) > 12:
        return  # a table is no case
    count = 0
    for each in ast.walk(node):
        if isinstance(each, ast.Constant):
            count += 1
            if count > 40:
                return
            yield repr(each.value)
