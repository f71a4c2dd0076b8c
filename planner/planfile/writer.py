"""Writes a revised plan as the user would have: their file, changed only where the plans differ.

The parser's events tell where each value stands. The text around and between the values that change stays
as it is, to the last blank: comments, order, quotes, brackets, indentation. An entry that goes takes along
the comments directly above it, and a new one is written as its neighbours are. The new text is loaded
before it is believed. Where it does not hold the revised plan (an anchor that several todos share was
changed for one of them, a key merged in with ``<<`` was removed), the whole plan is written anew, without
comments.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import yaml

from planner.errors import PlanFileError, PlannerError
from planner.model.plan import Plan, Todo
from planner.planfile.confinement import is_below, unusual_fault
from planner.planfile.dump import Indentation, plain, yaml_block, yaml_flow, yaml_scalar
from planner.planfile.faults import Refused
from planner.planfile.loader import LoadedPlan, collector_paused, dump_plan, load_plan_text, shown_path
from planner.planfile.source import read_source
from planner.planfile.values import Wanted, fields_by_key, wanted_by
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Hashable

_BYTE_ORDER_MARK = "\ufeff"
_LONGEST_MESSAGE = 1_000
_NAMES = ("id", "cmd", "path", "nodeid", "question", "name")
"""The keys by which a person would tell one entry of a list from another."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_COLON = re.compile(r"\s*:")
_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_SPREAD_LIST = re.compile(r'\[\n((?:[^\[\]{}"]|"(?:[^"\\]|\\.)*")*)\n\s*\]')
_LONG_LINE = 100


class _CannotEdit(Exception):
    """The change cannot be made in this place; what holds it has to be written anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The text of a new plan file."""

    text: str
    faithful: bool
    """Whether it is the user's text with changes; if not, the whole plan was written anew."""


def rewrite(loaded: LoadedPlan, revised: Plan, *, target: Path, boundary: Path | None = None) -> Rewritten:
    """Return the text with which ``target`` holds the plan ``revised``, made from that of ``loaded``.

    In another folder the plan's ``root`` is changed so that it leads to the same place. Nothing is written.
    Raises :class:`planner.errors.PlanFileError` with every rule that the revised plan breaks, and
    :class:`planner.errors.PlannerError` if the root cannot be named from there or the old file has changed.
    """
    root = Path(os.path.realpath(loaded.path.parent / revised.root))
    wanted = _rooted(revised, root, target, Path.cwd() if boundary is None else boundary)
    format, target_format = format_of(loaded.path), format_of(target)

    def holds(text: str) -> bool:
        found = load_plan_text(text, target, boundary=boundary)
        return found.root == root and found.plan == wanted and _same(plain(found.plan), new)

    with collector_paused():
        old, new = _plainly(loaded.plan, wanted)
        text = _edited(loaded, old, new) if format == target_format else None
        try:
            if text is not None and holds(text):
                return Rewritten(text=text, faithful=True)
        except PlanFileError:
            pass  # either the edit or the plan is at fault; writing the plan anew tells which
        text = dump_plan(wanted, format=target_format)
        if not holds(text):
            raise _error(target, "the revised plan holds what no plan file can say; leave it out")
        return Rewritten(text=text, faithful=False)


def format_of(path: Path) -> Literal["yaml", "json"]:
    """Return the format of a plan file, by its name."""
    return "json" if path.suffix.lower() == ".json" else "yaml"


def _edited(loaded: LoadedPlan, old: dict[str, Any], new: dict[str, Any]) -> str | None:
    """Return the old file's text with the new plan; ``None`` where it cannot be edited."""
    try:
        source = read_source(loaded.path)
    except Refused as refused:
        raise _error(loaded.path, str(refused)) from None
    if source.digest != loaded.digest:
        raise _error(loaded.path, "the plan has changed since it was loaded; run the command again")
    newline = next((each for each in ("\r\n", "\n", "\r") if each in source.text), "\n")
    text = source.text.replace(newline, "\n")
    if not _same(old, new):
        try:
            editor = (_JsonEditor if _is_json(text) else _Editor)(text)
            text = editor.edited(editor.root, old, new, wanted_by(Plan), 0, len(text), 0)
        except (_CannotEdit, yaml.YAMLError):
            return None
    return (_BYTE_ORDER_MARK if source.marked else "") + text.replace("\n", newline)


