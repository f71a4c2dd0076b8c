"""A ladder of regular expressions over everything that was printed, and over how the process ended.

Written in good faith to be the best of its kind: the order and the patterns were tuned on the develop part
of the corpus, and the confidence of each rung is how often it is right there. The rungs themselves are in
``regex_rungs.py``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category, Owner
from pytest_planverify.corpus.guessing import Guess
from pytest_planverify.corpus.rivals.regex_rungs import RUNGS, Rung
from pytest_planverify.corpus.rivals.words import whole_text

if TYPE_CHECKING:
    from planner.model.evidence import Evidence

_CONFIDENCE = 0.8
_LAST = Rung("nothing-matched", "", Category.TEST_REGRESSION, Owner.PRODUCT)
"""Most failures are regressions: who knows nothing had best say so."""

_RAISED_AT = re.compile(
    r"^(?P<path>[^\s:][^:\n]*\.py):(?P<line>\d+): (?P<error>[A-Za-z_][\w.]*)", re.MULTILINE
)
_COMPILED = tuple((rung, re.compile(rung.pattern, re.MULTILINE)) for rung in RUNGS)


def guess(evidence: Evidence) -> Guess:
    """What the first rung says whose pattern is found."""
    text = printed(evidence)
    rung = next((rung for rung, pattern in _COMPILED if pattern.search(text)), _LAST)
    return Guess(rung.category, rung.owner, _CONFIDENCE, rule=rung.name)


def guess_with_reruns(evidence: Evidence) -> Guess:
    """The same, but what passed when it was run again is flaky, as tools that rerun would say."""
    if any(run.passed for run in evidence.confirmations):
        return Guess(Category.FLAKY_TEST, Owner.TEST, _CONFIDENCE, rule="passed-on-rerun")
    return guess(evidence)


def printed(evidence: Evidence) -> str:
    """The text that the patterns look at: how it ended and where it raised, then all that was said."""
    lines: list[str] = []
    process = evidence.process
    if process is not None and process.signal:
        lines.append(f"ended by signal {process.signal}")
    if process is not None and process.exit_code is not None:
        lines.append(f"exit status {process.exit_code}")
    if evidence.timed_out or (process is not None and process.timed_out):
        lines.append("the time limit was passed")
    if evidence.command is not None:
        lines.append(f"$ {' '.join(evidence.command.argv)}")
    places = [*_RAISED_AT.finditer(evidence.longrepr)]
    if places:
        lines.append(f"raised at {places[-1]['path']}: {places[-1]['error']}")
    return "\n".join([*lines, f"said: {evidence.headline}", whole_text(evidence)])
