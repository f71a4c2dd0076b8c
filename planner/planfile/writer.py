"""Write a revised plan as its author would have: their file, changed only where the plans differ.

The nodes of a YAML file tell where each value stands. The text around and between the values that change
stays as it is: comments, order, quotes, indentation. An entry that goes takes along the comments directly
above it, and a new one is indented as its neighbours are; what stands in brackets is written anew. JSON,
which has no comments, is written in the order and with the indentation of the file. The new text is loaded
before it is believed: where it does not hold the revised plan (an anchor that several todos share was
changed for one of them), the whole plan is written anew, without comments.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from planner.errors import PlanFileError, PlannerError
from planner.model.plan import Plan, Todo
from planner.planfile.confinement import is_below, unusual_fault
from planner.planfile.document import Node, Refused, Source, compose, read_source
from planner.planfile.dump import Indentation, plain, yaml_block, yaml_flow, yaml_scalar
from planner.planfile.loader import LoadedPlan, collector_paused, dump_plan, load_plan_text, shown_path
from planner.planfile.values import fields_by_key, model_in
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from planner.model.base import Value

_LONGEST_MESSAGE = 1_000
_NAMES = ("id", "step_id", "cmd", "path", "nodeid", "question", "name")
"""The keys by which a person would tell one entry of a list from another."""

_COLON = re.compile(r"\s*:")
_BLANK_LINES = re.compile(r"(?:\n[ \t]*)*(?=\n)")
_SPREAD_LIST = re.compile(r'\[\n((?:[^\[\]{}"]|"(?:[^"\\]|\\.)*")*)\n\s*\]')
_LONG_LINE = 100
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.DOTALL)
_COMMENT = re.compile(r"\s#")


class _CannotEdit(Exception):
    """The change cannot be made in this place; what holds it has to be written anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The text of a new plan file."""

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
    format, target_format = format_of(loaded.path), format_of(target)

    def holds(text: str) -> bool:
        found = load_plan_text(text, target, boundary=boundary)
        return found.root == root and found.plan == wanted and _same(plain(found.plan), new)

    with collector_paused():
        old, new = plain(loaded.plan), plain(wanted)
        edited = _edited(loaded, old, new) if format == target_format else None
        try:
            if edited is not None and holds(edited.text):
                return edited
        except PlanFileError:
            pass  # either the edit or the plan is at fault; writing the plan anew tells which
        text = dump_plan(wanted, format=target_format)
        if not holds(text):
            raise _error(target, "the revised plan holds what no plan file can say; leave it out")
        return Rewritten(text=text, faithful=False)


def format_of(path: Path) -> Literal["yaml", "json"]:
    """Return the format of a plan file, by its name."""
    return "json" if path.suffix.lower() == ".json" else "yaml"


def _edited(loaded: LoadedPlan, old: Any, new: Any) -> Rewritten | None:
    """Return the old file's text with the new plan; ``None`` where it cannot be edited."""
    try:
        source = read_source(loaded.path)
    except Refused as refused:
        raise _error(loaded.path, str(refused)) from None
    if source.digest != loaded.digest:
        raise _error(loaded.path, "the plan has changed since it was loaded; run the command again")
    newline = next((each for each in ("\r\n", "\n", "\r") if each in source.text), "\n")
    text, faithful = source.text.replace(newline, "\n"), True
    if not _same(old, new):
        try:
            if _is_json(text):
                text = _json_text(text, new)
            else:
                editor = _Editor(text)
                text, faithful = editor.edited(old, new), not editor.has_lost_comments
        except _CannotEdit:
            return None
    return Rewritten(text=text.replace("\n", newline), faithful=faithful)


