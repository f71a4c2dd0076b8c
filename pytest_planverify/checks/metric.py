"""Metric criteria: numbers that tests record, as properties or by the ``planverify`` fixture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from planner.model.evidence import Evidence, MetricFact
from planner.model.verdicts import EvidenceKind, Verdict
from planner.text.sanitizing import clean
from pytest_planverify.checks.result import Judgement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.plan import MetricSpec

MAX_SHOWN = 20
"""Number of recorded values kept as evidence."""


def check_metric(spec: MetricSpec, recorded: Sequence[object], *, check_id: str = "") -> Judgement:
    """Judge whether every recorded value satisfies ``recorded OPERATOR value``.

    A metric without a record fails, as does any value that is not a finite number (booleans are not
    numbers). ``==`` and ``!=`` compare floats exactly.
    """
    if not recorded:
        problem, reason = "not_recorded", f"no test recorded {spec.name}"
    # NaN would satisfy no comparison but !=, which it always satisfies.
    elif strange := [value for value in recorded if not is_number(value)]:
        shown = _shown(strange[0])
        problem, reason = (
            "not_a_number",
            f"{spec.name} was recorded as {shown}, which is not a finite number",
        )
    elif unmet := [value for value in recorded if not spec.operator.holds(value, spec.value)]:
        problem, reason = (
            "unmet",
            f"{spec.name} is {_shown(unmet[0])}, not {spec.operator} {spec.value:.12g}",
        )
        if len(recorded) > 1:
            reason += f" ({len(unmet)} of {len(recorded)} recorded values)"
    else:
        return Judgement(verdict=Verdict.PASSED)
    fact = MetricFact(
        name=spec.name,
        operator=spec.operator.value,
        expected=spec.value,
        recorded=tuple(_shown(value) for value in recorded[:MAX_SHOWN]),
        problem=problem,
    )
    evidence = Evidence(kind=EvidenceKind.METRIC, check_id=check_id, headline=reason, metric=fact)
    return Judgement(verdict=Verdict.FAILED, reason=reason, evidence=(evidence,))


def is_number(value: object) -> bool:
    """Return whether a value is a finite number; ``bool`` is a subclass of ``int``, but not one."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _shown(value: object) -> str:
    try:
        return clean(repr(value), limit=100)
    except Exception as error:
        # repr() of arbitrary values may raise, even of an integer, if it has too many digits.
        return f"a {type(value).__name__} that cannot be shown ({type(error).__name__})"
