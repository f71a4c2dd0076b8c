"""What the repeated runs of a failing check say about its repeatability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.taxonomy import Repeatability

if TYPE_CHECKING:
    from planner.model.evidence import Confirmation


def repeatability(confirmations: tuple[Confirmation, ...]) -> Repeatability:
    """Judged together with the first red run, which is why there are confirmations at all."""
    if not confirmations:
        return Repeatability.UNCONFIRMED
    alone = [run.passed for run in confirmations if run.where == "alone"]
    company = [run.passed for run in confirmations if run.where != "alone"]
    if not any(alone + company):
        return Repeatability.DETERMINISTIC
    if alone and company and all(alone) and not any(company):
        return Repeatability.ORDER_DEPENDENT
    return Repeatability.FLAKY
