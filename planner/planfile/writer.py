"""Writing of a revised plan: the text of the user's file, changed only where the plans differ.

The nodes of a YAML file have the position of each value. The text around and between changed values is
kept: comments, order, quotes, indentation. With a removed entry the comments directly above it are removed,
too, and a new entry is indented like its neighbours; changed collections in flow style are written anew.
JSON, which has no comments, is written in the order and with the indentation of the file. The new text is
loaded as a check: if it does not result in the revised plan (for example because an anchor shared by
several todos was changed for one of them), the whole plan is written anew, without comments.
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
from planner.planfile.loader import LoadedPlan, load_plan_text, shown_path
from planner.planfile.project_files import is_below, unusual_fault
from planner.planfile.values import BOOLEANS, SHORTHANDS, anything, fields_by_key, model_in
from planner.text.sanitizing import one_line

_RESOLVER: Any = yaml.resolver.Resolver()
_EMITTER: Any = yaml.emitter.Emitter(io.StringIO(), allow_unicode=True)
_TEXT = "tag:yaml.org,2002:str"
_LONGEST_MESSAGE = 1_000
_NAMES = ("id", "step_id", "cmd", "path", "nodeid", "question", "name")
"""Keys that identify an entry of a list, in order of preference."""

_COLON = re.compile(r"\s*:|")
"""The colon behind a key; optional, as an explicit key (``? key``) may have none."""

_BLANK_LINES = re.compile(r"\A(?:\n[ \t]*)*(?=\n)")
# A JSON list of scalars that json.dumps has spread over several lines.
_SPREAD_LIST = re.compile(r'\[\n((?:[^\[\]{}"]|"(?:[^"\\]|\\.)*")*)\n\s*\]')
_LONG_LINE = 100
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.DOTALL)
_COMMENT = re.compile(r"\s#")


class Indentation(NamedTuple):
    """Indentation of a YAML text, in columns."""

    step: int = 2
    """From a key to the keys below it."""
    offset: int = 0
    """From a key to the dashes below it."""
    dash: int = 2
    """From a dash to its content."""


def dump_plan(plan: Plan, *, format: Literal["yaml", "json"]) -> str:
    """Return the text of a file that loads as an equal plan; only fields that were set are written."""
    values = plain(plan)
    if format == "json":
        return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return yaml_text(values)


def plain(value: Any) -> Any:
    """Return a value as plain data for a file: text, numbers, lists and mappings, without defaults.

    An artifact with nothing but a path is its path, a float without fraction an integer.
    """
    if isinstance(value, Value):
        fields = _fields(value)
        return value.path if isinstance(value, ArtifactSpec) and fields.keys() == {"path"} else fields
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in cast("dict[Any, Any]", value).items()}
    # A larger one would become an integer of more digits than are read as a number.
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value


def _fields(value: Value) -> dict[str, Any]:
    """Return the fields of a model that were set, by the keys of a file, with the extensions last."""
    found: dict[str, Any] = {}
    for name, info in type(value).model_fields.items():
        held = getattr(value, name)
        if name == "extensions" or name not in value.model_fields_set:
            continue
        if isinstance(held, AcceptanceCriteria) and not held and not held.extensions:
            # A file with empty criteria is refused; leaving them out has the same meaning.
            continue
        found[info.alias or name] = plain(held)
    return {**found, **getattr(value, "extensions", {})}


# -- YAML text -----------------------------------------------------------------------------------------


def yaml_text(values: dict[str, Any]) -> str:
    """Return the text of a YAML file with these values."""
    return yaml_block(values, -Indentation().step, Indentation()).removeprefix("\n") + "\n"


def yaml_block(value: Any, column: int, indentation: Indentation, *, is_item: bool = False) -> str:
    """Return the text after ``key:``, or after the dash of an item; ``column`` is that of the key or dash.

    A collection starts on a new line; behind a dash its first entry stands in the same line.
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
    """Return a value in flow style, in one line."""
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
    """Return a text in one line, in the quotes ``quote`` if possible, else in those that it needs."""
    style = quote if quote and text.isprintable() else text_style(text)
    if style == '"':
        # JSON's escapes are valid in YAML, but YAML allows no unprintable characters beside them.
        quoted = json.dumps(text, ensure_ascii=False)
        return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)
    analysis = _EMITTER.analyze_scalar(text)
    if style is None and (analysis.allow_flow_plain if is_flow else analysis.allow_block_plain):
        return text
    return "'" + text.replace("'", "''") + "'"