def _is_json(text: str) -> bool:
    try:
        return text[:1] == "{" and bool(json.loads(text))
    except (ValueError, RecursionError):
        return False


# -- where the values stand ----------------------------------------------------------------------------


@dataclass(slots=True)
class _ParsedNode:
    """One value of a text, by its offsets."""

    start: int
    end: int
    """Of a list or mapping in block style, anywhere behind its last word."""
    kind: Literal["text", "list", "mapping", "alias"]
    style: str | None = None
    """The quotes of a text, ``|`` or ``>``."""
    is_flow: bool = False
    """A list or mapping in brackets."""
    text: str = ""
    children: list[_ParsedNode] = field(default_factory=list["_ParsedNode"])
    """The items of a list; of a mapping, its keys and values in turn."""


class _Member(NamedTuple):
    """One item of a list or pair of a mapping."""

    start: int
    """Where its dash, its key or its bracketed value begins."""
    end: int
    """Behind its last word, and the comments that belong to it."""
    value: _ParsedNode
    head: int
    """Behind its dash or the colon of its key."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What is to stand in a list or mapping at one place."""

    index: int | None
    """Of the old entry, ``None`` for a new one."""
    old: Any
    new: Any
    wanted: Wanted | None = None
    key: str | None = None
    """Of a new pair."""


def _parse(text: str) -> _ParsedNode:
    """Return the tree of a text. Its depth and size were bounded when it was loaded."""
    top = _ParsedNode(0, len(text), "list")
    stack = [top]
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop().end = cast("Any", event.end_mark).index
        elif isinstance(event, yaml.NodeEvent):
            start, end = cast("Any", event.start_mark).index, cast("Any", event.end_mark).index
            part = _ParsedNode(start, end, "alias")
            stack[-1].children.append(part)
            if isinstance(event, yaml.ScalarEvent):
                part.kind, part.style, part.text = "text", event.style, event.value
            elif isinstance(event, yaml.CollectionStartEvent):
                part.kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "list"
                part.is_flow = bool(event.flow_style)
                stack.append(part)
    return top.children[0]


# -- editing -------------------------------------------------------------------------------------------


