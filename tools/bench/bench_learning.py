"""What corrections do to diagnoses: streams of simulated ones over the part of the corpus to develop on.

In three worlds: failures as they come, of which few are unsure; those that are unsure where every third
rule is missing, again and again; and as if no rule without hard evidence were sure, so that corrections
have a say in almost everything. Each failure is judged before anybody has said a word of it. That people
who all say the same wrong thing are believed where nothing speaks against them cannot be helped; it is
shown without a target.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from correction_streams import STREAMS, Seen, play, rules_as_they_are, rules_that_doubt, rules_with_gaps
from table import Row

from planner.model.evidence import Evidence
from planner.model.outcome import Diagnosis
from pytest_planverify.diagnosis.corrections import may_learn
from tools.corpus.case import RECORDED, Case, Part, read_cases

CORPUS = RECORDED
SEEDS = range(10)
MOST_LOSS = 3.0
"""Points of all failures as they come, whatever people say."""

HARMLESS = ("clean", "20 % noise", "one of four hostile")
"""Streams that make diagnoses no worse, however few the rules are sure of."""

BELIEVED = "all conspiring"
"""The stream that cannot be told from the truth where nothing speaks against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What comes, and how it is diagnosed without corrections."""

    name: str
    cases: Sequence[Case]
    rules: Callable[[Evidence], Diagnosis]


def rows(folder: Path, rounds: int) -> list[Row]:
    """Accuracy of category and owner: what corrections add, in percentage points."""
    cases = [case for case in read_cases(CORPUS, Part.DEVELOP) if case.label and case.evidence]
    unsure = [case for case in cases if case.evidence and may_learn(rules_with_gaps(case.evidence))]
    worlds = (
        World(name="failures as they come", cases=cases, rules=rules_as_they_are),
        World(name="for want of rules", cases=unsure, rules=rules_with_gaps),
        World(name="if all rules doubted", cases=cases, rules=rules_that_doubt),
    )
    return [row for world in worlds if world.cases for row in _of_world(world)] + [_speed(cases)]


def _of_world(world: World) -> Iterator[Row]:
    sure_and_changed = 0
    for name, person in STREAMS.items():
        seen = [each for seed in SEEDS for each in play(world.cases, person, seed, world.rules)]
        sure_and_changed += sum(each.is_changed and not may_learn(each.built_in) for each in seen)
        changed = sum(each.is_changed for each in seen)
        if name == "no corrections":
            yield Row(name=f"{world.name}, {name}: changed", figure=changed, unit="", at_most=0)
            continue
        yield Row(
            name=f"{world.name}, {name}",
            figure=_gain(seen),
            unit="points",
            at_least=_least(world, name),
            from_what=f"{_said(seen)}; {changed} of {len(seen)} changed",
        )
    yield Row(name=f"{world.name}: sure and changed", figure=sure_and_changed, unit="", at_most=0)


def _least(world: World, stream: str) -> float | None:
    if stream in HARMLESS:
        return 0.0
    return None if stream == BELIEVED and world.rules is not rules_as_they_are else -MOST_LOSS


def _gain(seen: Sequence[Seen]) -> float:
    if not seen:
        return 0.0
    return 100 * sum(each.is_right - each.was_right for each in seen) / len(seen)


def _said(seen: Sequence[Seen]) -> str:
    if not seen:
        return "none"
    before, after = (
        sum(values) / len(seen) for values in zip(*((e.was_right, e.is_right) for e in seen), strict=True)
    )
    return f"{before:.1%} before, {after:.1%} after"


def _speed(cases: Sequence[Case]) -> Row:
    seen = 0
    start = time.perf_counter()
    for _ in play(cases, STREAMS["clean"], 0, rules_that_doubt):
        seen += 1
    spent = (time.perf_counter() - start) / seen
    return Row(
        name="a diagnosis with corrections", figure=spent * 1e3, unit="ms", from_what=f"{seen} failures"
    )
