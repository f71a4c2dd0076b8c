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
    alone = {run.passed for run in confirmations if run.where == "alone"}
    company = {run.passed for run in confirmations if run.where == "company"}
    seeded = {run.passed for run in confirmations if run.where == "hash_seed"}
    after = {(bool(run.after), run.passed) for run in confirmations if run.where == "after"}
    if len(alone) == 1 and len(seeded) == 1 and alone != seeded:
        return Repeatability.HASH_ORDER
    if True not in alone | company | seeded:
        polluted = (False, True) in after and (True, False) in after
        return Repeatability.ORDER_DEPENDENT if polluted else Repeatability.DETERMINISTIC
    if alone == {True} and company == {False} and False not in seeded:
        return Repeatability.ORDER_DEPENDENT
    return Repeatability.FLAKY