class _Editor:
    """Edits a YAML text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.root = self._parsed()
        self._indentation = self._measure()

    def _parsed(self) -> _ParsedNode:
        return _parse(self._text)

    def edited(
        self,
        part: _ParsedNode,
        old: Any,
        new: Any,
        wanted: Wanted | None,
        start: int,
        end: int,
        column: int,
    ) -> str:
        """Return what is to stand between two offsets, where a part stands with what belongs to it.

        ``column`` is that of the key or dash in front of the part.
        """
        if _same(old, new):
            return self._text[start:end]
        same_kind = {"mapping": dict, "list": list}.get(part.kind)
        if new and same_kind is not None and isinstance(old, same_kind) and isinstance(new, same_kind):
            try:
                changes = self._changes(part, old, new, wanted)
                if part.is_flow:
                    inside = self._joined_in_brackets(part, changes)
                    return self._text[start : part.start] + inside + self._text[part.end : end]
                return self._joined_in_lines(part, changes, start, end)
            except _CannotEdit:
                if part is self.root:
                    raise
        if part is self.root:
            raise _CannotEdit
        return self._replaced(part, new, start, end, column)

    def _replaced(self, part: _ParsedNode, new: Any, start: int, end: int, column: int) -> str:
        """Return a new value in the place of a part, in its brackets or quotes, before the same comment."""
        is_dash = self._text[start - 1] == "-"
        is_block = part.style in ("|", ">") or (part.kind in ("list", "mapping") and not part.is_flow)
        comment = "" if is_block else self._text[part.end : end]
        gap = " " if is_block or part.end == part.start else self._text[start : part.start]
        if part.is_flow or (not new and isinstance(new, (list, dict))):
            return gap + self._shifted(new, part) + comment
        if isinstance(new, str) and part.style in ("'", '"') and new.isprintable():
            return gap + yaml_scalar(new, part.style) + comment
        said = yaml_block(new, column, self._indentation, is_item=is_dash)
        first, newline, rest = said.partition("\n")
        first = gap + first.lstrip(" ") if first.strip() and "\n" not in gap else first
        return first + comment + newline + rest

    def _changes(self, part: _ParsedNode, old: Any, new: Any, wanted: Wanted | None) -> list[_Change]:
        if part.kind == "mapping":
            return self._pair_changes(part, old, new, wanted)
        if len(part.children) != len(old):
            raise _CannotEdit
        item = wanted.item if wanted is not None else None
        changes: list[_Change] = []
        names = [_name(each) for each in old], [_name(each) for each in new]
        for kind, i, i_end, j, j_end in SequenceMatcher[Any](None, *names, autojunk=False).get_opcodes():
            # Entries without a counterpart stand for each other, but a todo is never another.
            is_other = kind != "equal" and item is not None and item.model is Todo
            paired = 0 if is_other else min(i_end - i, j_end - j)
            changes += [_Change(i + n, old[i + n], new[j + n], item) for n in range(paired)]
            changes += [_Change(None, None, each) for each in new[j + paired : j_end]]
        return changes

    def _pair_changes(
        self, part: _ParsedNode, old: dict[str, Any], new: dict[str, Any], wanted: Wanted | None
    ) -> list[_Change]:
        fields = fields_by_key(wanted.model) if wanted is not None and wanted.model is not None else {}

        def name(key: str) -> str:
            return fields[key].name if key in fields else key

        before = {name(key): value for key, value in old.items()}
        after = {name(key): (key, value) for key, value in new.items()}
        places = {name(key.text): index for index, key in enumerate(part.children[::2])}
        if any(gone not in places for gone in before.keys() - after.keys()):
            raise _CannotEdit
        behind: dict[int, list[_Change]] = {}
        last = -1
        for each, (key, value) in after.items():
            if each in places:
                last = places[each]
            elif each not in before or not _same(before[each], value):  # else it is merged in with `<<`
                behind.setdefault(last, []).append(_Change(None, None, value, None, key))
        changes = behind.get(-1, [])
        for each, index in places.items():
            key, value = after.get(each, (None, None))
            if each in after or each not in before:
                inner = fields[key].wanted if key in fields else None
                changes.append(_Change(index, before.get(each), value, inner))
            changes += behind.get(index, [])
        return changes

    # -- in block style -------------------------------------------------------------------------------

    def _joined_in_lines(self, part: _ParsedNode, changes: list[_Change], start: int, end: int) -> str:
        text, entries = self._text, self._entries(part, start, end)
        own = self._column(entries[0].start)
        margin = "\n" + " " * own
        is_root = part is self.root
        is_inline = not is_root and "\n" not in text[start : entries[0].start]
        # Above the first entry: the head of the file; what follows the key in its line; the comments.
        head = entries[0].start if is_root else text.find("\n", start, entries[0].start)
        head = start if head < 0 else head
        leads = [text[head : entries[0].start]]
        leads += [text[one.end : two.start] for one, two in pairwise(entries)]
        is_parted = part.kind == "list" and len(leads) > 1
        gap = leads[1].partition("#")[0].count("\n") - 1 if is_parted else 0
        said = [text[start:head]]
        for place, change in enumerate(changes):
            if change.index is None:
                body = self._added(change, own, part, entries)
                lead = "\n" * gap + margin
            else:
                entry = entries[change.index]
                body = text[entry.start : entry.head] + self.edited(
                    entry.value, change.old, change.new, change.wanted, entry.head, entry.end, own
                )
                lead = leads[change.index]
                if change.index == 0 and place > 0:
                    lead = "\n" * gap + (margin if is_inline else lead)
            if place == 0 and is_inline:
                lead = leads[0]
            elif place == 0 and change.index != 0:
                lead = ("" if is_root else "\n") + (_BLANK_LINES.sub("", lead) or " " * own)
            said += [lead, body]
        return "".join(said) + text[entries[-1].end : end]

    def _added(self, change: _Change, column: int, part: _ParsedNode, entries: list[_Member]) -> str:
        if part.kind == "mapping":
            assert change.key is not None
            return f"{yaml_scalar(change.key)}:{yaml_block(change.new, column, self._indentation)}"
        beside = (each for each in entries if "\n" not in self._text[each.start : each.value.start])
        dash = next((each.value.start - each.start for each in beside), self._indentation.dash)
        indentation = self._indentation._replace(dash=dash)
        return f"-{yaml_block(change.new, column, indentation, is_item=True)}"

    def _entries(self, part: _ParsedNode, start: int, end: int) -> list[_Member]:
        """Return the entries of a list or mapping in block style, which ends before an offset."""
        text = self._text
        values = part.children[1::2] if part.kind == "mapping" else part.children
        if part.kind == "mapping":
            starts = [key.start for key in part.children[::2]]
        else:
            starts = self._dashes(part, end)
        if len(starts) != len(values) or not starts:
            raise _CannotEdit
        entries: list[_Member] = []
        column = self._column(starts[0])
        for index, (at, value) in enumerate(zip(starts, values, strict=True)):
            until = starts[index + 1] if index + 1 < len(starts) else end
            head = at + 1
            if part.kind == "mapping":
                key = part.children[2 * index]
                colon = _COLON.match(text, key.end)
                head = colon.end() if colon else key.end  # `? key` may have none
            entries.append(_Member(at, self._end(at, max(until, head), column), value, head))
        return entries

    def _dashes(self, part: _ParsedNode, end: int) -> list[int]:
        """Return where the dashes of a list stand."""
        first = re.compile(r"[^\n]*?(?:#[^\n]*)?(?:\n *(?:#[^\n]*)?)*-(?=\s|$)")
        at = part.start
        if self._text[at] != "-":  # an anchor or tag, in a line of its own
            found = first.match(self._text, at)
            if found is None:
                raise _CannotEdit
            at = found.end() - 1
        column = self._column(at)
        others = re.compile(rf"\n {{{column}}}-(?=\s|$)").finditer(self._text, at, end)
        dashes, found = [at], [each.end() - 1 for each in others]
        for one, two in pairwise(part.children):
            before = bisect_left(found, two.start) - 1  # the last dash before the item
            if before >= 0 and found[before] > one.start:
                dashes.append(found[before])
        return dashes

    def _end(self, start: int, until: int, column: int) -> int:
        """Return where an entry ends: before blank lines and comments that stand no further in."""
        lines = self._text[start:until].split("\n")
        if until < len(self._text) and len(lines) > 1 and not lines[-1].strip(" ?"):
            lines.pop()  # in front of the next entry
        while len(lines) > 1:
            line = lines[-1]
            indent = len(line) - len(line.lstrip(" "))
            if line.strip() and not (line.lstrip().startswith("#") and indent <= column):
                break
            lines.pop()
        return start + len("\n".join(lines))

    def _column(self, offset: int) -> int:
        return offset - (self._text.rfind("\n", 0, offset) + 1)

    def _measure(self) -> Indentation:
        """Return how the file is indented: as lists and mappings within todos are, else as any."""
        steps: list[int] = []
        lists: list[tuple[int, int]] = []
        pending = [self.root]
        while pending:
            part = pending.pop()
            if part.kind == "mapping" and not part.is_flow:
                for key, value in zip(part.children[::2], part.children[1::2], strict=True):
                    if not value.children or value.is_flow or value.start < key.start:
                        continue
                    first, column = value.children[0], self._column(key.start)
                    if value.kind == "mapping":
                        steps.append(self._column(first.start) - column)
                    elif self._text[value.start] == "-":
                        dash = self._text.rfind("-", value.start, first.start)
                        width = first.start - dash if "\n" not in self._text[dash : first.start] else 2
                        lists.append((self._column(value.start) - column, width))
            pending += part.children[::-1]
        deepest = lists[1:] or lists or [(0, 2)]
        step = next((each for each in steps if each > 0), 2)
        return Indentation(step, max(deepest[0][0], 0), max((width for _, width in lists), default=2))

    # -- in brackets ----------------------------------------------------------------------------------

    def _in_brackets(self, value: Any) -> str:
        return yaml_flow(value)

    def _new_pair(self, key: str, value: Any) -> str:
        return f"{yaml_scalar(key, is_flow=True)}: {self._in_brackets(value)}"

    def _joined_in_brackets(self, part: _ParsedNode, changes: list[_Change]) -> str:
        text, children = self._text, part.children
        firsts, values = (children[::2], children[1::2]) if part.kind == "mapping" else (children, children)
        if not children:
            raise _CannotEdit
        bounds = [(one.start, max(one.end, two.end)) for one, two in zip(firsts, values, strict=True)]
        opening = text[part.start : bounds[0][0]]
        between = [text[one[1] : two[0]] for one, two in pairwise(bounds)]
        margin = opening[opening.find("\n") :] if "\n" in opening else ""
        plain_separators = [each for each in between if each.strip() == ","]
        separator = plain_separators[0] if plain_separators else f",{margin or ' '}"
        margin = separator if "\n" in separator else margin
        said = [opening]
        last: int | None = None
        for place, change in enumerate(changes):
            index = change.index
            if place > 0:
                # What is said beside an entry stays there.
                is_beside = last is not None and last < len(between) and index in (None, last + 1)
                said.append(between[last] if is_beside and last is not None else separator)
            if index is None:
                key, new = change.key, change.new
                line = self._in_brackets(new) if key is None else self._new_pair(key, new)
                said.append(line.replace("\n", "\n" + margin.rpartition("\n")[2]))
            else:
                value = values[index]
                said.append(text[bounds[index][0] : value.start] if value is not firsts[index] else "")
                said.append(self._edited_in_brackets(value, change))
            last = index
        closing = text[bounds[-1][1] : part.end]
        return "".join(said) + closing

    def _edited_in_brackets(self, value: _ParsedNode, change: _Change) -> str:
        if value.is_flow or _same(change.old, change.new):
            return self.edited(value, change.old, change.new, change.wanted, value.start, value.end, 0)
        if isinstance(change.new, str) and value.style in ("'", '"'):
            return self._quoted(change.new, value.style)
        is_apart = value.end > value.start or self._text[value.start - 1].isspace()
        return ("" if is_apart else " ") + self._shifted(change.new, value)

    def _shifted(self, new: Any, part: _ParsedNode) -> str:
        """Return a value in brackets, its lines indented as the line in which a part begins."""
        line = self._text[self._text.rfind("\n", 0, part.start) + 1 : part.start]
        margin = line[: len(line) - len(line.lstrip())]
        return self._in_brackets(new).replace("\n", "\n" + margin)

    def _quoted(self, text: str, quote: str) -> str:
        return yaml_scalar(text, quote)


class _JsonEditor(_Editor):
    """Edits a JSON text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        gap = re.match(r"\{(\s*)", text)
        self._step = gap[1].rpartition("\n")[2] if gap is not None and "\n" in gap[1] else None
        colon = re.search(r'"(\s*:\s*)', text)
        self._colon = colon[1] if colon else ": "
        comma = re.search(r'",( *)"', text)
        self._comma = "," if self._step is not None or (comma is not None and not comma[1]) else ", "
        self._is_ascii = text.isascii() and "\\u" in text
        self._has_brief_lists = re.search(r"\[[^\[\]{}\n]+\]", text) is not None

    def _parsed(self) -> _ParsedNode:
        # YAML knows other escapes and control characters than JSON, so the parser sees no text at all.
        masked = _JSON_TEXT.sub(lambda found: f'"{"x" * (len(found[0]) - 2)}"', self._text)
        root = _parse(masked.replace("\t", " "))
        pending = [root]
        while pending:
            part = pending.pop()
            if part.style == '"':
                part.text = json.loads(self._text[part.start : part.end])
            pending += part.children
        return root

    def _in_brackets(self, value: Any) -> str:
        separators = (self._comma, self._colon)
        said = json.dumps(value, indent=self._step, separators=separators, ensure_ascii=self._is_ascii)
        return _SPREAD_LIST.sub(_brief, said) if self._has_brief_lists else said

    def _new_pair(self, key: str, value: Any) -> str:
        return f"{json.dumps(key, ensure_ascii=self._is_ascii)}{self._colon}{self._in_brackets(value)}"

    def _quoted(self, text: str, quote: str) -> str:
        return self._in_brackets(text)


