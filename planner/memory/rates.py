"""Success rates of past repairs by role, by category and by strategy, for people to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from planner.memory.repairs import ELSEWHERE, experience
from planner.memory.tallies import Tally, believe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.model.past import PastRecords, PastRepair

Aspect: TypeAlias = Literal["role", "category", "strategy"]


class SuccessRate(NamedTuple):
    """How often repairs of one sort went well."""

    by: Aspect
    name: str
    """Of the role, category or strategy."""
    rate: float
    """Presumed as 0.5 before anything is known, and corrected by every repair: 0 to 1."""
    weight: float
    """So many repairs it is founded on, faded as they are."""
    repairs: int
    fixed: int


ASPECTS: Mapping[Aspect, Callable[[PastRepair], str]] = {
    "role": lambda repair: repair.role.value,
    "category": lambda repair: repair.category.value,
    "strategy": lambda repair: repair.strategy,
}


def success_rates(records: PastRecords, now: float) -> tuple[SuccessRate, ...]:
    """The rates by each aspect, by name. Repairs without a strategy have no rate of it."""
    found: list[SuccessRate] = []
    for by, name_of in ASPECTS.items():
        groups: dict[str, list[PastRepair]] = {}
        for repair in records.repairs:
            groups.setdefault(name_of(repair), []).append(repair)
        found += [
            _rate(by, name, groups[name], records.fingerprint, now) for name in sorted(groups) if name
        ]
    return tuple(found)


def _rate(by: Aspect, name: str, repairs: list[PastRepair], here: str, now: float) -> SuccessRate:
    own = Tally.of(experience(repair) for repair in repairs if repair.fingerprint == here)
    other = Tally.of(experience(repair) for repair in repairs if repair.fingerprint != here)
    levels = [other.at(now).scaled(ELSEWHERE), own.at(now)]
    return SuccessRate(
        by=by,
        name=name,
        rate=round(believe(levels).rate, 4),
        weight=round(sum(level.all for level in levels), 4),
        repairs=own.number + other.number,
        fixed=own.number_well + other.number_well,
    )
