"""Data that tests read: whether two files say the same, or one says more."""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING, Any, cast

from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.guards.hygiene.tricks.special_cases import spelled_literals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_planverify.snapshots import Snapshot

_LARGEST = 2_000_000
_UNREADABLE = object()
_SEPARATORS = ("\t", ",", ";", "|", " => ", " = ")


def compare_data(before: Snapshot, now: Snapshot, path: str, sign: str = "data-changed") -> Find | None:
    """What a data file says otherwise; nothing where only its format differs, or where it says more."""
    old, new = before.read(path), now.read(path)
    if old is None or new is None:
        return None
    parsed = [_parsed(path, content) for content in (old, new)]
    if _UNREADABLE not in parsed:
        if parsed[0] == parsed[1]:
            return None
        if _says_more(parsed[0], parsed[1]):
            return Find(sign=sign, message=f"{path} holds more than it did", path=path, subject="more")
    line, was, is_now = first_difference(old, new)
    return Find(
        sign=sign,
        message=f"{path} says something else",
        path=path,
        line=line,
        subject="other",
        before=was,
        after=is_now,
    )


def first_difference(old: bytes, new: bytes) -> tuple[int | None, str | None, str | None]:
    """The first line that differs: its number, what it was, what it is."""
    if b"\0" in old[:4096] or b"\0" in new[:4096]:
        return None, f"{len(old)} bytes", f"{len(new)} bytes"
    left, right = (text.decode("utf-8", "replace").splitlines() for text in (old, new))
    for at in range(max(len(left), len(right))):
        was = left[at] if at < len(left) else None
        is_now = right[at] if at < len(right) else None
        if was != is_now:
            return at + 1, was, is_now
    return None, None, None


def literals_of(path: str, content: bytes | None) -> set[str]:
    """The values of a data file, spelled as Python spells them."""
    if content is None or len(content) > _LARGEST:
        return set()
    parsed = _parsed(path, content)
    found = set[str]() if parsed is _UNREADABLE else set(spelled_literals(parsed))
    if not path.endswith(".json") and b"\0" not in content[:4096]:
        for line in content.decode("utf-8", "replace").splitlines():
            for cell in (line, *line.replace(";", ",").replace("\t", ",").split(",")):
                found |= set(_readings(cell.strip()))
    return found


def rows_of(path: str, content: bytes | None) -> Iterator[set[str]]:
    """The cases of a data file: lines of text, objects and lists of JSON, each as its literals."""
    if content is None or len(content) > _LARGEST:
        return
    parsed = _parsed(path, content)
    if parsed is _UNREADABLE:
        return
    waiting: list[Any] = [parsed]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            cells = value.replace(";", ",").replace("\t", ",").split(",")
            yield {text for cell in (value, *cells) for text in _readings(cell.strip())}
        elif isinstance(value, list):
            waiting.extend(cast("list[Any]", value))
            yield set(spelled_literals(cast("list[Any]", value)))
        elif isinstance(value, dict):
            waiting.extend(cast("dict[Any, Any]", value).values())
            yield set(spelled_literals(cast("dict[Any, Any]", value)))


def pairs_of(path: str, content: bytes | None) -> Iterator[set[str]]:
    """The entries of a data file: a key with its value, the cells of a line, what a list holds."""
    parsed = _UNREADABLE if content is None or len(content) > _LARGEST else _parsed(path, content)
    waiting: list[Any] = [] if parsed is _UNREADABLE else [parsed]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            table = cast("dict[Any, Any]", value)
            if any(isinstance(each, dict | list) for each in table.values()):
                yield set(spelled_literals([each for each in table.values() if not isinstance(each, dict)]))
                waiting.extend(table.values())
            else:
                yield from ({repr(key), repr(each)} for key, each in table.items())
        elif isinstance(value, list):
            rows = cast("list[Any]", value)
            if any(isinstance(each, dict | list | str) for each in rows):
                waiting.extend(rows)
            yield set(spelled_literals([each for each in rows if not isinstance(each, dict)]))
        elif isinstance(value, str):
            cells = {cell.strip() for sign in _SEPARATORS for cell in value.split(sign)}
            yield {text for cell in cells if cell for text in _readings(cell)}


def _readings(cell: str) -> Iterator[str]:
    """A cell as text and, where it is one, as a number."""
    yield repr(cell)
    for kind in (int, float):
        try:
            yield repr(kind(cell))
        except ValueError:
            continue


def _parsed(path: str, content: bytes) -> Any:
    if len(content) > _LARGEST:
        return _UNREADABLE
    suffix = posixpath.splitext(path)[1].lower()
    try:
        return _READERS.get(suffix, _lines)(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return _UNREADABLE


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")


def _toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError("no YAML") from error


_READERS: dict[str, Callable[[str], Any]] = {
    ".json": json.loads,
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
}


def _says_more(old: Any, new: Any) -> bool:
    """All that was said is said still."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(
            key in new and _says_more(value, new[key]) for key, value in cast("dict[Any, Any]", old).items()
        )
    if isinstance(old, list) and isinstance(new, list):
        waiting = list(cast("list[Any]", old))
        for each in cast("list[Any]", new):
            if waiting and waiting[0] == each:
                waiting.pop(0)
        return not waiting
    return bool(old == new)
