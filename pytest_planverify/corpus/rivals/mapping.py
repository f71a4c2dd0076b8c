"""Maps a tool's own classes to our taxonomy as kindly as possible."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category, Owner
from pytest_planverify.corpus.guessing import Classifier, Guess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.model.evidence import Evidence
    from pytest_planverify.corpus.scoring import Failed

Reading = tuple[Category, Owner]
_UNSEEN = Guess(Category.UNKNOWN, Owner.UNKNOWN, 0.0)


def kindly_mapped(classify: Callable[[Evidence], str], develop: Sequence[Failed]) -> Classifier:
    """The tool as a classifier: each of its classes stands for what it most often is on the develop part.

    Its confidence is how often that is so, so it is as well calibrated as its classes allow.
    """
    guesses = {name: _best(readings) for name, readings in _readings(classify, develop).items()}

    def guess(evidence: Evidence) -> Guess:
        return guesses.get(classify(evidence), _UNSEEN)

    return guess


def rated(classifier: Classifier, develop: Sequence[Failed]) -> Classifier:
    """The classifier with the confidence that each of its rules earns on the develop part.

    A rule that never speaks there keeps its own; one that speaks seldom is drawn towards the middle.
    """
    said: dict[str, list[bool]] = {}
    for failed in develop:
        guess = classifier(failed.evidence)
        said.setdefault(guess.rule, []).append(failed.label.accepts(guess.category, guess.owner))
    earned = {rule: (sum(right) + 1) / (len(right) + 2) for rule, right in said.items()}

    def guess_as_rated(evidence: Evidence) -> Guess:
        guess = classifier(evidence)
        return guess._replace(confidence=earned.get(guess.rule, guess.confidence))

    return guess_as_rated


def _readings(
    classify: Callable[[Evidence], str], develop: Sequence[Failed]
) -> dict[str, list[tuple[Reading, ...]]]:
    found: dict[str, list[tuple[Reading, ...]]] = {}
    for failed in develop:
        found.setdefault(classify(failed.evidence), []).append(failed.label.readings)
    return found


def _best(cases: list[tuple[Reading, ...]]) -> Guess:
    """What is accepted for most of the cases of a class; of equals, what comes first in the alphabet."""
    counts = Counter(reading for readings in cases for reading in readings)
    (category, owner), many = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return Guess(category, owner, many / len(cases))
