"""Generate the pages of docs/reference from the schemas, the taxonomy and the tables of rules.

``python -m tools.reference_pages`` writes them. Git ignores them; the site is built with new ones.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.catalog import TOOLS, Purpose
from planner.catalog.output import output_table
from planner.catalog.tools import LAUNCHERS, REFUSED_PROGRAMS
from planner.cli.explain import PLAN_KEY, Explanation, load_glossary, meanings
from planner.model.verdicts import PlanState, TodoLife
from planner.planfile.schemas import schema
from planner.policy.lifecycle import PLAN_MOVES, TODO_MOVES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Schema = Mapping[str, Any]
    from collections.abc import Callable, Mapping
    from enum import StrEnum


_PAGES = {"plan": "Plan", "outcome": "OutcomeDocument"}
"""The documents in the order of their pages, each with the name of its outermost part."""

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
"""Length of a line of prose, in characters."""

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
"""Enumerations whose words are explained in words.md."""

_ID_PATTERN = r"^[A-Za-z0-9_.\-]+$"
_DATE_PATTERN = r"^\d{4}-\d{2}-\d{2}$"


def rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from (_row([cell(each) for each in row]) for row in body)


def paragraph(text: str) -> str:
    """Return a text in lines of prose, followed by a blank line."""
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False, break_long_words=False) + "\n"


def item(text: str) -> str:
    """Return a text as an item of a list."""
    return textwrap.fill(
        f"- {text}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def cell(text: str) -> str:
    """Return a text for a table cell: on one line, code marked up."""
    return " ".join(text.split()).replace("``", "`").replace("|", r"\|")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


class KeyTables:
    """Pages of keys. ``told`` has the descriptions, by part and key, that the schema itself lacks.

    A part of several documents is described with the first of them; the others link to it.
    """

    def __init__(self, told: Mapping[str, Mapping[str, str]]) -> None:
        self._told = told
        self._schemas = {name: schema(name) for name in _PAGES}
        self._home: dict[str, str] = {}
        for name in _PAGES:
            for part, _ in self._parts(name):
                self._home.setdefault(part, name)

    def page(self, name: str) -> str:
        """Return the page of one document. Raises ``KeyError`` for a key without a description."""
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
        """Return every part and key on the pages."""
        return {
            (part, key)
            for name in _PAGES
            for part, held in self._parts(name)
            for key in _spelled_once(held)
        }

    def _parts(self, name: str) -> Iterator[tuple[str, Schema]]:
        """Yield the document itself and then its parts, in the order of their first use."""
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
    """Return the object form of a part that may also be written as a plain string."""
    if "properties" in part:
        return part
    return next((each for each in part.get("anyOf", ()) if "properties" in each), None)


def _references(about: Any) -> list[str]:
    """Return the names of all parts that are referenced anywhere within, each once."""
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
    """Return the keys of a part, each with its other spellings, which share one description."""
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


def lifecycle_text() -> str:
    """Return the text of the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# Life cycles\n"
    yield paragraph(
        "The states in which a todo and a plan may be while a plan is carried out, and every way from one "
        "to another. There is no other way: an event that would need one is refused, with an error naming "
        "the two states and the event, and nothing has changed. `planner explain STATE` tells what a state "
        "means."
    )
    yield "## A todo\n"
    yield from _cycle(TODO_MOVES, tuple(TodoLife))
    yield paragraph(
        "A todo that has failed is out of the run; only where its failure has brought everything to a stop "
        "does it go on, to `halted`. A branch lives like any other todo."
    )
    yield "## A plan\n"
    yield from _cycle(PLAN_MOVES, tuple(PlanState))


def _cycle(
    moves: Mapping[tuple[TodoLife, TodoLife], str] | Mapping[tuple[PlanState, PlanState], str],
    states: tuple[TodoLife, ...] | tuple[PlanState, ...],
) -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {states[0].value}"
    yield from (
        f"    {before.value} --> {after.value}: {trigger}" for (before, after), trigger in moves.items()
    )
    yield from (f"    {state.value} --> [*]" for state in states if state.is_final)
    yield "```\n"
    yield from rows(
        ("from", "to", "when"),
        ((_code(before), _code(after), trigger) for (before, after), trigger in moves.items()),
    )
    yield ""


def _code(state: StrEnum) -> str:
    return f"`{state.value}`"


FOLDER = Path(__file__).parents[1] / "docs" / "reference"
"""The folder of the pages, in a checkout."""

_NOTE = "<!-- Written by python -m tools.reference_pages; whatever is changed here by hand is lost. -->"

_BLANK_LINES = re.compile(r"\n{3,}")

