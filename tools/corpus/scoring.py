"""Compare readings of failures with their labels, and compute the figures of many readings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from planner.model.evidence import Evidence
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner, Repeatability, Role
from planner.policy.branches import agent_at, route
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.diagnosis.causes import SeenFailure, TodoKey, grouping
from tools.corpus.case import Case, CorpusError, Label, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tools.corpus.case import FaultyRun


BINS = 10
COVERAGES = (0.5, 0.8)
"""Shares of the cases, in descending order of confidence, for which accuracy is reported."""

NOT_THE_PRODUCTS = (Owner.ENVIRONMENT, Owner.TEST, Owner.PLAN, Owner.HARNESS)
"""Owners whose failures must not be blamed on the product."""


class Guess(NamedTuple):
    """A reading of a failure, with its confidence."""

    category: Category
    owner: Owner
    confidence: float
    repeatability: Repeatability | None = None
    """``None`` if the classifier does not tell; the same for the place."""
    location: Location | None = None
    rule: str = ""
    role: Role | None = None
    """The role that should act, if it is not the default of the category."""


Classifier = Callable[[Evidence], Guess]


def ours(evidence: Evidence) -> Guess:
    """Return the diagnosis of this project."""
    said = diagnose(evidence)
    return Guess(
        said.category,
        said.owner,
        said.confidence,
        said.repeatability,
        said.location,
        said.rule,
        said.target_agent,
    )


class Failed(NamedTuple):
    """A case that is a failure, with its label and its evidence."""

    case: Case
    label: Label
    evidence: Evidence


def labelled(cases: Iterable[Case]) -> tuple[Failed, ...]:
    """Return the cases that are failures. Raises :class:`CorpusError` for one without evidence."""
    found: list[Failed] = []
    for case in cases:
        if case.label is not None and case.evidence is None:
            raise CorpusError(f"{case.id}: it has a label but no evidence to diagnose; build it again")
        if case.label is not None and case.evidence is not None:
            found.append(Failed(case, case.label, case.evidence))
    return tuple(found)


class Judged(NamedTuple):
    """A failure with its reading, and whether the reading is right."""

    failed: Failed
    guess: Guess
    counted: Category
    """The category as which the reading counts: the true one if the reading is accepted."""
    right: bool
    """Whether category and owner are those of one accepted reading."""
    owner_right: bool
    routed_right: bool
    """Whether the role is that of an accepted reading."""

    @property
    def could_be_the_products(self) -> bool:
        """Return whether an accepted reading blames the product."""
        return any(owner is Owner.PRODUCT for _, owner in self.failed.label.readings)

    @property
    def is_regression(self) -> bool:
        """Return whether it is a fault of the product that fails each time, and thus not flaky."""
        label = self.failed.label
        return label.owner is Owner.PRODUCT and Category.FLAKY_TEST not in dict(label.readings)


def judge(failed: Failed, guess: Guess) -> Judged:
    """Compare a reading with the label."""
    label = failed.label
    accepted = any(category is guess.category for category, _ in label.readings)
    return Judged(
        failed=failed,
        guess=guess,
        counted=label.category if accepted else guess.category,
        right=label.accepts(guess.category, guess.owner),
        owner_right=any(owner is guess.owner for _, owner in label.readings),
        routed_right=route(guess.category, {}, guess.role) in _roles_of(label),
    )


def _roles_of(label: Label) -> set[Role]:
    """Return the accepted roles; a loop in the product goes to a role that may change the product."""
    loops = (Category.TEST_TIMEOUT, Owner.PRODUCT) in label.readings
    roles = {route(category, {}, agent_at(category, owner, None)) for category, owner in label.readings}
    return roles | ({Role.CODER} if loops else set())


def judged_by(classifier: Classifier, failures: Iterable[Failed]) -> tuple[Judged, ...]:
    """Compare the readings of a classifier with the labels."""
    return tuple(judge(failed, classifier(failed.evidence)) for failed in failures)


def points_at(place: Place, guess: Guess, what: str) -> bool:
    """Return whether the named place is the ``line``, ``file`` or ``function`` of the fault.

    The stack of a process that died has only bare names: ``get`` for ``Queue.get``.
    """
    said = guess.location
    if said is None or said.path != place.path:
        return False
    if what == "file":
        return True
    if what == "line":
        first = place.first_line
        return (
            said.line is not None and first is not None and first <= said.line <= (place.last_line or first)
        )
    if said.function is None or place.function is None:
        return False
    return said.function.partition(".<locals>.")[0] in (place.function, place.function.rpartition(".")[2])


class Share(NamedTuple):
    """A count out of a total."""

    count: int
    of: int

    @property
    def value(self) -> float:
        """Return the quotient; 0 if the total is 0."""
        return self.count / self.of if self.of else 0.0


def share(flags: Iterable[bool]) -> Share:
    """Count the true flags."""
    given = list(flags)
    return Share(sum(given), len(given))


class Bin(NamedTuple):
    """The cases in one interval of confidence."""

    low: float
    cases: int
    confidence: float
    accuracy: float


class Figures(NamedTuple):
    """All figures of one classifier on one set of cases."""

    cases: int
    macro_f1: float
    """Mean F1 of the categories that occur in the labels."""
    shares: dict[str, Share]
    """Shares by criterion."""
    calibration_error: float
    reliability: list[Bin]
    surest: dict[float, float]
    """Accuracy of the share of the cases with the highest confidence."""
    by_category: dict[Category, tuple[int, float, float, float]]
    """Cases, precision, recall and F1 of each category."""


def figures(judged: Sequence[Judged]) -> Figures:
    """Return the figures of a set of judged cases."""
    bins = reliability([(each.guess.confidence, each.right) for each in judged])
    error = sum(each.cases * abs(each.confidence - each.accuracy) for each in bins)
    table = by_category(judged)
    return Figures(
        cases=len(judged),
        macro_f1=sum(row[3] for row in table.values()) / len(table) if table else 0.0,
        shares=_shares(judged),
        calibration_error=error / len(judged) if judged else 0.0,
        reliability=bins,
        surest=_surest(judged),
        by_category=table,
    )


def reliability(sure: Iterable[tuple[float, bool]]) -> list[Bin]:
    """Return the intervals of equal width that are not empty; an edge belongs to the interval above."""
    members: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, right in sure:
        members[min(int(confidence * BINS + 1e-9), BINS - 1)].append((confidence, right))
    return [
        Bin(
            number / BINS,
            len(members[number]),
            sum(confidence for confidence, _ in members[number]) / len(members[number]),
            sum(right for _, right in members[number]) / len(members[number]),
        )
        for number in sorted(members)
    ]


def by_category(judged: Iterable[Judged]) -> dict[Category, tuple[int, float, float, float]]:
    """Return cases, precision, recall and F1 of each category that occurs in the labels."""
    true, said, right = Counter[Category](), Counter[Category](), Counter[Category]()
    for each in judged:
        truth = each.failed.label.category
        true[truth] += 1
        said[each.counted] += 1
        right[truth] += each.counted is truth
    return {
        each: (
            true[each],
            right[each] / said[each] if said[each] else 0.0,
            right[each] / true[each],
            2 * right[each] / (said[each] + true[each]),
        )
        for each in Category
        if true[each]
    }


def _surest(judged: Sequence[Judged]) -> dict[float, float]:
    ordered = sorted(judged, key=lambda each: -each.guess.confidence)
    return {
        part: share(each.right for each in ordered[: round(part * len(ordered))]).value
        for part in COVERAGES
    }


def _shares(judged: Sequence[Judged]) -> dict[str, Share]:
    others = [each for each in judged if not each.could_be_the_products]

    def blamed(members: Iterable[Judged]) -> Share:
        return share(each.guess.owner is Owner.PRODUCT for each in members)

    found = {
        "category right": share(each.counted is each.failed.label.category for each in judged),
        "category and owner right": share(each.right for each in judged),
        "routed to the right role": share(each.routed_right for each in judged),
        "owner right": share(each.owner_right for each in judged),
        "false blame": blamed(others),
    }
    for owner in NOT_THE_PRODUCTS:
        found[f"false blame: {owner.value}"] = blamed(
            each for each in others if each.failed.label.owner is owner
        )
    found["false blame: nothing changed"] = blamed(
        each for each in others if each.failed.evidence.changed == ()
    )
    found["regressions called flaky"] = share(
        each.guess.category is Category.FLAKY_TEST for each in judged if each.is_regression
    )
    placed = [(each.failed.label.place, each.guess) for each in judged if each.failed.label.place]
    for what in ("line", "file", "function"):
        found[f"place: {what} right"] = share(
            points_at(place, guess, what)
            for place, guess in placed
            if place and (place.exact if what == "line" else what == "file" or place.function)
        )
    return {name: each for name, each in found.items() if each.of}


def cause_figures(
    runs: Sequence[FaultyRun], group: Callable[[FaultyRun], list[list[int]]] | None = None
) -> Mapping[str, float]:
    """Return precision and recall of pairs of failures with one cause, and the share of right first causes.

    ``causes_a_fault`` is the mean number of reported causes of a fault with failures; 1 is best. ``group``
    is the way in which failures are grouped.
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
    """Return the failures of a run, as indexes, grouped by cause; the cause to repair first comes first."""
    depends: dict[TodoKey, list[TodoKey]] = {
        (None, todo): [(None, each) for each in run.depends.get(todo, ())] for todo in run.todos
    }
    seen = [
        SeenFailure((None, failure.todo), failure.evidence, diagnose(failure.evidence))
        for failure in run.failures
    ]
    return grouping(seen, depends)


def by_signature(run: FaultyRun) -> list[list[int]]:
    """Group the failures of a run by equal signatures only, in the order of the run, as a baseline."""
    groups: dict[str, list[int]] = {}
    for place, failure in enumerate(run.failures):
        groups.setdefault(diagnose(failure.evidence).signature, []).append(place)
    return list(groups.values())


def first_is_right(run: FaultyRun, groups: Sequence[Sequence[int]]) -> bool:
    """Return whether at least half of the failures of the first cause are of a fault to repair first."""
    faults = [run.failures[place].fault for place in groups[0]] if groups else []
    return 2 * sum(fault in run.first for fault in faults) >= len(faults)


def _share(count: int, of: int) -> float:
    return count / of if of else 1.0
