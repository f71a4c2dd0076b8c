"""Writing of a revised plan: the text of the user's file, changed only where the plans differ.

The nodes of a YAML file have the position of each value. The text around and between changed values is
kept: comments, order, quotes, indentation. With a removed entry the comments directly above it are removed,
too, and a new entry is indented like its neighbours; changed collections in flow style are written anew.
JSON, which has no comments, is written in the order and with the indentation of the file. The new text is
loaded as a check: if it does not result in the revised plan (for example because an anchor shared by
several todos was changed for one of them), the whole plan is written anew, without comments.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import yaml

from planner.errors import PlanFileError
from planner.model.base import Value
from planner.model.plan import AcceptanceCriteria, ArtifactSpec, Plan
from planner.planfile.document import Document, Node, Refused, Source, compose, read_source
from planner.planfile.loader import LoadedPlan, file_error, load_plan
from planner.planfile.values import BOOLEANS, SHORTHANDS, anything, fields_by_key, model_in

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEXT = "tag:yaml.org,2002:str"
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


def dump_plan(plan: Plan, *, format: Literal["yaml", "json"]) -> str:
    """Return the text of a file that loads as an equal plan; only fields that were set are written."""
    values = plain(plan)
    if format == "json":
        return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return yaml_text(values)


def plain(value: Any) -> Any:
    """Return a value as plain data for a file: text, numbers, lists and mappings.

    Of a model, the fields that were set are written, by the keys of a file, with the extensions last. An
    artifact with nothing but a path is its path, a float without fraction an integer.
    """
    if isinstance(value, Value):
        fields: dict[str, Any] = {}
        for name, info in type(value).model_fields.items():
            held = getattr(value, name)
            # A file with empty criteria is refused; leaving them out has the same meaning.
            is_empty = isinstance(held, AcceptanceCriteria) and not held and not held.extensions
            if name != "extensions" and name in value.model_fields_set and not is_empty:
                fields[info.alias or name] = plain(held)
        fields |= getattr(value, "extensions", {})
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


# -- YAML text -----------------------------------------------------------------------------------------


class PlanDumper(yaml.SafeDumper):
    """Dumper whose texts are read as texts; those of several lines are literal blocks where possible."""

    indents_lists = False
    """Whether dashes are indented further than the key above them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, indentless and not self.indents_lists)

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def analyze_scalar(self, scalar: str) -> Any:
        analysis: Any = super().analyze_scalar(scalar)
        # PyYAML writes no block with blanks at the ends of lines, but output of pytest contains such lines.
        analysis.allow_block = text_style(scalar) == "|"
        return analysis

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return cast("Any", self).represent_scalar(_TEXT, text, style=text_style(text))


PlanDumper.add_representer(str, PlanDumper.represent_text)


class _IndentedDumper(PlanDumper):
    indents_lists = True


def text_style(text: str) -> str | None:
    """Return ``|`` or the quotes with which a text is read as text; ``None`` if the dumper decides."""
    # A tab at the start would be taken for indentation.
    if "\n" in text and text[0] != "\t" and text.replace("\n", "").replace("\t", "").isprintable():
        return "|"
    is_other = text in BOOLEANS or anything(text[:60]) != text[:60]
    return '"' if is_other or not text.isprintable() else None


def yaml_text(values: Any, *, step: int = 2, indents_lists: bool = False, is_flow: bool = False) -> str:
    """Return the text of a YAML file with these values.

    ``step`` is the number of columns from a key to the keys below it.
    """
    text: str = cast("Any", yaml).dump(
        values,
        Dumper=_IndentedDumper if indents_lists else PlanDumper,
        default_flow_style=is_flow,
        indent=step,
        width=sys.maxsize,
        allow_unicode=True,
        sort_keys=False,
    )
    return text.removesuffix("...\n") if text.endswith("\n...\n") else text


