"""Tables of keys with type, default and meaning, read off the JSON Schemas."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

from planner.planfile.schemas import schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Schema = Mapping[str, Any]

_PAGES = {"plan": "Plan", "outcome": "OutcomeDocument"}
"""The documents in the order in which they are told of, each with the name of its outermost part."""

_INTROS = {
    "plan": (
        "Keys of a plan",
        "A plan file is YAML or JSON. Unknown keys are errors, except keys that begin with `x-`, which are "
        "yours. Examples of everything are in the [plan reference](../plan-reference.md); `planner schema "
        "plan` prints the JSON Schema.",
    ),
    "outcome": (
        "Keys of an outcome file",
        "`.planverify/outcomes.json`, as `pytest --planverify` writes it. Readers ignore keys that they do "
        "not know. [Outcomes](../outcomes.md) shows an example; `planner schema outcome` prints the JSON "
        "Schema.",
    ),
}

_WIDTH = 118
"""Characters of a line of prose."""

_WORDS = {
    "Verdict": "verdict",
    "TodoState": "state-of-a-todo",
    "PlanState": "state-of-a-plan",
    "Role": "role",
    "Owner": "owner",
    "Repeatability": "repeatability",
    "Since": "comparison-with-the-baseline",
    "RoutingKey": "routing-key",
    "BranchReason": "routing-key",
    "CheckKind": "kind-of-check",
}
"""By the name of an enumeration, where its words are explained in words.md."""

_ID_PATTERN = r"^[A-Za-z0-9_.\-]+$"
_DATE_PATTERN = r"^\d{4}-\d{2}-\d{2}$"


def rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table."""
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from (_row([cell(each) for each in row]) for row in body)


def paragraph(text: str) -> str:
    """A text in lines of prose, with the blank line that ends it."""
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False, break_long_words=False) + "\n"


