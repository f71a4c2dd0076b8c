"""Write a revised plan as its author would have: their file, changed only where the plans differ.

The nodes of a YAML file tell where each value stands. The text around and between the values that change
stays as it is: comments, order, quotes, indentation. An entry that goes takes along the comments directly
above it, and a new one is indented as its neighbours are; what stands in brackets is written again. JSON,
which has no comments, is written in the order and with the indentation of the file. The new text is loaded
before it is believed: where it does not hold the revised plan (an anchor that several todos share was
changed for one of them), the whole plan is written again, without comments.
"""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import yaml

from planner.errors import PlanFileError, PlannerError
from planner.model.base import Value
from planner.model.plan import AcceptanceCriteria, ArtifactSpec, Plan
from planner.planfile.document import Node, Refused, Source, compose, read_source
from planner.planfile.loader import LoadedPlan, collector_paused, load_plan_text, shown_path
from planner.planfile.project_files import is_below, unusual_fault
from planner.planfile.values import BOOLEANS, anything, fields_by_key, model_in
from planner.text.sanitizing import one_line

_RESOLVER: Any = yaml.resolver.Resolver()
_EMITTER: Any = yaml.emitter.Emitter(io.StringIO(), allow_unicode=True)
_TEXT = "tag:yaml.org,2002:str"
_LONGEST_MESSAGE = 1_000
_NAMES = ("id", "step_id", "cmd", "path", "nodeid", "question", "name")
"""The keys by which a person would tell one entry of a list from another."""

_COLON = re.compile(r"\s*:|")
"""A key that is written as ``? key`` may have none."""

_BLANK_LINES = re.compile(r"\A(?:\n[ \t]*)*(?=\n)")
_SPREAD_LIST = re.compile(r'\[\n((?:[^\[\]{}"]|"(?:[^"\\]|\\.)*")*)\n\s*\]')
_LONG_LINE = 100
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.DOTALL)
_COMMENT = re.compile(r"\s#")


class Indentation(NamedTuple):
    """Indentation of a YAML text, in columns."""

    step: int = 2
    """From a key to those below it."""
    offset: int = 0
    """From a key to the dashes below it."""
    dash: int = 2
    """From a dash to what follows it."""


def dump_plan(plan: Plan, *, format: Literal["yaml", "json"]) -> str:
    """Return a plan as the text of a file that, loaded, gives an equal plan: what was set, no defaults."""
    values = plain(plan)
    if format == "json":
        return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return yaml_text(values)


def plain(value: Any) -> Any:
    """Return a value as a file holds it: text, numbers, lists and mappings, without the defaults."""
    if isinstance(value, Value):
        fields = _fields(value)
        return value.path if isinstance(value, ArtifactSpec) and fields.keys() == {"path"} else fields
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value


def _fields(value: Value) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, info in type(value).model_fields.items():
        held = getattr(value, name)
        if name == "extensions" or name not in value.model_fields_set:
            continue
        if isinstance(held, AcceptanceCriteria) and not held and not held.extensions:
            # A file with empty criteria is refused, one that leaves them out means the same.
            continue
        found[info.alias or name] = plain(held)
    return {**found, **getattr(value, "extensions", {})}


# -- YAML text -----------------------------------------------------------------------------------------


def yaml_text(values: dict[str, Any]) -> str:
    """Return the text of a file that holds these values."""
    return yaml_block(values, -Indentation().step, Indentation()).removeprefix("\n") + "\n"


def yaml_block(value: Any, column: int, indentation: Indentation, *, is_item: bool = False) -> str:
    """Return what follows ``key:``, or the dash of an item; ``column`` is that of the key or dash.

    A list or mapping begins with a line break, below a dash with its first entry.
    """
    step, offset, dash = indentation
    if isinstance(value, dict) and value:
        inner = column + (dash if is_item else step)
        parts = [
            f"{yaml_scalar(key)}:{yaml_block(held, inner, indentation)}"
            for key, held in cast("dict[str, Any]", value).items()
        ]
    elif isinstance(value, list) and value:
        inner = column + (dash if is_item else offset)
        items = cast("list[Any]", value)
        parts = [f"-{yaml_block(held, inner, indentation, is_item=True)}" for held in items]
    else:
        return " " * (dash - 1 if is_item else 1) + (
            _literal(value, column + (dash if is_item else step), dash if is_item else step)
            or (yaml_scalar(value) if isinstance(value, str) else yaml_flow(value))
        )
    margin = "\n" + " " * inner
    return (" " * (dash - 1) if is_item else margin) + margin.join(parts)


