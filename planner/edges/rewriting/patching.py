"""Carries the differences of two plans into the text of the first, and leaves the rest as it was."""

from __future__ import annotations

from typing import Any, cast

from planner.edges.rewriting.differences import same, same_places
from planner.edges.rewriting.layout import MERGE, Part, json_layout, yaml_layout
from planner.edges.rewriting.surgery import Surgery, Unpatchable
from planner.model.plan import Plan, Todo
from planner.planfile.values import Field, Wanted, fields_by_key, wanted_by


def patched(text: str, old: dict[str, Any], new: dict[str, Any], *, is_json: bool) -> str:
    """The text of a plan file, changed from saying ``old`` to saying ``new``, both plain values of a plan.

    What it says afterwards has to be looked at: aliases and merged keys can carry a change further than it
    should go. Raises :class:`planner.edges.rewriting.surgery.Unpatchable` where nothing of the text can be
    kept.
    """
    root = json_layout(text) if is_json else yaml_layout(text)
    surgery = Surgery(text, root, is_json=is_json)
    _Patch(surgery).mapping(root, old, new, wanted_by(Plan))
    return surgery.result()


class _Patch:
    """Goes down the parts and both values together, to the smallest part that holds each difference."""

    def __init__(self, surgery: Surgery) -> None:
        self._surgery = surgery

    def mapping(self, part: Part, old: dict[str, Any], new: dict[str, Any], shape: Wanted | None) -> None:
        entries = part.entries()
        places = {
            _field(shape, key.text): index
            for index, (key, _) in enumerate(entries)
            if key.text != MERGE or key.style
        }
        before = {_field(shape, key): value for key, value in old.items()}
        after = {_field(shape, key): (key, value) for key, value in new.items()}
        removed = before.keys() - after.keys()
        if not removed <= places.keys() or len(removed) == len(entries):
            raise Unpatchable
        added: list[tuple[int, str, Any]] = []
        last = max(index for name, index in places.items() if name not in removed) if places else -1
        anchor: int | None = None
        for name, (key, value) in after.items():
            if name in places:
                anchor = places[name]
                self._value(part, entries[anchor], before.get(name), value, _shape_of(shape, name))
            elif name not in before or not same(before[name], value):
                # What was merged in is overruled by a key of the mapping's own.
                added.append((last if anchor is None else anchor, key, value))
        self._surgery.change_entries(part, {places[name] for name in removed}, added)

    def _items(self, part: Part, floor: int, old: list[Any], new: list[Any], shape: Wanted | None) -> None:
        item = shape.item if shape is not None else None
        pairs = same_places(old, new, by_name=item is not None and item.model is Todo)
        if len(part.children) != len(old) or not pairs:
            raise Unpatchable
        for i, j in pairs:
            self._item(part, part.children[i], old[i], new[j], item)
        kept, counterparts = zip(*pairs, strict=True)
        groups: dict[int, list[Any]] = {}
        following = dict(zip(counterparts, kept, strict=True))
        after = -1
        for j, value in enumerate(new):
            if j in following:
                after = following[j]
            else:
                groups.setdefault(after, []).append(value)
        self._surgery.change_items(part, floor, set(range(len(old))) - set(kept), groups.items())

    def _value(
        self, holder: Part, entry: tuple[Part, Part], old: Any, new: Any, shape: Wanted | None
    ) -> None:
        key, part = entry
        if not same(old, new) and not self._below(part, key.end, old, new, shape):
            self._surgery.replace(holder, key, part, new)

    def _item(self, holder: Part, part: Part, old: Any, new: Any, shape: Wanted | None) -> None:
        if not same(old, new) and not self._below(part, part.start, old, new, shape):
            self._surgery.replace(holder, None, part, new)

    def _below(self, part: Part, floor: int, old: Any, new: Any, shape: Wanted | None) -> bool:
        """Change what a part holds; whether that was possible."""
        mark = self._surgery.mark()
        try:
            if part.kind == "mapping" and isinstance(old, dict) and isinstance(new, dict) and new:
                self.mapping(part, cast("dict[str, Any]", old), cast("dict[str, Any]", new), shape)
                return True
            if part.kind == "list" and isinstance(old, list) and isinstance(new, list) and new:
                self._items(part, floor, cast("list[Any]", old), cast("list[Any]", new), shape)
                return True
        except Unpatchable:
            self._surgery.forget(mark)
        return False


def _field(shape: Wanted | None, key: str) -> str:
    """The one name of a key that may be spelled in several ways."""
    known = _fields(shape).get(key)
    return key if known is None else known.name


def _fields(shape: Wanted | None) -> dict[str, Field]:
    return {} if shape is None or shape.model is None else fields_by_key(shape.model)


def _shape_of(shape: Wanted | None, name: str) -> Wanted | None:
    known = _fields(shape).get(name)
    return None if known is None else known.wanted
