"""How well the failures of runs with several faults are put together, and whether the order begins well."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from pytest_planverify.diagnosis import diagnose
from pytest_planverify.diagnosis.causes import SeenFailure, TodoKey, grouping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tools.corpus.case import FaultyRun


def cause_figures(
    runs: Sequence[FaultyRun], group: Callable[[FaultyRun], list[list[int]]] | None = None
) -> Mapping[str, float]:
    """Precision and recall of pairs of failures in one cause, and the share of runs whose first is right.

    ``causes_a_fault`` is how many causes a fault with failures is told as, on average: 1 at best.
    ``group`` is another way to put them together.
    """
    right = together = same = first = causes = faults = 0
    for run in runs:
        groups = (group or causes_of)(run)
        cause_of = {place: number for number, group in enumerate(groups) for place in group}
        for one, other in combinations(range(len(run.failures)), 2):
            is_same = run.failures[one].fault == run.failures[other].fault
            is_together = cause_of[one] == cause_of[other]
            same += is_same
            together += is_together
            right += is_same and is_together
        first += first_is_right(run, groups)
        causes += len(groups)
        faults += len({failure.fault for failure in run.failures})
    return {
        "runs": len(runs),
        "failures": sum(len(run.failures) for run in runs),
        "precision": _share(right, together),
        "recall": _share(right, same),
        "first": _share(first, len(runs)),
        "causes_a_fault": _share(causes, faults),
    }


def causes_of(run: FaultyRun) -> list[list[int]]:
    """The failures of a run by their places in it: one list a cause, the first to mend first."""
    depends: dict[TodoKey, list[TodoKey]] = {
        (None, todo): [(None, each) for each in run.depends.get(todo, ())] for todo in run.todos
    }
    seen = [
        SeenFailure((None, failure.todo), failure.evidence, diagnose(failure.evidence))
        for failure in run.failures
    ]
    return grouping(seen, depends)


def by_signature(run: FaultyRun) -> list[list[int]]:
    """The same by equal signatures alone, in the order of the run: what there is to be better than."""
    groups: dict[str, list[int]] = {}
    for place, failure in enumerate(run.failures):
        groups.setdefault(diagnose(failure.evidence).signature, []).append(place)
    return list(groups.values())


def first_is_right(run: FaultyRun, groups: Sequence[Sequence[int]]) -> bool:
    """Whether at least half of the first cause's failures are of a fault to repair first."""
    faults = [run.failures[place].fault for place in groups[0]] if groups else []
    return 2 * sum(fault in run.first for fault in faults) >= len(faults)


def _share(count: int, of: int) -> float:
    return count / of if of else 1.0
