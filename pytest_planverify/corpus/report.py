"""The report: the figures of the diagnosis and of its rivals on one part of the corpus."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category
from pytest_planverify.corpus.case import Group
from pytest_planverify.corpus.causes_figures import by_signature, cause_figures, causes_of
from pytest_planverify.corpus.figures import Figures, Share, figures, share
from pytest_planverify.corpus.files import CorpusError, digest_of, read_cases, read_runs
from pytest_planverify.corpus.guessing import ours
from pytest_planverify.corpus.resampling import (
    LEVEL,
    RESAMPLES,
    SEED,
    Interval,
    macro_f1_draws,
    margin,
    middle,
)
from pytest_planverify.corpus.rivals import LADDER, rivals
from pytest_planverify.corpus.scoring import Failed, Judged, judged_by, labelled
from pytest_planverify.corpus.splitting import Part, is_test_kind, is_test_package
from pytest_planverify.diagnosis import diagnose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pytest_planverify.corpus.case import FaultyRun

OURS = "planverify"
_SPEED_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One classifier of the report."""

    name: str
    title: str
    figures: Figures
    macro_f1_interval: Interval
    ahead: Interval | None
    """By how much our macro-F1 is above its own, on the same draws; ``None`` of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """The cases that are new in one respect, or of one group, and the figures on them."""

    name: str
    ours: Figures
    ladder: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that is told."""

    part: str
    digest: str
    cases: int
    packages: int
    kinds: int
    ambiguous: Share
    """Cases of which more than one reading is accepted."""
    counts: dict[Group, dict[Category, int]]
    controls: Share
    """Honest changes against which something was said."""
    systems: tuple[System, ...]
    """Ours first."""
    subsets: tuple[Subset, ...]
    root_causes: dict[str, Mapping[str, float]]
    """Ours first, then by equal signatures alone; empty where the part has no runs with several faults."""
    resamples: int
    seed: int
    level: float
    diagnoses_per_second: int
    """On one core of the machine that made the report."""

    @property
    def ours(self) -> System:
        """The diagnosis itself."""
        return self.systems[0]

    @property
    def ladder(self) -> System:
        """The rival that counts."""
        return next(system for system in self.systems if system.name == LADDER)


def report_on(
    corpus: Path,
    parts: Sequence[Part],
    *,
    resamples: int = RESAMPLES,
    speed_seconds: float = _SPEED_SECONDS,
) -> Report:
    """Judge every case of some parts. Raises :class:`CorpusError` where there is nothing to judge."""
    cases = [case for part in parts for case in read_cases(corpus, part)]
    failures = labelled(cases)
    if not failures:
        names = " and ".join(part.value for part in parts)
        raise CorpusError(
            f"{corpus}: the part {names} holds no failure; build it: "
            "python -m pytest_planverify.corpus build"
        )
    judged, titles = _judged_by_all(corpus, failures)
    runs = [run for part in parts for run in read_runs(corpus, part)]
    controls = [case for case in cases if case.label is None]
    return Report(
        part=parts[0].value if len(parts) == 1 else "all",
        digest=digest_of(corpus, *parts),
        cases=len(failures),
        packages=len({case.origin.package for case in cases}),
        kinds=len({case.origin.kind for case in cases}),
        ambiguous=share(bool(failed.label.also) for failed in failures),
        counts=_counts(failures),
        controls=share(bool(case.flagged) or case.evidence is not None for case in controls),
        systems=_systems(judged, titles, resamples),
        subsets=_subsets(judged),
        root_causes=_root_causes(runs),
        resamples=resamples,
        seed=SEED,
        level=LEVEL,
        diagnoses_per_second=_speed(failures, speed_seconds),
    )


def _judged_by_all(
    corpus: Path, failures: Sequence[Failed]
) -> tuple[dict[str, tuple[Judged, ...]], dict[str, str]]:
    has_develop = (corpus / Part.DEVELOP.value).is_dir()
    develop = labelled(read_cases(corpus, Part.DEVELOP)) if has_develop else ()
    judged = {OURS: judged_by(ours, failures)}
    titles = {OURS: "the diagnosis of this project"}
    for rival in rivals(develop):
        judged[rival.name] = judged_by(rival.guess, failures)
        titles[rival.name] = rival.title
    return judged, titles


def _systems(
    judged: dict[str, tuple[Judged, ...]], titles: dict[str, str], resamples: int
) -> tuple[System, ...]:
    draws = macro_f1_draws(judged, resamples)
    return tuple(
        System(
            name=name,
            title=titles[name],
            figures=figures(found),
            macro_f1_interval=middle(draws[name]),
            ahead=None if name == OURS else margin(draws, OURS, name),
        )
        for name, found in judged.items()
    )


def _subsets(judged: dict[str, tuple[Judged, ...]]) -> tuple[Subset, ...]:
    """By what is new to the rules, only the package, only the kind of fault, or both; then by group."""
    wanted: dict[str, Callable[[Judged], bool]] = {
        "new package only": lambda each: _novelty(each) == (True, False),
        "new kind of fault only": lambda each: _novelty(each) == (False, True),
        "new package and kind": lambda each: _novelty(each) == (True, True),
    }
    for group in Group:
        wanted[group.value] = lambda each, group=group: each.failed.case.group is group
    found: list[Subset] = []
    for name, belongs in wanted.items():
        mine, theirs = ([each for each in judged[system] if belongs(each)] for system in (OURS, LADDER))
        if mine:
            found.append(Subset(name=name, ours=figures(mine), ladder=figures(theirs)))
    return tuple(found)


def _root_causes(runs: Sequence[FaultyRun]) -> dict[str, Mapping[str, float]]:
    ways = {OURS: causes_of, "by signature alone": by_signature}
    return {name: cause_figures(runs, way) for name, way in ways.items()} if runs else {}


def _novelty(each: Judged) -> tuple[bool, bool]:
    return is_test_package(each.package), is_test_kind(each.failed.case.origin.kind)


def _counts(failures: Sequence[Failed]) -> dict[Group, dict[Category, int]]:
    counted = Counter((failed.case.group, failed.label.category) for failed in failures)
    groups = {group for group, _ in counted}
    return {
        group: {category: counted[group, category] for category in Category if counted[group, category]}
        for group in Group
        if group in groups
    }


def _speed(failures: Sequence[Failed], seconds: float) -> int:
    """Diagnoses a second of processor time: every case in turn, until the time is over."""
    many = 0
    began = time.process_time()
    while (spent := time.process_time() - began) < seconds or not many:
        for failed in failures:
            diagnose(failed.evidence)
        many += len(failures)
    return round(many / spent) if spent else many
