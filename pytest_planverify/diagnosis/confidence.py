"""From the confidence that a rule was written with to the one that it has earned on the labelled corpus.

The numbers are data, fitted by ``python -m tools.corpus fit`` on the part of the corpus
that the rules were developed on; the file says on what.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from functools import cache, lru_cache
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parent / "data" / "confidence.json"
"""The fitted numbers, in the package."""

SUREST = 0.999
"""No confidence is nearer to one than this, or nearer to zero than what is left."""

MOST = 0.99
"""What is said at most: that all cases of a rule were right proves no certainty."""


class Fit(NamedTuple):
    """A fitted confidence."""

    curve: tuple[tuple[float, ...], tuple[float, ...]]
    """Scores, and how often diagnoses of that score were right: both rise. In between, straight lines."""
    shifts: dict[str, float]
    """By rule: how far, in log-odds, its score is from the confidence that it was written with."""


@lru_cache(maxsize=4096)
def calibrated(rule_id: str, raw: float) -> float:
    """Return how often diagnoses of this rule, with this confidence of its own, are right: from 0 to 1.

    Never falls as ``raw`` rises. Of a rule that the corpus has not seen, half of what is known of all
    rules is taken over, and half of its own word is kept. Cached: a rule has few values of ``raw``.
    """
    return earned(fit(), rule_id, raw)


def earned(fitted: Fit, rule_id: str, raw: float) -> float:
    """The same by another fit."""
    shift = fitted.shifts.get(rule_id)
    if shift is None:
        return min((on_curve(fitted.curve, raw) + min(max(raw, 0.0), 1.0)) / 2, MOST)
    return min(on_curve(fitted.curve, shifted(raw, shift)), MOST)


@cache
def fit() -> Fit:
    """Return what the package's file holds; read once."""
    return fit_of(json.loads(FILE.read_text(encoding="utf-8")))


def fit_of(plain: dict[str, Any]) -> Fit:
    """The same from the content of a file."""
    scores, right = zip(*plain["curve"], strict=True)
    return Fit(
        curve=(tuple(scores), tuple(right)),
        shifts={rule: facts["shift"] for rule, facts in plain["rules"].items()},
    )


def shifted(raw: float, shift: float) -> float:
    """A confidence, moved in log-odds."""
    return 1 / (1 + exp(-log_odds(raw) - shift))


def log_odds(raw: float) -> float:
    """Of a confidence; certainty counts as nearly certain."""
    kept = min(max(raw, 1 - SUREST), SUREST)
    return log(kept / (1 - kept))


def on_curve(curve: tuple[tuple[float, ...], tuple[float, ...]], score: float) -> float:
    """Return what a rising line of straight pieces says at a score; beyond its ends, what its ends say."""
    scores, right = curve
    above = bisect_right(scores, score)
    if above == 0:
        return right[0]
    if above == len(scores):
        return right[-1]
    left, low = scores[above - 1], right[above - 1]
    return low + (right[above] - low) * (score - left) / (scores[above] - left)
