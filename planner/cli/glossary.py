"""Glossary of the words of plans, outcomes, decisions and screens.

:func:`load_glossary` collects the entries from three kinds of sources: the TOML and JSON files in
``data``, the JSON Schema of plans, and the tables of rules in the engine, revision and lint packages.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.catalog import RECIPES
from planner.catalog.tables import load_table
from planner.engine import ENGINE_RULES, REFUSALS
from planner.lint import LINT_RULES
from planner.model.taxonomy import CATEGORIES
from planner.planfile.schemas import schema
from planner.revise.strategies import REVISION_RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LEARNED = "learned"
"""The rule that a diagnosis names where corrections have overridden the rules."""

PLAN_KEY = "key of a plan"
KEYS_PAGE = "docs/reference/plan-keys.md"
PAGE = "docs/reference/diagnosis-rules.md"
"""The page that documents every rule of the diagnosis, relative to the project's root."""


class Explanation(NamedTuple):
    """The meaning of one word."""

    word: str
    kind: str
    """The kind of word: ``category``, ``verdict``, ``rule of the diagnosis`` …"""
    means: str
    facts: tuple[tuple[str, str], ...] = ()
    """Further facts in the order of the screen, as pairs of a label and a text.

    ``check`` says what to inspect, ``do`` what to do about it, ``seen`` is a real case, and ``page`` is the
    page of the documentation. A label may occur several times.
    """

    def texts(self, label: str) -> list[str]:
        """Return the facts of a label."""
        return [text for name, text in self.facts if name == label]


class Glossary(NamedTuple):
    """All words that ``planner explain`` can explain."""

    entries: tuple[Explanation, ...]

    def find(self, word: str) -> list[Explanation]:
        """Return all meanings of a word; case is ignored, and ``-``, ``_`` and blanks are the same."""

        def folded(text: str) -> str:
            return text.casefold().replace("_", "-").replace(" ", "-")

        return [each for each in self.entries if folded(each.word) == folded(word)]

    def words(self) -> tuple[str, ...]:
        """Return every name, once."""
        return tuple(dict.fromkeys(each.word for each in self.entries))

    def kinds(self) -> Mapping[str, tuple[str, ...]]:
        """Return the words by kind."""
        found: dict[str, dict[str, None]] = {}
        for each in self.entries:
            found.setdefault(each.kind, {})[each.word] = None
        return {kind: tuple(words) for kind, words in found.items()}


@cache
def load_glossary() -> Glossary:
    """Return the whole glossary; the files are read on the first call."""
    sources = (_categories, _words, _plan_keys, _diagnosis_rules, _rules_of_the_planner)
    return Glossary(tuple(each for source in sources for each in source()))


def _categories() -> Iterator[Explanation]:
    texts = load_table("data/categories", "planner.cli")
    for category, facts in CATEGORIES.items():
        text, key = texts[category.value], facts.routing_key
        names = f"{category.value}{f' or {key.value}' if key and not facts.overrides_key else ''}"
        acts = f"{facts.default_role.value}, unless the todo's failure_routing names another for {names}"
        pairs = (
            ("family", facts.family.value),
            ("at fault", f"{facts.usual_owner.value}, mostly"),
            ("acts", acts),
            ("routing", f"{key.value}, in a todo's failure_routing" if key else "no key"),
            ("planner", text["planner"]),
            *(("check", each) for each in text["check"]),
        )
        yield Explanation(category.value, "category", text["means"], pairs)


def _words() -> Iterator[Explanation]:
    """Yield the verdicts, states, roles and further words of ``words.toml``, and the recipes."""
    for kind, texts in load_table("data/words", "planner.cli").items():
        for word, text in texts.items():
            means, *steps = [text] if isinstance(text, str) else text
            yield Explanation(word, kind, means, tuple(("do", each) for each in steps))
    means = "A recipe: a todo with this name as verify gets each of these commands as a criterion."
    for name, commands in RECIPES.items():
        yield Explanation(name, "recipe", means, tuple(("runs", command) for command in commands))


def _plan_keys() -> Iterator[Explanation]:
    """Yield the keys of plans that have a description in the schema, or else in ``keys.toml``."""
    document, texts = schema("plan"), meanings()
    for part, about in {"Plan": document, **document["$defs"]}.items():
        # A model that may have several forms has its keys in the forms.
        shapes: list[dict[str, Any]] = [about, *about.get("anyOf", ())]
        for key, shape in (pair for each in shapes for pair in each.get("properties", {}).items()):
            text = shape.get("description") or texts.get(part, {}).get(key)
            if text is not None:
                means = " ".join(text.partition("\n\n")[0].split())
                facts = (("of", part), ("page", f"{KEYS_PAGE}#{part.lower()}"))
                yield Explanation(key, PLAN_KEY, means, facts)


def _diagnosis_rules() -> Iterator[Explanation]:
    advice = load_table("data/diagnosis_advice", "planner.cli")
    data = json.loads(
        Path(__file__).with_name("data").joinpath("diagnosis_rules.json").read_text(encoding="utf-8")
    )
    rules: list[dict[str, Any]] = data["rules"]
    # That rule is made of what people have corrected, so the generated table does not have it.
    means = "Enough people have corrected the diagnosis of this failure in the same way."
    learned = {"id": LEARNED, "because": means, "category": "as corrected"}
    for rule in (*rules, learned):
        name, owner, sure = rule["id"], rule.get("owner"), rule.get("confidence")
        facts: dict[str, Sequence[str]] = {
            "says": [rule["category"]],
            "at fault": [f"{owner}, mostly"] if owner else [],
            "sure": [f"{sure:.0%}, at most" if sure else "the share of people who agree"],
            "or else": [rule["runner_up"]] if "runner_up" in rule else [],
            "do": advice[name],
            "seen": rule.get("examples", ()),
            "page": [f"{PAGE}#{name}"],
        }
        pairs = tuple((label, text) for label, texts in facts.items() for text in texts)
        yield Explanation(name, "rule of the diagnosis", rule["because"], pairs)


def _rules_of_the_planner() -> Iterator[Explanation]:
    # A rule can be in more than one table; it is explained once, by the first.
    seen: set[str] = set()
    for kind, table in (
        ("rule of the revision", REVISION_RULES),
        ("rule of the engine", ENGINE_RULES),
        ("rule of a refusal", REFUSALS),
    ):
        yield from (Explanation(name, kind, means) for name, means in table.items() if name not in seen)
        seen |= table.keys()
    for name, rule in LINT_RULES.items():
        facts = (("severity", rule.severity.value), ("do", rule.fix))
        yield Explanation(name, "rule of planner validate", rule.why, facts)


def meanings() -> dict[str, dict[str, str]]:
    """Return the meanings of the keys that the schemas do not describe, by part of the plan and key."""
    return load_table("data/keys", "planner.cli")
