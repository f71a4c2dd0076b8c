"""Rules of the diagnosis: id, reason, reader of cases, and the category and owner they assign.

A rule's reader inspects a :class:`Case` and returns a :class:`Hit` if the rule applies. A rule also names
the exception types and the facts (:data:`FACTS`) that it requires, by which rules are looked up
without being called. Their table is ``data/rules.toml``, the readers are in ``diagnosis/rules``.
"""

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
    """What to do or inspect, in one or two sentences that name the file, function or value concerned."""
    owner: Owner | None = None
    """Owner, if it differs from the rule's."""
    frame: Frame | None = None
    """Frame of the fault, if it is not the raising one."""
    location: Location | None = None
    """Location of the fault, if no frame shows it; takes precedence over any frame."""
    holder: str | None = None
    """File that lacks a requested name or parameter. It is the location, or in it the frame of the fault,
    unless a change is known to have removed the name.
    """
    weight: float = 1.0
    """Factor on the rule's confidence, below 1 for a less clear case."""


Reader = Callable[[Case], Hit | str | None]
"""Function of a rule: returns ``None`` if the rule does not apply, else a :class:`Hit`, or a text as the
suggestion of a hit without further facts.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One row of the rule table."""

    id: str
    category: Category
    confidence: float
    """Expected hit rate from 0 to 1, before calibration."""
    read: Reader
    because: str
    """Reason in one sentence; shown to users."""
    types: frozenset[str] = frozenset()
    """Exception types (or bases) that the rule is limited to; empty for no limit. Builtin types have no
    module.
    """
    facts: int = 0
    """Bits of the facts that the rule requires, all of them."""
    owner: Owner | None = None
    """Owner; ``None`` for the category's default."""
    second: Category | None = None
    """Second most likely category."""

    def may_apply(self, facts: int, classes: frozenset[str]) -> bool:
        """Return whether the rule may apply to a case with these facts and exception classes."""
        return not self.facts & ~facts and (not self.types or not classes.isdisjoint(self.types))