def _literal(value: Any, column: int, step: int) -> str | None:
    """Return a text of several lines as a literal block, or ``None`` if it cannot be one.

    Trailing blanks of lines are preserved: output of pytest contains such lines.
    """
    if not isinstance(value, str) or "\n" not in value:
        return None
    lines = value.removesuffix("\n").split("\n")
    # Escapes exist only in quotes, and blank lines at the end would need another header.
    if not value.replace("\n", "").replace("\t", "").isprintable() or not lines[-1].strip():
        return None
    # If the text begins with a blank, YAML needs an explicit indentation indicator.
    head = "|" + (str(step) if value[0] in " \t\n" else "") + ("" if value.endswith("\n") else "-")
    return "\n".join([head, *(" " * column + line if line else "" for line in lines)])


def text_style(text: str) -> str | None:
    """Return the quotes with which a text is read as text: ``"``, ``'``, or ``None`` if it needs none."""
    if not text.isprintable() or text in BOOLEANS or anything(text[:60]) != text[:60]:
        return '"'
    # Quoted if other YAML parsers would read it as another type, such as a date.
    return None if _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT else "'"


# -- rewriting -----------------------------------------------------------------------------------------


class _CannotEdit(Exception):
    """The change cannot be made at this node; the enclosing collection has to be written anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The text of a new plan file."""

    path: Path
    text: str
    faithful: bool
    """Whether it is the user's text with changes; if not, comments are lost."""


def rewrite(loaded: LoadedPlan, revised: Plan, *, target: Path) -> Rewritten:
    """Return the text that makes ``target`` a file of the plan ``revised``, based on the text of
    ``loaded``.

    If ``target`` is in another folder, the plan's ``root`` is changed to lead to the same place. The target
    keeps the comments only if both files have the same format. Writes nothing. Raises
    :class:`planner.errors.PlanFileError` with every fault of the revised plan, and
    :class:`planner.errors.PlannerError` if the root is out of reach from there, or if the old file was
    changed since it was loaded.
    """
    root = Path(os.path.realpath(loaded.path.parent / revised.root))
    wanted = _rooted(revised, root, target)

    def holds(text: str) -> bool:
        found = load_plan_text(text, target)
        return found.root == root and found.plan == wanted and _same(plain(found.plan), plain(wanted))

    edited = _edited(loaded, wanted, target) if format_of(loaded.path) == format_of(target) else None
    # If the edited text has faults, edit or plan may be wrong: only writing the plan anew decides.
    with suppress(PlanFileError):
        if edited is not None and holds(edited.text):
            return edited
    text = dump_plan(wanted, format=format_of(target))
    if not holds(text):
        raise _error(target, "the revised plan has a value that a plan file cannot have; remove it")
    return Rewritten(path=target, text=text, faithful=False)


def format_of(path: Path) -> Literal["yaml", "json"]:
    """Return the format of a plan file by its suffix; any but ``.json`` is YAML."""
    return "json" if path.suffix.lower() == ".json" else "yaml"


