"""The pages of docs/reference, written from the schemas, the taxonomy and the tables of rules.

``python -m tools.reference_pages`` writes them; git ignores them, and the site builds them anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from planner.catalog import TOOLS, Purpose
from planner.catalog.output import output_table
from planner.catalog.tools import LAUNCHERS, REFUSED_PROGRAMS
from planner.cli.glossary import PLAN_KEY, Explanation, load_glossary, meanings
from tools import lifecycle_page
from tools.key_tables import KeyTables, cell, item, paragraph, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
"""Where the pages are, in a checkout."""

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
        "The rules of `planner validate`: each finding names one. `--ignore RULE` leaves one out, "
        "`--select RULE` asks only that one.",
    ),
}
"""By the kind of a rule, the heading of its section and what stands below it."""

_RULE_COLUMNS: Mapping[str, Mapping[str, Callable[[Explanation], str]]] = {
    "rule of planner validate": {
        "severity": lambda each: _fact(each, "severity"),
        "why": lambda each: each.means,
        "fix": lambda each: each.do or "–",
    },
}
"""By the kind of a rule, the columns of its table after the first; of others only what they do."""


def pages() -> dict[str, str]:
    """The text of every page, by the name of its file."""
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
        "lifecycles.md": lifecycle_page.text(),
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
        yield from (item(f"{name}: {_keys_as_code(text)}") for name, text in each.facts)
        if each.check:
            yield "\nTo check:\n"
            yield from (item(text) for text in each.check)


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
    """A section for each rule."""
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
        yield from (item(f"{name}: {_keys_as_code(text)}") for name, text in each.facts)
        yield "\nWhat to do:\n"
        yield from (item(text) for text in each.steps)
        if each.examples:
            yield "\nSeen in the corpus:\n"
            yield from (item(text) for text in each.examples)


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
    """Words with what they mean, and what to do where there is something to do."""
    entries = tuple(entries)
    advised = any(each.do for each in entries)
    columns = (head, "meaning", "what to do") if advised else (head, "meaning")
    yield from rows(
        columns,
        ((f"`{each.word}`", each.means, each.do or "–")[: len(columns)] for each in entries),
    )


def _fact(each: Explanation, name: str) -> str:
    return dict(each.facts).get(name, "–")


def _keys_as_code(text: str) -> str:
    """Names with underscores, which Markdown might read as emphasis, as code."""
    return re.sub(r"\b\w+_\w+\b", r"`\g<0>`", cell(text))


if __name__ == "__main__":
    write()
