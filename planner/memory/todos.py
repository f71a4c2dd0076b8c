"""Past todos: the chance that a todo is done at the first attempt, and the recipe worth running before it
is verified."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from planner.catalog import RECIPES
from planner.memory.advice import Advice
from planner.memory.languages import language_of
from planner.memory.repairs import ELSEWHERE, GENERAL
from planner.memory.similarity import TextIndex, shape
from planner.memory.tallies import NOTHING, Counts, Experience, Tally, believe, together
from planner.memory.texts import compared, text_of
from planner.model.taxonomy import Category
from planner.rules.task_kinds import task_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.model.past import PastRecords, PastTodo
    from planner.model.plan import Todo
    from planner.model.taxonomy import Role

NEAREST = 16
"""So many of the most similar texts are asked."""

MOST_TEXTS = 48
"""So many texts are compared to find them."""

WORTH_A_RECIPE = 0.25
"""A recipe takes a small part of what a turn of work takes: it is worth it where this chance is passed …"""

ENOUGH = 2.0
"""… as concluded from so many todos at least, faded as they are."""

SELDOM = Counts(0.2, 2.0)
"""Presumed about a recipe before anything is known: it shows nothing that the criteria would not show."""

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

FEW = 3
"""Where less is remembered that is like the todo, the reason tells of all of its kind."""

_LONGEST_CACHE = 50_000
_MOST_MOMENTS = 8

_Group: TypeAlias = "tuple[Role, bool]"


@dataclass(frozen=True)
class _Sort:
    """Todos of one kind or of one text; counted as soon as somebody asks."""

    todos: list[PastTodo]
    here: str
    weighed: dict[tuple[Role, float], Counts] = field(default_factory=dict[tuple["Role", float], Counts])
    """What they were worth when they were asked for last: many todos are ordered at one moment."""

    @cached_property
    def done(self) -> Mapping[_Group, Tally]:
        """Whether they were done at the first attempt."""
        groups: dict[_Group, list[Experience]] = {}
        for todo in self.todos:
            found = Experience(todo.at.timestamp(), todo.done and todo.first_time)
            groups.setdefault((todo.role, todo.fingerprint == self.here), []).append(found)
        return {group: Tally.of(found) for group, found in groups.items()}

    @cached_property
    def met(self) -> Mapping[frozenset[Category], Tally]:
        """Whether they met a failure of these categories on the way."""
        return {
            categories: Tally.of(self._met(todo, categories) for todo in self.todos) for categories in _SETS
        }

    @cached_property
    def met_number(self) -> Counter[Category]:
        """How many met each."""
        return Counter(category for todo in self.todos for category in set(todo.categories))

    def done_by(self, role: Role, now: float) -> Counts:
        """Those of another role are worth as little as those of another repository."""
        found = self.weighed.get((role, now))
        if found is None:
            if len(self.weighed) >= _MOST_MOMENTS:
                self.weighed.clear()
            found = self.weighed[role, now] = together(
                tally.at(now).scaled((1.0 if who is role else ELSEWHERE) * (1.0 if here else ELSEWHERE))
                for (who, here), tally in self.done.items()
            )
        return found

    def _met(self, todo: PastTodo, categories: frozenset[Category]) -> Experience:
        worth = 1.0 if todo.fingerprint == self.here else ELSEWHERE
        return Experience(todo.at.timestamp(), not categories.isdisjoint(todo.categories), worth)


@dataclass(frozen=True, slots=True)
class PastTodos:
    """All todos, by kind and by text."""

    everything: _Sort
    kinds: Mapping[str, _Sort]
    index: TextIndex
    texts: tuple[_Sort, ...]
    """At the places of the index."""
    near: dict[str, tuple[tuple[int, float], ...]]
    """The places of the texts that are like one, as found before."""

    @classmethod
    def of(cls, records: PastRecords) -> PastTodos:
        here = records.fingerprint
        kinds: dict[str, _Sort] = {}
        texts: dict[str, _Sort] = {}
        for todo in records.todos:
            kinds.setdefault(todo.task_kind, _Sort([], here)).todos.append(todo)
            text = shape(compared(todo.task_kind, todo.text))
            texts.setdefault(text, _Sort([], here)).todos.append(todo)
        named = sorted(texts)
        return cls(
            everything=_Sort(list(records.todos), here),
            kinds=kinds,
            index=TextIndex.of(named),
            texts=tuple(texts[text] for text in named),
            near={},
        )

    def order_bias(self, todo: Todo, now: float) -> float:
        """The chance that a todo is done at the first attempt."""
        kind, role = task_kind(todo), todo.agent_role
        general = self.everything.done_by(role, now)
        levels = [general.scaled(min(1.0, GENERAL / (general.all or 1.0)))]
        if kind in self.kinds:
            levels.append(self.kinds[kind].done_by(role, now))
        near = self._near(kind, todo)
        levels.append(together(self.texts[place].done_by(role, now).scaled(like) for place, like in near))
        return round(believe(levels).rate, 6)

    def recipe(self, todo: Todo, now: float) -> Advice | None:
        """A recipe that is likely to show a failure before the criteria of a todo do."""
        kind = task_kind(todo)
        of_kind = self.kinds.get(kind)
        near = [(self.texts[place], likeness) for place, likeness in self._near(kind, todo)]
        for recipe, categories in SHOWN_BY[language_of(todo)]:
            if _runs_already(todo, recipe):
                continue
            general = NOTHING if of_kind is None else of_kind.met[categories].at(now)
            alike = together(sort.met[categories].at(now).scaled(likeness) for sort, likeness in near)
            chance = believe([general, alike], SELDOM).rate
            if general.all + alike.all >= ENOUGH and chance >= WORTH_A_RECIPE:
                return Advice(recipe, _because(kind, of_kind, [sort for sort, _ in near], categories))
        return None

    def _near(self, kind: str, todo: Todo) -> tuple[tuple[int, float], ...]:
        text = shape(compared(kind, text_of(todo)))
        found = self.near.get(text)
        if found is None:
            if len(self.near) >= _LONGEST_CACHE:
                self.near.clear()
            found = self.near[text] = self.index.like(text, MOST_TEXTS)[:NEAREST]
        return found


_SETS = tuple({categories: None for rows in SHOWN_BY.values() for _, categories in rows})
"""Each set of categories once."""


def _because(
    kind: str, of_kind: _Sort | None, near: Sequence[_Sort], categories: frozenset[Category]
) -> str:
    """``12 like this; 7 met LINT_ERROR, 2 COMPILATION_ERROR``."""
    number, what, sorts = sum(len(sort.todos) for sort in near), "like this", near
    if of_kind is not None and number < FEW:
        number, what, sorts = len(of_kind.todos), f"of the kind {kind}", (of_kind,)
    met = {each: sum(sort.met_number[each] for sort in sorts) for each in Category if each in categories}
    shown = sorted((each for each in met if met[each]), key=lambda each: -met[each])
    return f"{number} {what}; " + ", ".join(
        f"{met[each]} {'' if place else 'met '}{each.value}" for place, each in enumerate(shown)
    )


def _runs_already(todo: Todo, recipe: str) -> bool:
    """Whether the criteria of a todo are this recipe, or one that holds all of it."""
    return todo.verify in RECIPES and set(RECIPES[recipe]) <= set(RECIPES[todo.verify])