def yaml_flow(value: Any) -> str:
    """Return a value in one line, lists and mappings in brackets."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value).items()
        pairs = (f"{yaml_scalar(key, is_flow=True)}: {yaml_flow(each)}" for key, each in held)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(yaml_flow(each) for each in cast("list[Any]", value)) + "]"
    if isinstance(value, str):
        return yaml_scalar(value, is_flow=True)
    return json.dumps(value, allow_nan=False)


def yaml_scalar(text: str, quote: str | None = None, *, is_flow: bool = False) -> str:
    """Return a text in one line, in the quotes that it has or needs."""
    style = quote if quote and text.isprintable() else text_style(text)
    if style == '"':
        said = json.dumps(text, ensure_ascii=False)
        return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in said)
    analysis = _EMITTER.analyze_scalar(text)
    if style is None and (analysis.allow_flow_plain if is_flow else analysis.allow_block_plain):
        return text
    return "'" + text.replace("'", "''") + "'"


def _literal(value: Any, column: int, step: int) -> str | None:
    """Return a text of several lines as such: what pytest shows has lines that end with blanks."""
    if not isinstance(value, str) or "\n" not in value:
        return None
    lines = value.removesuffix("\n").split("\n")
    if not value.replace("\n", "").replace("\t", "").isprintable() or not lines[-1].strip():
        return None
    # Where the text itself begins with a blank, the width of the indentation has to be said.
    head = "|" + (str(step) if value[0] in " \t\n" else "") + ("" if value.endswith("\n") else "-")
    return "\n".join([head, *(" " * column + line if line else "" for line in lines)])


def text_style(text: str) -> str | None:
    """Return the quotes in which a text is read as text: ``"``, ``'``, or ``None`` where it needs none."""
    if not text.isprintable() or text in BOOLEANS or anything(text[:60]) != text[:60]:
        return '"'
    # What other readers of YAML would take for a date, or the like.
    return None if _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT else "'"


# -- rewriting -----------------------------------------------------------------------------------------


class _CannotEdit(Exception):
    """The change cannot be made in this place; what holds it has to be written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The text of a new plan file."""

    path: Path
    text: str
    faithful: bool
    """Whether it is the user's text with changes; if not, comments of theirs are lost."""


def rewrite(loaded: LoadedPlan, revised: Plan, *, target: Path, boundary: Path | None = None) -> Rewritten:
    """Return the text with which ``target`` holds the plan ``revised``, made from that of ``loaded``.

    In another folder the plan's ``root`` is changed so that it leads to the same place. Nothing is written.
    Raises :class:`planner.errors.PlanFileError` with every rule that the revised plan breaks, and
    :class:`planner.errors.PlannerError` if the root cannot be named from there or the old file has changed.
    """
    root = Path(os.path.realpath(loaded.path.parent / revised.root))
    wanted = _rooted(revised, root, target, Path.cwd() if boundary is None else boundary)

    def holds(text: str) -> bool:
        found = load_plan_text(text, target, boundary=boundary)
        return found.root == root and found.plan == wanted and _same(plain(found.plan), plain(wanted))

    with collector_paused():
        edited = _edited(loaded, wanted, target) if format_of(loaded.path) == format_of(target) else None
        # Where the text does not hold, the edit or the plan is at fault; writing it again tells which.
        with suppress(PlanFileError):
            if edited is not None and holds(edited.text):
                return edited
        text = dump_plan(wanted, format=format_of(target))
        if not holds(text):
            raise _error(target, "the revised plan holds what no plan file can say; leave it out")
        return Rewritten(path=target, text=text, faithful=False)


def format_of(path: Path) -> Literal["yaml", "json"]:
    """Return the format of a plan file, by its name."""
    return "json" if path.suffix.lower() == ".json" else "yaml"


