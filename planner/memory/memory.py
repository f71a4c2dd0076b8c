"""Memory as the engine asks it: every answer comes of records of the past and of the time alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from planner.memory.advice import RoutingAdvice
from planner.memory.rates import SuccessRate, success_rates
from planner.memory.repairs import PastRepairs
from planner.memory.routing import choose, reason, refusal
from planner.memory.texts import compared, text_of
from planner.memory.todos import PastTodos
from planner.rules.task_kinds import task_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.memory.advice import Advice
    from planner.model.outcome import Failure
    from planner.model.past import Correction, PastRecords
    from planner.model.plan import Todo
    from planner.model.taxonomy import Role


@dataclass(frozen=True)
class Memory:
    """What the records say. Times are epoch seconds; records of later than ``now`` count as of ``now``."""

    records: PastRecords

    @classmethod
    def of(cls, records: PastRecords) -> Memory:
        """The memory of these records; their order means nothing. Each index is built once, when needed."""
        return cls(records)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is remembered: all answers are those of the static tables."""
        return not (self.records.repairs or self.records.todos or self.records.corrections)

    def order_bias(self, todo: Todo, now: float) -> float:
        """The chance that a todo is done at the first attempt, 0 to 1; 0.5 while nothing is known.

        Of todos with the same priority, the higher goes first.
        """
        return self._todos.order_bias(todo, now) if self.records.todos else 0.5

    def recipe(self, todo: Todo, now: float) -> Advice | None:
        """A recipe of the catalog that is likely to show a failure of the todo before its criteria do."""
        return self._todos.recipe(todo, now) if self.records.todos else None

    def route(self, failure: Failure, todo: Todo, default: Role, now: float) -> RoutingAdvice:
        """Who should repair a failure of a todo, where the static table says ``default``.

        It stays with the default unless a person corrected this very failure or the numbers are clear; and
        always for failures of security, budget or environment, and where ``failure_routing`` of the todo
        names the category or its key.
        """
        category, signature = failure.category, failure.signature
        text = compared(task_kind(todo), text_of(todo, failure))
        standings = self._repairs.standings(category, signature, text, now)
        refused = refusal(failure, todo, default)
        if refused is None:
            return choose(category, default, standings, self._words.get(signature) if signature else None)
        told = reason(category, standings)
        return RoutingAdvice(
            role=default,
            confidence=round(standings[default].belief.rate, 4),
            because=f"{refused}; {told}" if told else refused,
            changed=False,
        )

    def rates(self, now: float) -> tuple[SuccessRate, ...]:
        """How often repairs went well, by role, by category and by strategy."""
        return success_rates(self.records, now)

    @cached_property
    def _todos(self) -> PastTodos:
        return PastTodos.of(self.records)

    @cached_property
    def _repairs(self) -> PastRepairs:
        return PastRepairs.of(self.records)

    @cached_property
    def _words(self) -> Mapping[str, Correction]:
        """By signature, the latest that a person said about the repository that is worked on."""
        own = [word for word in self.records.corrections if word.fingerprint == self.records.fingerprint]
        return {word.signature: word for word in sorted(own, key=_latest_last) if word.signature}


def _latest_last(word: Correction) -> tuple[float, str]:
    """Of two words of the same moment the same one counts, whichever comes first."""
    return word.at.timestamp(), word.model_dump_json()
