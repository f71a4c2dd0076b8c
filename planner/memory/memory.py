"""Advice from past outcomes: order of todos, choice of recipes, the role that repairs.

Every answer comes of records of the past and of the time alone. A record counts by how like it is, by its
age, and by where it is from; a rate is concluded as if two experiences were known before, one of them good.
Texts are compared by the trigrams of their words: ``compute_rsi`` and ``RSI computation`` share most of
theirs, and the order of words does not count. Times are epoch seconds; what bears a later time than ``now``
counts as of now. At most some hundred records are given to a run, so they are looked through one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import erf, fsum, sqrt
from typing import TYPE_CHECKING, NamedTuple

from planner.catalog import RECIPES
from planner.memory.task_kinds import language_of, own_title, task_kind, words_of
from planner.model.taxonomy import Category, Family, Owner, Role
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from planner.model.outcome import Failure
    from planner.model.past import Correction, PastRecords, PastRepair, PastTodo
    from planner.model.plan import Todo

DAILY = 0.95
"""What is left of the weight of an experience after a day."""

ELSEWHERE = 0.5
"""What an experience of another repository, or of a todo of another role, is worth."""

ALIKE = 0.25
"""Texts whose similarity is lower have little in common but their language."""

SAME_SORT = 0.3
"""What a todo of the same kind, or a repair of the same category, is worth that is not alike."""

WORTH_A_RECIPE = 0.25
"""A recipe takes a small part of what a turn of work takes: it is worth it where this chance is passed …"""
RECIPE_ENOUGH = 1.0
"""… as concluded from so much at least."""

CORRECTED = 4.0
"""A person's word about one failure is worth so many repairs, to others of its category the same share."""

ENOUGH = 1.5
"""A role is changed only for one of which at least so much is known …"""
SURE = 0.75
"""… that is better than the default with this probability …"""
MARGIN = 0.1
"""… and by so much at least."""

NOT_MEMORYS = frozenset({Family.SANDBOX, Family.BUDGET, Family.ENVIRONMENT})
"""Families of failures whose role memory leaves alone, whatever it holds."""
WORKERS = (Role.CODER, Role.ARCHITECT, Role.TESTER, Role.DEBUGGER)
"""Roles that numbers may choose. That a person or the planner should act, only a person's word can say."""

_LONGEST = 2_000
"""Characters of a text that are compared."""
_LONGEST_HEAD = 300
"""Characters of the head of a failure: its message, and no stack of frames that every failure shares."""
_LONGEST_NAME = 80

_SYNTAX = frozenset({Category.COMPILATION_ERROR, Category.LINT_ERROR})
_NAMES = frozenset({Category.TYPE_ERROR, Category.IMPORT_ERROR})

SHOWN_BY: Mapping[str, tuple[tuple[str, frozenset[Category]], ...]] = {
    # Wrong types, and imports of what is not there, are found by a type checker.
    "python": (("python-full", _NAMES), ("python-quick", _SYNTAX)),
    "node": (("node-full", _SYNTAX | _NAMES),),
    "go": (("go-full", _SYNTAX | _NAMES),),
    "rust": (("rust-full", _SYNTAX | _NAMES),),
}
"""For each language the recipes that show a failure before the criteria do, the first that is worth it."""


class RecipeAdvice(NamedTuple):
    """A recipe worth running first, and why: ``12 like this; 5 met LINT_ERROR``."""

    value: str
    because: str


class RoutingAdvice(NamedTuple):
    """The advised role for a failure, and the grounds."""

    role: Role
    confidence: float
    """The chance that this role repairs it, as far as the past tells: 0 to 1."""
    because: str
    """``12 like this; debugger fixed 9 of 10, coder 1 of 2``."""
    changed: bool
    """Whether it is another role than the default."""


class Belief(NamedTuple):
    """A conclusion from weighted experiences."""

    rate: float
    """The chance that it goes well."""
    seen: float
    """The weight of the experiences."""


class _Standing(NamedTuple):
    """Experience of one role with failures of one category."""

    belief: Belief
    fixed: int
    tried: int


@lru_cache(maxsize=4_096)
def ngrams(text: str) -> frozenset[str]:
    """Return the trigrams of the words of a text, with a blank at each end of a word."""
    words = [f" {word} " for word in words_of(text[:_LONGEST])]
    return frozenset(word[start : start + 3] for word in words for start in range(len(word) - 2))


