"""Fits confidence to the develop part of the corpus and writes it down as data of the diagnosis.

``python -m tools.corpus fit`` writes ``diagnosis/data/confidence.json``. Three
steps: how often each rule is right, drawn towards what its family earns and what it was written with;
the rising line from those scores to the share that is right (isotonic regression), where each case is
scored by what other packages and other kinds of fault alone have shown; and the file, with its origin.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_planverify.diagnosis.decision import FILE, diagnose, judge, log_odds, shifted
from pytest_planverify.diagnosis.rules import RULES
from tools.corpus.case import CorpusError, Part, digest_of, read_cases
from tools.corpus.scoring import labelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from planner.model.taxonomy import Family
    from tools.corpus.scoring import Failed

RULE_STRENGTH = 6.0
"""What is believed of a rule beforehand weighs as much as so many cases."""

FAMILY_STRENGTH = 20.0
"""The same of a family of categories, beside what its rules were written with."""

LINE_STRENGTH = 4.0
"""The same of each step of the line, beside the score that it stands at."""

Point = tuple[float, float, float]
"""A score, what was seen at it, and the weight of that."""

Curve = tuple[tuple[float, ...], tuple[float, ...]]
"""Scores and values, both in rising order; in between, straight lines."""

_FAMILIES = {rule.id: rule.category.facts.family for rule in RULES}


class Seen(NamedTuple):
    """One case of the develop part, and whether the rule that spoke was right."""

    package: str
    kind: str
    rule: str
    raw: float
    right: bool

    @property
    def family(self) -> Family:
        """The family of what the rule concludes."""
        return _FAMILIES[self.rule]


class Sum(NamedTuple):
    """What a rule, or a family, has shown."""

    cases: int = 0
    right: int = 0
    raw: float = 0.0
    """The sum of what was said."""

    def plus(self, seen: Seen) -> Sum:
        """One case more."""
        return Sum(self.cases + 1, self.right + seen.right, self.raw + seen.raw)


def fit_to(corpus: Path) -> dict[str, Any]:
    """The content of the file, fitted to the develop part. Raises :class:`CorpusError`."""
    failures = labelled(read_cases(corpus, Part.DEVELOP))
    if not failures:
        raise CorpusError(f"{corpus}: the develop part holds no failure to fit to; build the corpus first")
    seen = [seen_in(failed) for failed in failures]
    scores, right = line_through(seen)
    sums = sums_of(seen)
    return {
        "version": 1,
        "made_by": "python -m tools.corpus fit",
        "fitted_on": {
            "part": Part.DEVELOP.value,
            "corpus": digest_of(corpus, Part.DEVELOP),
            "cases": len(failures),
            "packages": len({each.package for each in seen}),
            "kinds": len({each.kind for each in seen}),
        },
        "curve": [[round(x, 4), round(y, 4)] for x, y in zip(scores, right, strict=True)],
        "rules": {
            rule.id: {
                "cases": sums[rule.id].cases,
                "right": sums[rule.id].right,
                "shift": round(shift, 4),
            }
            for rule, shift in ((rule, shift_of(rule.id, rule.confidence, sums)) for rule in RULES)
        },
    }


def seen_in(failed: Failed) -> Seen:
    """What the diagnosis says of a failure, as sure as its rule was written, and whether it is right."""
    said, judged = diagnose(failed.evidence), judge(failed.evidence)
    right = failed.label.accepts(said.category, said.owner)
    origin = failed.case.origin
    return Seen(origin.package, origin.kind, judged.rule.id, judged.raw, right)


def line_through(seen: Sequence[Seen]) -> Curve:
    """The rising line from scores to the share that is right, by cases whose like has not been seen.

    It begins where nothing is believed and nothing is right; above its last step it goes on level.
    """
    strangers = defaultdict[tuple[str, str], list[Seen]](list)
    for each in seen:
        strangers[each.package, each.kind].append(each)
    points: list[Point] = []
    for (package, kind), members in sorted(strangers.items()):
        sums = sums_of(each for each in seen if each.package != package and each.kind != kind)
        points += [(score_of(each, sums), float(each.right), 1.0) for each in members]
    scores, values = fitted(points, strength=LINE_STRENGTH)
    return (0.0, *scores), (0.0, *values)


def score_of(seen: Seen, sums: dict[str, Sum]) -> float:
    """The confidence that a case's rule would have earned by these sums."""
    return shifted(seen.raw, shift_of(seen.rule, seen.raw, sums))