def _arranged(node: Node, new: Any, model: type[Value] | None) -> Any:
    """Return a new value in the order of the node that it replaces, and under the keys that this uses."""
    if isinstance(node.value, list) and isinstance(new, list):
        known = {_name(each): each for each in node.value}
        items = [(known.get(_name(each)), each) for each in cast("list[Any]", new)]
        return [each if held is None else _arranged(held, each, model) for held, each in items]
    if not isinstance(node.value, dict) or not isinstance(new, dict):
        return new
    fields = fields_by_key(model) if model is not None else {}
    values = cast("dict[str, Any]", new)
    keys = {fields[key].name if key in fields else key: key for key in values}
    found: dict[str, Any] = {}
    for spelled, (_, held) in node.value.items():
        field = fields.get(spelled)
        key = keys.pop(field.name if field else spelled, None)
        if key is not None:
            found[spelled] = _arranged(held, values[key], model_in(field.types) if field else None)
    return {**found, **{key: values[key] for key in keys.values()}}


# -- JSON ----------------------------------------------------------------------------------------------


def _is_json(text: str) -> bool:
    try:
        return text[:1] == "{" and bool(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _json_text(text: str, new: Any) -> str:
    """Return the plan in the order of a JSON text, as that is indented."""
    step = re.match(r"\{\s*\n(\s*)", text)
    comma = "," if step or not re.search('", +"', text) else ", "
    said = json.dumps(
        _arranged(compose(Source(text), is_json=True).root, new, Plan),
        indent=step[1] if step else None,
        separators=(comma, ": " if '": ' in text else ":"),
        ensure_ascii=text.isascii() and "\\u" in text,
    )
    if re.search(r"\[[^\[\]{}\n]+\]", text):  # lists of scalars stand in one line
        said = _SPREAD_LIST.sub(_joined, said)
    return said + text[text.rindex("}") + 1 :]


def _joined(found: re.Match[str]) -> str:
    line = "[" + ", ".join(each.strip().removesuffix(",") for each in found[1].split("\n")) + "]"
    return line if len(line) < _LONG_LINE else found[0]


# -- YAML ----------------------------------------------------------------------------------------------


class _Member(NamedTuple):
    """One item of a list or pair of a mapping in block style."""

    start: int
    """Where its dash or its key begins."""
    head: int
    """Behind its dash or the colon of its key."""
    end: int
    """Behind its last word, and the comments that belong to it."""
    value: Node


class _Place(NamedTuple):
    """How the entries of a list or mapping stand."""

    members: list[_Member]
    column: int
    front: int
    """Where a new first entry is put."""
    separator: str
    """What stands between two entries."""
    is_inline: bool
    """Whether the first entry stands in the line of what holds it."""


class _Editor:
    """Collects the edits of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = compose(Source(text), is_json=False).root
        self._edits: list[tuple[int, int, str]] = []
        self._indentation = self._measured()
        self.has_lost_comments = False

    def edited(self, old: Any, new: Any) -> str:
        """Return the text that holds the new values. Raises ``_CannotEdit``."""
        self._edit_inside(self._root, old, new, Plan, 0, len(self._text))
        pieces: list[str] = []
        at = 0
        for start, end, text in sorted(self._edits, key=lambda edit: edit[:2]):
            if start < at:
                raise _CannotEdit
            pieces += [self._text[at:start], text]
            at = end
        return "".join([*pieces, self._text[at:]])

    def _edit_member(
        self, member: _Member, old: Any, new: Any, model: type[Value] | None, place: _Place
    ) -> None:
        """Change the value of an entry, in its own text as far as that can be."""
        if _same(old, new):
            return
        count = len(self._edits)
        try:
            self._edit_inside(member.value, old, new, model, member.head, member.end)
        except _CannotEdit:
            del self._edits[count:]
            self._replace(member, new, model, place)

    def _edit_inside(
        self, node: Node, old: Any, new: Any, model: type[Value] | None, start: int, end: int
    ) -> None:
        """Change entries of a list or mapping that stands between two offsets."""
        if node.is_alias or node.is_flow or not node.parts or not new or type(old) is not type(new):
            raise _CannotEdit
        place = self._place(node, start, end)
        if isinstance(old, dict):
            self._edit_mapping(node, place, cast("dict[str, Any]", old), cast("dict[str, Any]", new), model)
        elif isinstance(old, list) and len(cast("list[Any]", old)) == len(place.members):
            self._edit_list(place, cast("list[Any]", old), cast("list[Any]", new), model)
        else:
            raise _CannotEdit

    def _edit_list(self, place: _Place, old: list[Any], new: list[Any], model: type[Value] | None) -> None:
        names = [_name(each) for each in old], [_name(each) for each in new]
        opcodes = SequenceMatcher[Any](None, *names, autojunk=False).get_opcodes()
        # Entries without a counterpart stand for each other, but a todo is never another.
        pairs = [
            0 if kind != "equal" and model is Todo else min(i_end - i, j_end - j)
            for kind, i, i_end, j, j_end in opcodes
        ]
        removed = {
            n for code, paired in zip(opcodes, pairs, strict=True) for n in range(code[1] + paired, code[2])
        }
        for (_, i, _, j, j_end), paired in zip(opcodes, pairs, strict=True):
            for n in range(paired):
                self._edit_member(place.members[i + n], old[i + n], new[j + n], model, place)
            for value in new[j + paired : j_end]:
                self._insert(place, i + paired - 1, self._item(value, place))
        self._remove(place, removed)

    def _edit_mapping(
        self,
        node: Node,
        place: _Place,
        old: dict[str, Any],
        new: dict[str, Any],
        model: type[Value] | None,
    ) -> None:
        fields = fields_by_key(model) if model is not None else {}

        def name(key: str) -> str:
            return fields[key].name if key in fields else key

        before = {name(key): value for key, value in old.items()}
        after = {name(key): value for key, value in new.items()}
        keys = dict(zip(after, new, strict=True))
        places = {name(str(key.value)): index for index, key in enumerate(node.parts[::2])}
        gone = before.keys() - after.keys()
        if gone - places.keys():  # merged in with `<<`
            raise _CannotEdit
        removed = {places[each] for each in gone}
        last = -1
        for each, value in after.items():
            if each in places:
                last = places[each]
                inner = model_in(fields[keys[each]].types) if keys[each] in fields else None
                self._edit_member(place.members[last], before.get(each), value, inner, place)
            elif each not in before or not _same(before[each], value):
                self._insert(place, last, self._pair(keys[each], value, place))
        self._remove(place, removed)

    # -- edits ----------------------------------------------------------------------------------------

    def _insert(self, place: _Place, behind: int, entry: str) -> None:
        if behind >= 0:
            at = place.members[behind].end
            self._edits.append((at, at, place.separator + entry))
        elif place.is_inline:
            self._edits.append((place.front, place.front, entry + place.separator))
        else:
            gap = "\n" * (place.separator.count("\n") - 1)
            self._edits.append((place.front, place.front, f"\n{' ' * place.column}{entry}{gap}"))

    def _remove(self, place: _Place, removed: set[int]) -> None:
        members = place.members
        if len(removed) == len(members):
            raise _CannotEdit
        first_kept = min(set(range(len(members))) - removed)
        for index in removed:
            member = members[index]
            if index > first_kept:
                self._edits.append((members[index - 1].end, member.end, ""))
            elif place.is_inline:
                self._edits.append((member.start, members[index + 1].start, ""))
            else:
                start = place.front if index == 0 else members[index - 1].end
                # Blank lines above what is now the first entry go, too.
                blank = _BLANK_LINES.match(self._text, member.end) if index + 1 == first_kept else None
                self._edits.append((start, blank.end() if blank else member.end, ""))

    def _replace(self, member: _Member, new: Any, model: type[Value] | None, place: _Place) -> None:
        """Put a new value in the place of an entry's, in its brackets or quotes, before its comment."""
        node, text = member.value, self._text
        is_text = isinstance(node.value, str) and node.style not in ("|", ">") and not node.is_alias
        if isinstance(new, str) and is_text and node.style and new.isprintable():
            self._edits.append((node.at, node.end, yaml_scalar(new, node.style)))
        elif node.is_flow or (not new and isinstance(new, (list, dict))):
            gap = "" if text[node.at - 1] in " \n" else " "
            flow = yaml_flow(_arranged(node, new, model))
            if node.is_flow or isinstance(node.value, str):
                self._edits.append((node.at, node.end, gap + flow))
            else:
                self._edits.append((member.head, member.end, " " + flow))
            if node.is_flow and new:  # otherwise only comments about what is gone go
                inside = _QUOTED.sub("", text[node.at : node.end])
                self.has_lost_comments |= _COMMENT.search(inside) is not None
        else:
            is_item = text[member.head - 1] == "-"
            said = yaml_block(new, place.column, self._indentation, is_item=is_item)
            first, newline, rest = said.partition("\n")
            comment = text[node.end : member.end] if is_text else ""
            self._edits.append((member.head, member.end, first + comment + newline + rest))

    def _item(self, value: Any, place: _Place) -> str:
        first = place.members[0]
        said = self._text[first.start : first.value.at]
        indentation = self._indentation._replace(dash=2 if "\n" in said else len(said))
        return f"-{yaml_block(value, place.column, indentation, is_item=True)}"

    def _pair(self, key: str, value: Any, place: _Place) -> str:
        return f"{yaml_scalar(key)}:{yaml_block(value, place.column, self._indentation)}"

    # -- where entries stand --------------------------------------------------------------------------

    def _place(self, node: Node, start: int, end: int) -> _Place:
        text, parts = self._text, node.parts
        is_mapping = isinstance(node.value, dict)
        values = parts[1::2] if is_mapping else parts
        firsts = parts[::2] if is_mapping else parts
        starts = [key.at for key in firsts] if is_mapping else self._dashes(node)
        column = self._column(starts[0])
        members: list[_Member] = []
        for index, (at, value) in enumerate(zip(starts, values, strict=True)):
            until = starts[index + 1] if index + 1 < len(starts) else end
            head = at + 1
            if is_mapping:
                colon = _COLON.match(text, firsts[index].end)
                head = colon.end() if colon else firsts[index].end  # `? key` may have none
            members.append(_Member(at, head, self._end(at, until, column), value))
        newline = text.find("\n", start, starts[0])
        is_inline = newline < 0 or node is self._root
        gap = 0
        if not is_mapping and len(members) > 1:
            gap = text[members[0].end : starts[1]].partition("#")[0].count("\n") - 1
        separator = "\n" * max(gap, 0) + "\n" + " " * column
        return _Place(members, column, starts[0] if is_inline else newline, separator, is_inline)

    def _dashes(self, node: Node) -> list[int]:
        """Return where the dashes of a list in block style stand."""
        # An anchor or a tag may stand before it, in a line of its own.
        first = re.compile(r"(?:[^-\n][^\n]*(?:\n *(?:#[^\n]*)?)+)?-(?=\s)").match(self._text, node.at)
        if first is None:
            raise _CannotEdit
        found = [first.end() - 1]
        dash = re.compile(rf"\n {{{self._column(found[0])}}}-(?=\s)")
        for one, two in pairwise(node.parts):
            between = [each.end() - 1 for each in dash.finditer(self._text, one.at, two.at)]
            if not between:
                raise _CannotEdit
            found.append(between[-1])
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

    def _measured(self) -> Indentation:
        """Return how the file is indented: as the lists and mappings within its todos are."""
        steps: list[int] = []
        offsets: list[int] = []
        pending = [self._root]
        while pending:
            node = pending.pop()
            pending += node.parts[::-1]
            if isinstance(node.value, list) or node.is_flow:
                continue
            for key, value in zip(node.parts[::2], node.parts[1::2], strict=True):
                if not value.parts or value.is_flow:
                    continue
                if isinstance(value.value, dict):
                    steps.append(self._column(value.parts[0].at) - self._column(key.at))
                elif self._text[value.at] == "-":
                    offsets.append(self._column(value.at) - self._column(key.at))
        step = next((each for each in steps if each > 0), 2)
        return Indentation(step=step, offset=max((offsets[1:] or offsets or [0])[0], 0))


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