def jaccard(one: Set[str], other: Set[str]) -> float:
    """Return the share of what two sets have in common: 1 for equal sets, 0 where nothing is common."""
    together = len(one | other)
    return len(one & other) / together if together else 1.0


def believe(experiences: Iterable[tuple[bool, float]], well: float = 1.0) -> Belief:
    """Return the chance that it goes well, from experiences with their weights, in any order.

    ``well`` of two experiences are presumed to have gone well before anything is known.
    """
    held = list(experiences)
    seen = fsum(weight for _, weight in held)
    return Belief((well + fsum(weight for good, weight in held if good)) / (2.0 + seen), seen)


def surely_better(one: Belief, other: Belief) -> float:
    """Return the probability that the chance of one is higher than that of the other."""
    variances = (max(each.rate * (1.0 - each.rate) / (each.seen + 3.0), 1e-12) for each in (one, other))
    return 0.5 * (1.0 + erf((one.rate - other.rate) / sqrt(2.0 * sum(variances))))


def text_of(todo: Todo, failure: Failure | None = None) -> str:
    """Return what a todo, or the repair of its failure, is about: the ``text`` of its records."""
    head = None if failure is None else failure.stack_trace_head
    return own_title(todo) if head is None else f"{own_title(todo)} {head[:_LONGEST_HEAD]}"


