"""Whether a person has to agree before a branch is made or an edit is applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.decision import Approval

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from planner.model.decision import Repair
    from planner.model.edits import Edit
    from planner.model.plan import Policy

ALL = "all"
"""Approves whatever is asked."""


def branch_approval(policy: Policy, branch_id: str, approved: Collection[str], *, top: Policy) -> Approval:
    """The approval of a branch under the policy of its plan and that of the plan at the ``top``.

    With ``auto_fix_mode`` a branch is made without asking, unless ``require_planner_approval`` is set: that
    always asks, in sub-plans too. ``auto_approve_branches`` answers where nothing insists on a person.
    """
    insists = policy.require_planner_approval is True or top.require_planner_approval is True
    if policy.auto_fix_mode and not insists:
        return Approval.NOT_NEEDED
    if is_approved(branch_id, approved) or (policy.auto_approve_branches and not insists):
        return Approval.GRANTED
    return Approval.NEEDED


def is_approved(approval_id: str, approved: Collection[str]) -> bool:
    """Whether somebody approved it by its name, or everything."""
    return approval_id in approved or ALL in approved


def edits_with_ids(repair: Repair) -> Iterator[tuple[Edit, str | None]]:
    """The edits of a repair, each with what approves it; ``None`` where nobody has to.

    Ids are ``{todo}:{edit}``, and from the second edit of one kind on ``{todo}:{edit}:2``.
    """
    seen: dict[str, int] = {}
    for edit in repair.edits:
        if not edit.requires_approval:
            yield edit, None
            continue
        count = seen[edit.edit] = seen.get(edit.edit, 0) + 1
        name = f"{repair.todo_id}:{edit.edit}"
        yield edit, name if count == 1 else f"{name}:{count}"


def edits_to_apply(repair: Repair, approved: Collection[str]) -> tuple[list[Edit], list[tuple[Edit, str]]]:
    """The edits that may be applied, and those that may not, each with what would approve it.

    Without its branch, nothing that goes with the branch is applied.
    """
    apply: list[Edit] = []
    left_out: list[tuple[Edit, str]] = []
    for edit, approval_id in edits_with_ids(repair):
        if repair.approval is Approval.NEEDED:
            left_out.append((edit, approval_id or repair.branch_id or repair.todo_id))
        elif approval_id is None or is_approved(approval_id, approved):
            apply.append(edit)
        else:
            left_out.append((edit, approval_id))
    return apply, left_out
