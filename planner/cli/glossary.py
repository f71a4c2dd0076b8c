"""Glossary of the words of plans, outcomes, decisions and screens.

:func:`load_glossary` collects the entries from three kinds of sources: the TOML and JSON files in
``data``, the JSON Schema of plans, and the tables of rules in the engine, revision and lint packages.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.catalog import RECIPES
from planner.engine import ENGINE_RULES, REFUSALS
from planner.lint import LINT_RULES
from planner.model.taxonomy import CATEGORIES
from planner.planfile.schemas import schema
from planner.revise.strategies import REVISION_RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = Path(__file__).parent / "data"
"""The folder of the data files in the package."""

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
    """What the word names: ``category``, ``verdict``, ``rule of the diagnosis`` …"""
    means: str
    facts: tuple[tuple[str, str], ...] = ()
    """Further facts, as pairs of a label and a text."""
    do: str | None = None
    check: tuple[str, ...] = ()
    """What to inspect."""
    steps: tuple[str, ...] = ()
    """What to do about it, the first step first."""
    examples: tuple[str, ...] = ()
    """Real cases: what was wrong, and the message that it produced."""
    page: str | None = None
    """The page of the documentation, relative to the project's root."""


class Glossary:
    """All words that ``planner explain`` can explain."""

    def __init__(self, entries: tuple[Explanation, ...]) -> None:
        self.entries = entries

    def find(self, word: str) -> list[Explanation]:
        """Return all meanings of a word; case is ignored, and ``-``, ``_`` and blanks are the same."""
        return [each for each in self.entries if _folded(each.word) == _folded(word)]

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
    texts = _toml("categories.toml")
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
        )
        yield Explanation(category.value, "category", text["means"], pairs, check=tuple(text["check"]))


def _words() -> Iterator[Explanation]:
    """Yield the verdicts, states, roles and further words of ``words.toml``, and the recipes."""
    for kind, texts in _toml("words.toml").items():
        for word, text in texts.items():
            means, do = (text, None) if isinstance(text, str) else text
            yield Explanation(word, kind, means, do=do)
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
                means, page = " ".join(text.partition("\n\n")[0].split()), f"{KEYS_PAGE}#{part.lower()}"
                yield Explanation(key, PLAN_KEY, means, (("of", part),), page=page)


def _diagnosis_rules() -> Iterator[Explanation]:
    advice = _toml("diagnosis_advice.toml")
    rules = json.loads((FOLDER / "diagnosis_rules.json").read_text(encoding="utf-8"))["rules"]
    facts = {
        rule["id"]: [
            ("says", rule["category"]),
            ("at fault", f"{rule['owner']}, mostly"),
            ("sure", f"{rule['confidence']:.0%}, at most"),
            *([("or else", rule["runner_up"])] if "runner_up" in rule else []),
        ]
        for rule in rules
    }
    facts[LEARNED] = [("says", "as corrected"), ("sure", "the share of people who agree")]
    means = "Enough people have corrected the diagnosis of this failure in the same way."
    # The rule is made of what people have corrected, so the generated table does not have it.
    for rule in (*rules, {"id": LEARNED, "because": means}):
        yield Explanation(
            word=(name := rule["id"]),
            kind="rule of the diagnosis",
            means=rule["because"],
            facts=tuple(facts[name]),
            steps=tuple(advice[name]),
            examples=tuple(rule.get("examples", ())),
            page=f"{PAGE}#{name}",
        )


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
        facts = (("severity", rule.severity.value),)
        yield Explanation(name, "rule of planner validate", rule.why, facts, rule.fix)


def meanings() -> dict[str, dict[str, str]]:
    """Return the meanings of the keys that the schemas do not describe, by part of the plan and key."""
    return _toml("keys.toml")


def _toml(name: str) -> dict[str, Any]:
    with (FOLDER / name).open("rb") as file:
        return tomllib.load(file)


def _folded(word: str) -> str:
    return word.casefold().replace("_", "-").replace(" ", "-")
