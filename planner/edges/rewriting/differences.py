"""What is the same in two lists or two values of a plan, so that only the rest has to be written anew."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

_NAMES = ("id", "cmd", "path", "nodeid", "question", "name")
"""The keys by which a person would tell one entry of a list from another."""


def same(old: Any, new: Any) -> bool:
    """Whether two plain values would be written alike. The order of keys says nothing."""
    if old is new:
        return True
    if isinstance(old, dict):
        before = cast("dict[str, Any]", old)
        after = cast("dict[str, Any]", new)
        return (
            isinstance(new, dict)
            and before.keys() == after.keys()
            and all(same(value, after[key]) for key, value in before.items())
        )
    if isinstance(old, list):
        items, others = cast("list[Any]", old), cast("list[Any]", new)
        return isinstance(new, list) and len(items) == len(others) and all(map(same, items, others))
    # True is 1 and 1 is 1.0, but not in a file.
    return type(old) is type(new) and bool(old == new)


def same_places(old: Sequence[Any], new: Sequence[Any], *, by_name: bool) -> list[tuple[int, int]]:
    """Which entry of the old list is which of the new, by their indices, both rising.

    An entry is known by its name, or by all that it says. What has no counterpart is paired with what
    stands in its place, unless the entries are told apart ``by_name`` alone.
    """
    before, after = [_name(value) for value in old], [_name(value) for value in new]
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    pairs = [(index, index) for index in range(head)]
    middle = _rising(before, after, head, len(before) - tail, len(after) - tail)
    pairs += middle if by_name else _with_company(middle, head, len(before) - tail, len(after) - tail)
    return pairs + [(len(before) - left, len(after) - left) for left in range(tail, 0, -1)]


def _name(value: Any) -> Hashable:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for name in _NAMES:
            held = cast("dict[str, Any]", value).get(name)
            if isinstance(held, str):
                return held
    return ("", json.dumps(value, sort_keys=True, default=str))


def _rising(
    before: list[Hashable], after: list[Hashable], head: int, before_end: int, after_end: int
) -> list[tuple[int, int]]:
    """The longest run of pairs, in both orders, of names that stand once on each side."""
    once = {name for name, count in Counter(after[head:after_end]).items() if count == 1}
    once &= {name for name, count in Counter(before[head:before_end]).items() if count == 1}
    place = {name: index for index, name in enumerate(before[head:before_end], head) if name in once}
    found = [(place[name], j) for j, name in enumerate(after[head:after_end], head) if name in once]
    ends: list[int] = []
    chains: list[int] = []
    previous: list[int] = []
    for at, (index, _) in enumerate(found):
        length = bisect_left(ends, index)
        previous.append(chains[length - 1] if length else -1)
        ends[length : length + 1] = [index]
        chains[length : length + 1] = [at]
    longest: list[tuple[int, int]] = []
    at = chains[-1] if chains else -1
    while at >= 0:
        longest.append(found[at])
        at = previous[at]
    return longest[::-1]


def _with_company(
    known: list[tuple[int, int]], head: int, before_end: int, after_end: int
) -> list[tuple[int, int]]:
    """The known pairs, and between them the entries that stand in each other's place."""
    pairs: list[tuple[int, int]] = []
    i, j = head, head
    for pair in [*known, (before_end, after_end)]:
        pairs += zip(range(i, pair[0]), range(j, pair[1]), strict=False)
        pairs.append(pair)
        i, j = pair[0] + 1, pair[1] + 1
    return pairs[:-1]