def _edited(loaded: LoadedPlan, wanted: Plan, target: Path) -> Rewritten | None:
    """Return the old file's text with the new plan; ``None`` if it cannot be edited.

    Raises :class:`planner.errors.PlannerError` if the file cannot be read or was changed since.
    """
    try:
        source = read_source(loaded.path)
    except Refused as refused:
        raise _error(loaded.path, str(refused)) from None
    if source.digest != loaded.digest:
        raise _error(loaded.path, "the plan has changed since it was loaded; run the command again")
    # Composed anew, with positions in a text that has only one kind of line end.
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
    """Return a value with the keys, and in the order, of the corresponding node in the file.

    Items of lists correspond by :func:`_name`, keys by the field that they are spellings of.
    """
    if isinstance(node.value, list) and isinstance(value, list):
        known = {_name(each): each for each in node.value}
        items = [(known.get(_name(each)), each) for each in cast("list[Any]", value)]
        return [each if held is None else _arranged(held, each, model) for held, each in items]
    # An artifact or command may be written as a text or in full, and stays as it is.
    short = SHORTHANDS.get(model or Value, "")
    if short and value == {short: node.value}:
        return node.value
    if short and isinstance(node.value, dict) and isinstance(value, str):
        return _arranged(node, {short: value}, model)
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
    # A new key goes behind the key that precedes it in the model.
    order = [key for key in node.value if key in found]
    last = -1
    for key in found:
        last = order.index(key) if key in order else last + 1
        if key not in order:
            order.insert(last, key)
    return {key: found[key] for key in order}


# -- JSON ----------------------------------------------------------------------------------------------


