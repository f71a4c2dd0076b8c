"""Writes a revised plan as the user would have: their file, changed only where the plans differ.

YAML goes through ruamel.yaml, which keeps comments, order and quotes; JSON through :mod:`json` with the
indentation of the file. Todos that do not change go around both. What ruamel would lay out otherwise
although nothing changed in it (brackets over several lines, two ways to indent) is taken from the file, and
the new text is loaded again before it is believed. Where it does not hold the revised plan, the whole file
is written as ruamel writes it, and where that fails, too, the plan is written anew without comments: an
anchor that several todos share was changed for one of them, a key merged in with ``<<`` was removed, or a
key was added that holds control characters, which ruamel breaks into lines.
"""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import (
    DoubleQuotedScalarString,
    PlainScalarString,
    SingleQuotedScalarString,
)
from ruamel.yaml.tag import Tag

from planner.errors import PlanFileError, PlannerError
from planner.model.plan import Plan, Todo
from planner.planfile.confinement import is_below, unusual_fault
from planner.planfile.document import Node, compose
from planner.planfile.dump import plain, text_style
from planner.planfile.faults import Refused
from planner.planfile.loader import LoadedPlan, collector_paused, dump_plan, load_plan_text, shown_path
from planner.planfile.source import Source, read_source
from planner.planfile.values import Wanted, fields_by_key, wanted_by
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

_BYTE_ORDER_MARK = "\ufeff"
_LONGEST_MESSAGE = 1_000
_NAMES = ("id", "cmd", "path", "nodeid", "question", "name")
"""The keys by which a person would tell one entry of a list from another."""

_KEPT = "planverify-unchanged-todo-"
"""What stands for a todo that does not change; digits follow."""

_TEXT = "planverify-text-"
"""What stands for a text of several lines; digits and a dash follow."""

_LONG_LINE = 100
_UNFOLDED = 10**6
_BELOW_KEY = 3
"""Where ruamel keeps the comments between a key and a value in lines of its own."""

_DASH = re.compile(r" *-(?=\s)")
_TAG = "tag:yaml.org,2002:"


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
    format, target_format = _format_of(loaded.path), _format_of(target)
    old, new = _plainly(loaded.plan, wanted)

    def holds(text: str) -> bool:
        found = load_plan_text(text, target, boundary=boundary)
        return found.root == root and found.plan == wanted and _same(plain(found.plan), new)

    with collector_paused():
        for text in _edited(loaded, old, new, format) if format == target_format else ():
            try:
                if holds(text):
                    return Rewritten(text=text, faithful=True)
            except PlanFileError:
                pass  # either the edit or the plan is at fault; writing the plan anew tells which
        text = dump_plan(wanted, format=target_format)
        if not holds(text):
            raise _error(target, "the revised plan holds what no plan file can say; leave it out")
        return Rewritten(text=text, faithful=False)


def _edited(loaded: LoadedPlan, old: dict[str, Any], new: dict[str, Any], format: str) -> Iterator[str]:
    """Yield texts that may hold the new plan, the most faithful first."""
    try:
        source = read_source(loaded.path)
    except Refused as refused:
        raise _error(loaded.path, str(refused)) from None
    if source.digest != loaded.digest:
        raise _error(loaded.path, "the plan has changed since it was loaded; run the command again")
    breaks = [each for each in ("\r\n", "\n", "\r") if each in source.text]
    newline = breaks[0] if breaks else "\n"
    text = source.text.replace(newline, "\n")
    mark = _BYTE_ORDER_MARK if source.marked else ""
    edits = [_edit_json] if format == "json" or _is_json(text) else [_edit_around, _edit_yaml, _lay_out]
    for edit in edits if not _same(old, new) else [_leave]:
        try:
            yield mark + edit(text, old, new).replace("\n", newline)
        except (_CannotEdit, YAMLError):
            continue


