"""Which todos come before which, directly or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.dependencies import dependency_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.model.plan import Todo


class Ancestry:
    """What each todo waits for, in a plan without cycles. Unknown ids are passed over."""

    def __init__(self, items: Iterable[Todo]) -> None:
        self._before: dict[str, int] = {}
        self._bit: dict[str, int] = {}
        for todo in dependency_order(items):
            before = 0
            for dependency in todo.dependencies:
                if dependency in self._bit:
                    before |= self._before[dependency] | 1 << self._bit[dependency]
            self._bit[todo.id] = len(self._bit)
            self._before[todo.id] = before

    def waits_for(self, todo_id: str, other: str) -> bool:
        """Whether a todo depends on another, directly or not."""
        return other in self._bit and bool(self._before.get(todo_id, 0) >> self._bit[other] & 1)

    def implied(self, todo: Todo) -> Iterator[tuple[int, str, str]]:
        """Its dependencies that another of them waits for anyway: position, id, and that other."""
        behind = 0
        for dependency in todo.dependencies:
            behind |= self._before.get(dependency, 0)
        for position, dependency in enumerate(todo.dependencies):
            bit = self._bit.get(dependency)
            if bit is not None and behind >> bit & 1:
                by = next(each for each in todo.dependencies if self.waits_for(each, dependency))
                yield position, dependency, by
