"""What makes the verdict of a test depend on more than the code: chance, clock, network, hash order.

Reads syntax trees only. :class:`Names` follows imports, so that ``np.random.rand`` and ``from random import
choice`` are known for what they are; a name that is a parameter or a local variable is nobody's module.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from planner.rules.reading.impure_calls import (
    ALWAYS,
    BARE,
    CLIENTS,
    GUARD_CALLS,
    GUARD_MARKS,
    GUARD_REQUESTS,
    GUARD_WORDS,
    PATCHERS,
    SEEDED_STATE,
    SEEDS,
    UNSEEDED,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class HazardKind(StrEnum):
    """Where chance comes in."""

    RANDOM = "random"
    CLOCK = "clock"
    NETWORK = "network"
    ORDER = "order"


@dataclass(frozen=True, slots=True)
class Hazard:
    """One call that makes the verdict depend on more than the code."""

    kind: HazardKind
    what: str
    """The call, by the full name of what is called."""
    line: int
    family: str = ""
    """Of a call on state that can be seeded, whose: a key of :data:`SEEDS`."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a piece of code does for and against being repeatable."""

    hazards: tuple[Hazard, ...] = ()
    seeds: frozenset[str] = frozenset()
    """The families of generators that it seeds."""
    guards: frozenset[HazardKind] = frozenset()
    """Against which kinds it takes care: freezes the clock, mocks the network, replaces the generator."""


_LOCAL = re.compile(
    r"(?:(?:https?|wss?)://)?(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0)(?:[:/?#].*)?"
)
_URL = re.compile(r"(?:https?|ftp|wss?)://", re.IGNORECASE)
_READERS = re.compile(r"pandas\.read_(?:csv|json|excel|parquet|html|table|xml|feather)")
_KEEPS_ORDER_OUT = frozenset(
    {"sorted", "len", "set", "frozenset", "sum", "min", "max", "any", "all", "dict", "Counter"}
)
_SHOWS_ORDER = frozenset({"list", "tuple", "str", "repr", "print", "next", "iter", "enumerate", "zip"})


class Names:
    """What the names of a module mean by its imports; ``shadowed`` are local ones."""

    def __init__(self, aliases: Mapping[str, str], shadowed: frozenset[str] = frozenset()) -> None:
        self.aliases = aliases
        self.shadowed = shadowed

    def dotted(self, node: ast.AST) -> str | None:
        """The full name of what an expression names: ``numpy.random.rand``."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        root = self.aliases.get(node.id)
        if root is None or node.id in self.shadowed:
            # No module that is known. A dot in front keeps it from being taken for one.
            root = node.id if not parts and node.id not in self.shadowed else f".{node.id}"
        return ".".join([root, *reversed(parts)])

    def inside(self, nodes: Iterable[ast.AST]) -> Names:
        """What they mean in a function of these nodes: with its own imports, without what it assigns."""
        own: dict[str, str] = {}
        local: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.arg):
                local.add(node.arg)
            elif isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Store):
                    local.add(node.id)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                own.update(imports_of((node,)))
        return Names({**self.aliases, **own}, frozenset(local - set(own)) | self.shadowed - set(own))


def imports_of(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """What the imports among the nodes bind, by name."""
    bound: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                bound[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            bound.update(
                {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            )
    return bound


def names_of(body: list[ast.stmt]) -> Names:
    """What the imports of a module bind, and what it names otherwise: ``now = datetime.now``."""
    aliases = imports_of(outside_functions(body))
    names = Names(aliases)
    for statement in body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Attribute):
            meant = names.dotted(statement.value)
            targets = [each.id for each in statement.targets if isinstance(each, ast.Name)]
            if meant is not None and not meant.startswith("."):
                aliases.update(dict.fromkeys(targets, meant))
    return names


def outside_functions(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Every node that runs when the statements run."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
            pending.extend(ast.iter_child_nodes(node))


def look(nodes: Iterable[ast.AST], names: Names, requests: Iterable[str] = ()) -> Found:
    """Look at nodes (all of them, not only the uppermost) and at the fixtures that are asked for."""
    hazards: list[Hazard] = []
    seeds: set[str] = set()
    guards: set[HazardKind] = {
        HazardKind(GUARD_REQUESTS[each]) for each in requests if each in GUARD_REQUESTS
    }
    guards |= {HazardKind.NETWORK for each in requests if "server" in each}
    nodes = list(nodes)
    tame = _tame(nodes)
    for node in nodes:
        if isinstance(node, ast.Call):
            name = names.dotted(node.func) or ""
            seeds.update(_seeds(node, name))
            guards.update(_guards(node, name))
            hazards.extend(_hazards(node, name))
            if id(node) not in tame:
                hazards.extend(_disorder(node, name))
        elif isinstance(node, ast.JoinedStr):
            hazards.extend(
                Hazard(HazardKind.ORDER, "a set in an f-string", node.lineno)
                for value in node.values
                if isinstance(value, ast.FormattedValue) and _is_set(value.value)
            )
        elif isinstance(node, ast.Attribute | ast.Name):
            guards.update(_plain_guards(names.dotted(node) or ""))
    return Found(tuple(hazards), frozenset(seeds), frozenset(guards))


def _seeds(node: ast.Call, name: str) -> Iterator[str]:
    given = bool(node.args or node.keywords)
    if name in SEEDS and (given or name == "hypothesis.seed"):
        yield SEEDS[name]
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in ("seed_instance", "seed_locale")
        and given
    ):
        yield "faker"
    if any(
        keyword.arg == "derandomize"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is True
        for keyword in node.keywords
    ):
        yield "hypothesis"


def _guards(node: ast.Call, name: str) -> Iterator[HazardKind]:
    if name.endswith(PATCHERS):
        said: set[str] = set()
        for argument in node.args[:2]:
            text = argument.value if isinstance(argument, ast.Constant) else ast.unparse(argument)
            if isinstance(text, str):
                said.update(re.split(r"[^A-Za-z0-9]+", text[:500]))
        for kind, words in GUARD_WORDS.items():
            if said & words:
                yield HazardKind(kind)


def _plain_guards(name: str) -> Iterator[HazardKind]:
    for prefix, kind in GUARD_CALLS.items():
        if name == prefix or name.endswith("." + prefix):
            yield HazardKind(kind)
    before, _, mark = name.rpartition(".")
    if before.endswith("mark") and mark in GUARD_MARKS:
        yield HazardKind(GUARD_MARKS[mark])


def _hazards(node: ast.Call, name: str) -> Iterator[Hazard]:
    shown = f"{name}()"
    kind = ALWAYS.get(name)
    if kind is not None:
        if not (kind == "network" and _is_local(node)):
            yield Hazard(HazardKind(kind), shown, node.lineno)
    elif name in BARE:
        most = BARE[name][1]
        if len(node.args) <= most and not node.keywords:
            yield Hazard(HazardKind(BARE[name][0]), shown, node.lineno)
    elif name in UNSEEDED:
        if not _has_seed(node):
            yield Hazard(HazardKind.RANDOM, f"{shown} without a seed", node.lineno)
    elif name in CLIENTS:
        if not _is_local(node) and not any(each.arg in ("transport", "app") for each in node.keywords):
            yield Hazard(HazardKind.NETWORK, shown, node.lineno)
    else:
        for prefix, (family, functions) in SEEDED_STATE.items():
            if name.startswith(prefix) and name.removeprefix(prefix) in functions:
                yield Hazard(HazardKind.RANDOM, shown, node.lineno, family)
        yield from _connections(node, name)
        yield from _present(node, name)


def _connections(node: ast.Call, name: str) -> Iterator[Hazard]:
    """A socket's ``connect`` to a host, and a table read from a URL."""
    first = node.args[0] if node.args else None
    is_connect = isinstance(node.func, ast.Attribute) and node.func.attr in ("connect", "connect_ex")
    if is_connect and isinstance(first, ast.Tuple) and len(first.elts) == 2 and not _is_local(node):
        if _text(first.elts[0]) is not None:
            yield Hazard(HazardKind.NETWORK, f"connect() to {_text(first.elts[0])!r}", node.lineno)
    elif _READERS.fullmatch(name) and _URL.match(_text(first) or "") and not _is_local(node):
        yield Hazard(HazardKind.NETWORK, f"{name}() of a URL", node.lineno)


