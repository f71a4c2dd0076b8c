"""What the past says: which todo goes first, which recipe is worth running, who repairs a failure.

Every answer comes of records of the past and of the time alone. Times are epoch seconds; what bears a later
time than ``now`` counts as of now. At most some hundred records are given to a run, so they are looked
through one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

from planner.catalog import RECIPES
from planner.memory.task_kinds import language_of, own_title, task_kind
from planner.memory.weighing import (
    Belief,
    Counts,
    Experience,
    believe,
    count,
    jaccard,
    ngrams,
    surely_better,
)
from planner.model.past import Correction
from planner.model.taxonomy import Category, Family, Owner, Role
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planner.model.outcome import Failure
    from planner.model.past import PastRecords, PastRepair, PastTodo
    from planner.model.plan import Todo

ELSEWHERE = 0.5
"""What an experience of another repository, or of a todo of another role, is worth."""

GENERAL = 2.0
"""What is known of everything at all weighs no more than so many experiences."""

ALIKE = 0.25
"""Texts whose similarity is lower have little in common but their language."""

NEAREST = 16
"""So many of the most similar texts of todos are asked."""

# -- recipes
WORTH_A_RECIPE = 0.25
"""A recipe takes a small part of what a turn of work takes: it is worth it where this chance is passed …"""
RECIPE_ENOUGH = 2.0
"""… as concluded from so many todos at least, faded as they are."""
SELDOM = Counts(0.2, 2.0)
"""Presumed about a recipe before anything is known: it shows nothing that the criteria would not show."""

# -- routing
CORRECTED = 2.0
"""A person's word about one failure is worth so many repairs, to other failures of its category: one alone
changes no role, two do where nothing speaks against them."""
LIKE_THE_SAME = 0.3
"""Texts of which so much is in common tell as much about each other as equal ones; others less."""
ENOUGH = 1.5
"""A role is changed only for one of which at least so many experiences are known, faded as they are …"""
SURE = 0.8
"""… that is better than the default with this probability …"""
MARGIN = 0.1
"""… and by so much at least."""
NOT_MEMORYS = frozenset({Family.SANDBOX, Family.BUDGET, Family.ENVIRONMENT})
"""Families of failures whose role memory leaves alone, whatever it holds."""
WORKERS = (Role.CODER, Role.ARCHITECT, Role.TESTER, Role.DEBUGGER)
"""Roles that numbers may choose. That a person or the planner should act, only a person's word can say."""

FEW = 3
"""Where less is remembered that is alike, the reason tells of the whole kind or category."""

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


class Advice(NamedTuple):
    """Something worth doing, and why: ``12 like this; 5 met LINT_ERROR``."""

    value: str
    because: str


class RoutingAdvice(NamedTuple):
    """Who should repair a failure."""

    role: Role
    confidence: float
    """The chance that this role repairs it, as far as the past tells: 0 to 1."""
    because: str
    """``12 like this; debugger fixed 9 of 10, coder 1 of 2``."""
    changed: bool
    """Whether it is another role than the default."""


class Standing(NamedTuple):
    """What is known about one role and one failure."""

    belief: Belief
    seen: float
    """The weight of all repairs of the category by this role, and of what persons said."""
    alike: list[PastRepair]
    """Those of the same signature or of a similar text."""
    kindred: list[PastRepair]
    """Those of the same category."""


def text_of(todo: Todo, failure: Failure | None = None) -> str:
    """Return what a todo, or the repair of its failure, is about: the ``text`` of its records."""
    head = None if failure is None else failure.stack_trace_head
    return own_title(todo) if head is None else f"{own_title(todo)} {head[:_LONGEST_HEAD]}"