def sums_of(seen: Iterable[Seen]) -> dict[str, Sum]:
    """What every rule has shown, and every family, by the names of both."""
    sums = defaultdict[str, Sum](Sum)
    for each in seen:
        sums[each.rule] = sums[each.rule].plus(each)
        sums[each.family] = sums[each.family].plus(each)
    return sums


def shift_of(rule: str, written: float, sums: dict[str, Sum]) -> float:
    """How far, in log-odds, a rule has earned more or less than it was written with.

    A Beta estimate: its cases, and before them what its family has earned, and before that its own word.
    """
    of_family = _earned(sums[_FAMILIES[rule]], 0.0, written, FAMILY_STRENGTH)
    return _earned(sums[rule], of_family, written, RULE_STRENGTH)


def _earned(seen: Sum, before: float, written: float, strength: float) -> float:
    mean = seen.raw / seen.cases if seen.cases else written
    prior = shifted(mean, before)
    return log_odds((seen.right + strength * prior) / (seen.cases + strength)) - log_odds(mean)


def write(corpus: Path, file: Path = FILE) -> None:
    """Fit and write the file."""
    content = fit_to(corpus)
    curve, rules = content.pop("curve"), content.pop("rules")
    head = json.dumps(content, indent=1)[:-2]
    lines = ",\n".join(f"  {json.dumps(rule)}: {json.dumps(facts)}" for rule, facts in rules.items())
    text = f'{head},\n "curve": {json.dumps(curve)},\n "rules": {{\n{lines}\n }}\n}}\n'
    file.write_text(text, encoding="utf-8")


def fitted(points: Iterable[Point], *, strength: float = 0.0) -> Curve:
    """The rising line through the middles of the pooled blocks. Raises ``ValueError`` without points.

    The values are the unique non-decreasing ones with the least weighted squared error (Barlow et al.,
    Statistical Inference under Order Restrictions, 1972); equal scores are pooled before. With a
    ``strength``, each block is then drawn towards its own score as if so much weight had been seen there.
    """
    blocks = _pooled(_merged(points))
    if not blocks:
        raise ValueError("no point to fit a line to")
    drawn = [
        (score, (seen * weight + score * strength) / (weight + strength), weight + strength)
        for score, seen, weight in blocks
    ]
    scores, values, _ = zip(*_pooled(drawn), strict=True)
    return scores, values


def _pooled(points: Iterable[Point]) -> list[Point]:
    """Neighbours of which the left one is not below the right one become one point, until none are left."""
    blocks: list[Point] = []
    for point in points:
        blocks.append(point)
        while len(blocks) > 1 and blocks[-2][1] >= blocks[-1][1]:
            right, left = blocks.pop(), blocks.pop()
            blocks.append(_joined(left, right))
    return blocks


def _joined(left: Point, right: Point) -> Point:
    weight = left[2] + right[2]
    return (
        (left[0] * left[2] + right[0] * right[2]) / weight,
        (left[1] * left[2] + right[1] * right[2]) / weight,
        weight,
    )


def _merged(points: Iterable[Point]) -> list[Point]:
    """The points in the order of their scores, those of one score as one."""
    by_score: dict[float, Point] = {}
    for point in points:
        score = point[0]
        by_score[score] = _joined(by_score[score], point) if score in by_score else point
    return sorted(by_score.values())
