"""The branch that a failed todo gets, with every edit that goes with it, before anybody agrees to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.brief import write_brief
from planner.errors import EditConflictError
from planner.model.edits import AddBranch, AddContext
from planner.policy.branches import branch_todo
from planner.revise.situation import Situation
from planner.revise.strategies import revise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from planner.model.context import FailureContext
    from planner.model.edits import Edit
    from planner.model.outcome import Failure, Outcome
    from planner.model.plan import Plan, Todo
    from planner.model.taxonomy import Role
    from planner.revise.editing import Editing


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A failed primary todo and all that is known of its failure."""

    plan: Plan
    todo: Todo
    outcome: Outcome
    failure: Failure
    """The one that decides the route."""
    context: FailureContext | None
    at: str
    """RFC 3339, UTC."""
    rerun: str
    """The command that verifies the whole todo."""
    tools: frozenset[str] = frozenset()
    tried: tuple[str, ...] = ()
    """What was done about it in vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A branch that may be made."""

    branch: Todo
    """As it stands after those edits that need no approval of their own."""
    edits: tuple[Edit, ...]
    """The first adds the branch."""


def propose_branch(
    failed: Failed,
    draft: Editing,
    *,
    branch_id: str,
    role: Role,
    depth: int,
    via: str | None,
    rule: str,
    because: str,
    taken: Iterable[str],
    keep: Callable[[Sequence[Edit]], list[Edit]] = list,
) -> Proposal:
    """The branch for a failed todo, revised as the category of the failure calls for.

    ``draft`` is the plan, or a part of it that holds the todo; it is left as it was. ``taken`` are ids
    that no new todo may have; ``keep`` may leave out edits of the revision. Where the edits do not fit
    the plan the branch is proposed without them.
    """
    branch = branch_todo(
        failed.todo,
        failed.outcome,
        failed.plan.metadata,
        branch_id=branch_id,
        category=failed.failure.category,
        role=role,
        depth=depth,
        via=via,
        opened_at=failed.at,
        signature=failed.failure.signature,
    )
    situation = Situation(
        plan=failed.plan,
        todo=failed.todo,
        outcome=failed.outcome,
        failure=failed.failure,
        branch=branch,
        context=failed.context,
        at=failed.at,
        tools=failed.tools,
        taken=frozenset((*taken, branch_id)),
    )
    revision = keep(revise(situation))
    added = AddBranch(rule=rule, because=because, todo=branch)
    try:
        final = revised(draft, [added, *revision], branch_id)
    except EditConflictError:
        revision, final = [], branch
    tried = () if via is None else (f"branch {via}",)
    context = context_edit(replace(failed, tried=tried), final)
    final = final.model_copy(update={"debug_instructions": context.text})
    return Proposal(branch=final, edits=(added, *revision, context))


def context_edit(failed: Failed, branch: Todo) -> AddContext:
    """Tells a branch what was seen."""
    return AddContext(
        rule="context-for-the-repair",
        because="whoever repairs it sees nothing else",
        todo_id=branch.id,
        text=instructions_for(failed, branch.id, branch.allowed_files, branch.agent_role),
    )


def instructions_for(
    failed: Failed, worker_id: str, allowed_files: tuple[str, ...] | None, role: Role
) -> str:
    """What whoever repairs a todo is told; ``worker_id`` names the todo or branch that they work on."""
    return write_brief(
        failed.plan,
        failed.todo,
        failed.outcome,
        failed.context,
        branch_id=worker_id,
        allowed_files=allowed_files,
        protected=failed.plan.metadata.protected_files,
        rerun=failed.rerun,
        role=role,
        tried=failed.tried,
    )


def revised(draft: Editing, edits: Iterable[Edit], branch_id: str) -> Todo:
    """A branch after those edits of it that need no approval. The draft is left as it was.

    Raises :class:`planner.errors.EditConflictError`.
    """
    draft.apply(edit for edit in edits if not edit.requires_approval)
    found = draft.todo(branch_id)
    draft.undo()
    assert found is not None
    return found
