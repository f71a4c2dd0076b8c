"""What the words of plans, outcomes, decisions and screens mean, from data files and from the rules."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.edges.rule_advice import advice_for, page_of
from planner.model.taxonomy import CATEGORIES, Category

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = Path(__file__).parent / "data"
"""Where the data files are, in the package."""

LEARNED = "learned"
"""What a diagnosis says of its rule where corrections have changed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What one word means."""

    word: str
    kind: str
    """What it is a name of: ``category``, ``verdict``, ``rule of the diagnosis`` …"""
    means: str
    facts: tuple[tuple[str, str], ...] = ()
    """Further things to know, each with its name."""
    do: str | None = None
    """What to do about it."""
    check: tuple[str, ...] = ()
    """What to look at."""
    steps: tuple[str, ...] = ()
    """What to do about it step by step, the first one first."""
    examples: tuple[str, ...] = ()
    """Real cases: what was wrong, and what it said."""
    page: str | None = None
    """Where more is told, below the project's root."""


@dataclass(frozen=True)
class Explanations:
    """Everything that can be explained by its name."""

    entries: tuple[Explanation, ...]

    @cached_property
    def _by_word(self) -> Mapping[str, tuple[Explanation, ...]]:
        found: dict[str, tuple[Explanation, ...]] = {}
        for entry in self.entries:
            found[_folded(entry.word)] = (*found.get(_folded(entry.word), ()), entry)
        return found

    def find(self, word: str) -> tuple[Explanation, ...]:
        """All that the word is a name of; case, ``-``, ``_`` and blanks do not matter."""
        return self._by_word.get(_folded(word), ())

    def words(self) -> tuple[str, ...]:
        """Every name, once."""
        return tuple(dict.fromkeys(entry.word for entry in self.entries))

    def kinds(self) -> Mapping[str, tuple[str, ...]]:
        """The names by what they are names of."""
        found: dict[str, tuple[str, ...]] = {}
        for entry in self.entries:
            found[entry.kind] = (*found.get(entry.kind, ()), entry.word)
        return found


def load_explanations() -> Explanations:
    """Read all of them."""
    return Explanations((*_categories(), *_words(), *_diagnosis_rules(), *_rules_of_the_planner()))


def _categories() -> Iterator[Explanation]:
    texts = _toml("categories.toml")
    for category, facts in CATEGORIES.items():
        text = texts[category.value]
        key = facts.routing_key
        yield Explanation(
            word=category.value,
            kind="category",
            means=text["means"],
            facts=(
                ("family", facts.family.value),
                ("at fault", f"{facts.usual_owner.value}, mostly"),
                ("acts", _acts(category)),
                ("routing", f"{key.value}, in a todo's failure_routing" if key else "no key"),
                ("planner", text["planner"]),
            ),
            check=tuple(text["check"]),
        )


def _acts(category: Category) -> str:
    facts = category.facts
    names = category.value
    if facts.routing_key is not None and not facts.overrides_key:
        names += f" or {facts.routing_key.value}"
    return f"{facts.default_role.value}, unless the todo's failure_routing names another for {names}"


def _words() -> Iterator[Explanation]:
    for kind, texts in _toml("words.toml").items():
        for word, text in texts.items():
            yield Explanation(word=word, kind=kind, means=text["means"], do=text.get("do"))


def _diagnosis_rules() -> Iterator[Explanation]:
    text = (FOLDER / "diagnosis_rules.json").read_text(encoding="utf-8")
    for rule in json.loads(text)["rules"]:
        facts = [
            ("says", rule["category"]),
            ("at fault", f"{rule['owner']}, mostly"),
            ("sure", f"{rule['confidence']:.0%}, at most"),
        ]
        if "runner_up" in rule:
            facts.append(("or else", rule["runner_up"]))
        yield Explanation(
            word=rule["id"],
            kind="rule of the diagnosis",
            means=rule["because"],
            facts=tuple(facts),
            steps=advice_for(rule["id"]),
            examples=tuple(rule.get("examples", ())),
            page=page_of(rule["id"]),
        )
    yield Explanation(
        word=LEARNED,
        kind="rule of the diagnosis",
        means="Corrections of failures like this one outweigh what the rules, who are unsure, would say.",
        facts=(("says", "what was corrected"), ("sure", "as the votes of the corrections are")),
        steps=advice_for(LEARNED),
        page=page_of(LEARNED),
    )


def _rules_of_the_planner() -> Iterator[Explanation]:
    from planner.engine import ENGINE_RULES, REFUSALS
    from planner.rules.reviewing import REVIEW_FIGURES
    from planner.rules.revision import REVISION_RULES
    from planner.rules.validation import VALIDATION_RULES

    for name, sentence in REVISION_RULES.items():
        yield Explanation(word=name, kind="rule of the revision", means=sentence)
    for name, sentence in ENGINE_RULES.items():
        if name not in REVISION_RULES:
            yield Explanation(word=name, kind="rule of the engine", means=sentence)
    for name, sentence in REFUSALS.items():
        if name not in ENGINE_RULES:
            yield Explanation(word=name, kind="rule of a refusal", means=sentence)
    for name, sentence in REVIEW_FIGURES.items():
        yield Explanation(word=name, kind="figure of the review", means=sentence)
    for name, rule in VALIDATION_RULES.items():
        yield Explanation(
            word=name,
            kind="rule of planner validate",
            means=rule.why,
            facts=(("weighs", rule.severity.value),),
            do=rule.fix,
        )


def _toml(name: str) -> dict[str, Any]:
    with (FOLDER / name).open("rb") as file:
        return tomllib.load(file)


def _folded(word: str) -> str:
    return word.casefold().replace("_", "-").replace(" ", "-")