_DIAGNOSIS = "rule of the diagnosis"

_OWN_PAGES = ("category", "exit status", PLAN_KEY, _DIAGNOSIS)
"""Kinds of words that have a page of their own."""

_RULES = {
    "rule of the revision": (
        "What revises a plan",
        "The rules by which a decision changes the plan: each edit names one.",
    ),
    "rule of the engine": (
        "What carries a plan out",
        "The rules by which the engine acts: each action of `planner step` names one of these, or one of "
        "the rules above. `planner explain PLAN` tells a run with them.",
    ),
    "rule of planner validate": (
        "What validates a plan",
        "The rules of `planner validate`: each finding names one.",
    ),
}
"""Heading and introduction of the section for each kind of rule."""

_RULE_COLUMNS: Mapping[str, Mapping[str, Callable[[Explanation], str]]] = {
    "rule of planner validate": {
        "severity": lambda each: _fact(each, "severity"),
        "why": lambda each: each.means,
        "fix": lambda each: _fact(each, "do"),
    },
}
"""Further columns of the table for each kind of rule; other kinds only have a description."""


def pages() -> dict[str, str]:
    """Return the text of every page, by file name."""
    tables = KeyTables(meanings())
    bodies = {
        "plan-keys.md": tables.page("plan"),
        "outcome-keys.md": tables.page("outcome"),
        "failure-categories.md": "\n".join(_categories()),
        "rules.md": "\n".join(_rules()),
        "diagnosis-rules.md": "\n".join(_diagnosis_rules()),
        "words.md": "\n".join(_words()),
        "exit-statuses.md": "\n".join(_exit_statuses()),
        "tools.md": "\n".join(_tools()),
        "lifecycles.md": lifecycle_text(),
    }
    return {
        name: f"{_NOTE}\n\n{_BLANK_LINES.sub(chr(10) * 2, body.strip())}\n" for name, body in bodies.items()
    }


def write(folder: Path = FOLDER) -> None:
    """Write every page."""
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


def _of_kind(kind: str) -> list[Explanation]:
    return [each for each in load_glossary().entries if each.kind == kind]


def _categories() -> Iterator[str]:
    yield "# Failure categories\n"
    yield paragraph(
        "Every failure has one category. `planner explain CATEGORY` shows what stands here. How a category "
        "is found is told in [diagnosis](../diagnosis.md), and who acts on it in [the "
        "planner](../planner.md)."
    )
    found = _of_kind("category")
    yield from rows(
        ("category", "family", "at fault", "acts"),
        (
            (
                f"[`{each.word}`](#{each.word.lower()})",
                _fact(each, "family"),
                _fact(each, "at fault").removesuffix(", mostly"),
                _fact(each, "acts").partition(",")[0],
            )
            for each in found
        ),
    )
    for each in found:
        yield f"\n## {each.word}\n"
        yield paragraph(each.means)
        yield from _further(each)
        yield "\nTo check:\n"
        yield from map(item, each.texts("check"))


def _rules() -> Iterator[str]:
    yield "# Rules\n"
    yield paragraph(
        "Whatever is decided or found names the rule that said so. `planner explain RULE` shows what "
        "stands here. [The rules of the diagnosis](diagnosis-rules.md) have a page of their own."
    )
    for kind, (heading, intro) in _RULES.items():
        columns = _RULE_COLUMNS.get(kind, {"what it does": lambda each: each.means})
        yield f"\n## {heading}\n"
        yield paragraph(intro)
        yield from rows(
            ("rule", *columns),
            ((f"`{each.word}`", *(column(each) for column in columns.values())) for each in _of_kind(kind)),
        )


def _diagnosis_rules() -> Iterator[str]:
    """Yield a section for each rule."""
    yield "# Rules of the diagnosis\n"
    yield paragraph(
        "Each failure of `pytest --planverify` names the rule that explained it. Here is what each of them "
        "sees, how sure it may be at most, and what to do about such a failure. They stand in the order in "
        "which they are asked: the first that speaks decides. [Diagnosis](../diagnosis.md) tells more, and "
        "[the corpus](../corpus.md) how often they are right. `planner explain RULE` shows what stands "
        "here."
    )
    yield paragraph(
        "Rules about exceptions also look at the causes of the exception that surfaced and at the "
        "members of a group, and are a little less sure then."
    )
    for each in _of_kind(_DIAGNOSIS):
        yield f"\n## {each.word}\n"
        yield paragraph(each.means)
        yield from _further(each)


