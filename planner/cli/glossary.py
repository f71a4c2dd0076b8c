"""What the words of plans, outcomes, decisions and screens mean, from data files and from the rules."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.model.taxonomy import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = Path(__file__).parent / "data"
"""Where the data files are, in the package."""

LEARNED = "learned"
"""What a diagnosis says of its rule where corrections have changed it."""

PLAN_KEY = "key of a plan"
PAGE = "docs/reference/diagnosis-rules.md"
"""The page that tells of every rule of the diagnosis, below the project's root."""


class Explanation(NamedTuple):
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


class Glossary:
    """Everything that can be explained by its name."""

    def __init__(self, entries: tuple[Explanation, ...]) -> None:
        self.entries = entries

    def find(self, word: str) -> list[Explanation]:
        """Return all that the word is a name of; case, ``-``, ``_`` and blanks do not matter."""
        return [each for each in self.entries if _folded(each.word) == _folded(word)]

    def words(self) -> tuple[str, ...]:
        """Return every name, once."""
        return tuple(dict.fromkeys(each.word for each in self.entries))

    def kinds(self) -> Mapping[str, tuple[str, ...]]:
        """Return the names by what they are names of."""
        found: dict[str, dict[str, None]] = {}
        for each in self.entries:
            found.setdefault(each.kind, {})[each.word] = None
        return {kind: tuple(words) for kind, words in found.items()}

    def topic(self, word: str) -> str | None:
        """Return the kind of names that a word means: ``role``, ``verdicts``, ``rules of the engine``."""
        for kind in self.kinds():
            first, blank, rest = kind.partition(" ")
            plural = f"{first[:-1]}ies" if first.endswith("ry") else f"{first}s"
            if _folded(word) in (_folded(kind), _folded(f"{plural}{blank}{rest}")):
                return kind
        return None


@cache
def load_glossary() -> Glossary:
    """Read all of it."""
    return Glossary(
        (
            *_categories(),
            *_words(),
            *_recipes(),
            *_plan_keys(),
            *_diagnosis_rules(),
            *_rules_of_the_planner(),
        )
    )


def _categories() -> Iterator[Explanation]:
    texts = _toml("categories.toml")
    for category, facts in CATEGORIES.items():
        text = texts[category.value]
        key = facts.routing_key
        names = f"{category.value}{f' or {key.value}' if key and not facts.overrides_key else ''}"
        acts = f"{facts.default_role.value}, unless the todo's failure_routing names another for {names}"
        yield Explanation(
            word=category.value,
            kind="category",
            means=text["means"],
            facts=(
                ("family", facts.family.value),
                ("at fault", f"{facts.usual_owner.value}, mostly"),
                ("acts", acts),
                ("routing", f"{key.value}, in a todo's failure_routing" if key else "no key"),
                ("planner", text["planner"]),
            ),
            check=tuple(text["check"]),
        )


def _words() -> Iterator[Explanation]:
    for kind, texts in _toml("words.toml").items():
        for word, text in texts.items():
            yield Explanation(word=word, kind=kind, means=text["means"], do=text.get("do"))


def _recipes() -> Iterator[Explanation]:
    from planner.catalog import RECIPES

    for name, commands in RECIPES.items():
        yield Explanation(
            word=name,
            kind="recipe",
            means="A recipe: a todo that names it as verify has each of these commands as a criterion.",
            facts=tuple(("runs", command) for command in commands),
        )


def _plan_keys() -> Iterator[Explanation]:
    """Yield the keys of plans, as the schema and the file of meanings tell them."""
    from planner.planfile.schemas import schema

    document = schema("plan")
    told = meanings()
    for part, about in {"Plan": document, **document["$defs"]}.items():
        shapes: list[dict[str, Any]] = [about, *about.get("anyOf", ())]
        for key, shape in (
            (key, shape) for each in shapes for key, shape in each.get("properties", {}).items()
        ):
            said = shape.get("description") or told.get(part, {}).get(key)
            if said is not None:
                means = " ".join(said.partition("\n\n")[0].split())
                yield Explanation(
                    word=key,
                    kind=PLAN_KEY,
                    means=means,
                    facts=(("of", part),),
                    page=f"docs/reference/plan-keys.md#{part.lower()}",
                )


def _diagnosis_rules() -> Iterator[Explanation]:
    advice = _toml("diagnosis_advice.toml")
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
            steps=tuple(advice[rule["id"]]),
            examples=tuple(rule.get("examples", ())),
            page=f"{PAGE}#{rule['id']}",
        )
    yield Explanation(
        word=LEARNED,
        kind="rule of the diagnosis",
        means="Corrections of failures like this one outweigh what the rules, who are unsure, would say.",
        facts=(("says", "what was corrected"), ("sure", "as the votes of the corrections are")),
        steps=tuple(advice[LEARNED]),
        page=f"{PAGE}#{LEARNED}",
    )


def _rules_of_the_planner() -> Iterator[Explanation]:
    from planner.cli.figures import REVIEW_FIGURES
    from planner.engine import ENGINE_RULES, REFUSALS
    from planner.lint import LINT_RULES
    from planner.revise.strategies import REVISION_RULES

    seen: set[str] = set()
    for kind, table in (
        ("rule of the revision", REVISION_RULES),
        ("rule of the engine", ENGINE_RULES),
        ("rule of a refusal", REFUSALS),
        ("figure of the review", REVIEW_FIGURES),
    ):
        yield from (Explanation(name, kind, means) for name, means in table.items() if name not in seen)
        seen |= table.keys()
    for name, rule in LINT_RULES.items():
        yield Explanation(
            word=name,
            kind="rule of planner validate",
            means=rule.why,
            facts=(("severity", rule.severity.value),),
            do=rule.fix,
        )


def meanings() -> dict[str, dict[str, str]]:
    """Return what keys mean where the schemas do not say, by part and key."""
    return _toml("keys.toml")


def _toml(name: str) -> dict[str, Any]:
    with (FOLDER / name).open("rb") as file:
        return tomllib.load(file)


def _folded(word: str) -> str:
    return word.casefold().replace("_", "-").replace(" ", "-")