def yaml_flow(value: Any) -> str:
    """Return a value in flow style, in one line."""
    return yaml_text([value], is_flow=True).removesuffix("\n")[1:-1]


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
    :class:`planner.errors.PlannerError` if the old file was changed since it was loaded.
    """
    root = os.path.realpath(loaded.path.parent / revised.root)
    folder = os.path.realpath(target.parent)
    wanted = revised
    if os.path.realpath(os.path.join(folder, revised.root)) != root:
        wanted = revised.model_copy(update={"root": os.path.relpath(root, folder)})

    def holds(text: str) -> bool:
        found = load_plan(target, text=text)
        return found.root == Path(root) and found.plan == wanted and _same(plain(found.plan), plain(wanted))

    new = format_of(target)
    edited = _edited(loaded, wanted, target) if format_of(loaded.path) == new else None
    # If the edited text has faults, edit or plan may be wrong: only writing the plan anew decides.
    with suppress(PlanFileError):
        if edited is not None and holds(edited.text):
            return edited
    text = dump_plan(wanted, format=new)
    if not holds(text):
        raise file_error(target, "the revised plan has a value that a plan file cannot have; remove it")
    return Rewritten(path=target, text=text, faithful=False)


def format_of(path: Path) -> Literal["yaml", "json"]:
    """Return the format of a plan file, as its suffix says it."""
    return "json" if path.suffix.lower() == ".json" else "yaml"


def _edited(loaded: LoadedPlan, wanted: Plan, target: Path) -> Rewritten | None:
    """Return the old file's text with the new plan; ``None`` if it cannot be edited.

    Raises :class:`planner.errors.PlannerError` if the file cannot be read or was changed since.
    """
    try:
        source = read_source(loaded.path)
    except Refused as refused:
        raise file_error(loaded.path, str(refused)) from None
    if source.digest != loaded.digest:
        raise file_error(loaded.path, "the plan has changed since it was loaded; run the command again")
    # Composed anew, with positions in a text that has only one kind of line end.
    newline = next((each for each in ("\r\n", "\n", "\r") if each in source.text), "\n")
    text, faithful = source.text.replace(newline, "\n"), True
    is_json = format_of(loaded.path) == "json"
    document = compose(Source(text), is_json=is_json)
    old, new = (_arranged(document.root, plain(each), Plan) for each in (loaded.plan, wanted))
    if _same(old, new):
        pass  # also the spacing of JSON stays
    elif is_json:
        text = _json_text(text, new)
    else:
        editor = _TextEditor(document)
        try:
            text = editor.inside(document.root, old, new, 0, len(text))
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


class _Change(NamedTuple):
    """One entry of the new collection."""

    at: int | None
    """Index of the entry of the text that it replaces; ``None`` if it is new."""
    name: str | None
    """Its key; ``None`` in a list."""
    old: Any
    new: Any


class _TextEditor:
    """Edits a YAML text where two plans differ, and copies the rest.

    The new indentation is that of the last nested keys and lists in the text.
    """

    def __init__(self, document: Document) -> None:
        self._text = text = document.source.text
        self._pairs = document.pairs
        steps, offsets = (
            [len(step) for _, step in re.findall(rf"^( *)[\w-]+:\n\1{found}", text, re.MULTILINE)]
            for found in (r"( +)\w", r"( *)- ")
        )
        self._step, self._indents_lists = (steps or [2])[-1], bool((offsets or [0])[-1])
        self.has_lost_comments = False

    def inside(self, node: Node, old: Any, new: Any, start: int, end: int) -> str:
        """Return the text between two offsets, which contains a list or mapping, with the new entries.

        Raises ``_CannotEdit`` for aliases, flow style, another type, and collections that are, or
        become, empty.
        """
        held: Any = node.value
        is_block = isinstance(node, yaml.CollectionNode) and not node.flow_style
        is_same_type = type(old) is type(new) is type(held)
        if not (held and new and is_block and is_same_type) or _is_alias(node, start, end):
            raise _CannotEdit
        header, entries = self._entries(node, start, end)
        first, column = entries[0].lead, self._column(entries[0].start)
        # The first entry is in the same line as the dash of the parent, or begins the document.
        is_inline = "\n" not in first
        between = "\n" + " " * column
        is_list = isinstance(held, list)
        if is_list and len(entries) > 1:  # as many blank lines as there are between items
            between = "\n" * max(entries[1].lead.partition("#")[0].count("\n") - 1, 0) + between
        pieces = [header]
        changes = self._items(old, new) if is_list else self._keys(node, old, new)
        for number, change in enumerate(changes):
            entry = None if change.at is None else entries[change.at]
            if entry is None:
                lead, body = between, self._new(change.name, change.new, column)
            else:
                lead, body = entry.lead, self._entry(entry, change.old, change.new, column)
                if change.at == 0 and number:  # no longer the first
                    lead = between if is_inline else between.rstrip(" ")[1:] + lead
            if number == 0 and change.at != 0:  # no blank lines above the new first entry
                lead = "" if is_inline else _BLANK_LINES.sub("", lead)
            pieces.append(lead + body)
        return "".join(pieces) + self._text[entries[-1].end : end]

    def _items(self, old: list[Any], new: list[Any]) -> Iterator[_Change]:
        """Yield the entries of a new list, whose items are matched with the old ones by name."""
        names = [_name(each) for each in old], [_name(each) for each in new]
        for kind, i, i_end, j, j_end in SequenceMatcher[Any](None, *names, autojunk=False).get_opcodes():
            # Differing entries at one position are edited in place; todos are not, as one is not another.
            are_todos = i < i_end and isinstance(old[i], dict) and not {"id", "step_id"}.isdisjoint(old[i])
            paired = 0 if kind != "equal" and are_todos else min(i_end - i, j_end - j)
            for at in range(j, j_end):
                index = i + at - j if at < j + paired else None
                yield _Change(index, None, None if index is None else old[index], new[at])

    def _keys(self, node: Node, old: dict[str, Any], new: dict[str, Any]) -> list[_Change]:
        """Return the entries of a new mapping; a new key goes behind the key before it in ``new``."""
        names = [str(key.value) for key, _ in self._pairs[id(node)]]
        # A removed key that has no text here was merged in with `<<`.
        if old.keys() - new.keys() - set(names):
            raise _CannotEdit
        # What is in the text but not in the plan, such as empty criteria, stays as it is.
        changes = [
            _Change(index, name, old.get(name), new.get(name))
            for index, name in enumerate(names)
            if name in new or name not in old
        ]
        behind = 0
        for key, value in new.items():
            if key in names:
                behind = 1 + next(at for at, change in enumerate(changes) if change.name == key)
            elif key not in old or not _same(old[key], value):
                changes.insert(behind, _Change(None, key, None, value))
                behind += 1
        return changes

    def _entry(self, entry: _Entry, old: Any, new: Any, column: int) -> str:
        """Return the text of an entry with its new value, keeping as much of the old text as possible."""
        node, text = entry.value, self._text
        if _same(old, new):
            return text[entry.start : entry.end]
        head = text[entry.start : entry.head]
        with suppress(_CannotEdit):
            return head + self.inside(node, old, new, entry.head, entry.end)
        # Otherwise the value is replaced, keeping its brackets or quotes and the comment behind it.
        start, end = node.start_mark.index, node.end_mark.index
        before, behind = text[entry.start : start], text[end : entry.end]
        is_here = not _is_alias(node, entry.head, entry.end)
        if is_here and isinstance(node, yaml.CollectionNode) and node.flow_style:
            if new:  # of an emptied collection only comments on removed entries are lost
                inside = _QUOTED.sub("", text[start:end])
                self.has_lost_comments |= _COMMENT.search(inside) is not None
            return before + yaml_flow(new) + behind
        style = node.style if isinstance(node, yaml.ScalarNode) else "|"
        is_text = is_here and style not in ("|", ">")
        if isinstance(new, str) and is_text and style and new.isprintable():
            escaped = json.dumps(new, ensure_ascii=False)[1:-1] if style == '"' else new.replace("'", "''")
            return before + style + escaped + style + behind
        block = self._new(None if head.endswith("-") else "k", new, column)
        first, newline, rest = block.partition("\n")
        return head + first[1:].removeprefix(":") + (behind if is_text else "") + newline + rest

    def _new(self, key: str | None, value: Any, column: int) -> str:
        """Return the text of a new entry of a mapping, or with ``None`` for ``key`` of a list."""
        values = [value] if key is None else {key: value}
        text = yaml_text(values, step=self._step, indents_lists=self._indents_lists).removesuffix("\n")
        return re.sub(r"\n(?=[^\n])", "\n" + " " * column, text)

    def _entries(self, node: Node, start: int, end: int) -> tuple[str, list[_Entry]]:
        """Return the text before the entries of a list or mapping between two offsets, and the entries."""
        text, held = self._text, node.value
        if isinstance(held, dict):
            keys, values = zip(*self._pairs[id(node)], strict=True)
            starts = [key.start_mark.index for key in keys]
            colons = (_COLON.match(text, key.end_mark.index) for key in keys)
            heads = [colon.end() for colon in colons if colon is not None]
        else:
            starts, values = self._dashes(node), cast("list[Node]", held)
            heads = [at + 1 for at in starts]
        newline = text.find("\n", start, starts[0])
        header_end = last = starts[0] if newline < 0 or start == 0 else newline
        entries: list[_Entry] = []
        for at, head, until, value in zip(starts, heads, [*starts[1:], end], values, strict=True):
            entry = _Entry(text[last:at], at, head, self._end(at, until, self._column(starts[0])), value)
            entries.append(entry)
            last = entry.end
        return text[start:header_end], entries

    def _dashes(self, node: Node) -> list[int]:
        """Return the offsets of the dashes of a list in block style.

        PyYAML has no positions of dashes, so they are searched between the items.
        """
        text, items = self._text, [each.start_mark.index for each in cast("list[Node]", node.value)]
        found = [text.rfind("-", node.start_mark.index, items[0])]
        margin = "\n" + " " * self._column(found[0]) + "-"
        found += [text.rfind(margin, one, other) + len(margin) - 1 for one, other in pairwise(items)]
        if found[0] < 0 or any(one >= other for one, other in pairwise(found)):
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


def _is_alias(node: Node, start: int, end: int) -> bool:
    """Return whether the text of an entry only refers to its value, which is written somewhere else."""
    return not start <= node.start_mark.index <= end


def _name(value: Any) -> str:
    """Return the name that identifies an entry of a list: the value of the first key of ``_NAMES``."""
    if isinstance(value, yaml.Node):
        held = cast("Node", value).value
        value = {key: node.value for key, (_, node) in held.items()} if isinstance(held, dict) else held
    if isinstance(value, dict):
        entry = cast("dict[str, Any]", value)
        return next((str(entry[name]) for name in _NAMES if name in entry), str(entry))
    return str(value)


def _same(old: Any, new: Any) -> bool:
    """Return whether two plain values are written alike, except for the order of keys."""
    # In Python True == 1 == 1.0; in a file they differ.
    return old == new and json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)
