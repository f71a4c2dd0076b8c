"""``planner status``: the tree of todos with states and progress, or one todo from near."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, OutcomesOption, TodosArgument, choose_plan
from planner.cli.completing import complete_todo
from planner.cli.ending import Status, UsageMistake, ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.engine.progress import Node, StatusTree
    from planner.store.plan_run import PlanRun

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
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="The log of the run. Default: the newest of the plan."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Show the tree of todos: how each stands, progress at every level, what blocks what since when."""
    from planner.cli.next import open_run
    from planner.engine.progress import status_tree
    from planner.planfile.kept_runs import blocked_since

    choice = choose_plan(plan)
    run = open_run(choice.path, outcomes, log)
    tree = status_tree(run.state, blocked_since(run.tree.loaded.root, run.state.plan_id))
    names = choice.todo_ids or ()
    nodes = [_named(tree, each) for each in (*names, *([] if todo is None else [todo]))]
    if as_json:
        _show_json(run, tree, nodes, depth)
    else:
        from planner.cli.status_screen import show_status

        show_status(run, tree, nodes, depth)
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


def _show_json(run: PlanRun, tree: StatusTree, named: Sequence[Node], depth: int | None) -> None:
    from planner.cli.next_screen import advice
    from planner.cli.screen import write

    nodes = named or tree.nodes
    document = {
        "plan": {
            "todo_list_id": run.state.plan_id,
            "title": tree.title,
            "digest": run.tree.loaded.digest,
            "state": run.state.plan_state.value,
        },
        "run_id": None if run.found.document is None else run.found.document.run.run_id or None,
        "remarks": [*advice(run).remarks, *run.remarks],
        "progress": {"done": tree.done, "total": tree.total},
        "todos": [_plain(each, depth) for each in nodes] if depth != 0 else [],
    }
    write(json.dumps(document, indent=2, sort_keys=True) + "\n")


def _plain(node: Node, depth: int | None) -> dict[str, Any]:
    below = None if depth is None else depth - 1
    plain: dict[str, Any] = {
        "todo_id": node.id,
        "title": node.title,
        "state": node.state,
        "waits": node.waits,
        "blocked_by": list(node.blocked_by),
        "since": node.since,
        "unproved": node.unproved or None,
        "progress": {"done": node.done, "total": node.total} if node.children else None,
    }
    if below != 0:
        plain["branches"] = [_plain(each, below) for each in node.branches]
        plain["todos"] = [_plain(each, below) for each in node.children]
    return {key: value for key, value in plain.items() if value not in (None, [])}
