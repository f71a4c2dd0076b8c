"""A heap that is never changed: pushing and popping give new heaps, and the old ones stay as they are.

A leftist heap (Crane, 1972): merging follows the right spines, which are no longer than the logarithm of
the size.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

Key: TypeAlias = tuple[Any, ...]


class Node(NamedTuple):
    """The least key of a heap and what is left without it."""

    rank: int
    key: Key
    left: Node | None
    right: Node | None


Heap: TypeAlias = Node | None
"""``None`` is the empty heap."""


def push(heap: Heap, key: Key) -> Node:
    """The heap with one key more. Keys are compared as tuples; equal ones may stand in it twice."""
    return _merged(heap, Node(1, key, None, None))


def popped(heap: Node) -> Heap:
    """The heap without its least key."""
    return _merge(heap.left, heap.right)


def _merge(one: Heap, other: Heap) -> Heap:
    if one is None:
        return other
    return one if other is None else _merged(one, other)


def _merged(one: Heap, other: Node) -> Node:
    # By hand and not by recursion: a spine is walked down, and built again from its end.
    spine: list[Node] = []
    result = other
    while one is not None:
        if result.key < one.key:
            one, result = result, one
        spine.append(one)
        one = one.right
    for node in reversed(spine):
        left, right = node.left, result
        if left is None or left.rank < right.rank:
            left, right = right, left
        result = Node(1 + (0 if right is None else right.rank), node.key, left, right)
    return result
