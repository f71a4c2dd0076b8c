"""Takes the todos of a plan, or of a sub-plan, into the state; says why a plan cannot be carried out."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from planner.engine.state import PlanPart, TodoRecord
from planner.model.ids import qualified
from planner.model.plan import TodoStatus
from planner.policy.branches import tried
from planner.policy.dependencies import find_cycle
from planner.policy.file_claims import claimed_files
from planner.policy.inheritance import inherited
from planner.text.glob_patterns import plain, seen_from_above

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.engine.transaction import Transaction
    from planner.model.events import SubPlanLoaded
    from planner.model.plan import Plan, Todo

DEEPEST = 3
"""A parent may lie so many levels below the top plan, itself not counted."""


def problems_of(plan: Plan) -> Iterator[str]:
    """Why the todos of a plan could never all be done, as far as the plan alone shows it."""
    ids = [todo.id for todo in plan.items]
    known = set(ids)
    if len(known) < len(ids):
        twice = sorted({name for name in known if ids.count(name) > 1})
        yield f"more than one todo has the id {', '.join(twice)}; give each an id of its own"
    for todo in plan.items:
        unknown = [name for name in todo.dependencies if name not in known]
        if unknown:
            yield f"'{todo.id}' depends on '{unknown[0]}', which is no todo of the plan; name another"
        if todo.parent_id is not None and todo.parent_id not in known:
            yield f"'{todo.id}' is a branch of '{todo.parent_id}', which is no todo of the plan"
    circle = find_cycle(todo for todo in plan.items if todo.parent_id is None)
    if circle:
        yield f"the todos depend on each other in a circle: {' -> '.join(circle)}; remove one dependency"


def base_of(tx: Transaction, parent: TodoRecord, event: SubPlanLoaded) -> str:
    """Where the root of a sub-plan lies, seen from the root of the plan at the top."""
    if event.base is not None:
        return plain(event.base)
    path = event.path or parent.todo.sub_plan or ""
    root = "." if event.plan is None else event.plan.root
    parts: list[str] = []
    for part in "/".join((tx.parts[parent.within].base, path.rpartition("/")[0], root)).split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or "."


def files_of(tx: Transaction, todo: Todo, within: str) -> tuple[str, ...]:
    """The globs that a todo may write, as the root of the plan at the top sees them."""
    base = tx.parts[within].base
    found = claimed_files(todo)
    return found if base == "." else tuple(seen_from_above(each, base) for each in found)


def admit(tx: Transaction, plan: Plan, digest: str, within: str, base: str = ".") -> tuple[str, ...]:
    """Take in the todos of a plan; return the ids of those that are no branches, in its order.

    A todo for which an earlier planning has made a branch is verified before anybody works on either.
    """
    branches = frozenset(todo.id for todo in plan.items if todo.parent_id is not None)
    repaired = frozenset(todo.parent_id for todo in plan.items if todo.parent_id is not None)
    if within:
        above = tx.parts[tx.records[within].within].plan.metadata
        plan = plan.model_copy(update={"metadata": inherited(plan.metadata, above)})
    tx.parts[within] = PlanPart(plan, 1, digest, base, {digest: 1}, repaired)
    place = tx.records[within].rank if within else ()
    waiting: dict[str, list[str]] = {}
    admitted: list[str] = []
    for index, todo in enumerate(plan.items):
        if todo.id in branches:
            continue
        name = qualified(within, todo.id)
        before = dict.fromkeys(each for each in todo.dependencies if each not in branches)
        for each in before:
            waiting.setdefault(qualified(within, each), []).append(name)
        record = TodoRecord(
            id=name,
            todo=todo,
            within=within,
            rank=(*place, index),
            waits=len(before),
            files=files_of(tx, todo, within),
            is_parent=todo.has_sub_plan,
        )
        tx.records[name] = record
        admitted.append(name)
    for todo in plan.items:
        if todo.id in branches:
            for each in _admit_branch(tx, todo, within):
                waiting.setdefault(each, []).append(qualified(within, todo.id))
    tx.dependents.update((name, tuple(those)) for name, those in waiting.items())
    tx.unfinished += len(admitted)
    tx.not_done += len(admitted)
    return tuple(admitted)


def _admit_branch(tx: Transaction, todo: Todo, within: str) -> list[str]:
    """Take in a branch that an earlier planning has made; return what it waits for."""
    assert todo.parent_id is not None
    primary = tx.records[qualified(within, todo.parent_id)]
    known = {each.id for each in tx.parts[within].plan.items}
    before = [
        name for each in dict.fromkeys(todo.dependencies) if (name := qualified(within, each)) in known
    ]
    memory = tried(todo)
    lifetime = todo.max_lifetime_seconds or tx.parts[within].plan.metadata.branch_timeout_seconds
    record = TodoRecord(
        id=qualified(within, todo.id),
        todo=todo,
        within=within,
        rank=(*primary.rank, len(primary.branches) + 1),
        waits=len(before),
        files=files_of(tx, todo, within),
        parent_id=primary.id,
        depth=todo.branch_depth or 1,
        expires=_seconds(memory.opened_at, tx.now) + lifetime,
        signature=memory.signature,
        diff_hash=memory.diff_hash,
        attempts=memory.attempts,
        opened=None if memory.opened_at is None else _seconds(memory.opened_at, tx.now),
    )
    tx.put(record)
    tx.put(primary._replace(branches=(*primary.branches, record.id)))
    tx.open_branches += 1
    tx.remind(record.expires, record.id)
    return before


def _seconds(at: str | None, now: float) -> float:
    """Return a time of a plan in epoch seconds; ``now`` where it is none."""
    try:
        return now if at is None else datetime.fromisoformat(at).timestamp()
    except ValueError:
        return now


def is_said_to_be_done(tx: Transaction, record: TodoRecord) -> bool:
    """Whether a todo is verified before anybody works on it: it is claimed, or was repaired before."""
    if record.turns or record.is_branch or record.outcome is not None:
        return False
    if record.todo.id in tx.parts[record.within].repaired:
        return True
    above = record
    while above.todo.status is not TodoStatus.CLAIMED:  # what a parent claims is claimed for its todos
        if not above.within:
            return False
        above = tx.records[above.within]
    return True
