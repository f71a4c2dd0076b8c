"""Whether a reading of a failure is right: by category, by owner, by the role that is sent for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.model.taxonomy import Category, Owner
from planner.policy.branches import route
from pytest_planverify.corpus.files import CorpusError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.evidence import Evidence
    from pytest_planverify.corpus.case import Case, Label, Place
    from pytest_planverify.corpus.guessing import Classifier, Guess

NOT_THE_PRODUCTS = (Owner.ENVIRONMENT, Owner.TEST, Owner.PLAN, Owner.HARNESS)
"""Whose failures nobody may lay on the product."""


class Failed(NamedTuple):
    """A case that is a failure, with the two things that a control has not."""

    case: Case
    label: Label
    evidence: Evidence


class Judged(NamedTuple):
    """One failure, what was said of it, and whether that is right."""

    failed: Failed
    guess: Guess
    counted: Category
    """The category that the reading counts as: the true one where it is accepted."""
    right: bool
    """Category and owner are those of one accepted reading."""
    owner_right: bool
    routed_right: bool
    """Whoever is sent for is who would be sent for by an accepted reading."""

    @property
    def label(self) -> Label:
        """What is true."""
        return self.failed.label

    @property
    def truth(self) -> Category:
        """The true category."""
        return self.failed.label.category

    @property
    def package(self) -> str:
        """The package, or the small project, that the failure was made in."""
        return self.failed.case.origin.package

    @property
    def could_be_the_products(self) -> bool:
        """Whether an accepted reading lays the failure on the product."""
        return any(owner is Owner.PRODUCT for _, owner in self.label.readings)

    @property
    def blames_the_product(self) -> bool:
        """Whether what was said does."""
        return self.guess.owner is Owner.PRODUCT

    @property
    def is_regression(self) -> bool:
        """Whether it is the product's fault and fails each time: nobody may wave it off as flaky."""
        categories = {category for category, _ in self.label.readings}
        return self.label.owner is Owner.PRODUCT and Category.FLAKY_TEST not in categories

    @property
    def dismissed(self) -> bool:
        """Whether such a failure was waved off as flaky."""
        return self.is_regression and self.guess.category is Category.FLAKY_TEST


def labelled(cases: Iterable[Case]) -> tuple[Failed, ...]:
    """The cases that are failures. Raises :class:`CorpusError` for one of which nothing was recorded."""
    return tuple(_failed(case, case.label) for case in cases if case.label is not None)


def judge(failed: Failed, guess: Guess) -> Judged:
    """Hold a reading against what is true."""
    label = failed.label
    roles = {route(category, {}) for category, _ in label.readings}
    accepted = any(category is guess.category for category, _ in label.readings)
    return Judged(
        failed=failed,
        guess=guess,
        counted=label.category if accepted else guess.category,
        right=label.accepts(guess.category, guess.owner),
        owner_right=any(owner is guess.owner for _, owner in label.readings),
        routed_right=route(guess.category, {}, guess.role) in roles,
    )


def judged_by(classifier: Classifier, failures: Iterable[Failed]) -> tuple[Judged, ...]:
    """What a classifier says of each failure, held against what is true."""
    return tuple(judge(failed, classifier(failed.evidence)) for failed in failures)


def points_at_line(place: Place, guess: Guess) -> bool:
    """Whether the place named is the file and line of the fault."""
    found = guess.location
    if found is None or found.path != place.path or found.line is None or place.first_line is None:
        return False
    return place.first_line <= found.line <= (place.last_line or place.first_line)


def points_at_file(place: Place, guess: Guess) -> bool:
    """Whether the place named is in the file of the fault."""
    return guess.location is not None and guess.location.path == place.path


def points_at_function(place: Place, guess: Guess) -> bool:
    """Whether the place named is in the function of the fault, or in one that is defined within it.

    The stack of a process that died has bare names only: ``get`` for ``Queue.get``.
    """
    if guess.location is None or guess.location.function is None or place.function is None:
        return False
    said = guess.location.function.partition(".<locals>.")[0]
    return points_at_file(place, guess) and said in (place.function, place.function.rpartition(".")[2])


def _failed(case: Case, label: Label) -> Failed:
    if case.evidence is None:
        raise CorpusError(f"{case.id}: it has a label but no evidence to diagnose; build the corpus anew")
    return Failed(case, label, case.evidence)
