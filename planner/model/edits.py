"""Edits: proposed changes of a plan, each with its rule and reason.

:mod:`planner.revise.plan_edits` applies them.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.plan import CommandSpec, Id, Line, RelativePath, Seconds, Text, Todo
from planner.model.taxonomy import Role


class _Edit(ReadValue):
    rule: str
    """The id of the rule that proposes it."""
    because: str
    """The reason, in one sentence."""
    requires_approval: bool = False
    """A person must approve it first, as it changes the criteria of a todo that is no branch, or grants
    more files than the todo may change."""


class AddBranch(_Edit):
    """Adds a branch todo, after its parent and the parent's other branches."""

    edit: Literal["add_branch"] = "add_branch"
    todo: Todo


class AddTodoBefore(_Edit):
    """Adds a todo in front of another, which then depends on it."""

    edit: Literal["add_todo_before"] = "add_todo_before"
    todo_id: Id
    """The todo that has to wait."""
    todo: Todo


class AddDependency(_Edit):
    """Makes a todo depend on another."""

    edit: Literal["add_dependency"] = "add_dependency"
    todo_id: Id
    on: Id


class AssignRole(_Edit):
    """Gives a branch to another role."""

    edit: Literal["assign_role"] = "assign_role"
    todo_id: Id
    role: Role


class NarrowFiles(_Edit):
    """Restricts the files that a todo may change; those of a branch, within the files of its parent."""

    edit: Literal["narrow_files"] = "narrow_files"
    todo_id: Id
    allowed_files: tuple[Line, ...] | None = None
    """``None``: for a branch whose parent may change any file, no restriction any more."""


class AddCheck(_Edit):
    """Adds a command to the criteria of a todo, in front of the others."""

    edit: Literal["add_check"] = "add_check"
    todo_id: Id
    check: CommandSpec


class Isolate(_Edit):
    """Reduces the criteria of a branch to the failing tests, each run alone; the parent keeps its own."""

    edit: Literal["isolate"] = "isolate"
    todo_id: Id
    tests: tuple[CommandSpec, ...]


class AddContext(_Edit):
    """Adds what was observed to the ``debug_instructions`` of a todo."""

    edit: Literal["add_context"] = "add_context"
    todo_id: Id
    text: Text


class NameArtifact(_Edit):
    """Names the file that a todo has to create, in its ``controller_task_spec``."""

    edit: Literal["name_artifact"] = "name_artifact"
    todo_id: Id
    path: RelativePath
    hint: Text | None = None
    task: Literal["PATCH"] | None = None
    """Kind of the task; ``None`` means ``CREATE``."""


class RaiseLimit(_Edit):
    """Gives a criterion more time."""

    edit: Literal["raise_limit"] = "raise_limit"
    todo_id: Id
    check_id: str
    from_seconds: Seconds
    to_seconds: Seconds


class RetargetCheck(_Edit):
    """Gives a criterion another command."""

    edit: Literal["retarget_check"] = "retarget_check"
    todo_id: Id
    check_id: str
    from_cmd: Line
    to_cmd: Line


Edit: TypeAlias = Annotated[
    AddBranch
    | AddTodoBefore
    | AddDependency
    | AssignRole
    | NarrowFiles
    | AddCheck
    | Isolate
    | AddContext
    | NameArtifact
    | RaiseLimit
    | RetargetCheck,
    Field(discriminator="edit"),
]
"""Any edit; its kind is in ``edit``."""