def _brief(found: re.Match[str]) -> str:
    """Put a list of scalars into one line, if it fits."""
    line = "[" + ", ".join(each.strip().removesuffix(",") for each in found[1].split("\n")) + "]"
    return line if len(line) < _LONG_LINE else found[0]


# -- plain values --------------------------------------------------------------------------------------


def _name(value: Any) -> Hashable:
    """Return what a person would tell an entry of a list by."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for name in _NAMES:
            held = cast("dict[str, Any]", value).get(name)
            if isinstance(held, str):
                return held
    return ("", json.dumps(value, sort_keys=True, default=str))


def _same(old: Any, new: Any) -> bool:
    """Return whether two plain values would be written alike. The order of keys says nothing."""
    if old is new:
        return True
    if isinstance(old, dict):
        before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        return (
            isinstance(new, dict)
            and before.keys() == after.keys()
            and all(_same(value, after[key]) for key, value in before.items())
        )
    if isinstance(old, list):
        items, others = cast("list[Any]", old), cast("list[Any]", new)
        return isinstance(new, list) and len(items) == len(others) and all(map(_same, items, others))
    # True is 1 and 1 is 1.0, but not in a file.
    return type(old) is type(new) and bool(old == new)


def _plainly(old: Plan, new: Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both plans as plain values. A todo that they share is one value in both."""
    known: dict[int, dict[str, Any]] = {}

    def todo(item: Todo) -> dict[str, Any]:
        if id(item) not in known:
            known[id(item)] = plain(item)
        return known[id(item)]

    def of(plan: Plan) -> dict[str, Any]:
        rest = plain(plan.model_copy(update={"items": ()}))
        return {key: [todo(item) for item in plan.items] if key == "items" else rest[key] for key in rest}

    return of(old), of(new)


# -- the file ------------------------------------------------------------------------------------------


def _rooted(plan: Plan, root: Path, target: Path, boundary: Path) -> Plan:
    """Return the plan with a ``root`` that leads from the target's folder to where it should."""
    folder = os.path.realpath(target.parent)
    if os.path.realpath(Path(folder) / plan.root) == str(root):
        return plan
    name = os.path.relpath(root, folder)
    if unusual_fault(name, folder) is not None:
        name = f"./{name}"
    if not any(is_below(str(root), each) for each in (folder, os.path.realpath(boundary))):
        raise _error(
            target,
            f"the plan's root {root} lies neither in that folder nor under {boundary}; "
            f"name a file in {root}, or run the command from there",
        )
    return plan.model_copy(update={"root": name})


def _error(path: Path, problem: str) -> PlannerError:
    return PlannerError(" ".join(clean(f"{shown_path(path)}: {problem}", limit=_LONGEST_MESSAGE).split()))
