"""The figures of one classifier on a set of judged cases."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category
from pytest_planverify.corpus.calibration import (
    CURVE,
    Bin,
    Covered,
    adaptive,
    by_coverage,
    calibration_error,
    reliability,
)
from pytest_planverify.corpus.scoring import (
    NOT_THE_PRODUCTS,
    points_at_file,
    points_at_function,
    points_at_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_planverify.corpus.scoring import Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """So many of so many."""

    count: int
    of: int
    value: float | None = field(init=False)
    """``None`` of none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", self.count / self.of if self.of else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCategory:
    """How well one category is told from the others."""

    cases: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All that is told of one classifier on one set of cases."""

    cases: int
    packages: int
    macro_f1: float
    """The mean F1 of the categories that truly occur."""
    category: Share
    whole: Share
    """Category and owner are right together."""
    routing: Share
    owner: Share
    false_blame: Share
    """Of the failures that nothing accepted lays on the product: those that were laid on it."""
    false_blame_by: dict[str, Share]
    """The same by what the failure truly is."""
    dismissed: Share
    """Of the product's own failures that are not flaky: those that were waved off as flaky."""
    repeatability: Share
    """Of the failures that were run again."""
    pointers: dict[str, Share]
    calibration_error: float
    calibration_error_adaptive: float
    reliability: tuple[Bin, ...]
    reliability_adaptive: tuple[Bin, ...]
    coverage: tuple[Covered, ...]
    curve: tuple[Covered, ...]
    """The same in more steps, for a picture."""
    by_category: dict[Category, ByCategory]
    confusion: dict[Category, dict[Category, int]]
    """By the true category: how often which was said; an accepted other reading counts as the true one."""


def figures(judged: Sequence[Judged]) -> Figures:
    """The figures of a set of judged cases."""
    sure = [(each.guess.confidence, each.right) for each in judged]
    bins, even = reliability(sure), adaptive(sure)
    table = confusion(judged)
    categories = by_category(table)
    return Figures(
        cases=len(judged),
        packages=len({each.package for each in judged}),
        macro_f1=macro_f1(categories),
        category=share(each.counted is each.truth for each in judged),
        whole=share(each.right for each in judged),
        routing=share(each.routed_right for each in judged),
        owner=share(each.owner_right for each in judged),
        false_blame=share(each.blames_the_product for each in judged if not each.could_be_the_products),
        false_blame_by=_false_blame_by(judged),
        dismissed=share(each.dismissed for each in judged if each.is_regression),
        repeatability=share(
            each.guess.repeatability is each.label.repeatability
            for each in judged
            if each.label.repeatability is not None
            and each.guess.repeatability is not None
            and each.failed.evidence.confirmations
        ),
        pointers=_pointers(judged),
        calibration_error=calibration_error(bins),
        calibration_error_adaptive=calibration_error(even),
        reliability=bins,
        reliability_adaptive=even,
        coverage=by_coverage(sure),
        curve=by_coverage(sure, CURVE),
        by_category=categories,
        confusion=table,
    )


def share(flags: Iterable[bool]) -> Share:
    """How many of them are true."""
    given = list(flags)
    return Share(count=sum(given), of=len(given))


def confusion(judged: Iterable[Judged]) -> dict[Category, dict[Category, int]]:
    """How often each category was said of each true one, both in the order of the taxonomy."""
    counted = Counter((each.truth, each.counted) for each in judged)
    true = {truth for truth, _ in counted}
    return {
        truth: {said: counted[truth, said] for said in Category if counted[truth, said]}
        for truth in Category
        if truth in true
    }


def by_category(table: dict[Category, dict[Category, int]]) -> dict[Category, ByCategory]:
    """Precision, recall and F1 of each category that truly occurs."""
    said = Counter[Category]()
    for row in table.values():
        said.update(row)
    return {truth: _told(row.get(truth, 0), said[truth], sum(row.values())) for truth, row in table.items()}


def macro_f1(categories: dict[Category, ByCategory]) -> float:
    """The mean F1, each category counting alike."""
    return sum(each.f1 for each in categories.values()) / len(categories) if categories else 0.0


def _told(hits: int, said: int, cases: int) -> ByCategory:
    return ByCategory(
        cases=cases,
        precision=hits / said if said else 0.0,
        recall=hits / cases,
        f1=2 * hits / (said + cases),
    )


def _false_blame_by(judged: Sequence[Judged]) -> dict[str, Share]:
    """Flaky failures first, whoever owns them; the others by their owner."""
    others = [each for each in judged if not each.could_be_the_products]
    flaky = [each for each in others if each.truth is Category.FLAKY_TEST]
    steady = [each for each in others if each.truth is not Category.FLAKY_TEST]
    shares = {"flaky": share(each.blames_the_product for each in flaky)}
    for owner in NOT_THE_PRODUCTS:
        shares[owner.value] = share(each.blames_the_product for each in steady if each.label.owner is owner)
    shares["nothing changed"] = share(each.blames_the_product for each in others if _is_old(each))
    return {name: found for name, found in shares.items() if found.of}


def _is_old(each: Judged) -> bool:
    """Whether nothing was changed since the last commit: the failure was there before the work."""
    return each.failed.evidence.changed == ()


def _pointers(judged: Sequence[Judged]) -> dict[str, Share]:
    """How often the place that is named is that of the fault, where the fault is known to have one.

    Of a classifier that never names a place there is nothing to tell.
    """
    names_places = any(each.guess.location is not None for each in judged)
    placed = [
        (each.label.place, each.guess) for each in judged if each.label.place is not None and names_places
    ]
    return {
        "line": share(points_at_line(place, guess) for place, guess in placed if place.exact),
        "file": share(points_at_file(place, guess) for place, guess in placed),
        "function": share(
            points_at_function(place, guess) for place, guess in placed if place.function is not None
        ),
    }
