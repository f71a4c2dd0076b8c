"""A rule: an id, a reason, a reader of the case, and what it concludes."""

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
    """A rule applies, and what it has to say about this case."""

    suggestion: str
    """One or two sentences that name the thing."""
    owner: Owner | None = None
    """Where it differs from the rule's."""
    frame: Frame | None = None
    """Where it happened, when it is not the frame that raised."""
    location: Location | None = None
    """The same, when no frame tells it."""
    holder: str | None = None
    """The file that lacks what was asked for: the place, unless a change is known that took it away."""
    weight: float = 1.0
    """Less than one where this case is less clear than the rule's others."""


Reader = Callable[[Case], Hit | str | None]
"""``None`` where the rule does not apply; a text alone is the suggestion."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One row of the table."""

    id: str
    category: Category
    confidence: float
    """How often it is right when it speaks."""
    read: Reader
    because: str
    """The reason in one sentence."""
    about: tuple[str, ...] = ()
    """Qualified names of the exceptions it speaks of, where it speaks of no other; base classes count."""
    owner: Owner | None = None
    """Whose fault it is; the category's usual owner when absent."""
    second: tuple[Category, float] | None = None
    """The second most likely reading, and its weight."""

    def concerns(self, classes: frozenset[str]) -> bool:
        """Return whether it speaks of an exception of these classes."""
        return not self.about or not classes.isdisjoint(self.about)


class Rules(list[Rule]):
    """Rules that stand together, in the order in which they are asked."""

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
        """Add a row whose reader is made for it."""
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
        """Add the decorated reader as a row: its name is the id, and its docstring the reason."""

        def decorate(read: Reader) -> Reader:
            name = getattr(read, "__name__", "").replace("_", "-")
            because = read.__doc__ or name
            self.append(Rule(name, category, confidence, read, because, about, owner, second))
            return read

        return decorate
