"""What was expected and what was there, read from the line that a person would quote of a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.failure_report import Comparison

if TYPE_CHECKING:
    from planner.model.evidence import Evidence

_OPERATORS = (" not in ", " is not ", " == ", " != ", " <= ", " >= ", " < ", " > ", " in ", " is ")
"""Longer ones first, so that ``is not`` is not read as ``is``."""

_OPENING = dict(zip("([{", ")]}", strict=True))
_CLOSING = frozenset(_OPENING.values())
_NOT_RAISED = "DID NOT RAISE "


def comparison(evidence: Evidence) -> Comparison | None:
    """What was compared, as the facts say it, else the headline; ``None`` where neither does."""
    if evidence.metric:
        fact = evidence.metric
        recorded = ", ".join(fact.recorded) or "nothing recorded"
        return Comparison(expected=f"{fact.expected:g}", actual=recorded, operator=fact.operator)
    for fact in (evidence.artifact, evidence.contract):
        if fact and fact.expected is not None:
            return Comparison(expected=fact.expected, actual=fact.actual or fact.problem)
    return compared(evidence.headline)


def compared(headline: str) -> Comparison | None:
    """The sides of ``AssertionError: assert 32.1 == 28.5 ± 0.1``: by custom the right one is expected."""
    _, raises, expected = headline.partition(_NOT_RAISED)
    if raises and expected.strip():
        return Comparison(expected=f"raises {expected.strip()}", actual="nothing was raised")
    _, asserts, expression = headline.partition("assert ")
    if not asserts:
        return None
    found, end = _top_level_operators(expression)
    if len(found) != 1:
        return None  # a chain, or none: which side is expected would be a guess
    position, operator = found[0]
    actual, expected = expression[:position].strip(), expression[position + len(operator) : end].strip()
    if not actual or not expected:
        return None
    return Comparison(expected=expected, actual=actual, operator=operator.strip())


def _top_level_operators(expression: str) -> tuple[list[tuple[int, str]], int]:
    """The comparison operators outside of brackets and quotes, with their positions, and where it all ends:
    at a bracket that the expression did not open, as in ``too high (assert 3 <= 2)``."""
    found: list[tuple[int, str]] = []
    closing: list[str] = []
    quote = ""
    position = 0
    while position < len(expression):
        char = expression[position]
        step = 1
        if quote:
            step = 2 if char == "\\" else 1
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in _OPENING:
            closing.append(_OPENING[char])
        elif closing:
            if char == closing[-1]:
                closing.pop()
        elif char in _CLOSING:
            return found, position
        elif operator := next((o for o in _OPERATORS if expression.startswith(o, position)), None):
            found.append((position, operator))
            step = len(operator) - 1  # its last space may begin the next one
        position += step
    return found, len(expression)
