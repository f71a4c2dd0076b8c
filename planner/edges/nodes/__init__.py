"""The tree between text and values: what a file holds, with the offset of each part.

Both readers, of YAML and of JSON, build it. A scalar keeps the text as it was written; what that text
means is decided later, by what the plan wants in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from planner.edges.faults import Fault, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.edges.source import Source

MAX_DEPTH = 64
"""How deep lists and mappings may be nested."""

MAX_NODES = 2_000_000
"""How many values a file may hold."""

MAX_FAULTS = 10_000
"""After so many faults a file is read no further."""

Loc: TypeAlias = tuple[str | int, ...]
"""A place in the plan by the names of the model: ``("items", 2, "title")``."""


class Scalar:
    """A text. ``quoted`` says that it can be nothing but text."""

    __slots__ = ("at", "quoted", "text")

    def __init__(self, at: int, text: str, quoted: bool) -> None:
        self.at = at
        self.text = text
        self.quoted = quoted


class ListNode:
    """A list of nodes."""

    __slots__ = ("at", "items")

    def __init__(self, at: int, items: list[Node]) -> None:
        self.at = at
        self.items = items


class MappingNode:
    """Keys and values, each key once."""

    __slots__ = ("at", "entries")

    def __init__(self, at: int, entries: list[tuple[Scalar, Node]]) -> None:
        self.at = at
        self.entries = entries


Node: TypeAlias = Scalar | ListNode | MappingNode


class Tree:
    """The nodes of a file, and the faults found in them so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.root: Node = MappingNode(0, [])
        self.faults: list[Fault] = []
        self._marked: list[tuple[Node, str, int, str]] = []
        self._marked_ids: set[int] = set()
        self._condemned: set[int] = set()

    def mark(self, node: Node, problem: str, suffix: str = "", at: int | None = None) -> None:
        """Note that something is wrong with a node, or with its part ``suffix``, which stands ``at``."""
        if id(node) in self._condemned:
            return
        if len(self._marked) >= MAX_FAULTS:
            raise Refused("", tuple(self.all_faults()))
        self._marked.append((node, suffix, node.at if at is None else at, problem))
        self._marked_ids.add(id(node))

    def condemn(self, node: Node, problem: str) -> None:
        """Mark a node, and say nothing more about it: what could be said would only follow from this."""
        self.mark(node, problem)
        self._condemned.add(id(node))

    def mark_offset(self, offset: int, problem: str) -> None:
        """Note that something is wrong at an offset of the text."""
        line, column = self.source.position(offset)
        self.faults.append(Fault(line=line, column=column, problem=problem))

    def refusal(self, offset: int, problem: str) -> Refused:
        """The exception for a fault after which reading cannot go on."""
        self.mark_offset(offset, problem)
        return Refused(problem, tuple(self.all_faults()))

    def all_faults(self) -> list[Fault]:
        """Every fault so far, with its path."""
        if not self._marked:
            return self.faults
        # Paths are looked up only when there is something to report: a sound plan pays nothing for them.
        paths: dict[int, str] = {}
        for node, path in _walk(self.root):
            paths.setdefault(id(node), path)
        found = list(self.faults)
        for node, suffix, at, problem in self._marked:
            line, column = self.source.position(at)
            path = (paths.get(id(node), "") + suffix).removeprefix(".")
            found.append(Fault(line=line, column=column, path=path, problem=problem))
        return found

    def holds_faults(self, node: Node, *, below: bool) -> bool:
        """Whether a fault of that node is known, or (``below``) of one that it holds."""
        if not below:
            return id(node) in self._marked_ids
        return any(id(each) in self._marked_ids for each, _ in _walk(node))


def follow(root: Node, loc: Loc, spellings: dict[str, frozenset[str]]) -> tuple[Node, str, bool]:
    """The node at a place, its path as the file spells it, and whether the place is there at all.

    Where the place is missing, the node that lacks it is returned.
    """
    node, path = root, ""
    for part in loc:
        if isinstance(node, ListNode) and isinstance(part, int) and part < len(node.items):
            node, path = node.items[part], f"{path}[{part}]"
        elif isinstance(node, MappingNode):
            names = spellings.get(str(part), frozenset((str(part),)))
            for key, value in node.entries:
                if key.text in names:
                    node, path = value, f"{path}.{key.text}"
                    break
            else:
                return node, f"{path}.{part}", False
    return node, path, True


def _walk(root: Node) -> Iterator[tuple[Node, str]]:
    pending: list[tuple[Node, str]] = [(root, "")]
    while pending:
        node, path = pending.pop()
        yield node, path
        if isinstance(node, ListNode):
            pending.extend((item, f"{path}[{i}]") for i, item in reversed(list(enumerate(node.items))))
        elif isinstance(node, MappingNode):
            for key, value in reversed(node.entries):
                below = f"{path}.{key.text}"
                yield key, below
                pending.append((value, below))