def _words() -> Iterator[str]:
    yield "# Words\n"
    yield paragraph(
        "The words that plans, outcomes, decisions and screens use. `planner explain WORD` shows what "
        "stands here. Of [failure categories](failure-categories.md), [rules](rules.md), [rules of the "
        "diagnosis](diagnosis-rules.md) and [exit statuses](exit-statuses.md) there are pages of their own."
    )
    for kind in load_glossary().kinds():
        if kind not in _RULES and kind not in _OWN_PAGES:
            yield f"\n## {kind[0].upper()}{kind[1:]}\n"
            yield from (_recipes() if kind == "recipe" else _explained("word", _of_kind(kind)))


def _recipes() -> Iterator[str]:
    yield paragraph("A todo that names a recipe as `verify` has each of its commands as a criterion.")
    yield from rows(
        ("recipe", "commands"),
        (
            (f"`{each.word}`", "; ".join(f"`{text}`" for _, text in each.facts))
            for each in _of_kind("recipe")
        ),
    )


def _exit_statuses() -> Iterator[str]:
    yield "# Exit statuses\n"
    yield paragraph(
        "The commands share their numbers. Where several apply, `pytest --planverify` ends with the first "
        "of the order in [Running](../running.md#running). What `planner next` ends with is listed "
        "with [its options](../planner-commands.md#planner-next)."
    )
    yield from _explained("status", _of_kind("exit status"))


_KINDS_OF_TOOLS = {
    Purpose.TEST: "Tests",
    Purpose.LINT: "Linters and formatters",
    Purpose.TYPE_CHECK: "Type checkers",
    Purpose.BUILD: "Builds",
    Purpose.VALIDATE: "Validation",
}


def _tools() -> Iterator[str]:
    yield "# Tools\n"
    yield paragraph(
        "The programs that a command may run besides pytest, by what they are for. What is not here, "
        "[a plan may name](../plan-reference.md#tools-of-a-plan). *Read*: complaints in the tool's own "
        "manner are told with file and line; of others, lines such as `FILE:LINE: MESSAGE`. *Vacuous*: "
        "success on nothing, no file or no test, is recognized and fails. *Needed*: one of these options "
        "has to be there. *Refused*: success proves nothing under it, or it rewrites the work."
    )
    formats = output_table()["formats"]
    for purpose, heading in _KINDS_OF_TOOLS.items():
        yield f"\n## {heading}\n"
        yield from rows(
            ("tool", "read", "vacuous", "needed", "refused"),
            (
                (
                    ", ".join(f"`{tool.name} {each}`" for each in tool.subcommands) or f"`{tool.name}`",
                    "yes" if tool.output in formats else "–",
                    "yes" if formats.get(tool.output, {}).keys() & {"hollow", "runs"} else "–",
                    "; ".join(", ".join(f"`{each}`" for each in group) for group in tool.needs) or "–",
                    ", ".join(f"`{each}`" for each in tool.refused) or "–",
                )
                for tool in TOOLS
                if tool.purpose is purpose
            ),
        )
    yield "\n## Launchers\n"
    yield paragraph(
        "These start a tool of this page, or one that the plan names; it is judged as if it stood alone: "
        + ", ".join(f"`{' '.join((each.program, *each.subcommands))}`" for each in LAUNCHERS)
        + "."
    )
    yield "\n## Refused programs\n"
    yield paragraph("Neither a command nor the tools of a plan may name these.")
    reasons: dict[tuple[str, str], list[str]] = {}
    for program, reason in REFUSED_PROGRAMS.items():
        reasons.setdefault(reason, []).append(f"`{program}`")
    yield from rows(
        ("programs", "why", "instead"),
        ((", ".join(those), f"{those[0]} {why}", instead) for (why, instead), those in reasons.items()),
    )


def _explained(head: str, entries: Iterable[Explanation]) -> Iterator[str]:
    """Yield words with their meaning and remedy."""
    entries = tuple(entries)
    advised = any(each.texts("do") for each in entries)
    columns = (head, "meaning", "what to do") if advised else (head, "meaning")
    yield from rows(
        columns,
        ((f"`{each.word}`", each.means, _fact(each, "do"))[: len(columns)] for each in entries),
    )


def _fact(each: Explanation, name: str) -> str:
    return next(iter(each.texts(name)), "–")


def _further(each: Explanation) -> Iterator[str]:
    """Yield the facts that have no section of their own."""
    sections = ("check", "do", "page")
    yield from (item(f"{name}: {_keys_as_code(text)}") for name, text in each.facts if name not in sections)


def _keys_as_code(text: str) -> str:
    """Mark names with underscores as code, since Markdown might read the underscores as emphasis."""
    return re.sub(r"\b\w+_\w+\b", r"`\g<0>`", cell(text))


if __name__ == "__main__":
    write()
