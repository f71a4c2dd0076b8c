"""What an edit changes in a plan, in one phrase, without what it quotes at length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.edits import (
    AddBranch,
    AddCheck,
    AddContext,
    AddContract,
    AddDependency,
    AddTodoBefore,
    Isolate,
    NameArtifact,
    NarrowFiles,
    QuarantineTest,
    RaiseLimit,
    RecordAttempt,
    RetargetCheck,
    SplitTodo,
)

if TYPE_CHECKING:
    from planner.model.edits import Edit


def edit_phrase(each: Edit) -> str:
    """The edit as a request: ``let t2 wait for t1``."""
    match each:
        case AddBranch():
            return f"add the todo {each.todo.id} after {each.todo.parent_id}"
        case AddTodoBefore():
            return f"add the todo {each.todo.id} ({each.todo.title}) before {each.todo_id}"
        case AddDependency():
            return f"let {each.todo_id} wait for {each.on}"
        case NarrowFiles():
            return f"let {each.todo_id} change only {', '.join(each.allowed_files) or 'nothing'}"
        case AddCheck():
            return f"check first in {each.todo_id}: {each.check.cmd}"
        case Isolate():
            return f"leave {each.todo_id} only {'; '.join(check.cmd for check in each.tests)}"
        case AddContext():
            return f"tell {each.todo_id} what was seen"
        case NameArtifact():
            return f"tell {each.todo_id} to make {each.path}"
        case AddContract():
            return f"hold {each.todo_id} to the contract {each.contract_path}"
        case RaiseLimit():
            given = f"{each.to_seconds:g} s instead of {each.from_seconds:g} s"
            return f"give {each.check_id} of {each.todo_id} {given}"
        case RetargetCheck():
            return f"let {each.check_id} of {each.todo_id} run {each.to_cmd} instead of {each.from_cmd}"
        case SplitTodo():
            return f"split {each.todo_id} into {', '.join(part.id for part in each.parts)}"
        case QuarantineTest():
            return f"bear the flaky {each.nodeid} until {each.expires} ({each.owner}, {each.ticket})"
        case RecordAttempt():
            return f"write down attempt {each.attempts} of {each.todo_id}"
