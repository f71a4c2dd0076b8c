"""What was expected and what came instead, from the facts of a failure or from its headline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from planner.model.evidence import Evidence


class Comparison(NamedTuple):
    """What was compared, as far as the failure shows it."""

    expected: str
    actual: str
    operator: str | None = None
    """How ``actual OPERATOR expected`` should have held."""


_TOKEN = re.compile(
    r"""'(?:\\.|[^'\\])*+(?:'|$)|"(?:\\.|[^"\\])*+(?:"|$)|[\[({\])}]"""
    r"""| (?:not in|is not|[=!<>]=|<|>|in|is)(?= )""",
    re.DOTALL,
)
"""Quoted text, a bracket, or an operator with the blank before it."""

_NOT_RAISED = "DID NOT RAISE "
_SAID = re.compile(
    r"\bexpected:? (?P<expected>[^,;\n]{1,120}+)[,;] (?:but )?(?:got|was|found|received|actual):? "
    r"(?P<actual>[^\n]{1,120}+)",
    re.IGNORECASE,
)
"""How a message commonly names both sides."""

_LONGEST = 2_000
"""Characters of a headline that are looked at."""


def compare(evidence: Evidence | None, headline: str = "") -> Comparison | None:
    """Return both sides as the facts say them, else as a headline does; ``None`` where neither does."""
    if evidence is not None and evidence.metric:
        fact = evidence.metric
        recorded = ", ".join(fact.recorded) or "nothing recorded"
        return Comparison(f"{fact.expected:g}", recorded, fact.operator)
    for fact in (evidence.artifact, evidence.contract) if evidence is not None else ():
        if fact and fact.expected is not None:
            return Comparison(fact.expected, fact.actual or fact.problem)
    if evidence is not None and (found := compare_headline(evidence.headline)):
        return found
    return compare_headline(headline[:_LONGEST])


def compare_headline(headline: str) -> Comparison | None:
    """Return the sides of ``assert 32.1 == 28.5 ± 0.1``: by custom the right one is expected."""
    _, raises, expected = headline.partition(_NOT_RAISED)
    if raises and expected.strip():
        return Comparison(f"raises {expected.strip()}", "nothing was raised")
    _, asserts, expression = headline.partition("assert ")
    if not asserts:
        said = _SAID.search(headline)
        return None if said is None else Comparison(said["expected"].strip(), said["actual"].strip())
    found, end = _top_level_operators(expression)
    if len(found) != 1:
        return None  # a chain, or none: which side is expected would be a guess
    position, operator = found[0]
    actual, expected = expression[:position].strip(), expression[position + len(operator) : end].strip()
    if not actual or not expected:
        return None
    return Comparison(expected, actual, operator.strip())


def _top_level_operators(expression: str) -> tuple[list[tuple[int, str]], int]:
    """Return the comparison operators outside of brackets and quotes, with their positions, and where it
    ends: at a bracket that the expression did not open, as in ``too high (assert 3 <= 2)``.
    """
    found: list[tuple[int, str]] = []
    depth = 0
    for token in _TOKEN.finditer(expression):
        text = token[0]
        if text in "([{":
            depth += 1
        elif text in ")]}":
            if not depth:
                return found, token.start()
            depth -= 1
        elif text[0] == " " and not depth:
            found.append((token.start(), f"{text} "))
    return found, len(expression)
