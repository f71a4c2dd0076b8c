"""``planner waves``: which todos of a plan can be worked on side by side, and what others wait for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, OutcomesOption, PlanArgument, plan_or_usual
from planner.cli.ending import Status, ends
from planner.cli.screen import Screen, print_json
from planner.text.display import counted, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan

app = command_app()


@app.command(epilog="Exit status: 0 shown, 2 wrong usage, 4 a file that cannot be read or does not fit.")
@ends
def waves(plan: PlanArgument = None, outcomes: OutcomesOption = None, as_json: JsonOption = False) -> int:
    """Show which todos can be worked on at the same time: wave by wave, what is done left out.

    A todo stands in the first wave after all that it depends on in which nobody else may write its files:
    its allowed_files, else its target_file and expected_artifacts. One that names no files is taken to be
    apart from all others.
    """
    from planner.errors import ForeignOutcomesError, PlannerError
    from planner.model.verdicts import TodoState
    from planner.planfile.latest_outcomes import find_outcomes
    from planner.planfile.tree import load_tree
    from planner.policy.dependencies import placed_in_waves, to_be_worked_on
    from planner.policy.outcomes import state_of

    flat = load_tree(plan_or_usual(plan)).load_all().flat()
    remark, done = None, frozenset[str]()
    try:
        known = find_outcomes(flat.loaded, outcomes, flat.files)
        remark = known.plan_change
        if known.document is not None and remark is None:
            states = {each.todo_id: state_of(each) for each in known.document.outcomes}
            done = frozenset(each for each, state in states.items() if state is TodoState.DONE)
    except ForeignOutcomesError as error:
        if outcomes is not None:
            raise
        remark = str(error)
    try:
        found = placed_in_waves(to_be_worked_on(_rooted_alike(flat), flat.children, done))
    except ValueError as error:  # one that only a branch can close
        raise PlannerError(f"{error}; remove a dependency of the branch among them") from error
    left_out = [todo.id for todo in flat.loaded.plan.items if todo.id in done]
    if as_json:
        told = [
            [
                {
                    "todo_id": each.todo.id,
                    "title": each.todo.title,
                    "role": each.todo.agent_role.value,
                    "files": list(each.files),
                    "after": list(each.after),
                    "apart_from": [
                        {"todo_id": at.todo_id, "files": list(at.files)} for at in each.apart_from
                    ],
                }
                for each in wave
            ]
            for wave in found
        ]
        print_json(
            {
                "plan": {"todo_list_id": flat.loaded.plan.todo_list_id, "digest": flat.loaded.digest},
                "remarks": [] if remark is None else [remark],
                "done": left_out,
                "waves": told,
            },
            sort_keys=True,
        )
        return Status.OK
    screen = Screen()
    if remark is not None:
        screen.remark(remark)
    count = f"{counted(sum(map(len, found)), 'todo')} in {counted(len(found), 'wave')}"
    screen.paragraph(f"{flat.loaded.plan.workflow_name or flat.loaded.plan.todo_list_id}: {count}")
    for number, wave in enumerate(found, 1):
        screen.line()
        screen.line(screen.style(f"Wave {number} ({len(wave)})", "strong"))
        for placed in wave:
            screen.clipped(f"  {screen.one_line(placed.todo.id)}  {screen.one_line(placed.todo.title)}")
            if placed.after:
                screen.labelled("after", listed(placed.after), indent=4)
            for other in placed.apart_from:
                screen.labelled(
                    "apart", f"from {other.todo_id}, for both may write {listed(other.files)}", indent=4
                )
    if left_out:
        screen.line()
        screen.paragraph(f"done: {listed(left_out)}")
    screen.show()
    return Status.OK


def _rooted_alike(flat: FlatPlan) -> Sequence[Todo]:
    """Return the todos, their files as they are written in one folder above the roots of all plan files."""
    from planner.policy.allowed_files import claimed_files
    from planner.text.glob_patterns import seen_from_above

    items = flat.loaded.plan.items
    roots = {str(part.root) for part in flat.parts}
    top = os.path.commonpath(roots)
    folders = {root: os.path.relpath(root, top).replace(os.sep, "/") for root in roots}
    return [
        todo.model_copy(update={"allowed_files": tuple(seen_from_above(each, folder) for each in files)})
        if (files := claimed_files(todo)) and (folder := folders[str(flat.owner(todo.id).root)]) != "."
        else todo
        for todo in items
    ]
