"""Status tree of a run: the state of each todo, its branches and sub-todos, and progress at every level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.base import qualified
from planner.model.verdicts import TodoLife
from planner.policy.criteria import criterion_ids
from planner.text.display import listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from planner.engine.state import State, TodoRecord
    from planner.model.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusNode:
    """One todo in the status tree; the root is the plan."""

    id: str
    """Qualified by its parents: ``phase-2/buffer-impl``; empty for the plan."""
    title: str
    state: str
    """A value of :class:`planner.model.verdicts.TodoLife`, or ``ready``: requested and not begun; for the
    plan one of :class:`planner.model.verdicts.PlanState`."""
    waits: str | None = None
    """A phrase on what it waits for."""
    blocked_by: tuple[str, ...] = ()
    """Qualified id of the failing todo that blocks it; empty if it is not blocked."""
    unproved: bool = False
    """Done without a passing verification."""
    is_branch: bool = False
    branches: tuple[StatusNode, ...] = ()
    children: tuple[StatusNode, ...] = ()
    """The todos of the plan, or of its sub-plan."""
    done: int = 0
    total: int = 0
    """Number of leaf todos below it, without branches; ``done`` counts the same way."""

    def walk(self) -> Iterator[StatusNode]:
        """Yield all nodes below it, in display order."""
        for node in (*self.branches, *self.children):
            yield node
            yield from node.walk()

    def counts(self) -> dict[str, int]:
        """Return the number of the todos of ``total`` by state, ordered from finished to halted."""
        found: dict[str, int] = {}
        for node in self.walk():
            if node.total and not node.is_branch and not node.children:
                found[node.state] = found.get(node.state, 0) + 1
        return dict(sorted(found.items(), key=lambda item: _ORDER.index(item[0])))


READY = "ready"
_ORDER = (
    *("done", "test_failed", "testing", READY, "active"),
    *("blocked", "pending", "failed", "skipped", "halted"),
)


def status_tree(state: State, plans: Mapping[str, Plan], passed: Collection[str] = ()) -> StatusNode:
    """Build the status tree of a run; return its root, the plan.

    ``plans`` are the sub-plans by qualified id of their parent, also those that the engine loads later.
    ``passed`` are the ids of their todos that have passed a verification.
    """
    # Grouped once: searching the children of each parent would compare every todo with every parent.
    by_level: dict[str, list[TodoRecord]] = {}
    for record in sorted(state.todos.values(), key=lambda each: each.rank):
        if not record.is_branch:
            by_level.setdefault(record.within, []).append(record)
    blocked = state.blocked()

    def unloaded(parent: str, life: str) -> Iterator[StatusNode]:
        for todo in plans[parent].items if parent in plans else ():
            name = qualified(parent, todo.id)
            below = tuple(unloaded(name, life))
            is_done = name in passed and not below
            done, total = _progress(below) if below else (int(is_done), 1)
            shown = TodoLife.DONE.value if is_done else life
            yield StatusNode(id=name, title=todo.title, state=shown, children=below, done=done, total=total)

    def node_of(record: TodoRecord) -> StatusNode:
        children = tuple(node_of(each) for each in by_level.get(record.id, ()))
        shown = shown_state(state, record)
        is_open = shown in (READY, TodoLife.ACTIVE.value)
        children = children or tuple(unloaded(record.id, TodoLife.PENDING.value if is_open else shown))
        branches = tuple(node_of(state.records[name]) for name in record.branches)
        # Steps that the planner inserted are no todos of the plan.
        own = int(not record.todo.is_temporary)
        done, total = _progress(children) if children else (own * (record.life is TodoLife.DONE), own)
        return StatusNode(
            id=record.id,
            title=record.todo.title,
            state=shown,
            waits=_waits(state, record, children),
            blocked_by=(blocked[record.id],) if record.id in blocked else (),
            unproved=is_unproved(state, record),
            is_branch=record.is_branch,
            branches=branches,
            children=children,
            done=done,
            total=total,
        )

    top = tuple(node_of(each) for each in by_level.get("", ()))
    done, total = _progress(top)
    plan = state.parts[""].plan
    title, life = plan.workflow_name or plan.todo_list_id, state.plan_state.value
    return StatusNode(id="", title=title, state=life, children=top, done=done, total=total)


def is_unproved(state: State, record: TodoRecord) -> bool:
    """Return whether a todo is done without a verification; a branch shares that of the todo it repairs.

    A parent without criteria of its own shares those of its sub-plan.
    """
    if record.life is not TodoLife.DONE or record.verified or record.is_branch:
        return False
    below = [state.records[each] for each in record.children]
    return not below or bool(criterion_ids(record.todo)) or any(is_unproved(state, each) for each in below)


def shown_state(state: State, record: TodoRecord) -> str:
    """Return the state of a todo as shown to people.

    In a run without a driver, a todo or branch whose work is requested is shown as ``ready``, or as
    ``test_failed`` if the todo failed before; a parent is ``ready`` until one of its todos has begun.
    """
    # Nobody reports that work has begun, so "active" would say more than is known.
    if record.life is TodoLife.ACTIVE and not state.policy.driven:
        if record.todo.has_sub_plan:
            children = (shown_state(state, state.records[name]) for name in record.children)
            begun = any(each not in (READY, TodoLife.PENDING.value) for each in children)
            return record.life.value if begun else READY
        return READY if record.is_branch or record.outcome is None else TodoLife.TEST_FAILED.value
    return record.life.value


def _waits(state: State, record: TodoRecord, children: Sequence[StatusNode]) -> str | None:
    """Return a phrase on what an open todo waits for, or ``None``."""
    question = state.questions.get(record.question or "")
    if question is not None:
        return f"for a person: {question.question}"
    if record.life is TodoLife.ACTIVE and (record.retries or record.by_person) and not state.policy.driven:
        return f"{repair_turn(record)}, by the {record.todo.agent_role}"
    if record.life is TodoLife.TESTING:
        because = record.next_step.because if record.next_step else record.asked_by[1]
        reason = because.partition(":")[0]  # without the headline of the failure
        return f"to be verified again, as {reason}" if record.waited else "to be verified"
    if record.behind is not None:
        return f"for the repair of {record.behind}, which fails for the same cause"
    # The ids below a parent are shown without it, as it stands in the same line.
    red = [child.id.rpartition("/")[2] for child in children if child.state == TodoLife.TEST_FAILED]
    if red:
        return f"{listed(red, 3)} failed"
    return None


def repair_turn(record: TodoRecord) -> str:
    """Return what the current turn of work on a failed todo is: ``retry 1 of 2``."""
    if record.by_person:
        return "another turn, granted by a person"
    return f"retry {record.retries} of {record.todo.max_retries}" if record.retries else "another turn"


def _progress(nodes: Sequence[StatusNode]) -> tuple[int, int]:
    """Return the sums of ``done`` and ``total`` of sibling nodes."""
    return sum(node.done for node in nodes), sum(node.total for node in nodes)
