"""What a qualification says of the checks: a plan with checks that prove nothing is not ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.plan import CommandSpec, TodoStatus
from planner.model.qualification import Quality
from planner.rules.qualifying import bad_checks, is_qualified
from planner.rules.validation.facts import Facts, Found, command_loc

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = {
    Quality.VACUOUS: "check-vacuous",
    Quality.UNRUNNABLE: "check-unrunnable",
    Quality.UNSTABLE: "check-unstable",
}


def check(facts: Facts) -> Iterator[Found]:
    """Rules about checks that have been tried out; nothing where none have."""
    document = facts.qualification
    if document is None:
        return
    known = {(each.todo_id, each.check_id, each.cmd) for each in document.checks}
    bad = {(each.todo_id, each.check_id, each.cmd): each for each in bad_checks(document)}
    for index, todo in facts.todos:
        name = facts.qualified_prefix + todo.id
        for criterion in facts.criteria.get(todo.id, ()):
            loc = command_loc(index, criterion.id)
            cmd = criterion.spec.cmd if isinstance(criterion.spec, CommandSpec) else None
            found = bad.get((name, criterion.id, cmd))
            if found is not None:
                yield Found(
                    RULES[found.quality],
                    loc,
                    todo.id,
                    f"{criterion.id} of '{todo.id}' is {found.quality}: {found.because}",
                    found.remedy or "mend the check, and qualify it again",
                )
            elif (
                (name, criterion.id, cmd) not in known
                and name not in document.skipped
                and todo.status is not TodoStatus.CLAIMED
                and is_qualified(criterion)
            ):
                yield Found(
                    "check-unqualified",
                    loc,
                    todo.id,
                    f"the qualification does not know {criterion.id} of '{todo.id}' as it is now",
                    "qualify the plan again: planverify qualify PLAN",
                )
