"""Edits: what a decision changes in a plan, each a value that says what, why and by which rule.

An edit is a proposal. It is applied by :mod:`planner.revise.plan_edits`.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.plan import CommandSpec, Id, Line, RelativePath, Seconds, Text, Todo


class _Edit(ReadValue):
    rule: str
    """The id of the rule that calls for it."""
    because: str
    """Why, in one sentence."""
    requires_approval: bool = False
    """It changes what judges a primary todo, what is quarantined, or more files than the todo may: a person
    must agree first."""


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
    """Lets a todo wait for another."""

    edit: Literal["add_dependency"] = "add_dependency"
    todo_id: Id
    on: Id


class NarrowFiles(_Edit):
    """Lets a todo change only these files."""

    edit: Literal["narrow_files"] = "narrow_files"
    todo_id: Id
    allowed_files: tuple[Line, ...]


class AddCheck(_Edit):
    """Adds a command to the criteria of a todo, in front of the others."""

    edit: Literal["add_check"] = "add_check"
    todo_id: Id
    check: CommandSpec


class Isolate(_Edit):
    """Leaves a branch the failing tests only, each without company; the parent keeps all of its own."""

    edit: Literal["isolate"] = "isolate"
    todo_id: Id
    tests: tuple[CommandSpec, ...]
    keeps: tuple[str, ...] = ()
    """Ids of other criteria that stay: ``metrics[0]``, ``contract_path``."""


class AddContext(_Edit):
    """Tells a todo what was seen: its ``debug_instructions``."""

    edit: Literal["add_context"] = "add_context"
    todo_id: Id
    text: Text


class NameArtifact(_Edit):
    """Names the file that a todo has to make: its ``controller_task_spec``."""

    edit: Literal["name_artifact"] = "name_artifact"
    todo_id: Id
    path: RelativePath
    hint: Text | None = None
    task: Literal["PATCH"] | None = None
    """What is to be done with it; ``None``: it is made, ``CREATE``."""


class AddContract(_Edit):
    """Holds a todo to a contract file."""

    edit: Literal["add_contract"] = "add_contract"
    todo_id: Id
    contract_path: RelativePath


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


class QuarantineTest(_Edit):
    """Puts a flaky test in quarantine until a date."""

    edit: Literal["quarantine"] = "quarantine"
    todo_id: Id
    nodeid: Line
    owner: Line
    ticket: Line
    expires: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


Edit: TypeAlias = Annotated[
    AddBranch
    | AddTodoBefore
    | AddDependency
    | NarrowFiles
    | AddCheck
    | Isolate
    | AddContext
    | NameArtifact
    | AddContract
    | RaiseLimit
    | RetargetCheck
    | QuarantineTest,
    Field(discriminator="edit"),
]
"""Any edit; ``edit`` tells which."""
