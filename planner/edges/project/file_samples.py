"""The beginning of a file as a reader can take it in: text by lines, JSON with its long parts cut, of
binary files only the size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from planner.model.context import FileSample
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from planner.edges.project.rooted_files import ReadFile

MOST_LINES = 40
MOST_CHARACTERS = 2_048
MOST_ENTRIES = 6
"""Of one list of JSON."""
MOST_MEMBERS = 8
"""Of one object of JSON."""
LONGEST_STRING = 200
WIDTH = 100
_DEEPEST = 8


def sample(file: ReadFile, *, whole: bool = False, mentioned: str = "") -> FileSample:
    """What to show of a file; with ``whole``, of a JSON file all its entries, as far as there is room.

    Members of JSON objects whose names stand in the text ``mentioned`` are not left out.
    """
    if file.is_binary:
        return FileSample(
            path=file.path, text="", total_bytes=file.total_bytes, truncated=file.total_bytes > 0
        )
    text, cut = _json_head(file, whole=whole, mentioned=mentioned) or (file.text, False)
    head = _head(
        clean(text[: MOST_CHARACTERS * 8]), most=MOST_CHARACTERS * (3 if whole else 1), whole=whole
    )
    shown = redact(head)
    return FileSample(
        path=file.path,
        text=shown,
        total_bytes=file.total_bytes,
        truncated=cut or not file.is_whole or len(head.rstrip("\n")) < len(text.rstrip("\n")),
    )


def _head(text: str, *, most: int, whole: bool) -> str:
    lines = text[:most].split("\n")
    if len(text) > most and len(lines) > 1:
        lines.pop()  # the last one is no whole line
    return "\n".join(lines[: MOST_LINES * (3 if whole else 1)])


def _json_head(file: ReadFile, *, whole: bool, mentioned: str) -> tuple[str, bool] | None:
    """JSON with indentation, and whether anything of it was left out."""
    if not file.is_whole or file.text[:1].strip() not in ("", "{", "["):
        return None
    try:
        value = json.loads(file.text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list):
        return None
    parsed = cast("dict[str, Any] | list[Any]", value)
    shortened = parsed if whole else _shortened(parsed, mentioned)
    try:
        return _rendered(shortened), shortened != parsed
    except RecursionError:
        return None


def _rendered(value: Any, indent: int = 0) -> str:
    """JSON, each list and object on one line where there is room for it."""
    flat = json.dumps(value, ensure_ascii=False)
    if indent + len(flat) <= WIDTH or not value or not isinstance(value, dict | list):
        return flat
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        rows = [
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {_rendered(each, indent + 2)}"
            for key, each in members.items()
        ]
        opening, closing = "{", "}"
    else:
        rows = [f"{inner}{_rendered(each, indent + 2)}" for each in cast("list[Any]", value)]
        opening, closing = "[", "]"
    return "\n".join([opening, ",\n".join(rows), " " * indent + closing])


def _shortened(value: Any, mentioned: str, depth: int = 0) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_STRING else f"{value[:LONGEST_STRING]}…"
    if isinstance(value, list):
        entries = cast("list[Any]", value)
        most = MOST_ENTRIES if depth < _DEEPEST else 0
        shown = [_shortened(each, mentioned, depth + 1) for each in entries[:most]]
        return [*shown, f"… {len(entries) - most} more"] if len(entries) > most else shown
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        keys = _chosen(list(members), mentioned, MOST_MEMBERS if depth < _DEEPEST else 0)
        shown_members = {key: _shortened(members[key], mentioned, depth + 1) for key in keys}
        left = len(members) - len(keys)
        return shown_members | {"…": f"{left} more"} if left else shown_members
    return value


def _chosen(keys: list[str], mentioned: str, most: int) -> list[str]:
    """The first keys, and those that are spoken of."""
    if len(keys) <= most:
        return keys
    spoken_of = (
        [key for key in keys[most:] if len(key) > 2 and key in mentioned][:MOST_ENTRIES] if most else []
    )
    return [*keys[:most], *spoken_of]
