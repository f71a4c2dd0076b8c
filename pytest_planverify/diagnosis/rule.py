"""Rule: id, reason, a reader of cases, and the resulting diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_planverify.diagnosis.case import Case

if TYPE_CHECKING:
    from planner.model.evidence import Frame
    from planner.model.outcome import Location
    from planner.model.taxonomy import Category, Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Result of a rule that applies to a case."""

    suggestion: str
    """Suggestion in one or two sentences that name the subject."""
    owner: Owner | None = None
    """Owner, if it differs from the rule's."""
    frame: Frame | None = None
    """Frame of the fault, if it is not the raising one."""
    location: Location | None = None
    """Location, if there is no frame."""
    holder: str | None = None
    """File that lacks a requested name; used as location unless a change is known to have removed it."""
    weight: float = 1.0
    """Factor on the rule's confidence, below 1 for a less clear case."""


Reader = Callable[[Case], Hit | str | None]
"""Returns ``None`` if the rule does not apply, a text for a suggestion alone, or a :class:`Hit`."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One row of the rule table."""

    id: str
    category: Category
    confidence: float
    """Expected hit rate."""
    read: Reader
    because: str
    """Reason in one sentence."""
    about: tuple[str, ...] = ()
    """Qualified exception types (or bases) that the rule is limited to; empty for no limit."""
    owner: Owner | None = None
    """Owner; ``None`` for the category's default."""
    second: tuple[Category, float] | None = None
    """Second most likely category with its weight."""

    def concerns(self, classes: frozenset[str]) -> bool:
        """Return whether the rule may apply to an exception of these classes."""
        return not self.about or not classes.isdisjoint(self.about)


class Rules(list[Rule]):
    """An ordered list of rules."""

    def add(
        self,
        name: str,
        read: Reader,
        category: Category,
        confidence: float,
        because: str,
        owner: Owner | None = None,
        second: tuple[Category, float] | None = None,
    ) -> None:
        """Append a rule with an existing reader."""
        self.append(Rule(name, category, confidence, read, because, (), owner, second))

    def rule(
        self,
        category: Category,
        confidence: float,
        *,
        about: tuple[str, ...] = (),
        owner: Owner | None = None,
        second: tuple[Category, float] | None = None,
    ) -> Callable[[Reader], Reader]:
        """Decorator: append the reader as a rule, with its name as id and its docstring as reason."""

        def decorate(read: Reader) -> Reader:
            name = getattr(read, "__name__", "").replace("_", "-")
            because = read.__doc__ or name
            self.append(Rule(name, category, confidence, read, because, about, owner, second))
            return read

        return decorate
