"""Decide whether a person has to agree before a branch is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.plan import Policy


def needs_approval(policy: Policy, top: Policy) -> bool:
    """Return whether a branch needs approval under the policy of its plan and that of the plan at the top.

    With ``auto_fix_mode`` a branch is made without asking, unless ``require_planner_approval`` is set: that
    always asks, in sub-plans too. ``auto_approve_branches`` answers where nothing insists on a person.
    """
    if policy.require_planner_approval is True or top.require_planner_approval is True:
        return True
    return not policy.auto_fix_mode and not policy.auto_approve_branches