def _edited(loaded: LoadedPlan, wanted: Plan, target: Path) -> Rewritten | None:
    """Return the old file's text with the new plan; ``None`` where it cannot be edited."""
    try:
        source = read_source(loaded.path)
    except Refused as refused:
        raise _error(loaded.path, str(refused)) from None
    if source.digest != loaded.digest:
        raise _error(loaded.path, "the plan has changed since it was loaded; run the command again")
    newline = next((each for each in ("\r\n", "\n", "\r") if each in source.text), "\n")
    text, faithful = source.text.replace(newline, "\n"), True
    is_json = _is_json(text)
    root = compose(Source(text), is_json=is_json).root
    old, new = (_arranged(root, plain(each), Plan) for each in (loaded.plan, wanted))
    if not _same(old, new):
        if is_json:
            text = _json_text(text, new)
        else:
            editor = _TextEditor(text)
            try:
                text = editor.inside(root, old, new, 0, len(text))
            except _CannotEdit:
                return None
            faithful = not editor.has_lost_comments
    return Rewritten(path=target, text=text.replace("\n", newline), faithful=faithful)


def _arranged(node: Node, value: Any, model: type[Value] | None) -> Any:
    """Return a value in the order of the node that holds it or one like it, and under the keys of that."""
    if isinstance(node.value, list) and isinstance(value, list):
        known = {_name(each): each for each in node.value}
        items = [(known.get(_name(each)), each) for each in cast("list[Any]", value)]
        return [each if held is None else _arranged(held, each, model) for held, each in items]
    if not isinstance(node.value, dict) or not isinstance(value, dict):
        return value
    fields = fields_by_key(model) if model is not None else {}
    spelled = {fields[key].name if key in fields else key: key for key in node.value}
    found: dict[str, Any] = {}
    for key, each in cast("dict[str, Any]", value).items():
        field = fields.get(key)
        own = spelled.get(field.name if field else key, key)
        inner = model_in(field.types) if field else None
        found[own] = _arranged(node.value[own][1], each, inner) if own in node.value else each
    # A key that is new stands behind the one that it follows in the model.
    order = [key for key in node.value if key in found]
    last = -1
    for key in found:
        last = order.index(key) if key in order else last + 1
        if key not in order:
            order.insert(last, key)
    return {key: found[key] for key in order}


# -- JSON ----------------------------------------------------------------------------------------------


