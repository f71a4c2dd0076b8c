"""What the risk of a todo narrows: the files and commands of a turn of work, and what a person is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.catalog.tools import Purpose
from planner.model.actions import Bounds
from planner.model.plan import RiskLevel
from planner.policy.criteria import commands_of
from planner.policy.file_claims import claimed_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.plan import Policy, Todo


@dataclass(frozen=True, slots=True, kw_only=True)
class Care:
    """How much care a level of risk asks for."""

    purposes: tuple[Purpose, ...] | None
    """Of the tools that may be run; ``None``: nothing but the todo's very own commands."""
    named_files_only: bool
    """Without ``allowed_files``, the files that the todo names are all that it may write."""
    asks: bool
    """A person agrees before the first turn of work and before each branch, whatever the plan's policy."""


CARE: Mapping[RiskLevel, Care] = {
    RiskLevel.LOW: Care(purposes=tuple(Purpose), named_files_only=False, asks=False),
    RiskLevel.MEDIUM: Care(
        purposes=(Purpose.TEST, Purpose.LINT, Purpose.TYPE_CHECK, Purpose.VALIDATE),
        named_files_only=True,
        asks=False,
    ),
    RiskLevel.HIGH: Care(purposes=None, named_files_only=True, asks=True),
}
"""By level; a todo without one is of ``LOW`` risk."""


def bounds_of(todo: Todo, policy: Policy) -> Bounds:
    """What a turn of work on a todo may do.

    A todo that names no file at all cannot be narrowed: it may write any but the protected ones.
    """
    level = _level(todo)
    care = CARE[level]
    own = tuple(dict.fromkeys(spec.cmd for _, spec in commands_of(todo)))
    files = todo.allowed_files
    if files is None and care.named_files_only:
        files = claimed_files(todo) or None
    return Bounds(
        risk_level=level,
        allowed_files=files,
        protected_files=policy.protected_files,
        commands=own if care.purposes is None else tuple(purpose.value for purpose in care.purposes),
        timeout_seconds=_turn_seconds(todo, policy),
    )


def asks_before_start(todo: Todo) -> bool:
    """Whether a person has to agree before the first turn of work; of a branch, they have done so."""
    return CARE[_level(todo)].asks and todo.parent_id is None


def asks_before_branch(todo: Todo) -> bool:
    """Whether a person has to agree before each branch of this todo, also where branches need no yes."""
    return CARE[_level(todo)].asks


def _level(todo: Todo) -> RiskLevel:
    return todo.risk_level or RiskLevel.LOW


def _turn_seconds(todo: Todo, policy: Policy) -> float | None:
    """The shortest of the limits that hold for one turn of work; a branch has a lifetime as well."""
    limits = [todo.timeout_seconds or policy.max_todo_seconds]
    if todo.parent_id is not None:
        limits.append(todo.max_lifetime_seconds or policy.branch_timeout_seconds)
    return min((limit for limit in limits if limit is not None), default=None)
