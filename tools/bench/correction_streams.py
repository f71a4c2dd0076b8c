"""Failures that come back day after day, and people who correct them: rightly, by mistake, in malice."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from planner.model.evidence import Evidence, Frame
from planner.model.outcome import Diagnosis
from planner.model.past import Correction
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import Side
from pytest_planverify.diagnosis import RULES, diagnose
from pytest_planverify.diagnosis.corrections import HARD, features, learned
from pytest_planverify.diagnosis.decision import diagnose_by
from tools.corpus.case import Case, Label

BEGIN = datetime(2026, 10, 1, 9, tzinfo=UTC)
DAYS = 40
A_DAY = 6
"""So many failures are seen a day."""

VARIANTS = 4
"""A failure comes back in so many tests."""

PEOPLE = ("ann", "bob", "cy", "dan")
SPEAKS = 0.4
"""How often somebody says something of a failure."""

UNSURE = 0.6

Reading = tuple[Category, Owner]
Person = Callable[[random.Random, str, Label, Diagnosis], Reading | None]
"""What somebody of that name says of a failure that was shown with that diagnosis, if anything."""


def silent(chance: random.Random, name: str, label: Label, shown: Diagnosis) -> Reading | None:
    """Nobody says anything."""
    return None


def honest(chance: random.Random, name: str, label: Label, shown: Diagnosis) -> Reading | None:
    """What is wrong is put right; now and then what is right is confirmed."""
    if label.accepts(shown.category, shown.owner) and chance.random() > 0.2:
        return None
    return label.category, label.owner


def noisy(chance: random.Random, name: str, label: Label, shown: Diagnosis) -> Reading | None:
    """The same, but one word in five is wrong."""
    return _wrong(chance, label) if chance.random() < 0.2 else honest(chance, name, label, shown)


def with_saboteur(chance: random.Random, name: str, label: Label, shown: Diagnosis) -> Reading | None:
    """One of four people says nothing but what is wrong."""
    return _wrong(chance, label) if name == PEOPLE[0] else honest(chance, name, label, shown)


def hostile(chance: random.Random, name: str, label: Label, shown: Diagnosis) -> Reading | None:
    """Everybody says nothing but what is wrong, each as it comes."""
    return _wrong(chance, label)


def conspiring(chance: random.Random, name: str, label: Label, shown: Diagnosis) -> Reading | None:
    """Everybody says the same wrong thing of the same failure, always."""
    return _wrong(random.Random(f"{label.category} {label.owner}"), label)


STREAMS: Mapping[str, Person] = {
    "no corrections": silent,
    "clean": honest,
    "20 % noise": noisy,
    "one of four hostile": with_saboteur,
    "all hostile": hostile,
    "all conspiring": conspiring,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One failure of a stream, as it was diagnosed without and with what had been learned by then."""

    label: Label
    built_in: Diagnosis
    shown: Diagnosis

    @property
    def was_right(self) -> bool:
        return self.label.accepts(self.built_in.category, self.built_in.owner)

    @property
    def is_changed(self) -> bool:
        return self.shown is not self.built_in

    @property
    def is_right(self) -> bool:
        return self.label.accepts(self.shown.category, self.shown.owner)


def rules_as_they_are(evidence: Evidence) -> Diagnosis:
    """The diagnosis with the confidence that it has."""
    return diagnose(evidence)


def rules_that_doubt(evidence: Evidence) -> Diagnosis:
    """The diagnosis as if no rule without hard evidence were sure: corrections have a say in all those."""
    found = diagnose(evidence)
    if found.rule in HARD or found.confidence <= UNSURE:
        return found
    return found.model_copy(update={"confidence": UNSURE})


def rules_with_gaps(evidence: Evidence) -> Diagnosis:
    """The diagnosis where every third rule without hard evidence has not been written yet."""
    return diagnose_by(_KNOWN, evidence)


_KNOWN = [rule for rule in RULES if rule.id in HARD or zlib.crc32(rule.id.encode()) % 3]


def play(
    cases: Sequence[Case], person: Person, seed: int, rules: Callable[[Evidence], Diagnosis]
) -> Iterator[Seen]:
    """The failures of a stream in order; each is diagnosed before anybody has said a word of it."""
    chance = random.Random(seed)
    mine = [cases[number] for number in sorted(chance.sample(range(len(cases)), min(len(cases), 40)))]
    corrections: list[Correction] = []
    for number in range(DAYS * A_DAY):
        now = BEGIN + timedelta(hours=24 * number / A_DAY)
        case = chance.choice(mine)
        assert case.evidence is not None
        assert case.label is not None
        evidence = _variant(case.evidence, chance.randrange(VARIANTS))
        built_in = rules(evidence)
        shown = learned(built_in, evidence, corrections, now)
        yield Seen(label=case.label, built_in=built_in, shown=shown)
        name = chance.choice(PEOPLE)
        said = person(chance, name, case.label, shown) if chance.random() < SPEAKS else None
        if said is not None:
            corrections.append(_correction(evidence, shown, said, name, now))


def _wrong(chance: random.Random, label: Label) -> Reading:
    readings = [
        (category, owner)
        for category in Category
        for owner in (Owner.PRODUCT, Owner.TEST, Owner.ENVIRONMENT)
        if not label.accepts(category, owner) and category is not label.category
    ]
    return chance.choice(readings)


def _correction(
    evidence: Evidence, shown: Diagnosis, said: Reading, name: str, now: datetime
) -> Correction:
    category, owner = said
    return Correction(
        at=now,
        fingerprint="here",
        signature=shown.signature,
        category=shown.category,
        role=category.facts.default_role,
        right_category=category,
        right_owner=owner,
        features=features(evidence),
        by=name,
    )


def _variant(evidence: Evidence, number: int) -> Evidence:
    """The failure as it is seen in another test."""
    if not number:
        return evidence
    errors = tuple(
        error.model_copy(update={"frames": tuple(_renamed(frame, number) for frame in error.frames)})
        for error in evidence.exceptions
    )
    nodeid = None if evidence.nodeid is None else f"{evidence.nodeid}_{number}"
    return evidence.model_copy(update={"exceptions": errors, "nodeid": nodeid})


def _renamed(frame: Frame, number: int) -> Frame:
    if frame.side is not Side.TEST:
        return frame
    return frame.model_copy(update={"function": f"{frame.function}_{number}", "line": frame.line + number})
