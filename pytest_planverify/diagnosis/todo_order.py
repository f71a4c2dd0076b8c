"""Which todos of a run come before which: how deep each stands, and what rests on what."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TodoKey: TypeAlias = tuple[str | None, str]
"""The id of a plan, and of a todo in it."""


class TodoOrder:
    """The todos of a run. Dependencies in a circle, and on what is not there, are passed over."""

    def __init__(self, depends: Mapping[TodoKey, Sequence[TodoKey]], seen: Iterable[TodoKey] = ()) -> None:
        """``depends`` holds the todos in the plan's order; those in ``seen`` alone come after them."""
        unknown = {each for each in seen if each not in depends}
        known = (*depends, *sorted(unknown, key=lambda key: (key[0] or "", key[1])))
        self._place = {key: place for place, key in enumerate(known)}
        self._depends = depends
        self._depth: dict[TodoKey, int] = {}

    def place(self, todo: TodoKey) -> int:
        """Where it stands in the plan."""
        return self._place[todo]

    def depth(self, todo: TodoKey) -> int:
        """How many todos must be done before it, one after the other."""
        if not self._depth:
            for each in self._place:  # in one order, for a circle is as deep as where it is entered
                self._measure(each)
        return self._depth[todo]

    def rests_on(self, late: TodoKey, early: TodoKey) -> bool:
        """Whether one todo depends on another, also by way of others."""
        seen, waiting = {late}, [late]
        while waiting:
            above = [each for each in self._above(waiting.pop()) if each not in seen]
            if early in above:
                return True
            seen.update(above)
            waiting.extend(above)
        return False

    def _above(self, todo: TodoKey) -> list[TodoKey]:
        return [each for each in self._depends.get(todo, ()) if each in self._place]

    def _measure(self, todo: TodoKey) -> None:
        """Without recursion, for a plan may be a chain of thousands."""
        stack, under_way = [todo], {todo}
        while stack:
            above = self._above(stack[-1])
            waiting = [each for each in above if each not in self._depth and each not in under_way]
            if waiting:
                under_way.update(waiting)
                stack.extend(waiting)
                continue
            done = stack.pop()
            self._depth[done] = 1 + max((self._depth.get(each, -1) for each in above), default=-1)