def _is_json(text: str) -> bool:
    """Return whether a text is JSON, which a YAML file may hold, too."""
    try:
        return text.startswith("{") and bool(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _json_text(text: str, new: Any) -> str:
    """Return the plan as a JSON text is indented."""
    step = re.match(r"\{\s*\n(\s*)", text)
    comma = "," if step or not re.search('", +"', text) else ", "
    said = json.dumps(
        new,
        indent=step[1] if step else None,
        separators=(comma, ": " if '": ' in text else ":"),
        ensure_ascii=False,
    )
    if re.search(r"\[[^\[\]{}\n]+\]", text):  # lists of scalars stand in one line
        said = _SPREAD_LIST.sub(_joined, said)
    return said + text[text.rindex("}") + 1 :]


def _joined(found: re.Match[str]) -> str:
    line = "[" + ", ".join(each.strip().removesuffix(",") for each in found[1].split("\n")) + "]"
    return line if len(line) < _LONG_LINE else found[0]


# -- YAML ----------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """One item of a list or pair of a mapping in block style, by the offsets of its text."""

    lead: str
    """The line break, blank lines, comments and blanks in front of it."""
    start: int
    head: int
    """Behind its dash or the colon of its key."""
    end: int
    """Behind its last word, and the comments that belong to it."""
    value: Node


class _Block(NamedTuple):
    """Layout of the entries of a list or mapping."""

    header: str
    """What stands in front of them: an anchor, a comment."""
    entries: list[_Entry]
    column: int
    gap: int
    """How many blank lines stand between two entries."""
    is_inline: bool
    """Whether the first entry stands in the line of what holds it."""

    def joined(self, bodies: list[str | None], added: dict[int, list[str]]) -> str:
        """Return the text with these entries, ``None`` for those that go, and others behind them."""
        margin = "\n" + " " * self.column
        separator = "\n" * self.gap + margin
        pieces = [self.header]
        for index in range(-1, len(bodies)):
            body = bodies[index] if index >= 0 else None
            if body is not None:
                lead = self.entries[index].lead
                if len(pieces) > 1:
                    lead = lead if index else separator if self.is_inline else "\n" * self.gap + lead
                elif index:  # blank lines above what is now the first entry go, too
                    lead = "" if self.is_inline else _BLANK_LINES.sub("", lead)
                pieces.append(lead + body)
            for body in added.get(index, ()):
                first = "" if self.is_inline else margin
                pieces.append((separator if len(pieces) > 1 else first) + body)
        if len(pieces) == 1:
            raise _CannotEdit
        return "".join(pieces)


class _TextEditor:
    """Writes a YAML text again where two plans differ, and copies the rest."""

    def __init__(self, text: str) -> None:
        self._text = text
        steps, offsets = (
            [len(step) for _, step in re.findall(rf"^( *)[\w-]+:\n\1{found}", text, re.MULTILINE)]
            for found in (r"( +)\w", r"( *)- ")
        )
        self._indentation = Indentation(step=(steps or [2])[-1], offset=(offsets or [0])[-1])
        self.has_lost_comments = False

    def inside(self, node: Node, old: Any, new: Any, start: int, end: int) -> str:
        """Return what stands between two offsets, and holds a list or mapping, with its new entries.

        Raises ``_CannotEdit``.
        """
        if node.is_alias or node.is_flow or not node.parts or not new or type(old) is not type(new):
            raise _CannotEdit
        block = self._block(node, start, end)
        edit: Any = self._mapping if isinstance(new, dict) else self._list
        return edit(node, block, old, new) + self._text[block.entries[-1].end : end]

    def _list(self, node: Node, block: _Block, old: list[Any], new: list[Any]) -> str:
        if len(old) != len(node.parts):
            raise _CannotEdit
        names = [_name(each) for each in old], [_name(each) for each in new]
        bodies: list[str | None] = [None] * len(old)
        added: dict[int, list[str]] = {}
        for kind, i, i_end, j, j_end in SequenceMatcher[Any](None, *names, autojunk=False).get_opcodes():
            # Entries without a counterpart stand for each other, but a todo is never another.
            are_todos = i < i_end and isinstance(old[i], dict) and not {"id", "step_id"}.isdisjoint(old[i])
            paired = 0 if kind != "equal" and are_todos else min(i_end - i, j_end - j)
            for n in range(paired):
                bodies[i + n] = self._entry(block.entries[i + n], old[i + n], new[j + n], block)
            items = [self._item(value, block) for value in new[j + paired : j_end]]
            added[i + paired - 1] = added.get(i + paired - 1, []) + items
        return block.joined(bodies, added)

    def _mapping(self, node: Node, block: _Block, old: dict[str, Any], new: dict[str, Any]) -> str:
        places = {str(key.value): index for index, key in enumerate(node.parts[::2])}
        if old.keys() - new.keys() - places.keys():  # merged in with `<<`
            raise _CannotEdit
        bodies: list[str | None] = [
            None if key.value in old else self._text[entry.start : entry.end]
            for key, entry in zip(node.parts[::2], block.entries, strict=True)
        ]
        added: dict[int, list[str]] = {}
        last = -1
        for key, value in new.items():
            if key in places:
                last = places[key]
                bodies[last] = self._entry(block.entries[last], old.get(key), value, block)
            elif key not in old or not _same(old[key], value):
                said = f"{yaml_scalar(key)}:{yaml_block(value, block.column, self._indentation)}"
                added.setdefault(last, []).append(said)
        return block.joined(bodies, added)

    def _entry(self, entry: _Entry, old: Any, new: Any, block: _Block) -> str:
        """Return an entry with its new value, in its own text as far as that can be."""
        node, text = entry.value, self._text
        if _same(old, new):
            return text[entry.start : entry.end]
        head = text[entry.start : entry.head]
        try:
            return head + self.inside(node, old, new, entry.head, entry.end)
        except _CannotEdit:
            pass
        # Otherwise in its brackets or quotes, and before its comment.
        before, behind = text[entry.start : node.at], text[node.end : entry.end]
        is_text = isinstance(node.value, str) and node.style not in ("|", ">") and not node.is_alias
        is_flow = node.is_flow and not node.is_alias
        if isinstance(new, str) and is_text and node.style and new.isprintable():
            return before + yaml_scalar(new, node.style) + behind
        if is_flow or (not new and isinstance(new, (list, dict))):
            if is_flow and new:  # if it is emptied, only comments about what is gone go
                inside = _QUOTED.sub("", text[node.at : node.end])
                self.has_lost_comments |= _COMMENT.search(inside) is not None
            flow = yaml_flow(new)
            if is_flow or is_text:
                return before + ("" if before[-1] in " \n" else " ") + flow + behind
            return f"{head} {flow}"
        said = yaml_block(new, block.column, self._indentation, is_item=head.endswith("-"))
        first, newline, rest = said.partition("\n")
        return head + first + (behind if is_text else "") + newline + rest

    def _item(self, value: Any, block: _Block) -> str:
        first = block.entries[0]
        said = self._text[first.start : first.value.at]
        indentation = self._indentation._replace(dash=2 if "\n" in said else len(said))
        return f"-{yaml_block(value, block.column, indentation, is_item=True)}"

    def _block(self, node: Node, start: int, end: int) -> _Block:
        """Return the entries of a list or mapping that stands between two offsets."""
        text, parts = self._text, node.parts
        if isinstance(node.value, dict):
            starts, values = [key.at for key in parts[::2]], parts[1::2]
            colons = (_COLON.match(text, key.end) for key in parts[::2])
            heads = [colon.end() for colon in colons if colon is not None]
        else:
            starts, values = self._dashes(node), parts
            heads = [at + 1 for at in starts]
        column = self._column(starts[0])
        newline = text.find("\n", start, starts[0])
        is_inline = newline < 0 or start == 0
        header_end = last = starts[0] if is_inline else newline
        entries: list[_Entry] = []
        for at, head, until, value in zip(starts, heads, [*starts[1:], end], values, strict=True):
            entry = _Entry(text[last:at], at, head, self._end(at, until, column), value)
            entries.append(entry)
            last = entry.end
        gap = 0
        if not isinstance(node.value, dict) and len(entries) > 1:
            gap = max(entries[1].lead.partition("#")[0].count("\n") - 1, 0)
        return _Block(text[start:header_end], entries, column, gap, is_inline)

    def _dashes(self, node: Node) -> list[int]:
        """Return where the dashes of a list in block style stand."""
        text = self._text
        found = [text.rfind("-", node.at, node.parts[0].at)]
        margin = "\n" + " " * self._column(found[0]) + "-"
        found += [text.rfind(margin, one.at, two.at) + len(margin) - 1 for one, two in pairwise(node.parts)]
        if found[0] < 0 or any(one >= two for one, two in pairwise(found)):
            raise _CannotEdit
        return found

    def _end(self, start: int, until: int, column: int) -> int:
        """Return where an entry ends: before blank lines and comments that stand no further in."""
        lines = self._text[start:until].split("\n")
        if until < len(self._text) and len(lines) > 1 and not lines[-1].strip(" ?"):
            lines.pop()  # in front of the next entry
        while len(lines) > 1:
            line = lines[-1].lstrip(" ")
            if line and not (line.startswith("#") and len(lines[-1]) - len(line) <= column):
                break
            lines.pop()
        return start + len("\n".join(lines))

    def _column(self, offset: int) -> int:
        return offset - (self._text.rfind("\n", 0, offset) + 1)


def _name(value: Any) -> str:
    """Return what a person would tell an entry of a list by."""
    if isinstance(value, Node):
        held = value.value
        value = {key: node.value for key, (_, node) in held.items()} if isinstance(held, dict) else held
    if isinstance(value, dict):
        entry = cast("dict[str, Any]", value)
        return next((str(entry[name]) for name in _NAMES if name in entry), str(entry))
    return str(value)


def _same(old: Any, new: Any) -> bool:
    """Return whether two plain values would be written alike. The order of keys says nothing."""
    # True is 1 and 1 is 1.0, but not in a file.
    return old == new and json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


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
    return PlannerError(one_line(f"{shown_path(path)}: {problem}", limit=_LONGEST_MESSAGE))
