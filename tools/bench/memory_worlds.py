"""Simulated histories whose truth is known: who really repairs what, and what was seen of it.

A world has families of failures: a category, a vocabulary of texts, some signatures, and for each role the
chance that it repairs such a failure in its first turn. What is remembered is drawn from these chances; a
choice is judged by the true chance of the role, without the noise of another draw.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property

from planner.memory import Memory, task_kind, text_of
from planner.model.outcome import Failure
from planner.model.past import PastRecords, PastRepair, PastTodo
from planner.model.plan import Todo
from planner.model.taxonomy import CATEGORIES, Category, Family, Role

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SPAN_DAYS = 60
OTHERS_ACT = 0.35
"""How often somebody else than the static table's role acted in the past: in todos with a routing of their
own, in branches that a person changed, in deeper branches."""

HERE, ELSEWHERE = "sha256:here", "sha256:elsewhere"
WORKERS = (Role.CODER, Role.ARCHITECT, Role.TESTER, Role.DEBUGGER)
ROUTED = tuple(
    category
    for category, facts in CATEGORIES.items()
    if facts.family not in (Family.SANDBOX, Family.BUDGET, Family.ENVIRONMENT)
)
DEEDS = ("Fix", "Add", "Refactor", "Implement", "Update the docs of", "Speed up")


class Truth(StrEnum):
    """Who really repairs what."""

    FAMILIES = "families of failures have roles of their own"
    CATEGORIES = "categories have roles of their own"
    NO_RELATION = "the role does not matter"
    TABLE_IS_RIGHT = "the static table is right"


@dataclass(frozen=True)
class FailureFamily:
    """Failures that are alike, and who repairs them."""

    category: Category
    words: tuple[str, ...]
    signatures: tuple[str, ...]
    chances: Mapping[Role, float]
    """Of each role, to repair it in the first turn."""

    @property
    def static(self) -> Role:
        return CATEGORIES[self.category].default_role


@dataclass(frozen=True)
class World:
    """A truth, and the records that it has left."""

    truth: Truth
    seed: int
    repairs: int

    @cached_property
    def families(self) -> tuple[FailureFamily, ...]:
        rng = random.Random(f"families {self.seed}")
        return tuple(self._family(rng, number) for number in range(24))

    @cached_property
    def memory(self) -> Memory:
        rng = random.Random(f"records {self.seed}")
        return Memory(
            PastRecords(fingerprint=HERE, repairs=tuple(self._repair(rng) for _ in range(self.repairs)))
        )

    def cases(self, number: int) -> list[tuple[FailureFamily, Failure, Todo]]:
        """Failures of the days after the records."""
        rng = random.Random(f"cases {self.seed}")
        found: list[tuple[FailureFamily, Failure, Todo]] = []
        for _ in range(number):
            family = rng.choice(self.families)
            found.append((self._meant(rng, family), *self._failure(rng, family)))
        return found

    def _family(self, rng: random.Random, number: int) -> FailureFamily:
        category = rng.choice(ROUTED)
        static = CATEGORIES[category].default_role
        chances = self._chances(rng, category, static)
        return FailureFamily(
            category=category,
            words=tuple(_word(rng) for _ in range(8)),
            signatures=tuple(f"{self.seed}-{number}-{index}" for index in range(4)),
            chances=chances,
        )

    def _chances(self, rng: random.Random, category: Category, static: Role) -> dict[Role, float]:
        """Of each role; half of all families, or of all categories, are not for the static table's."""
        chances = {role: rng.uniform(0.1, 0.4) for role in WORKERS}
        whose = random.Random(f"{category} {self.seed}") if self.truth is Truth.CATEGORIES else rng
        best = static
        if self.truth is not Truth.TABLE_IS_RIGHT and whose.random() < 0.5:
            best = whose.choice([role for role in WORKERS if role is not static])
        chances[best] = rng.uniform(0.6, 0.9)
        return chances

    def _meant(self, rng: random.Random, family: FailureFamily) -> FailureFamily:
        """The family; without any relation, each of its failures has chances of its own."""
        if self.truth is not Truth.NO_RELATION:
            return family
        return replace(family, chances={role: rng.uniform(0.1, 0.9) for role in WORKERS})

    def _failure(self, rng: random.Random, family: FailureFamily) -> tuple[Failure, Todo]:
        words = rng.sample(family.words, 5)
        known = rng.random() < 0.6
        signature = rng.choice(family.signatures) if known else f"new-{rng.getrandbits(48):012x}"
        todo = Todo(id="t", title=f"{rng.choice(DEEDS)} {words[0]} {words[1]} {_word(rng)}")
        head = f"Error: {words[2]} {words[3]} {words[4]} {_word(rng)} {rng.randint(0, 99)}"
        return Failure(category=family.category, signature=signature, stack_trace_head=head), todo

    def _repair(self, rng: random.Random) -> PastRepair:
        family = rng.choice(self.families)
        failure, todo = self._failure(rng, family)
        acts = rng.choice(WORKERS) if rng.random() < OTHERS_ACT else family.static
        chance = self._meant(rng, family).chances[acts]
        first = rng.random() < chance
        later = not first and rng.random() < chance / 2
        return PastRepair(
            at=NOW - timedelta(days=rng.uniform(0, SPAN_DAYS)),
            fingerprint=HERE if rng.random() < 0.7 else ELSEWHERE,
            task_kind=task_kind(todo),
            text=text_of(todo, failure),
            signature=failure.signature,
            category=family.category,
            role=acts,
            fixed=first or later,
            attempts=1 if first else rng.randint(2, 3),
        )


@dataclass(frozen=True)
class Backlog:
    """Todos of which some sorts really go well at first, in a world with or without such sorts."""

    has_signal: bool
    seed: int
    todos: int

    @cached_property
    def sorts(self) -> tuple[tuple[str, tuple[str, ...], float], ...]:
        """A deed, a vocabulary and the chance to be done at the first attempt."""
        rng = random.Random(f"sorts {self.seed}")
        return tuple(
            (
                rng.choice(DEEDS),
                tuple(_word(rng) for _ in range(6)),
                rng.uniform(0.1, 0.9) if self.has_signal else 0.5,
            )
            for _ in range(12)
        )

    @cached_property
    def memory(self) -> Memory:
        rng = random.Random(f"todos {self.seed}")
        return Memory(
            PastRecords(fingerprint=HERE, todos=tuple(self._past(rng) for _ in range(self.todos)))
        )

    def open_todos(self, number: int) -> list[tuple[Todo, bool]]:
        """Todos, and whether each would be done at the first attempt."""
        rng = random.Random(f"open {self.seed}")
        return [self._todo(rng) for _ in range(number)]

    def _past(self, rng: random.Random) -> PastTodo:
        todo, well = self._todo(rng)
        return PastTodo(
            at=NOW - timedelta(days=rng.uniform(0, SPAN_DAYS)),
            fingerprint=HERE if rng.random() < 0.7 else ELSEWHERE,
            task_kind=task_kind(todo),
            text=text_of(todo),
            role=todo.agent_role,
            done=well or rng.random() < 0.5,
            first_time=well,
        )

    def _todo(self, rng: random.Random) -> tuple[Todo, bool]:
        deed, words, chance = rng.choice(self.sorts)
        title = f"{deed} {' '.join(rng.sample(words, 3))} {_word(rng)}"
        return Todo(id="t", title=title), rng.random() < chance


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("bcdfghklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 4)))
