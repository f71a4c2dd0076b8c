"""``planner status``: the tree of todos with states and progress, or one todo from near."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, OutcomesOption, TodosArgument, choose_plan
from planner.cli.completing import complete_todo
from planner.cli.ending import Status, UsageMistake, ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.cli.loading import PlanView
    from planner.rules.progress import Node, StatusTree

app = command_app()


@app.command(
    epilog="\b\nExit status: 0 shown, 2 wrong usage, 4 a file that cannot be read or does not fit.\n"
    "A plan that was never verified is shown, too: every todo is pending then."
)
@ends
def status(
    plan: TodosArgument = None,
    todo: Annotated[
        str | None,
        typer.Argument(
            metavar="TODO",
            help="Show this todo from near. Todos of a sub-plan are named parent/todo.",
            autocompletion=complete_todo,
        ),
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", min=0, metavar="N", help="Show so many levels below the top.")
    ] = None,
    outcomes: OutcomesOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show the tree of todos: how each stands, progress at every level, what blocks what since when."""
    from planner.cli.loading import load_view
    from planner.rules.progress import status_tree

    choice = choose_plan(plan)
    view = load_view(choice.path, outcomes)
    tree = status_tree(view.loaded.plan, view.board, view.since)
    names = choice.todo_ids or ()
    nodes = [_named(tree, each) for each in (*names, *([] if todo is None else [todo]))]
    if as_json:
        _show_json(view, tree, nodes, depth)
    else:
        from planner.cli.status_screen import show_status

        show_status(view, tree, nodes, depth)
    return Status.OK


def _named(tree: StatusTree, todo_id: str) -> Node:
    node = tree.find(todo_id)
    if node is None:
        below = [each for each in tree.walk() if each.id.endswith(f"/{todo_id}")]
        if len(below) == 1:
            return below[0]
        from planner.cli.arguments import nearest

        raise UsageMistake(
            f"there is no todo '{todo_id}' in the plan; "
            + nearest(todo_id, [each.id for each in tree.walk()], "its todos are")
        )
    return node


def _show_json(view: PlanView, tree: StatusTree, named: Sequence[Node], depth: int | None) -> None:
    from planner.cli.screen import write

    nodes = named or tree.nodes
    document = {
        "plan": {
            "todo_list_id": view.loaded.plan.todo_list_id,
            "title": tree.title,
            "digest": view.loaded.digest,
        },
        "run_id": view.document.run.run_id or None,
        "remarks": list(view.remarks),
        "progress": {"done": tree.done, "total": tree.total},
        "todos": [_plain(each, depth) for each in nodes] if depth != 0 else [],
    }
    write(json.dumps(document, indent=2, sort_keys=True) + "\n")


def _plain(node: Node, depth: int | None) -> dict[str, Any]:
    below = None if depth is None else depth - 1
    plain: dict[str, Any] = {
        "todo_id": node.id,
        "title": node.title,
        "state": node.standing.value,
        "waits": node.waits,
        "blocked_by": list(node.blocked_by),
        "since": node.since,
        "progress": {"done": node.done, "total": node.total} if node.children else None,
    }
    if below != 0:
        plain["branches"] = [_plain(each, below) for each in node.branches]
        plain["todos"] = [_plain(each, below) for each in node.children]
    return {key: value for key, value in plain.items() if value not in (None, [])}