def _leave(text: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    return text


def _is_json(text: str) -> bool:
    try:
        return text[:1] == "{" and bool(json.loads(text))
    except (ValueError, RecursionError):
        return False


# -- JSON ----------------------------------------------------------------------------------------------


def _edit_json(text: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Edit a JSON text. What stands all in one line gets even spaces."""
    gap = re.match(r"\{(\s*)", text)
    indent = gap[1].rpartition("\n")[2] if gap is not None and "\n" in gap[1] else None
    colon, comma = re.search(r'"(\s*:\s*)', text), re.search(r'",( *)"', text)
    between = "," if indent is not None or (comma is not None and not comma[1]) else ", "
    is_ascii = text.isascii() and "\\u" in text
    has_brief_lists = re.search(r"\[[^\[\]{}\n]+\]", text) is not None
    end = text[len(text.rstrip()) :]
    held = json.loads(text)

    def dumped() -> str:
        separators = (between, colon[1] if colon else ": ")
        said = json.dumps(held, indent=indent, separators=separators, ensure_ascii=is_ascii)
        return (_SPREAD_LIST.sub(_brief, said) if has_brief_lists else said) + end

    before = dumped()
    _Edit(lambda value, _: value).value(held, old, new, wanted_by(Plan))
    return _merged(text, before, dumped())


_SPREAD_LIST = re.compile(r'\[\n((?:[^\[\]{}"]|"(?:[^"\\]|\\.)*")*)\n\s*\]')


def _brief(found: re.Match[str]) -> str:
    """Put a list of scalars into one line, if it fits."""
    line = "[" + ", ".join(each.strip().removesuffix(",") for each in found[1].split("\n")) + "]"
    return line if len(line) < _LONG_LINE else found[0]


# -- YAML ----------------------------------------------------------------------------------------------


class _TextConstructor(RoundTripConstructor):
    """Refuses tags whose value ruamel would compute: ``!!int word`` is a text here, and an error there."""


for _name_of_tag in ("bool", "int", "float", "null"):
    cast("Any", _TextConstructor).add_constructor(
        _TAG + _name_of_tag, cast("Any", RoundTripConstructor).construct_undefined
    )


class _TextResolver(VersionedResolver):
    """Takes every scalar for text: what it means is decided when the plan is loaded."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is not ScalarNode:
            return cast("Any", super()).resolve(kind, value, implicit)
        is_merge = value == "<<" and implicit[0]
        return Tag(suffix=_TAG + "merge") if is_merge else self.DEFAULT_SCALAR_TAG


def _edit_around(text: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Edit the text around the todos that stay as they are or go: these are shown to ruamel as a word."""
    lines = text.split("\n")
    spans = _spans(text, lines)
    changed = {todo["id"]: todo for todo in new["items"]}
    words: dict[str, str] = {}
    kept: dict[str, list[str]] = {}
    base: list[str] = []
    done = 0
    for todo, (start, end, indent) in zip(old["items"], spans, strict=True):
        base += lines[done:start]
        done = start
        if todo["id"] not in changed or _same(todo, changed[todo["id"]]):
            word = words[todo["id"]] = f"{_KEPT}{len(kept)}"
            kept[word] = lines[start:end]
            base.append(f"{' ' * indent}- {word}")
            done = end
    base += lines[done:]
    plans = (
        {**plan, "items": [words.get(todo["id"], todo) for todo in plan["items"]]} for plan in (old, new)
    )
    gap = _blank_lines_above(lines, spans[1][0]) if len(spans) > 1 else 0
    edited = _edit_yaml("\n".join(base), *plans, layout=_layout(text), dash=spans[0][2], gap=gap)
    return "\n".join(
        line for each in edited.split("\n") for line in kept.get(each.strip().removeprefix("- "), [each])
    )


def _edit_yaml(
    text: str,
    old: dict[str, Any],
    new: dict[str, Any],
    *,
    layout: dict[str, int] | None = None,
    dash: int = -1,
    gap: int = 0,
) -> str:
    """Edit the text. ``gap`` is how many blank lines part the todos, whose dashes stand in a column."""
    before, after = _round_tripped(text, old, new, layout or _layout(text))
    return _merged(text, before, after, _Comments(dash, gap))


def _lay_out(text: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Edit the text, all of it as ruamel lays it out."""
    return _round_tripped(text, old, new, _layout(text))[1]


def _spans(text: str, lines: list[str]) -> list[tuple[int, int, int]]:
    """Return of each todo its first line, the line after its last, and the column of its dash.

    A comment directly above the dash stands outside, one below that stands further in belongs to the todo.
    """
    source = Source(text)
    document = compose(source, is_json=False)
    root = cast("dict[str, tuple[int, Node]]", document.root.value)
    at, items = root["items"]
    todos = cast("list[Node]", items.value)
    dashes = [_dash(lines, source.position(todo.at)[0] - 1) for todo in todos]
    columns = {column for _, column in dashes}
    following = [source.position(key)[0] - 1 for key, _ in root.values() if key > at]
    if len(columns) != 1 or len({line for line, _ in dashes}) != len(dashes):
        raise _CannotEdit
    column = columns.pop()
    starts = [line for line, _ in dashes]
    ends = [*starts[1:], min([each for each in following if each > starts[-1]], default=len(lines))]
    return [(start, _end(lines, end, column), column) for start, end in zip(starts, ends, strict=True)]


def _dash(lines: list[str], line: int) -> tuple[int, int]:
    """Return the line and the column of the dash of an item that begins in a line."""
    for above in range(line, max(line - 3, -1), -1):
        found = _DASH.match(lines[above] + " ")
        if found is not None:
            return above, found.end() - 1
    raise _CannotEdit


def _end(lines: list[str], end: int, column: int) -> int:
    """Return where the lines end that are no comments and blank lines of what follows."""
    while True:
        line = lines[end - 1]
        if line.strip() and not (line.lstrip().startswith("#") and _indent(line) <= column):
            return end
        end -= 1


def _round_tripped(
    text: str, old: dict[str, Any], new: dict[str, Any], layout: dict[str, int]
) -> tuple[str, str]:
    """Return the text as ruamel writes it, before and after the edit."""
    yaml: Any = YAML()
    yaml.Constructor, yaml.Resolver = _TextConstructor, _TextResolver
    yaml.preserve_quotes = True
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.width = _UNFOLDED
    yaml.indent(**layout)

    def dumped() -> str:
        stream = io.StringIO()
        yaml.dump(held, stream)
        return stream.getvalue()

    held = yaml.load(text)
    shared = _shared(held)
    before = dumped()
    values = _YamlValues(layout["mapping"])
    _Edit(values.written, shared).value(held, old, new, wanted_by(Plan))
    return before, values.with_texts(dumped())


def _layout(text: str) -> dict[str, int]:
    """Return how the file indents, for ruamel, which indents all lists alike.

    The lists within todos tell, not that of the todos: new todos are moved to where the others are.
    """
    lists = sorted(_LIST.findall(text), key=lambda found: not found[0])
    key, margin, _ = lists[0] if lists else ("", "", "")
    dash = max((dash for _, _, dash in lists), default="- ")  # some write that of a scalar closer
    mappings = [len(inner) - len(key) for key, inner in _MAPPING.findall(text) if len(inner) > len(key)]
    offset = max(len(margin) - len(key), 0)
    return {"mapping": (mappings or [2])[0], "sequence": offset + len(dash), "offset": offset}


_BREAK = r"[^\S\n]*(?:#[^\n]*)?\n"
_LIST = re.compile(rf"^([ -]*)[^\s#-][^\n]*:(?:{_BREAK})+( *)(- *)(?=[^\s-])", re.MULTILINE)
_MAPPING = re.compile(rf"^( *)[\w-]+:(?:{_BREAK})+( +)[\w-]+:", re.MULTILINE)


def _shared(root: Any) -> frozenset[int]:
    """Return the ids of lists and mappings that stand in several places, by aliases.

    On the way each null in brackets that is not written is written: ruamel would make it an empty text.
    """
    seen: set[int] = set()
    shared: set[int] = set()
    pending: list[Any] = [root]
    while pending:
        held = pending.pop()
        if id(held) in seen:
            shared.add(id(held))
            continue
        seen.add(id(held))
        places = cast("Any", held).non_merged_items() if isinstance(held, CommentedMap) else enumerate(held)
        for place, value in list(cast("Any", places)):
            if isinstance(value, (CommentedMap, CommentedSeq)):
                pending.append(value)
            elif type(value) is str and not value and cast("Any", held).fa.flow_style():
                held[place] = PlainScalarString("null")
    return frozenset(shared)


class _YamlValues:
    """Makes the values that ruamel is to write. Texts of several lines are put in afterwards.

    ruamel writes a text with a blank at the end of a line between quotes, all in one line; failures that
    pytest shows are full of such lines.
    """

    def __init__(self, step: int) -> None:
        self._step = step
        self._texts: dict[str, str] = {}

    def written(self, value: Any, held: Any) -> Any:
        """Return a plain value for ruamel, in the brackets or quotes of what it replaces."""
        if isinstance(value, (dict, list)):
            made: Any = (
                CommentedMap(
                    {_key(key): self.written(each, None) for key, each in cast("Any", value).items()}
                )
                if isinstance(value, dict)
                else CommentedSeq([self.written(each, None) for each in cast("list[Any]", value)])
            )
            if isinstance(held, (CommentedMap, CommentedSeq)) and cast("Any", held).fa.flow_style():
                made.fa.set_flow_style()
            return made
        if not isinstance(value, str):
            return PlainScalarString(json.dumps(value))
        if "\n" in value and value.replace("\n", "").replace("\t", "").isprintable():
            word = f"{_TEXT}{len(self._texts)}-"
            self._texts[word] = value
            return PlainScalarString(word)
        if isinstance(held, (DoubleQuotedScalarString, SingleQuotedScalarString)) and value.isprintable():
            return type(held)(value)
        quotes = {"'": SingleQuotedScalarString, '"': DoubleQuotedScalarString}
        return quotes.get(text_style(value) or "", PlainScalarString)(value)

    def with_texts(self, text: str) -> str:
        """Return what ruamel has written, with the texts of several lines in their places."""
        if not self._texts:
            return text
        return re.sub(rf"^( *(?:- +)*)(.*?)({_TEXT}\d+-)(.*)$", self._put_in, text, flags=re.MULTILINE)

    def _put_in(self, found: re.Match[str]) -> str:
        lead, key, word, rest = found.groups()
        text = self._texts.get(word, word)
        lines = text.removesuffix("\n").split("\n")
        if rest or not lines[-1].strip() or not (not key or key.endswith(": ")):
            return f"{lead}{key}{json.dumps(text, ensure_ascii=False)}{self.with_texts(rest)}"
        step = self._step if key else len(lead) - lead.rindex("-")
        indent = " " * (len(lead) + step if key else len(lead))
        # Where the text itself begins with a blank, the width of the indentation has to be said.
        head = "|" + (str(step) if text[0] in " \t\n" else "") + ("" if text.endswith("\n") else "-")
        return "\n".join([f"{lead}{key}{head}", *(indent + line if line else "" for line in lines)])


def _key(text: str) -> str:
    return text if text_style(text) is None else DoubleQuotedScalarString(text)


# -- editing what a file holds -------------------------------------------------------------------------


class _Edit:
    """Carries the differences of two plans into the lists and mappings of a file."""

    def __init__(self, written: Callable[[Any, Any], Any], shared: frozenset[int] = frozenset()) -> None:
        self._written = written
        self._shared = shared

    def value(self, held: Any, old: Any, new: Any, wanted: Wanted | None) -> Any:
        """Return what is to stand in the place of ``held``: itself, edited, where that can be."""
        if _same(old, new):
            return held
        kinds = {dict: self._mapping, list: self._list}
        for kind, edit in kinds.items() if new and id(held) not in self._shared else ():
            if all(isinstance(each, kind) for each in (held, old, new)):
                with suppress(_CannotEdit):
                    edit(held, old, new, wanted)
                    return held
        return self._written(new, held)

    def _mapping(
        self, held: dict[str, Any], old: dict[str, Any], new: dict[str, Any], wanted: Wanted | None
    ) -> None:
        fields = fields_by_key(wanted.model) if wanted is not None and wanted.model is not None else {}

        def name(key: str) -> str:
            return fields[key].name if key in fields else key

        spelled = {name(key): key for key in held}
        before = {name(key): value for key, value in old.items()}
        own = dict(cast("Any", held).non_merged_items()) if isinstance(held, CommentedMap) else held
        removed = [spelled.get(gone) for gone in before.keys() - {name(key) for key in new}]
        if not all(key in own for key in removed):
            raise _CannotEdit
        for key in removed:
            del held[cast("str", key)]
        last: str | None = None
        for key, value in new.items():
            field = fields.get(key)
            if name(key) in spelled:
                last = spelled[name(key)]
                edited = self.value(
                    held[last], before.get(name(key)), value, field.wanted if field else None
                )
                _put(held, last, edited)
            else:
                _insert(held, last, key, self._written(value, None))
                last = key

    def _list(self, held: list[Any], old: list[Any], new: list[Any], wanted: Wanted | None) -> None:
        item = wanted.item if wanted is not None else None
        is_todos = item is not None and item.model is Todo
        if len(held) != len(old):
            raise _CannotEdit
        names = [_name(each) for each in old], [_name(each) for each in new]
        matcher = SequenceMatcher[Any](None, *names, autojunk=False)
        for kind, i, i_end, j, j_end in reversed(matcher.get_opcodes()):
            # Entries without a counterpart stand for each other, but a todo is never another.
            paired = 0 if is_todos and kind != "equal" else min(i_end - i, j_end - j)
            del held[i + paired : i_end]
            for value in reversed(new[j + paired : j_end]):
                held.insert(i + paired, self._written(value, None))
            for n in range(paired):
                edited = self.value(held[i + n], old[i + n], new[j + n], item)
                _put(held, i + n, edited)


def _put(held: Any, place: str | int, value: Any) -> None:
    """Put a value in a place, without what is said below the key: it would come between key and value."""
    if value is held[place]:
        return
    if isinstance(held, (CommentedMap, CommentedSeq)):
        comments = cast("Any", held).ca.items.get(place)
        if comments is not None and len(comments) > _BELOW_KEY:
            comments[_BELOW_KEY] = None
    held[place] = value


def _insert(held: dict[str, Any], last: str | None, key: str, value: Any) -> None:
    """Insert an entry after another, or in front."""
    keys = list(held)
    position = keys.index(last) + 1 if last is not None else 0
    if isinstance(held, CommentedMap):
        cast("Any", held).insert(position, key, value)
        return
    following = {each: held.pop(each) for each in keys[position:]}
    held[key] = value
    held.update(following)


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


# -- merging lines -------------------------------------------------------------------------------------


class _Hunk(NamedTuple):
    """Lines ``start`` to ``end`` of a text and what replaces them."""

    start: int
    end: int
    lines: list[str]


def _merged(original: str, before: str, after: str, comments: _Comments | None = None) -> str:
    """Return the original with the edit that leads from ``before`` to ``after``.

    ``before`` says the same as the original in another layout.
    """
    base = before.split("\n")
    layout = _hunks(base, original.split("\n"))
    edits = _hunks(base, after.split("\n"), whole=True)
    if comments is not None:
        indents = {hunk.start: _indent(hunk.lines[0]) for hunk in layout if len(hunk.lines) == 1}
        edits = [comments.placed(hunk, base, indents) for hunk in edits]
    layout = [hunk for hunk in layout if not any(_overlap(hunk, edit) for edit in edits)]
    result: list[str] = []
    done = 0
    for hunk in sorted([*layout, *edits], key=lambda hunk: (hunk.start, hunk.end)):
        result += [*base[done : hunk.start], *hunk.lines]
        done = max(done, hunk.end)
    return "\n".join(result + base[done:])


def _overlap(one: _Hunk, other: _Hunk) -> bool:
    start, end = max(one.start, other.start), min(one.end, other.end)
    is_between = one.start < start < one.end or other.start < start < other.end
    return start < end or is_between or one[:2] == other[:2]


def _hunks(base: Sequence[str], other: Sequence[str], *, whole: bool = False) -> list[_Hunk]:
    """Return the differences; unless they are wanted ``whole``, line by line where as many lines differ."""
    found: list[_Hunk] = []
    same = _common(base, other)
    tail = _common(base[same:][::-1], other[same:][::-1])
    middle = base[same : len(base) - tail], other[same : len(other) - tail]
    matcher = SequenceMatcher[str](lambda line: not line.strip(), *middle, autojunk=False)
    for kind, *places in matcher.get_opcodes():
        i, i_end, j, j_end = (place + same for place in places)
        if kind == "replace" and not whole and i_end - i == j_end - j:
            found += [_Hunk(i + n, i + n + 1, [other[j + n]]) for n in range(i_end - i)]
        elif kind != "equal":
            found.append(_Hunk(i, i_end, list(other[j:j_end])))
    return found


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many lines at the front are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


@dataclass(frozen=True, slots=True)
class _Comments:
    """Puts comments and blank lines beside what they speak of.

    ruamel keeps them with what stands above them: new lines come below those of the next entry, and lines
    that go leave their own comment behind and take along that of the next.
    """

    dash: int
    """The column of the dashes of the todos."""
    gap: int
    """How many blank lines part the todos."""

    def placed(self, hunk: _Hunk, base: list[str], indents: dict[int, int]) -> _Hunk:
        """Return the hunk where it belongs. ``indents`` are the file's, of lines that ruamel moves."""
        if hunk.start == hunk.end:
            return self._inserted(hunk, base, indents)
        return hunk if hunk.lines else _removed(hunk, base)

    def _inserted(self, hunk: _Hunk, base: list[str], indents: dict[int, int]) -> _Hunk:
        start, lines = hunk.start, hunk.lines
        indent = _indent(lines[0])
        while start and _is_aside(base[start - 1], indent):
            start -= 1
        sibling = next(
            (n for n in range(start - 1, -1, -1) if base[n].strip() and _indent(base[n]) <= indent), -1
        )
        if sibling >= 0 and _indent(base[sibling]) == indent:
            shift = indents.get(sibling, indent) - indent
            lines = [" " * (_indent(each) + shift) + each.lstrip(" ") if each else each for each in lines]
        if _indent(lines[0]) == self.dash and _DASH.match(lines[0]):
            parted: list[str] = []
            for line in lines:
                parted += [*([""] * self.gap if line.startswith(" " * self.dash + "-") else []), line]
            is_first = not start or _is_head(base[start - 1], hunk.lines[0])
            lines = [*parted[self.gap :], *[""] * self.gap] if is_first else parted
        return _Hunk(start, start, lines)


def _removed(hunk: _Hunk, base: list[str]) -> _Hunk:
    start, end = hunk.start, hunk.end
    indent = _indent(base[start])
    while end > start and _is_aside(base[end - 1], indent):
        end -= 1
    while end < len(base) and base[end].lstrip().startswith("#") and _indent(base[end]) > indent:
        end += 1
    top = start
    while top and base[top - 1].strip() and _is_aside(base[top - 1], indent):
        top -= 1
    # What stands at the head of a file speaks of all of it.
    start = top or start
    while start and not base[start - 1].strip():
        start -= 1
    if start == 0 or _is_head(base[start - 1], base[hunk.start]):
        while end < len(base) - 1 and not base[end].strip():
            end += 1
    return _Hunk(start, end, [])


def _is_head(above: str, line: str) -> bool:
    """Return whether a line is the first of its list or mapping, told by the line above it."""
    if above.startswith("#"):
        return True
    if _DASH.match(line) and _indent(above) == _indent(line):
        return not _DASH.match(above)
    return len(above) - len(above.lstrip(" -")) < _indent(line)


def _is_aside(line: str, indent: int) -> bool:
    """Return whether a line is blank, or a comment that stands no further in."""
    comment = line.lstrip()
    return not comment or (comment.startswith("#") and _indent(line) <= indent)


def _blank_lines_above(lines: list[str], line: int) -> int:
    """Return how many blank lines stand above a line and the comment directly above it."""
    while line and lines[line - 1].lstrip().startswith("#"):
        line -= 1
    top = line
    while top and not lines[top - 1].strip():
        top -= 1
    return line - top


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


# -- the file ------------------------------------------------------------------------------------------


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


def _format_of(path: Path) -> Literal["yaml", "json"]:
    return "json" if path.suffix.lower() == ".json" else "yaml"


def _error(path: Path, problem: str) -> PlannerError:
    return PlannerError(" ".join(clean(f"{shown_path(path)}: {problem}", limit=_LONGEST_MESSAGE).split()))
