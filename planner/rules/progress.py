"""The status tree of a plan: how each todo stands, what hangs below it, progress at every level."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from planner.model.verdicts import TodoState, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planner.model.plan import Plan
    from planner.rules.board import Board, Entry


class Standing(StrEnum):
    """How a todo stands: those of its states that a run and its children can tell."""

    DONE = "done"
    FAILED = "test_failed"
    TESTING = "testing"
    """The run could not tell: ``waits`` says why."""
    BLOCKED = "blocked"
    ACTIVE = "active"
    """A parent that is begun: some of its children are done, or have failed and can be repaired."""
    PENDING = "pending"
    """Nothing of it was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One todo of the tree."""

    id: str
    """Qualified by its parents: ``phase-2/buffer-impl``."""
    title: str
    standing: Standing
    waits: str | None = None
    """Why a todo under test is not decided, or what keeps a parent open."""
    blocked_by: tuple[str, ...] = ()
    since: str | None = None
    """Since when it is known to be blocked."""
    is_branch: bool = False
    is_parent: bool = False
    branches: tuple[Node, ...] = ()
    children: tuple[Node, ...] = ()
    """The todos of its sub-plan."""
    done: int = 0
    total: int = 0
    """Of the todos below it that have no sub-plan themselves; branches are not counted."""

    def walk(self) -> Iterator[Node]:
        """It and all below it."""
        pending: list[Node] = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed((*node.branches, *node.children)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTree:
    """A plan and how its todos stand."""

    title: str
    nodes: tuple[Node, ...]
    done: int
    total: int

    def walk(self) -> Iterator[Node]:
        """Every node, in the order in which the tree is read."""
        for node in self.nodes:
            yield from node.walk()

    def find(self, todo_id: str) -> Node | None:
        """The node of that qualified id."""
        return next((node for node in self.walk() if node.id == todo_id), None)

    def counts(self) -> dict[Standing, int]:
        """How many of the counted todos stand how, without what no todo is."""
        found = dict.fromkeys(Standing, 0)
        for node in self.walk():
            if not node.is_branch and not node.children:
                found[node.standing] += 1
        return {standing: count for standing, count in found.items() if count}


def status_tree(plan: Plan, board: Board, since: Mapping[str, str] | None = None) -> StatusTree:
    """The tree of a plan. ``since`` tells by qualified id since when a todo is known to be blocked."""
    by_level: dict[str, list[Entry]] = {}
    for entry in board.entries.values():
        by_level.setdefault(entry.within, []).append(entry)
    made: dict[str, Node] = {}
    # Deeper levels before those above, and on one level branches before the todos that they hang below.
    for _, level in sorted(by_level.items(), key=lambda each: -_depth(each[0])):
        for entry in sorted(level, key=lambda each: not _hangs_below(each, board)):
            below = [
                made[child.id] for child in by_level.get(entry.id, ()) if not _hangs_below(child, board)
            ]
            made[entry.id] = _node(entry, board, below, made, since or {})
    top = tuple(made[entry.id] for entry in by_level.get("", ()) if not _hangs_below(entry, board))
    done, total = _progress(top)
    return StatusTree(title=plan.workflow_name or plan.todo_list_id, nodes=top, done=done, total=total)


def _depth(within: str) -> int:
    return within.count("/") + bool(within)


def _hangs_below(entry: Entry, board: Board) -> bool:
    """Whether it is a branch that is shown below its parent; without a primary one it stands for itself."""
    if entry.todo.parent_id is None:
        return False
    parent = board.entries.get(entry.sibling(entry.todo.parent_id))
    return parent is not None and not parent.is_branch


def _node(
    entry: Entry,
    board: Board,
    children: Sequence[Node],
    made: Mapping[str, Node],
    since: Mapping[str, str],
) -> Node:
    standing = _standing(entry, board, children)
    done, total = _progress(children) if children else (int(standing is Standing.DONE), 1)
    return Node(
        id=entry.id,
        title=entry.todo.title,
        standing=standing,
        waits=_waits(entry, standing, children),
        blocked_by=board.blocked.get(entry.id, ()) if standing is Standing.BLOCKED else (),
        since=since.get(entry.id) if standing is Standing.BLOCKED else None,
        is_branch=entry.is_branch,
        is_parent=entry.todo.has_sub_plan,
        branches=tuple(
            made[branch.id] for branch in board.branches_of(entry) if _hangs_below(branch, board)
        ),
        children=tuple(children),
        done=done,
        total=total,
    )


_MOST_NAMED = 3

_STANDINGS: dict[TodoState, Standing] = {
    TodoState.DONE: Standing.DONE,
    TodoState.TEST_FAILED: Standing.FAILED,
    TodoState.TESTING: Standing.TESTING,
    TodoState.BLOCKED: Standing.BLOCKED,
    TodoState.PENDING: Standing.PENDING,
}

_WAITS: tuple[tuple[Verdict, str], ...] = (
    (Verdict.INCONCLUSIVE, "a check could not be run to its end"),
    (Verdict.STALE, "an answer belongs to another question"),
    (Verdict.NEEDS_HUMAN, "a question waits for a person"),
    (Verdict.NOT_RUN, "not all of its checks were run"),
)


def _standing(entry: Entry, board: Board, children: Sequence[Node]) -> Standing:
    said = entry.state
    if said is TodoState.DONE or said is TodoState.TEST_FAILED:
        return _STANDINGS[said]
    if entry.id in board.blocked:
        return Standing.BLOCKED
    if children and said in (None, TodoState.PENDING, TodoState.TESTING):
        return _from_children({child.standing for child in children})
    return Standing.PENDING if said is None else _STANDINGS[said]


def _from_children(standings: set[Standing]) -> Standing:
    """How a parent stands of which only the children were verified: it stays open while one has failed."""
    if standings & {Standing.FAILED, Standing.ACTIVE}:
        return Standing.ACTIVE
    if len(standings) == 1:
        return standings.pop()
    if Standing.DONE in standings:
        return Standing.ACTIVE
    return Standing.TESTING if Standing.TESTING in standings else Standing.PENDING


def _waits(entry: Entry, standing: Standing, children: Sequence[Node]) -> str | None:
    """Why a todo is neither done nor failed nor blocked."""
    failed = [child.id.rpartition("/")[2] for child in children if child.standing is Standing.FAILED]
    if standing is Standing.ACTIVE and failed:
        more = f" and {len(failed) - _MOST_NAMED} more" if len(failed) > _MOST_NAMED else ""
        return f"{', '.join(failed[:_MOST_NAMED])}{more} failed"
    if standing is not Standing.TESTING or entry.outcome is None:
        return None
    seen = {check.verdict for check in entry.outcome.checks}
    return next((text for verdict, text in _WAITS if verdict in seen), None)


def _progress(nodes: Sequence[Node]) -> tuple[int, int]:
    counted = [node for node in nodes if not node.is_branch]
    return sum(node.done for node in counted), sum(node.total for node in counted)
