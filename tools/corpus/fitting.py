"""Fit the confidence of the diagnosis to the part ``develop`` of the corpus.

``python -m tools.corpus fit`` writes ``diagnosis/data/confidence.json`` in three steps. First, the share of
correct diagnoses of each rule, shrunk towards the share of its category family and the confidence in its
source. Second, the isotonic regression from these scores to the share of correct diagnoses, in which
each case is scored from other packages and other kinds of fault only. Third, the file, with its origin.
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
"""Weight, in cases, of the prior of a rule."""

FAMILY_STRENGTH = 20.0
"""Weight, in cases, of the prior of a family, beside the confidences in the sources of its rules."""

LINE_STRENGTH = 4.0
"""Weight, in cases, of the prior of each step of the curve, which is the score of the step."""

Point = tuple[float, float, float]
"""A score, the value observed at it, and the weight of the observation."""

Curve = tuple[tuple[float, ...], tuple[float, ...]]
"""Scores and values, both ascending; values in between are interpolated linearly."""

_FAMILIES = {rule.id: rule.category.facts.family for rule in RULES}


class Seen(NamedTuple):
    """One case of the part ``develop``, and whether the rule that matched is right."""

    package: str
    kind: str
    rule: str
    raw: float
    right: bool

    @property
    def family(self) -> Family:
        """Return the family of the category that the rule concludes."""
        return _FAMILIES[self.rule]


class Sum(NamedTuple):
    """Results of a rule, or of a family."""

    cases: int = 0
    right: int = 0
    raw: float = 0.0
    """Sum of the confidences in the source."""

    def plus(self, seen: Seen) -> Sum:
        """Return the sum with one more case."""
        return Sum(self.cases + 1, self.right + seen.right, self.raw + seen.raw)


def fit_to(corpus: Path) -> dict[str, Any]:
    """Return the content of the file, fitted to the part ``develop``. Raises :class:`CorpusError`."""
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
    """Return the diagnosis of a failure with the confidence in the source, and whether it is right."""
    said, judged = diagnose(failed.evidence), judge(failed.evidence)
    right = failed.label.accepts(said.category, said.owner)
    origin = failed.case.origin
    return Seen(origin.package, origin.kind, judged.rule.id, judged.raw, right)


def line_through(seen: Sequence[Seen]) -> Curve:
    """Return the ascending curve from scores to the share of correct diagnoses, scored on unseen cases.

    It begins at (0, 0), and is constant after its last step.
    """
    peers = defaultdict["Family", list[Seen]](list)
    for each in seen:
        peers[each.family].append(each)
    points: list[Point] = []
    for each in sorted(seen, key=lambda one: (one.package, one.kind)):
        strangers = (
            one for one in peers[each.family] if one.package != each.package and one.kind != each.kind
        )
        points.append((score_of(each, sums_of(strangers)), float(each.right), 1.0))
    scores, values = fitted(points, strength=LINE_STRENGTH)
    return (0.0, *scores), (0.0, *values)


def score_of(seen: Seen, sums: dict[str, Sum]) -> float:
    """Return the confidence that the rule of a case has by these sums."""
    return shifted(seen.raw, shift_of(seen.rule, seen.raw, sums))


def sums_of(seen: Iterable[Seen]) -> dict[str, Sum]:
    """Return the results of all rules and families, by name."""
    sums = defaultdict[str, Sum](Sum)
    for each in seen:
        sums[each.rule] = sums[each.rule].plus(each)
        sums[each.family] = sums[each.family].plus(each)
    return sums


def shift_of(rule: str, written: float, sums: dict[str, Sum]) -> float:
    """Return the correction, in log-odds, of the confidence in the source of a rule.

    It is a Beta estimate with the result of the family as prior, whose own prior is the confidence in the
    source.
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
    """Return the ascending curve through the centres of the pooled blocks.

    The values are the unique non-decreasing ones with the least weighted squared error (Barlow et al.,
    Statistical Inference under Order Restrictions, 1972); equal scores are pooled first. With a
    ``strength``, each block is shrunk towards its own score with this weight. Raises ``ValueError`` without
    points.
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
    """Pool neighbours, as long as the left one is not below the right one."""
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
    """Merge points of equal score, sorted by score."""
    by_score: dict[float, Point] = {}
    for point in points:
        score = point[0]
        by_score[score] = _joined(by_score[score], point) if score in by_score else point
    return sorted(by_score.values())
