"""Publishes new versions of a plan: edits are applied to the todos that they concern, in a digest chain."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from planner.engine.admission import files_of
from planner.engine.consequences import fail, offer
from planner.engine.state import TodoRecord
from planner.errors import EditConflictError
from planner.model.actions import PublishPlan
from planner.model.edits import Edit
from planner.model.ids import qualified
from planner.model.life import PlanState, TodoLife
from planner.revise.editing import Editing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.engine.transaction import Transaction
    from planner.model.plan import Todo

_EDITS: TypeAdapter[tuple[Edit, ...]] = TypeAdapter(tuple[Edit, ...])


def digest_of_edits(previous: str, edits: Sequence[Edit]) -> str:
    """The digest of a version of a plan: of the digest before it, a newline, and the edits as JSON."""
    text = _EDITS.dump_json(tuple(edits), exclude_none=True)
    return "sha256:" + sha256(previous.encode() + b"\n" + text).hexdigest()


def draft_of(tx: Transaction, within: str, todo_ids: Iterable[str] | None) -> Editing:
    """A part of a plan to which edits can be applied: these todos, by their own ids, and what they depend
    on; the whole of it for ``None``.
    """
    part = tx.parts[within]
    if todo_ids is None:
        records = [record for record in tx.records.values() if record.within == within]
    else:
        names = dict.fromkeys(qualified(within, name) for name in todo_ids)
        found = [tx.records[name] for name in names if name in tx.records]
        before = dict.fromkeys(
            qualified(within, name) for record in found for name in record.todo.dependencies
        )
        records = found + [tx.records[name] for name in before if name not in names and name in tx.records]
    items = tuple(record.todo for record in sorted(records, key=lambda record: record.rank))
    return Editing(part.plan.model_copy(update={"items": items}))


def publish(
    tx: Transaction, within: str, edits: Sequence[Edit], rule: str, because: str, *, whole: bool = False
) -> None:
    """Give a plan its next version. Raises :class:`planner.errors.EditConflictError`, and changes nothing.

    ``whole`` looks at every todo of the plan, as edits of a person call for; those of a strategy concern
    only the todos that they name.
    """
    part = tx.parts[within]
    editing = draft_of(tx, within, None if whole else _named(edits))
    changes = editing.apply(edits)
    for name in changes.inserted:
        if qualified(within, name) in tx.records:
            raise EditConflictError("any edit", name, "the id is taken", "give the new todo another id")
    plan = part.plan
    if changes.policy is not None:
        plan = plan.model_copy(update={"metadata": changes.policy})
    digest = digest_of_edits(part.digest, edits)
    tx.parts[within] = part._replace(
        plan=plan,
        version=part.version + 1,
        digest=digest,
        versions={**part.versions, digest: part.version + 1},
    )
    if tx.plan_state is PlanState.EXECUTING:
        tx.plan_to(PlanState.REVISING)
    tx.actions.append(
        PublishPlan(
            seq=tx.number(),
            rule=rule,
            because=because,
            within=within,
            version=part.version + 1,
            digest=digest,
            previous=part.digest,
            edits=tuple(edits),
        )
    )
    for index, name in enumerate(changes.inserted):
        todo = editing.todo(name)
        assert todo is not None
        _add(tx, todo, within, _rank(tx, todo, within, edits, index))
    for name in changes.replaced:
        todo = editing.todo(name)
        assert todo is not None
        _replace(tx, qualified(within, name), todo)
    for name in changes.inserted:
        _wait(tx, qualified(within, name), tx.records[qualified(within, name)].todo.dependencies)
    offer(tx, [qualified(within, name) for name in changes.inserted])


def judges(todo: Todo) -> tuple[object, ...]:
    """What judges a todo."""
    return (
        todo.acceptance_criteria,
        todo.verify,
        todo.test_command,
        todo.test_file,
        todo.contract_path,
        todo.must_turn_green,
        todo.must_stay_green,
    )


def _named(edits: Sequence[Edit]) -> set[str]:
    """The todos, by their own ids, that edits speak of."""
    names: set[str] = set()
    for edit in edits:
        todo_id = getattr(edit, "todo_id", None)
        if todo_id is not None:
            names.add(todo_id)
        on = getattr(edit, "on", None)
        if on is not None:
            names.add(on)
        added = (getattr(edit, "todo", None), *getattr(edit, "parts", ()))
        for todo in added:
            if todo is not None:
                names.update((todo.id, *todo.dependencies))
                names.update(name for name in (todo.parent_id, todo.via) if name is not None)
    return names


def _rank(tx: Transaction, todo: Todo, within: str, edits: Sequence[Edit], index: int) -> tuple[int, ...]:
    """A branch comes behind its todo, anything else in front of what waits for it."""
    if todo.parent_id is not None:
        parent = tx.records[qualified(within, todo.parent_id)]
        return (*parent.rank, len(parent.branches) + 1)
    for edit in edits:
        waiting = getattr(edit, "todo_id", None)
        added = (getattr(edit, "todo", None), *getattr(edit, "parts", ()))
        if waiting is not None and any(each is not None and each.id == todo.id for each in added):
            known = tx.records.get(qualified(within, waiting))
            if known is not None:
                return (*known.rank[:-1], known.rank[-1] - 1, tx.parts[within].version, index)
    return (tx.events, index)


def _add(tx: Transaction, todo: Todo, within: str, rank: tuple[int, ...]) -> None:
    name = qualified(within, todo.id)
    record = TodoRecord(
        id=name,
        todo=todo,
        within=within,
        rank=rank,
        files=files_of(tx, todo, within),
        is_parent=todo.has_sub_plan,
    )
    if todo.parent_id is None:
        tx.unfinished += 1
        tx.not_done += 1
        if within:
            parent = tx.records[within]
            tx.put(
                parent._replace(open_children=parent.open_children + 1, children=(*parent.children, name))
            )
    else:
        primary = tx.records[qualified(within, todo.parent_id)]
        lifetime = todo.max_lifetime_seconds or tx.parts[within].plan.metadata.branch_timeout_seconds
        record = record._replace(
            parent_id=primary.id,
            depth=todo.branch_depth or 1,
            opened=tx.now,
            expires=tx.now + lifetime,
            outcome=None,
            failure=primary.failure,
            signature=primary.signature,
            diff_hash=primary.diff_hash,
            same=primary.same,
            instructions=None,
        )
        tx.put(primary._replace(branches=(*primary.branches, name)))
        tx.remind(record.expires, name)
    tx.put(record)


def _replace(tx: Transaction, name: str, todo: Todo) -> None:
    record = tx.records[name]
    files = files_of(tx, todo, record.within)
    later: tuple[str, ...] | None = None
    if name in tx.live and record.files:  # what it was told that it may write stays its own for this turn
        files, later = record.files, files
    elif name in tx.live and files and not record.is_parent:
        tx.take_files_last(name)
    since = record.judged_since
    if judges(record.todo) != judges(todo):
        since = tx.parts[record.within].version
        tx.judged_anew.append(name)
    tx.put(record._replace(todo=todo, files=files, next_files=later, judged_since=since))
    tx.changed.append(name)
    old = set(record.todo.dependencies)  # no edit takes one away
    _wait(tx, name, [each for each in todo.dependencies if each not in old])


def _wait(tx: Transaction, name: str, dependencies: Iterable[str]) -> None:
    """Let a todo wait for others of its plan."""
    for each in dict.fromkeys(dependencies):
        record = tx.records[name]
        before = tx.records.get(qualified(record.within, each))
        if before is None:
            continue
        if before.life.is_final and before.life is not TodoLife.DONE:  # it will never be done
            if record.life is TodoLife.PENDING:
                fail(tx, record, TodoLife.SKIPPED)
            continue
        tx.dependents[before.id] = (*tx.dependents.get(before.id, ()), name)
        if before.life is not TodoLife.DONE:
            record = tx.put(record._replace(waits=record.waits + 1))