@dataclass(frozen=True)
class Memory:
    """The records of the past; their order means nothing."""

    records: PastRecords
    _known: dict[str, list[tuple[float, PastTodo]]] = field(
        default_factory=dict[str, "list[tuple[float, PastTodo]]"], repr=False, compare=False
    )
    """By what a todo is about, the todos like it."""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is remembered: all answers are those of the static tables."""
        return not (self.records.repairs or self.records.todos or self.records.corrections)

    def order_bias(self, todo: Todo, now: float) -> float:
        """Return the chance that a todo is done at the first attempt, 0 to 1; 0.5 while nothing is known.

        Of todos with the same priority, the higher goes first.
        """
        found = (
            (
                past.done and past.first_time,
                like * self._weight(past, now) * (1.0 if past.role is todo.agent_role else ELSEWHERE),
            )
            for like, past in self._like(todo)
        )
        return round(believe(found).rate, 6)

    def recipe(self, todo: Todo, now: float) -> RecipeAdvice | None:
        """Return a recipe that is likely to show a failure of the todo before its criteria do."""
        near = self._like(todo)
        for recipe, shown in SHOWN_BY[language_of(todo)]:
            if todo.verify in RECIPES and set(RECIPES[recipe]) <= set(RECIPES[todo.verify]):
                continue  # its criteria are this recipe, or one that holds all of it
            # Before anything is known, a recipe shows nothing that the criteria would not show.
            chance = believe(
                (
                    (not shown.isdisjoint(past.categories), like * self._weight(past, now))
                    for like, past in near
                ),
                well=0.2,
            )
            if chance.seen >= RECIPE_ENOUGH and chance.rate >= WORTH_A_RECIPE:
                met = sum(not shown.isdisjoint(past.categories) for _, past in near)
                names = " or ".join(sorted(shown))
                return RecipeAdvice(recipe, f"of {len(near)} like this {met} met {names}")
        return None

    def route(self, failure: Failure, todo: Todo, default: Role, now: float) -> RoutingAdvice:
        """Return who should repair a failure of a todo, where the static table says ``default``.

        It stays with the default unless a person corrected this very failure or the numbers are clear; and
        always for failures of security, budget or environment, and where ``failure_routing`` of the todo
        names the category or its key.
        """
        category = failure.category
        grams = ngrams(f"{task_kind(todo)} {text_of(todo, failure)}")
        standings = {role: self._standing(role, failure, grams, now) for role in Role}
        numbers, best = _numbers(category, standings), default
        refusal, word = _refusal(failure, todo, default), self._word(failure.signature)
        reasons = [refusal, _said(word) if word is not None and refusal is None else None, numbers]
        if refusal is None and word is not None:
            best = word.role
        elif refusal is None:
            beliefs = {role: standings[role].belief for role in (default, *WORKERS)}
            better = max(beliefs, key=lambda role: beliefs[role].rate)
            one, other = beliefs[better], beliefs[default]
            is_clear = one.seen >= ENOUGH and one.rate - other.rate >= MARGIN
            if is_clear and surely_better(one, other) >= SURE:
                best = better
            elif one.seen > 0 and one.rate > other.rate:
                reasons.append(f"too little to prefer the {better} to the {default}")
        confidence = round(standings[best].belief.rate, 4)
        because = "; ".join(filter(None, reasons)) or "nothing like it is remembered"
        return RoutingAdvice(best, confidence, because, best is not default)

    def _like(self, todo: Todo) -> list[tuple[float, PastTodo]]:
        """Return the todos whose texts are alike, and those of the same kind, with how like they are."""
        kind = task_kind(todo)
        asked = f"{kind} {text_of(todo)}"
        if asked not in self._known:
            grams, found = ngrams(asked), self._known.setdefault(asked, [])
            for past in self.records.todos:
                like = jaccard(grams, ngrams(f"{past.task_kind} {past.text}"))
                if like >= ALIKE or past.task_kind == kind:
                    found.append((like if like >= ALIKE else SAME_SORT, past))
        return self._known[asked]

    def _standing(self, role: Role, failure: Failure, grams: Set[str], now: float) -> _Standing:
        """Return what is known about a role and a failure."""
        found: list[tuple[bool, float]] = []
        tried = [
            past for past in self.records.repairs if past.role is role and past.category is failure.category
        ]
        for past in tried:
            like = jaccard(grams, ngrams(f"{past.task_kind} {past.text}"))
            is_same = failure.signature is not None and past.signature == failure.signature
            worth = 1.0 if is_same or like >= ALIKE else SAME_SORT
            attempts = past.attempts if past.fixed else 1  # those of a success make it worth less
            found.append((past.fixed, worth * self._weight(past, now) / attempts))
        for word in self.records.corrections:
            if word.role is role and word.category is failure.category:
                worth = CORRECTED if word.signature == failure.signature else CORRECTED * SAME_SORT
                found.append((True, worth * self._weight(word, now)))
        return _Standing(believe(found), sum(past.fixed for past in tried), len(tried))

    def _weight(self, record: PastTodo | PastRepair | Correction, now: float) -> float:
        """Return what a record is worth at a time: less with every day, and from another repository."""
        days = max(0.0, now - record.at.timestamp()) / 86_400.0
        return DAILY**days * (1.0 if record.fingerprint == self.records.fingerprint else ELSEWHERE)

    def _word(self, signature: str | None) -> Correction | None:
        """Return the latest that a person said about this failure in this repository."""
        own = (
            each
            for each in self.records.corrections
            if signature and each.signature == signature and each.fingerprint == self.records.fingerprint
        )
        # Of two words of the same moment the same one counts, whichever comes first.
        return max(own, key=lambda each: (each.at.timestamp(), each.model_dump_json()), default=None)


def _refusal(failure: Failure, todo: Todo, default: Role) -> str | None:
    """Return why memory has no say in who repairs a failure, or ``None``."""
    category = failure.category
    # What only the environment lacks is nobody's work; a missing import can be declared by a role.
    is_nobodys = (
        failure.owner in (Owner.ENVIRONMENT, Owner.HARNESS) and category is not Category.IMPORT_ERROR
    )
    if default is Role.HUMAN or category.facts.family in NOT_MEMORYS or is_nobodys:
        return f"who acts on {category} is not for memory to say"
    for word in (category, category.facts.routing_key):
        if word is not None and word in todo.failure_routing:
            return f"the todo says itself who acts on {word}"
    return None


def _numbers(category: Category, standings: Mapping[Role, _Standing]) -> str:
    """Return ``12 of TEST_TIMEOUT; debugger fixed 9 of 10, coder 1 of 2``; empty where none is known."""
    rows = [(role, each.fixed, each.tried) for role, each in standings.items() if each.tried]
    rows.sort(key=lambda row: (-row[1], row[2]))
    parts = (f"{role} {'' if n else 'fixed '}{fixed} of {of}" for n, (role, fixed, of) in enumerate(rows))
    return f"{sum(row[2] for row in rows)} of {category}; {', '.join(parts)}" if rows else ""


def _said(word: Correction) -> str:
    who = " ".join(clean(word.by or "", limit=_LONGEST_NAME).split()) or "a person"
    meant = f", as {word.right_category}" if word.right_category is not None else ""
    return f"{who} said on {word.at:%Y-%m-%d} that this is for the {word.role}{meant}"