def _is_json(text: str) -> bool:
    """Return whether a text is JSON; a YAML file may contain JSON, too."""
    try:
        return text.startswith("{") and bool(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _json_text(text: str, new: Any) -> str:
    """Return the plan as JSON, in the indentation and spacing of ``text`` and with its trailing blanks."""
    step = re.match(r"\{\s*\n(\s*)", text)
    comma = "," if step or not re.search('", +"', text) else ", "
    dumped = json.dumps(
        new,
        indent=step[1] if step else None,
        separators=(comma, ": " if '": ' in text else ":"),
        ensure_ascii=False,
    )
    if re.search(r"\[[^\[\]{}\n]+\]", text):  # the file has lists of scalars in one line
        dumped = _SPREAD_LIST.sub(_joined, dumped)
    return dumped + text[text.rindex("}") + 1 :]


def _joined(found: re.Match[str]) -> str:
    """Return a spread JSON list in one line, unless that would be too long."""
    line = "[" + ", ".join(each.strip().removesuffix(",") for each in found[1].split("\n")) + "]"
    return line if len(line) < _LONG_LINE else found[0]


# -- YAML ----------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """One item of a list, or key and value of a mapping, in block style, as offsets into the text."""

    lead: str
    """Line break, blank lines, comments and indentation before the entry."""
    start: int
    head: int
    """Offset behind the dash, or behind the colon of the key."""
    end: int
    """Offset behind the last word and the comments that belong to the entry."""
    value: Node


class _Block(NamedTuple):
    """Layout of a list or mapping in block style."""

    header: str
    """Text before the entries: an anchor, a comment."""
    entries: list[_Entry]
    column: int
    gap: int
    """Number of blank lines between two entries."""
    is_inline: bool
    """Whether the first entry is in the same line as the parent's dash, or begins the document."""

    def joined(self, bodies: list[str | None], added: dict[int, list[str]]) -> str:
        """Return the text of the block.

        ``bodies`` has the text of each entry, ``None`` for a removed one; ``added`` the new entries by the
        index of the entry that they follow, -1 for the start.
        """
        margin = "\n" + " " * self.column
        separator = "\n" * self.gap + margin
        pieces = [self.header]
        for index in range(-1, len(bodies)):
            body = bodies[index] if index >= 0 else None
            if body is not None:
                lead = self.entries[index].lead
                if len(pieces) > 1:
                    lead = lead if index else separator if self.is_inline else "\n" * self.gap + lead
                elif index:  # no blank lines above the new first entry
                    lead = "" if self.is_inline else _BLANK_LINES.sub("", lead)
                pieces.append(lead + body)
            for body in added.get(index, ()):
                first = "" if self.is_inline else margin
                pieces.append((separator if len(pieces) > 1 else first) + body)
        return "".join(pieces)


class _TextEditor:
    """Edits a YAML text where two plans differ, and copies the rest.

    The new indentation is that of the last nested keys and lists in the text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        steps, offsets = (
            [len(step) for _, step in re.findall(rf"^( *)[\w-]+:\n\1{found}", text, re.MULTILINE)]
            for found in (r"( +)\w", r"( *)- ")
        )
        self._indentation = Indentation(step=(steps or [2])[-1], offset=(offsets or [0])[-1])
        self.has_lost_comments = False

    def inside(self, node: Node, old: Any, new: Any, start: int, end: int) -> str:
        """Return the text between two offsets, which contains a list or mapping, with the new entries.

        Raises ``_CannotEdit`` for aliases, flow style, another type, and collections that are, or
        become, empty.
        """
        is_same_type = type(old) is type(new) is type(node.value)
        if node.is_alias or node.is_flow or not node.parts or not new or not is_same_type:
            raise _CannotEdit
        block = self._block(node, start, end)
        edit: Any = self._mapping if isinstance(new, dict) else self._list
        return edit(node, block, old, new) + self._text[block.entries[-1].end : end]

    def _list(self, node: Node, block: _Block, old: list[Any], new: list[Any]) -> str:
        """Return the block of a list, whose old and new items are matched by name."""
        names = [_name(each) for each in old], [_name(each) for each in new]
        bodies: list[str | None] = [None] * len(old)
        added: dict[int, list[str]] = {}
        for kind, i, i_end, j, j_end in SequenceMatcher[Any](None, *names, autojunk=False).get_opcodes():
            # Differing entries at one position are edited in place; todos are not, as one is not another.
            are_todos = i < i_end and isinstance(old[i], dict) and not {"id", "step_id"}.isdisjoint(old[i])
            paired = 0 if kind != "equal" and are_todos else min(i_end - i, j_end - j)
            for n in range(paired):
                bodies[i + n] = self._entry(block.entries[i + n], old[i + n], new[j + n], block)
            items = [self._item(value, block) for value in new[j + paired : j_end]]
            added[i + paired - 1] = added.get(i + paired - 1, []) + items
        return block.joined(bodies, added)

    def _mapping(self, node: Node, block: _Block, old: dict[str, Any], new: dict[str, Any]) -> str:
        """Return the block of a mapping; a new key goes behind the key before it in ``new``."""
        places = {str(key.value): index for index, key in enumerate(node.parts[::2])}
        # A removed key that has no text here was merged in with `<<`.
        if old.keys() - new.keys() - places.keys():
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
                addition = f"{yaml_scalar(key)}:{yaml_block(value, block.column, self._indentation)}"
                added.setdefault(last, []).append(addition)
        return block.joined(bodies, added)

    def _entry(self, entry: _Entry, old: Any, new: Any, block: _Block) -> str:
        """Return the text of an entry with its new value, keeping as much of the old text as possible."""
        node, text = entry.value, self._text
        if _same(old, new):
            return text[entry.start : entry.end]
        head = text[entry.start : entry.head]
        with suppress(_CannotEdit):
            return head + self.inside(node, old, new, entry.head, entry.end)
        # Otherwise the value is replaced, keeping its brackets or quotes and the comment behind it.
        before, behind = text[entry.start : node.at], text[node.end : entry.end]
        is_text = isinstance(node.value, str) and node.style not in ("|", ">") and not node.is_alias
        is_flow = node.is_flow and not node.is_alias
        if isinstance(new, str) and is_text and node.style and new.isprintable():
            return before + yaml_scalar(new, node.style) + behind
        if is_flow or (not new and isinstance(new, (list, dict))):
            if is_flow and new:  # of an emptied collection only comments on removed entries are lost
                inside = _QUOTED.sub("", text[node.at : node.end])
                self.has_lost_comments |= _COMMENT.search(inside) is not None
            flow = yaml_flow(new)
            if is_flow or is_text:
                return before + ("" if before[-1] in " \n" else " ") + flow + behind
            return f"{head} {flow}"
        block_text = yaml_block(new, block.column, self._indentation, is_item=head.endswith("-"))
        first, newline, rest = block_text.partition("\n")
        return head + first + (behind if is_text else "") + newline + rest

    def _item(self, value: Any, block: _Block) -> str:
        """Return the text of a new list item, its content as far behind the dash as in the first item."""
        first = block.entries[0]
        head = self._text[first.start : first.value.at]
        indentation = self._indentation._replace(dash=2 if "\n" in head else len(head))
        return f"-{yaml_block(value, block.column, indentation, is_item=True)}"

    def _block(self, node: Node, start: int, end: int) -> _Block:
        """Return the layout of a list or mapping between two offsets."""
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
        """Return the offsets of the dashes of a list in block style.

        PyYAML has no positions of dashes, so they are searched between the items.
        """
        text = self._text
        found = [text.rfind("-", node.at, node.parts[0].at)]
        margin = "\n" + " " * self._column(found[0]) + "-"
        found += [text.rfind(margin, one.at, two.at) + len(margin) - 1 for one, two in pairwise(node.parts)]
        if found[0] < 0 or any(one >= two for one, two in pairwise(found)):
            raise _CannotEdit
        return found

    def _end(self, start: int, until: int, column: int) -> int:
        """Return where an entry ends: before blank lines, and comments that are not indented further."""
        lines = self._text[start:until].split("\n")
        if until < len(self._text) and len(lines) > 1 and not lines[-1].strip(" ?"):
            lines.pop()  # the indentation of the next entry
        while len(lines) > 1:
            line = lines[-1].lstrip(" ")
            if line and not (line.startswith("#") and len(lines[-1]) - len(line) <= column):
                break
            lines.pop()
        return start + len("\n".join(lines))

    def _column(self, offset: int) -> int:
        return offset - (self._text.rfind("\n", 0, offset) + 1)


def _name(value: Any) -> str:
    """Return the name that identifies an entry of a list: the value of the first key of ``_NAMES``."""
    if isinstance(value, Node):
        held = value.value
        value = {key: node.value for key, (_, node) in held.items()} if isinstance(held, dict) else held
    if isinstance(value, dict):
        entry = cast("dict[str, Any]", value)
        return next((str(entry[name]) for name in _NAMES if name in entry), str(entry))
    return str(value)


def _same(old: Any, new: Any) -> bool:
    """Return whether two plain values are written alike, except for the order of keys."""
    # In Python True == 1 == 1.0; in a file they differ.
    return old == new and json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


# -- the file ------------------------------------------------------------------------------------------


def _rooted(plan: Plan, root: Path, target: Path) -> Plan:
    """Return the plan with a ``root`` that leads from the target's folder to ``root``.

    Raises :class:`planner.errors.PlannerError` if that is neither in that nor in the current folder.
    """
    folder = os.path.realpath(target.parent)
    if os.path.realpath(Path(folder) / plan.root) == str(root):
        return plan
    name = os.path.relpath(root, folder)
    if unusual_fault(name, folder) is not None:  # as of a folder whose name begins with "~"
        name = f"./{name}"
    if not any(is_below(str(root), each) for each in (folder, os.getcwd())):
        raise _error(
            target,
            f"the plan's root {root} is neither in that folder nor below {Path.cwd()}; "
            f"name a file in {root}, or run the command from there",
        )
    return plan.model_copy(update={"root": name})


def _error(path: Path, problem: str) -> PlannerError:
    return PlannerError(one_line(f"{shown_path(path)}: {problem}", limit=_LONGEST_MESSAGE))
