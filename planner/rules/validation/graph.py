"""Branches hang on todos that exist, and dependencies say neither too much nor what can never be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.validation.facts import Facts, Found, is_branch
from planner.rules.validation.project import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.plan import Todo


def check(facts: Facts) -> Iterator[Found]:
    """Rules about parents, branches and dependencies."""
    for index, todo in facts.todos:
        if todo.parent_id is not None:
            yield from _parent(facts, index, todo, todo.parent_id)
        if todo.via is not None:
            yield from _via(facts, index, todo, todo.via)
        yield from _depth(facts, index, todo)
        yield from _dependencies(facts, index, todo)
        yield from _sub_plan(facts, index, todo)


def _parent(facts: Facts, index: int, todo: Todo, parent_id: str) -> Iterator[Found]:
    loc = ("items", index, "parent_id")
    parent = facts.by_id.get(parent_id)
    if parent is None:
        yield Found(
            "parent-unknown",
            loc,
            todo.id,
            f"there is no todo '{parent_id}' that '{todo.id}' could repair",
            "name the id of a primary todo of this plan",
        )
    elif parent_id == todo.id:
        yield Found(
            "parent-is-branch",
            loc,
            todo.id,
            f"'{todo.id}' is its own parent",
            "name the primary todo that it repairs",
        )
    elif parent.parent_id is not None:
        yield Found(
            "parent-is-branch",
            loc,
            todo.id,
            f"'{parent_id}' is itself a branch, of '{parent.parent_id}'",
            f"write parent_id: {parent.parent_id} and via: {parent_id}",
        )
    if facts.ancestry.waits_for(todo.id, parent_id):
        direct = parent_id in todo.dependencies
        yield Found(
            "branch-waits-for-parent",
            ("items", index, "dependencies"),
            todo.id,
            f"'{todo.id}' repairs '{parent_id}' and yet waits for it"
            + ("" if direct else " by its dependencies"),
            f"remove '{parent_id}' from its dependencies"
            if direct
            else "remove the dependency that leads there",
        )


def _via(facts: Facts, index: int, todo: Todo, via: str) -> Iterator[Found]:
    loc = ("items", index, "via")
    before = facts.by_id.get(via)
    if before is None or before.parent_id is None:
        what = "there is no todo" if before is None else "no branch is the todo"
        yield Found(
            "via-unknown",
            loc,
            todo.id,
            f"{what} '{via}' that '{todo.id}' could have come out of",
            "name a branch of the same parent, or leave via out",
        )
    elif before.parent_id != todo.parent_id and via != todo.id:
        yield Found(
            "via-unknown",
            loc,
            todo.id,
            f"'{via}' is a branch of '{before.parent_id}', '{todo.id}' one of '{todo.parent_id}'",
            f"name a branch of '{todo.parent_id}', or leave via out",
        )
    chain = _chain(facts, todo)
    if chain[-1] == todo.id and len(chain) > 1:
        yield Found(
            "via-cycle",
            loc,
            todo.id,
            f"the branches came out of each other in a circle: {' -> '.join(chain[:12])}",
            f"remove via from '{todo.id}'",
        )


def _chain(facts: Facts, todo: Todo) -> list[str]:
    """The branches that a branch came out of, itself first; itself also last where they go in a circle."""
    chain = [todo.id]
    seen = {todo.id}
    at: Todo | None = todo
    while at is not None and at.via is not None:
        chain.append(at.via)
        if at.via in seen:
            break
        seen.add(at.via)
        at = facts.by_id.get(at.via)
    return chain


def _depth(facts: Facts, index: int, todo: Todo) -> Iterator[Found]:
    most = facts.plan.metadata.max_branch_depth
    if todo.parent_id is None:
        return
    said = todo.branch_depth or 0
    chain = _chain(facts, todo)
    counted = 0 if chain[-1] in chain[:-1] else len(chain)
    if max(said, counted) > most:
        yield Found(
            "branch-too-deep",
            ("items", index, "branch_depth" if said > most else "via"),
            todo.id,
            f"'{todo.id}' lies {max(said, counted)} deep, the plan allows {most} (max_branch_depth)",
            f"let a person look at '{todo.parent_id}' instead, or raise max_branch_depth",
        )


def _dependencies(facts: Facts, index: int, todo: Todo) -> Iterator[Found]:
    if not todo.dependencies:
        return
    seen: set[str] = set()
    for position, dependency in enumerate(todo.dependencies):
        loc = ("items", index, "dependencies", position)
        if dependency in seen:
            yield Found(
                "dependency-repeated",
                loc,
                todo.id,
                f"'{dependency}' is named more than once",
                f"remove one '{dependency}'",
            )
        seen.add(dependency)
        other = facts.by_id.get(dependency)
        if other is not None and is_branch(other) and not is_branch(todo):
            instead = (
                f"depend on its parent '{other.parent_id}'"
                if other.parent_id
                else "depend on a lasting todo"
            )
            yield Found(
                "dependency-on-branch",
                loc,
                todo.id,
                f"'{todo.id}' waits for the branch '{dependency}', which goes when it has done its work",
                instead,
            )
    for position, dependency, by in facts.ancestry.implied(todo):
        yield Found(
            "dependency-implied",
            ("items", index, "dependencies", position),
            todo.id,
            f"'{dependency}' is implied: '{by}', on which '{todo.id}' depends too, waits for it",
            f"remove '{dependency}'",
        )


def _sub_plan(facts: Facts, index: int, todo: Todo) -> Iterator[Found]:
    if todo.sub_plan is not None and facts.project.kind(todo.sub_plan) is not Kind.FILE:
        near = facts.project.near(todo.sub_plan)
        yield Found(
            "sub-plan-missing",
            ("items", index, "sub_plan"),
            todo.id,
            f"there is no file {todo.sub_plan}",
            f"{f'did you mean {near}? else ' if near else ''}write the plan there",
        )