def _present(node: ast.Call, name: str) -> Iterator[Hazard]:
    """A date that is written as a word for the present."""
    if name in ("pandas.to_datetime", "pandas.Timestamp", "numpy.datetime64") and node.args:
        word = _text(node.args[0])
        if word in ("now", "today"):
            yield Hazard(HazardKind.CLOCK, f"{name}({word!r})", node.lineno)


def _has_seed(node: ast.Call) -> bool:
    values = [*node.args, *(each.value for each in node.keywords)]
    return any(not (isinstance(value, ast.Constant) and value.value is None) for value in values)


def _is_local(node: ast.Call) -> bool:
    """Whether it speaks to this machine only."""
    for argument in (*node.args[:2], *(each.value for each in node.keywords)):
        host = argument.elts[0] if isinstance(argument, ast.Tuple) and argument.elts else argument
        if _LOCAL.fullmatch(_text(host) or ""):
            return True
    return False


def _text(node: ast.AST | None) -> str | None:
    """The text that an expression is, or begins with."""
    if isinstance(node, ast.JoinedStr) and node.values:
        # What follows is not known, and may be anything but a part of the host where a slash ended it.
        return _text(node.values[0])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _tame(nodes: Iterable[ast.AST]) -> set[int]:
    """The calls whose order is taken away by what is around them: ``sorted(list(set(x)))``."""
    tame: set[int] = set()
    for node in nodes:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in _KEEPS_ORDER_OUT
        ):
            tame.update(id(each) for argument in node.args for each in ast.walk(argument))
    return tame


def _disorder(node: ast.Call, name: str) -> Iterator[Hazard]:
    joins = (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "join"
        and _text(node.func.value) is not None
    )
    if (joins or name in _SHOWS_ORDER) and any(_is_set(argument) for argument in node.args):
        shown = "join" if joins else name
        yield Hazard(HazardKind.ORDER, f"{shown}() of a set", node.lineno)


def _is_set(node: ast.AST) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return len(getattr(node, "elts", "ab")) > 1
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("set", "frozenset")
        and bool(node.args)
    )