@dataclass(frozen=True)
class Memory:
    """What the records say."""

    records: PastRecords

    @classmethod
    def of(cls, records: PastRecords) -> Memory:
        """Return the memory of these records; their order means nothing."""
        return cls(records)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is remembered: all answers are those of the static tables."""
        return not (self.records.repairs or self.records.todos or self.records.corrections)

    def order_bias(self, todo: Todo, now: float) -> float:
        """Return the chance that a todo is done at the first attempt, 0 to 1; 0.5 while nothing is known.

        Of todos with the same priority, the higher goes first.
        """
        if not self.records.todos:
            return 0.5
        kind, role = task_kind(todo), todo.agent_role
        of_kind, near = self._near(kind, text_of(todo))
        levels = [
            _at_most(self._done(self.records.todos, role, now), GENERAL),
            self._done(of_kind, role, now),
            _sum(self._done(past, role, now).scaled(like) for like, past in near),
        ]
        return round(believe(levels).rate, 6)

    def recipe(self, todo: Todo, now: float) -> Advice | None:
        """Return a recipe that is likely to show a failure of the todo before its criteria do."""
        kind = task_kind(todo)
        of_kind, near = self._near(kind, text_of(todo))
        for recipe, categories in SHOWN_BY[language_of(todo)]:
            if todo.verify in RECIPES and set(RECIPES[recipe]) <= set(RECIPES[todo.verify]):
                continue  # its criteria are this recipe, or one that holds all of it
            general = self._met(of_kind, categories, now)
            alike = _sum(self._met(past, categories, now).scaled(like) for like, past in near)
            chance = believe([general, alike], SELDOM).rate
            if general.all + alike.all >= RECIPE_ENOUGH and chance >= WORTH_A_RECIPE:
                like_it = [each for _, past in near for each in past]
                few = len(like_it) < FEW and of_kind
                asked, what = (of_kind, f"of the kind {kind}") if few else (like_it, "like this")
                met = {each: sum(each in past.categories for past in asked) for each in Category}
                held = [each for each in met if each in categories and met[each]]
                shown = sorted(held, key=lambda each: -met[each])
                parts = (f"{met[each]} {'' if place else 'met '}{each}" for place, each in enumerate(shown))
                return Advice(recipe, f"{len(asked)} {what}; {', '.join(parts)}")
        return None

    def route(self, failure: Failure, todo: Todo, default: Role, now: float) -> RoutingAdvice:
        """Return who should repair a failure of a todo, where the static table says ``default``.

        It stays with the default unless a person corrected this very failure or the numbers are clear; and
        always for failures of security, budget or environment, and where ``failure_routing`` of the todo
        names the category or its key.
        """
        category = failure.category
        text = f"{task_kind(todo)} {text_of(todo, failure)}"
        standings = {role: self.standing(role, category, failure.signature, text, now) for role in Role}
        numbers = _numbers(category, standings)
        by_word = [role.value for role, each in standings.items() if each.seen > 0]
        reason = numbers or (
            f"a person named the {' and the '.join(by_word)} for {category}" if by_word else ""
        )
        best, refusal, word = default, _refusal(failure, todo, default), self._word(failure.signature)
        if refusal is not None:
            reason = f"{refusal}; {reason}" if reason else refusal
        elif word is not None:
            best, reason = word.role, f"{_said(word)}; {numbers}" if numbers else _said(word)
        elif not reason:
            reason = "nothing like it is remembered"
        else:
            better = _better(default, standings)
            if better is not None and _is_clear(standings[better], standings[default]):
                best = better
            elif better is not None:
                reason += f"; too little to prefer the {better} to the {default}"
        return RoutingAdvice(best, round(standings[best].belief.rate, 4), reason, best is not default)

    # -- todos

    @cached_property
    def _texts(self) -> Mapping[str, tuple[PastTodo, ...]]:
        """Past todos by their kinds and texts."""
        found: dict[str, list[PastTodo]] = {}
        for past in self.records.todos:
            found.setdefault(f"{past.task_kind} {past.text}", []).append(past)
        return {text: tuple(found[text]) for text in sorted(found)}

    @cached_property
    def _known(self) -> dict[str, tuple[tuple[PastTodo, ...], list[tuple[float, tuple[PastTodo, ...]]]]]:
        return {}

    def _near(
        self, kind: str, text: str
    ) -> tuple[tuple[PastTodo, ...], list[tuple[float, tuple[PastTodo, ...]]]]:
        """Return the todos of a kind, and those of the most similar texts with how similar they are."""
        asked = f"{kind} {text}"
        if asked not in self._known:
            grams = ngrams(asked)
            likes = ((jaccard(grams, ngrams(known)), past) for known, past in self._texts.items())
            near = sorted((each for each in likes if each[0] >= ALIKE), key=lambda each: -each[0])[:NEAREST]
            self._known[asked] = tuple(each for each in self.records.todos if each.task_kind == kind), near
        return self._known[asked]

    @cached_property
    def _counted(self) -> dict[tuple[object, ...], Counts]:
        """What was counted at one moment: many todos are ordered then."""
        return {}

    def _done(self, todos: tuple[PastTodo, ...], role: Role, now: float) -> Counts:
        """Return how often todos were done at the first attempt; those of another role count less."""
        key = (now, role, id(todos))
        if key not in self._counted:
            if self._counted and next(iter(self._counted))[0] != now:
                self._counted.clear()
            self._counted[key] = count(
                (
                    Experience(
                        past.at.timestamp(),
                        past.done and past.first_time,
                        (1.0 if past.role is role else ELSEWHERE) * self._worth(past),
                    )
                    for past in todos
                ),
                now,
            )
        return self._counted[key]

    def _met(self, todos: tuple[PastTodo, ...], categories: frozenset[Category], now: float) -> Counts:
        """Return how often todos met a failure of these categories on the way."""
        found = (
            Experience(past.at.timestamp(), not categories.isdisjoint(past.categories), self._worth(past))
            for past in todos
        )
        return count(found, now)

    def _worth(self, record: PastTodo | PastRepair | Correction) -> float:
        return 1.0 if record.fingerprint == self.records.fingerprint else ELSEWHERE

    # -- repairs

    def standing(
        self, role: Role, category: Category, signature: str | None, text: str, now: float
    ) -> Standing:
        """Return what is known about a role and a failure.

        Repairs of the same signature, of a similar text, and the others of the category are apart from each
        other, so that no repair counts twice.
        """
        grams = ngrams(text)
        own = [each for each in self.records.repairs if each.role is role]
        kindred = [each for each in own if each.category is category]
        exact = [each for each in kindred if signature and each.signature == signature]
        others = [
            (jaccard(grams, ngrams(f"{each.task_kind} {each.text}")), each)
            for each in kindred
            if not signature or each.signature != signature
        ]
        near = [(like, each) for like, each in others if like >= ALIKE]
        words = [
            each for each in self.records.corrections if (each.category, each.role) == (category, role)
        ]
        rest = [*(each for like, each in others if like < ALIKE), *words]
        general = _sum(self._places(own, now))
        # What was said about this very signature keeps its weight when the repository's manifests change.
        said = [_experience(each) for each in words if each.signature == signature]
        levels = [
            *self._places(rest, now),
            _sum(
                count([_experience(each)], now).scaled(self._worth(each) * min(1.0, like / LIKE_THE_SAME))
                for like, each in near
            ),
            _sum([*self._places(exact, now), count(said, now)]),
        ]
        return Standing(
            belief=believe([_at_most(general, GENERAL), *levels]),
            seen=_sum(levels).all,
            alike=[*exact, *(each for _, each in near)],
            kindred=kindred,
        )

    def _places(self, records: Iterable[PastRepair | Correction], now: float) -> list[Counts]:
        """Return what records are worth: those of elsewhere, then those of here, which tell more."""
        held = [(self._worth(each), _experience(each)) for each in records]
        return [
            count((found for worth, found in held if worth == place), now).scaled(place)
            for place in (ELSEWHERE, 1.0)
        ]

    def _word(self, signature: str | None) -> Correction | None:
        """Return the latest that a person said about this failure in this repository."""
        own = (
            each
            for each in self.records.corrections
            if signature and each.signature == signature and self._worth(each) == 1.0
        )
        # Of two words of the same moment the same one counts, whichever comes first.
        return max(own, key=lambda each: (each.at.timestamp(), each.model_dump_json()), default=None)


def _experience(record: PastRepair | Correction) -> Experience:
    """Return what a record tells. A repair that took several attempts is worth as much less."""
    if isinstance(record, Correction):
        return Experience(record.at.timestamp(), True, CORRECTED)
    return Experience(record.at.timestamp(), record.fixed, 1.0 / record.attempts if record.fixed else 1.0)


def _sum(counts: Iterable[Counts]) -> Counts:
    held = list(counts)
    return Counts(fsum(each.well for each in held), fsum(each.all for each in held))


def _at_most(counts: Counts, most: float) -> Counts:
    return counts.scaled(min(1.0, most / (counts.all or 1.0)))


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


def _numbers(category: Category, standings: Mapping[Role, Standing]) -> str:
    """Return ``12 like this; debugger fixed 9 of 10, coder 1 of 2``; empty where no repair is known."""
    alike = sum(len(each.alike) for each in standings.values())
    known = {role: each.alike if alike >= FEW else each.kindred for role, each in standings.items()}
    what = f"{alike} like this" if alike >= FEW else f"{sum(map(len, known.values()))} of {category}"
    rows = [(role, sum(each.fixed for each in held), len(held)) for role, held in known.items() if held]
    rows.sort(key=lambda row: (-row[1], row[2]))
    parts = (f"{role} {'' if n else 'fixed '}{fixed} of {of}" for n, (role, fixed, of) in enumerate(rows))
    return f"{what}; {', '.join(parts)}" if rows else ""


def _better(default: Role, standings: Mapping[Role, Standing]) -> Role | None:
    """Return the role with the best chance, where it is known at all and better than the default."""
    known = [role for role in WORKERS if role is not default and standings[role].seen > 0]
    best = max(known, key=lambda role: standings[role].belief.rate, default=default)
    return best if standings[best].belief.rate > standings[default].belief.rate else None


def _is_clear(best: Standing, default: Standing) -> bool:
    return (
        best.seen >= ENOUGH
        and best.belief.rate - default.belief.rate >= MARGIN
        and surely_better(best.belief, default.belief) >= SURE
    )


def _said(word: Correction) -> str:
    who = " ".join(clean(word.by or "", limit=_LONGEST_NAME).split()) or "a person"
    meant = f", as {word.right_category}" if word.right_category is not None else ""
    return f"{who} said on {word.at:%Y-%m-%d} that this is for the {word.role}{meant}"
