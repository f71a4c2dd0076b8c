"""Steps: temporary todos that are worked on before a branch."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from planner.model.edits import AddTodoBefore
from planner.model.plan import AcceptanceCriteria, ArtifactSpec, ControllerTaskSpec, Todo
from planner.rules.revision.facts import is_free, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.model.taxonomy import Role
    from planner.rules.revision.situation import Situation

_MAX_ID = 180


def add_step(
    situation: Situation,
    *,
    rule: str,
    because: str,
    title: str,
    task: str,
    hint: str,
    role: Role,
    target_file: str | None = None,
    artifacts: Sequence[str] = (),
    allowed_files: Sequence[str] = (),
) -> Iterator[AddTodoBefore]:
    """The edit that puts a step before the branch; none where no branch is made.

    A step with ``artifacts`` is proved by them; one without is done when its role says so.
    """
    branch = situation.branch
    if branch is None:
        return
    spec: dict[str, Any] = {"type": task, "hint": hint}
    if target_file is not None:
        spec["target_file"] = target_file
    fields: dict[str, Any] = {
        "id": _free_id(situation),
        "title": quoted(title),
        "intent": because,
        "agent_role": role,
        "controller_task_spec": ControllerTaskSpec(**spec),
        "priority": situation.todo.priority,
        "is_temporary": True,
    }
    if artifacts:
        expected = tuple(ArtifactSpec(path=path) for path in artifacts)
        fields["acceptance_criteria"] = AcceptanceCriteria(expected_artifacts=expected)
    else:
        fields["requires_testing"] = False
    if allowed_files:
        fields["allowed_files"] = tuple(allowed_files)
    if branch.dependencies:
        fields["dependencies"] = branch.dependencies
    yield AddTodoBefore(rule=rule, because=because, todo_id=branch.id, todo=Todo(**fields))


def _free_id(situation: Situation) -> str:
    prefix = f"{situation.todo.id[:_MAX_ID]}_step_"
    names = (f"{prefix}{number:02d}" for number in count(1))
    return next(name for name in names if is_free(situation, name))
