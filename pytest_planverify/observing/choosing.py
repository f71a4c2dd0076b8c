"""Decides which of the items that pytest collected a session runs, and for which criteria."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_planverify.observing.selection import ItemFacts, Selection, Selector, named_items
from pytest_planverify.observing.spec import Narrowing, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    import pytest

    from pytest_planverify.observing.nodeids import NodeIds
    from pytest_planverify.observing.spec import SessionSpec

    Accepts = Callable[[ItemFacts], bool]


class Choosing:
    """Chooses once, in two steps: what the commands name, and what is left after other plugins."""

    def __init__(self, spec: SessionSpec, nodeids: NodeIds, keyword: str, markexpr: str) -> None:
        """``keyword`` and ``markexpr`` hold for the commands that give none of their own."""
        self._spec = spec
        self._nodeids = nodeids
        self._root = Path(spec.root)
        self._skip = frozenset(spec.skip)
        self._selectors: list[Selector] = []
        if not spec.verbatim:
            self._selectors = [
                Selector(wanted, self._root, fallback_keyword=keyword, fallback_markexpr=markexpr)
                for wanted in spec.wanted
            ]
        self._collected: list[ItemFacts] = []
        self._named: dict[str, list[ItemFacts]] = {}
        self.groups: dict[str, tuple[str, ...]] = {}
        """By node id, the criteria that want it."""

    def before_other_plugins(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what no command names, so that other plugins see what they would see otherwise."""
        if self._spec.verbatim:
            return
        self._collected = self._facts(items)
        self._named = named_items(self._selectors, self._collected)
        _deselect(config, items, {id(facts.item) for entries in self._named.values() for facts in entries})

    def after_other_plugins(
        self, config: pytest.Config, items: list[pytest.Item], failed_files: Iterable[Path]
    ) -> list[Selection]:
        """Leave out what nobody wants run; returns what each criterion selects."""
        narrow = self._narrowing()
        kept: dict[int, None] = {}
        if self._spec.verbatim:
            selections = [self._verbatim(items, narrow, kept)]
        else:
            failed = list(failed_files)
            remaining = {id(item) for item in items}
            selections = [
                self._selection(selector, remaining, narrow, failed, kept) for selector in self._selectors
            ]
        _deselect(config, items, kept.keys())
        groups: dict[str, list[str]] = {}
        for selection in selections:
            for nodeid in selection.nodeids:
                groups.setdefault(nodeid, []).append(selection.key)
        self.groups = {nodeid: tuple(keys) for nodeid, keys in groups.items()}
        return selections

    def _facts(self, items: Iterable[pytest.Item]) -> list[ItemFacts]:
        return [ItemFacts(item, self._nodeids.of(item.nodeid)) for item in items]

    def _verbatim(self, items: Iterable[pytest.Item], narrow: Accepts, kept: dict[int, None]) -> Selection:
        (wanted,) = self._spec.wanted
        selection = Selection(wanted.key)
        for facts in self._facts(items):
            self._sort(facts, selection, narrow, kept)
        return selection

    def _selection(
        self,
        selector: Selector,
        remaining: set[int],
        narrow: Accepts,
        failed: list[Path],
        kept: dict[int, None],
    ) -> Selection:
        selection = Selection(selector.key)
        named = self._named[selector.key]
        selection.problems = selector.problems + selector.unmatched(self._collected, failed)
        if not selector.problems:
            for facts in named:
                if id(facts.item) in remaining and selector.wants(facts):
                    self._sort(facts, selection, narrow, kept)
        if named and not selection.nodeids and not selection.narrowed and not selection.problems:
            expression = selector.expression_text()
            if expression:
                selection.problems.append({"text": expression, "problem": "no_match", "nearest": []})
        return selection

    def _sort(self, facts: ItemFacts, selection: Selection, narrow: Accepts, kept: dict[int, None]) -> None:
        """Put an item that the criterion selects where it belongs."""
        if facts.nodeid in self._skip:
            selection.nodeids.append(facts.nodeid)
        elif narrow(facts):
            selection.nodeids.append(facts.nodeid)
            kept[id(facts.item)] = None
        else:
            selection.narrowed.append(facts.nodeid)

    def _narrowing(self) -> Accepts:
        narrowing = self._spec.narrowing
        if narrowing == Narrowing():
            return _accept
        wanted = Wanted(
            key="narrowing",
            keyword=narrowing.keyword,
            markexpr=narrowing.markexpr,
            deselect=narrowing.deselect,
        )
        selector = Selector(wanted, self._root, fallback_keyword="", fallback_markexpr="")
        only = None if narrowing.only is None else frozenset(narrowing.only)

        def accepts(facts: ItemFacts) -> bool:
            return (only is None or facts.nodeid in only) and selector.wants(facts)

        return accepts


def _accept(facts: ItemFacts) -> bool:
    return True


def _deselect(config: pytest.Config, items: list[pytest.Item], keep: Container[int]) -> None:
    """Leave out the items that are not among those kept, by identity."""
    dropped = [item for item in items if id(item) not in keep]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if id(item) in keep]