def item(text: str) -> str:
    """A text as an item of a list."""
    return textwrap.fill(
        f"- {text}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def cell(text: str) -> str:
    """A text as it may stand in a cell: on one line, code as Markdown marks it."""
    return " ".join(text.split()).replace("``", "`").replace("|", r"\|")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


class KeyTables:
    """Pages of keys. ``told`` says what keys mean, by part and key, where the schema itself does not.

    A part that several documents have is described with the first of them, and the others link to it.
    """

    def __init__(self, told: Mapping[str, Mapping[str, str]]) -> None:
        self._told = told
        self._schemas = {name: schema(name) for name in _PAGES}
        self._home: dict[str, str] = {}
        for name in _PAGES:
            for part, _ in self._parts(name):
                self._home.setdefault(part, name)

    def page(self, name: str) -> str:
        """The page of one document. Raises ``KeyError`` for a key that nothing tells the meaning of."""
        title, intro = _INTROS[name]
        lines = [f"# {title}\n", paragraph(intro)]
        for part, held in self._parts(name):
            if self._home[part] != name:
                continue
            lines.append(f"\n## {part}\n")
            if said := held.get("description"):
                lines.append(paragraph(_first_paragraph(said)))
            lines += rows(("key", "type", "default", "meaning"), self._keys(name, part, held))
        return "\n".join(lines)

    def used(self) -> set[tuple[str, str]]:
        """Every part and key that the pages tell of."""
        return {
            (part, key)
            for name in _PAGES
            for part, held in self._parts(name)
            for key in _spelled_once(held)
        }

    def _parts(self, name: str) -> Iterator[tuple[str, Schema]]:
        """What has keys: the document itself, then its parts in the order in which they are met."""
        document = self._schemas[name]
        yield _PAGES[name], document
        seen: list[str] = []
        waiting = _references(document["properties"])
        while waiting:
            part = waiting.pop(0)
            if part in seen:
                continue
            seen.append(part)
            held = _with_keys(document["$defs"][part])
            if held is not None:
                yield part, held
                waiting = [*_references(held), *waiting]

    def _keys(self, name: str, part: str, held: Schema) -> Iterator[tuple[str, str, str, str]]:
        for key, spellings in _spelled_once(held).items():
            about = held["properties"][key]
            also = ", ".join(f"`{each}`" for each in spellings)
            yield (
                f"`{key}`" + (f" (also {also})" if also else ""),
                self._type(name, about),
                _default(held, key),
                self._meaning(part, key, about),
            )

    def _meaning(self, part: str, key: str, about: Schema) -> str:
        said = about.get("description") or self._told.get(part, {}).get(key)
        if said is None:
            raise KeyError(
                f"nothing tells what {key} of {part} means; write it into planner/cli/data/keys.toml"
            )
        return _first_paragraph(said)

    def _type(self, name: str, about: Schema) -> str:
        if "$ref" in about:
            return self._named(name, about["$ref"].rpartition("/")[2])
        if "anyOf" in about:
            return " or ".join(
                self._type(name, each) for each in about["anyOf"] if each.get("type") != "null"
            )
        if "discriminator" in about:
            mapping = about["discriminator"]["mapping"].items()
            return ", ".join(
                self._linked(name, ref.rpartition("/")[2], f"`{word}`") for word, ref in mapping
            )
        if "const" in about:
            return f"`{about['const']}`"
        if "enum" in about:
            return ", ".join(f"`{each}`" for each in about["enum"])
        if about.get("type") == "array":
            return f"list: {self._type(name, about['items'])}"
        if about.get("type") == "object":
            return f"mapping to {self._type(name, about['additionalProperties'])}"
        return _plain_type(about)

    def _named(self, name: str, part: str) -> str:
        if part in self._home:
            return self._linked(name, part, part)
        if part == "Category":
            return "[category](failure-categories.md)"
        if part in _WORDS:
            return f"[{_WORDS[part].replace('-', ' ')}](words.md#{_WORDS[part]})"
        return ", ".join(f"`{each}`" for each in self._schemas[name]["$defs"][part]["enum"])

    def _linked(self, name: str, part: str, text: str) -> str:
        home = self._home[part]
        page = "" if home == name else f"{home}-keys.md"
        return f"[{text}]({page}#{part.lower()})"


def _with_keys(part: Schema) -> Schema | None:
    """What has keys of a part, where it may also be written as a mere text."""
    if "properties" in part:
        return part
    return next((each for each in part.get("anyOf", ()) if "properties" in each), None)


def _references(about: Any) -> list[str]:
    """The parts that are named anywhere within, each once."""
    if isinstance(about, dict):
        named: list[str] = []
        for key, held in about.items():  # pyright: ignore[reportUnknownVariableType]
            if key == "$ref":
                named.append(str(held).rpartition("/")[2])  # pyright: ignore[reportUnknownArgumentType]
            elif key != "mapping":
                named += _references(held)
        return list(dict.fromkeys(named))
    if isinstance(about, list):
        return list(dict.fromkeys(name for each in about for name in _references(each)))  # pyright: ignore[reportUnknownVariableType]
    return []


def _spelled_once(held: Schema) -> dict[str, list[str]]:
    """The keys of a part, each with its other spellings. All spellings of a key share one description."""
    found: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for key, about in held["properties"].items():
        same = json.dumps(about, sort_keys=True)
        if "title" in about and same in first:
            found[first[same]].append(key)
        else:
            first[same] = key
            found[key] = []
    return found


def _default(held: Schema, key: str) -> str:
    about = held["properties"][key]
    if key in held.get("required", ()) or any([key] == each["required"] for each in held.get("oneOf", ())):
        return "required"
    if "default" not in about:
        return "`{}`"
    default = about["default"]
    if default is None or default == "":
        return "–"
    if isinstance(default, dict):
        return "its defaults"
    if isinstance(default, float):
        return f"`{default:g}`"
    return f"`{json.dumps(default)}`" if not isinstance(default, str) else f"`{default}`"


def _plain_type(about: Schema) -> str:
    patterns = {_ID_PATTERN: "id", _DATE_PATTERN: "date"}
    if about.get("pattern") in patterns:
        return patterns[about["pattern"]]
    word = {"string": "text", "boolean": "yes or no", "number": "number", "integer": "whole number"}[
        about["type"]
    ]
    limits = {"minimum": "at least {}", "exclusiveMinimum": "more than {}", "maximum": "at most {}"}
    said = [text.format(f"{about[key]:g}") for key, text in limits.items() if key in about]
    # The largest numbers that are accepted only keep arithmetic safe; nobody plans by them.
    said = [each for each in said if not each.endswith(("1e+06", "604800"))]
    return f"{word}, {', '.join(said)}" if said else word


def _first_paragraph(text: str) -> str:
    return cell(text.strip().partition("\n\n")[0])
