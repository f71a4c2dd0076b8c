"""Other ways to classify failures, each as good as we could make it, compared on the same cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_planverify.corpus.rivals import allure, plain_rules, pytest_triage, regex_ladder
from pytest_planverify.corpus.rivals.mapping import kindly_mapped, rated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_planverify.corpus.guessing import Classifier
    from pytest_planverify.corpus.scoring import Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """One of them, under the name that the tables use."""

    name: str
    title: str
    """One line that says what it is."""
    guess: Classifier


LADDER = "ladder"
"""The name of the rival that counts."""


def rivals(develop: Sequence[Failed]) -> tuple[Rival, ...]:
    """All of them. Classes without a counterpart here are mapped as kindly as the develop part allows."""
    return (
        Rival(
            name=LADDER,
            title="a ladder of regular expressions over the text and the exit status",
            guess=rated(regex_ladder.guess, develop),
        ),
        Rival(
            name="+reruns",
            title="the same ladder; what passes when it is run again is called flaky",
            guess=rated(regex_ladder.guess_with_reruns, develop),
        ),
        Rival(
            name="plain",
            title="the plain rules: four keywords in the error message, and the time limit",
            guess=rated(plain_rules.guess, develop),
        ),
        Rival(
            name="triage",
            title="pytest-triage by the type of the exception, mapped as kindly as possible",
            guess=kindly_mapped(pytest_triage.classify, develop),
        ),
        Rival(
            name="allure",
            title="Allure's product defects and test defects, mapped as kindly as possible",
            guess=kindly_mapped(allure.classify, develop),
        ),
    )
