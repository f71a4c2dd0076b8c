"""The plans of a run: admit their todos, publish new versions of them, and read them as they stand."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from operator import attrgetter
from posixpath import normpath
from typing import TYPE_CHECKING

from pydantic import ConfigDict, TypeAdapter

from planner.engine.state import PlanPart, TodoRecord
from planner.model.actions import PublishPlan
from planner.model.base import qualified
from planner.model.edits import AddTodoBefore, Edit
from planner.model.plan import TodoStatus
from planner.model.verdicts import PlanState, TodoLife
from planner.policy.allowed_files import claimed_files
from planner.policy.branches import tried
from planner.policy.dependencies import find_cycle
from planner.policy.limits import inherited
from planner.revise.draft import PlanDraft
from planner.text.glob_patterns import plain, seen_from_above

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planner.engine.state import State
    from planner.engine.transaction import Transaction
    from planner.model.events import SubPlanLoaded
    from planner.model.plan import Plan, Todo

_EDITS: TypeAdapter[tuple[Edit, ...]] = TypeAdapter(tuple[Edit, ...], config=ConfigDict(defer_build=True))

_judges = attrgetter(
    *("acceptance_criteria", "verify", "test_command", "test_file", "contract_path"),
    *("must_turn_green", "must_stay_green"),
)
"""What judges a todo."""


def problems_of(plan: Plan) -> Iterator[str]:
    """Yield why the todos of a plan could never all be done, as far as the plan alone shows it."""
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
    """Return where the root of a sub-plan lies, seen from the root of the plan at the top."""
    if event.base is not None:
        return plain(event.base)
    folder = (event.path or parent.todo.sub_plan or "").rpartition("/")[0]
    root = "." if event.plan is None else event.plan.root
    return normpath("/".join((tx.parts[parent.within].base, folder, root)))


def files_of(tx: Transaction, todo: Todo, within: str) -> tuple[str, ...]:
    """Return the globs that a todo may write, as the root of the plan at the top sees them."""
    base = tx.parts[within].base
    found = claimed_files(todo)
    return found if base == "." else tuple(seen_from_above(each, base) for each in found)


def admit(tx: Transaction, plan: Plan, digest: str, within: str, base: str = ".") -> tuple[str, ...]:
    """Take in the todos of a plan; return the ids of those that are no branches, in its order.

    A todo for which an earlier planning has made a branch is verified before anybody works on either.
    """
    if within:
        above = tx.parts[tx.records[within].within].plan.metadata
        plan = plan.model_copy(update={"metadata": inherited(plan.metadata, above)})
    repaired = frozenset(todo.parent_id for todo in plan.items if todo.parent_id is not None)
    tx.parts[within] = PlanPart(plan, 1, digest, base, {digest: 1}, repaired)
    place = tx.records[within].rank if within else ()
    primary = {index: todo for index, todo in enumerate(plan.items) if todo.parent_id is None}
    names = tuple(_add(tx, todo, within, (*place, index)).id for index, todo in primary.items())
    for todo in plan.items:
        if todo.parent_id is not None:
            _readmit(tx, _add(tx, todo, within, _branch_rank(tx, todo, within)))
    waiting: dict[str, list[str]] = {}
    for todo in sorted(plan.items, key=lambda todo: todo.parent_id is not None):
        record = tx.records[qualified(within, todo.id)]
        for before in dict.fromkeys(each.id for each in tx.dependencies(record)):
            waiting.setdefault(before, []).append(record.id)
    tx.dependents.update((name, tuple(those)) for name, those in waiting.items())
    return names


def _add(tx: Transaction, todo: Todo, within: str, rank: tuple[int, ...]) -> TodoRecord:
    record = TodoRecord(
        id=qualified(within, todo.id),
        todo=todo,
        within=within,
        rank=rank,
        files=files_of(tx, todo, within),
        is_parent=todo.has_sub_plan,
    )
    if todo.parent_id is not None:
        primary = tx.records[qualified(within, todo.parent_id)]
        record = record._replace(
            parent_id=primary.id,
            depth=todo.branch_depth or 1,
            opened=tx.now,
            failure=primary.failure,
            signature=primary.signature,
            diff_hash=primary.diff_hash,
            same=primary.same,
        )
        tx.update(primary, branches=(*primary.branches, record.id))
    tx.records[record.id] = record
    return record


def _readmit(tx: Transaction, branch: TodoRecord) -> None:
    """Give a branch of an earlier planning what it remembers of itself."""
    memory = tried(branch.todo)
    try:
        opened = None if memory.opened_at is None else datetime.fromisoformat(memory.opened_at).timestamp()
    except ValueError:
        opened = tx.now
    branch = tx.update(
        branch,
        opened=opened,
        attempts=memory.attempts,
        signature=memory.signature,
        diff_hash=memory.diff_hash,
    )
    if opened is not None and branch.attempts:  # somebody has worked on it since
        tx.begin_lifetime(branch, opened)
    tx.open_branches += 1


def _branch_rank(tx: Transaction, branch: Todo, within: str) -> tuple[int, ...]:
    assert branch.parent_id is not None
    primary = tx.records[qualified(within, branch.parent_id)]
    return (*primary.rank, len(primary.branches) + 1)


def is_said_to_be_done(tx: Transaction, record: TodoRecord) -> bool:
    """Return whether a todo is verified before anybody works on it: claimed, or repaired before."""
    if record.turns or record.is_branch or record.outcome is not None:
        return False
    return record.todo.id in tx.parts[record.within].repaired or is_claimed(tx, record)


def is_claimed(state: State, record: TodoRecord) -> bool:
    """Return whether a todo, the one that it repairs, or a parent of it is said to be done."""
    if record.todo.status is TodoStatus.CLAIMED:
        return True
    above = record.parent_id or record.within
    return bool(above) and is_claimed(state, state.records[above])


def digest_of_edits(previous: str, edits: Sequence[Edit]) -> str:
    """Return the digest of a version: of the digest before it, a newline, and the edits as JSON."""
    text = _EDITS.dump_json(tuple(edits), exclude_none=True)
    return "sha256:" + sha256(previous.encode() + b"\n" + text).hexdigest()


def draft_of(tx: Transaction, within: str) -> PlanDraft:
    """Return a plan as it stands, to which edits can be applied."""
    records = [record for record in tx.records.values() if record.within == within]
    items = tuple(record.todo for record in sorted(records, key=lambda record: record.rank))
    return PlanDraft(tx.parts[within].plan.model_copy(update={"items": items}))


def publish(tx: Transaction, within: str, edits: Sequence[Edit], rule: str, because: str) -> None:
    """Give a plan its next version. Raises :class:`planner.errors.EditConflictError`, changing nothing."""
    part = tx.parts[within]
    draft = draft_of(tx, within)
    new, changed = draft.apply(edits)
    version, digest = part.version + 1, digest_of_edits(part.digest, edits)
    plan = part.plan.model_copy(update={"metadata": draft.policy})
    tx.parts[within] = part._replace(
        plan=plan, version=version, digest=digest, versions={**part.versions, digest: version}
    )
    if tx.plan_state is PlanState.EXECUTING:
        tx.plan_to(PlanState.REVISING)
    facts = {"within": within, "version": version, "digest": digest, "previous": part.digest}
    tx.emit(PublishPlan, rule, because, edits=tuple(edits), **facts)
    for index, name in enumerate(new):
        record = _add(tx, draft.items[name], within, _rank(tx, draft.items[name], within, edits, index))
        if within and not record.is_branch:
            parent = tx.records[within]
            tx.update(parent, children=(*parent.children, record.id))
    for name in changed:
        _replace(tx, tx.records[qualified(within, name)], draft.items[name])
    for name in new:
        record = tx.records[qualified(within, name)]
        _wait(tx, record, record.todo.dependencies)
    tx.offer([qualified(within, name) for name in new])


def _rank(tx: Transaction, todo: Todo, within: str, edits: Sequence[Edit], index: int) -> tuple[int, ...]:
    """Put a branch behind its todo, anything else in front of what waits for it."""
    if todo.parent_id is not None:
        return _branch_rank(tx, todo, within)
    for edit in edits:
        if isinstance(edit, AddTodoBefore) and edit.todo.id == todo.id:
            known = tx.records.get(qualified(within, edit.todo_id))
            if known is not None:
                return (*known.rank[:-1], known.rank[-1] - 1, tx.parts[within].version, index)
    return (tx.events, index)


def _replace(tx: Transaction, record: TodoRecord, todo: Todo) -> None:
    old, files = record.todo, files_of(tx, todo, record.within)
    if record.id in tx.live:  # what it was told that it may write stays its own for this turn
        files = tuple(dict.fromkeys((*record.files, *files)))
    tx.update(record, todo=todo, files=files)
    if _judges(old) != _judges(todo):
        tx.update(record, judged_since=tx.parts[record.within].version)
        tx.judged_anew.append(record.id)
    tx.changed.append(record.id)
    # No edit takes a dependency away.
    _wait(tx, record, [each for each in todo.dependencies if each not in old.dependencies])


def _wait(tx: Transaction, record: TodoRecord, dependencies: Iterable[str]) -> None:
    """Let a todo wait for others of its plan."""
    for each in dict.fromkeys(dependencies):
        before = tx.records.get(qualified(record.within, each))
        if before is None:
            continue
        if before.life.is_final and before.life is not TodoLife.DONE:  # it will never be done
            if tx.records[record.id].life is TodoLife.PENDING:
                tx.fail(tx.records[record.id], TodoLife.SKIPPED)
        else:
            tx.dependents[before.id] = (*tx.dependents.get(before.id, ()), record.id)


def current_plan(state: State, within: str = "") -> Plan:
    """Return a plan of a run with every edit that was applied, without what was temporary and has ended.

    ``within`` is the qualified id of the parent whose sub-plan is meant. Branches stand behind their todo,
    steps in front of what waits for them.
    """

    def is_useless(record: TodoRecord) -> bool:
        if record.parent_id is not None:
            return state.records[record.parent_id].life.is_final
        waiting = (state.records[name] for name in state.dependents.get(record.id, ()))
        return record.life.is_final and all(each.life.is_final for each in waiting)

    records = (each for each in state.records.values() if each.within == within)
    items = tuple(
        each.todo
        for each in sorted(records, key=lambda record: record.rank)
        if not (each.todo.is_temporary and is_useless(each))
    )
    return state.parts[within].plan.model_copy(update={"items": items})


def is_plan_of(state: State, plan: Plan, within: str = "") -> bool:
    """Return whether a plan file is what a run has begun with, or what it has made of it.

    Temporary todos of the run may be in it or not.
    """
    part = state.parts.get(within)
    if part is None:
        return True  # it is not loaded yet
    before = {todo.id: todo for todo in part.plan.items}
    now = {each.todo.id: each.todo for each in state.records.values() if each.within == within}
    for todo in plan.items:
        if todo.id not in now:
            return False
        if not todo.is_temporary and todo not in (before.get(todo.id), now[todo.id]):
            return False
    seen = {todo.id for todo in plan.items}
    if any(name not in seen and not todo.is_temporary for name, todo in before.items()):
        return False
    # The policy of a sub-plan is kept as it is under that of the plan above it.
    return within != "" or plan.metadata == part.plan.metadata
