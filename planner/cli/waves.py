"""``planner waves``: which todos of a plan can be worked on side by side, and what others wait for."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, OutcomesOption, PlanArgument, plan_or_usual
from planner.cli.ending import Status, ends

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.cli.screen import Screen
    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from planner.policy.dependencies import Placed

app = command_app()


@app.command(epilog="Exit status: 0 shown, 2 wrong usage, 4 a file that cannot be read or does not fit.")
@ends
def waves(plan: PlanArgument = None, outcomes: OutcomesOption = None, as_json: JsonOption = False) -> int:
    """Show which todos can be worked on at the same time: wave by wave, what is done left out.

    A todo stands in the first wave after all that it depends on in which nobody else may write its files:
    its allowed_files, else its target_file and expected_artifacts. One that names no files is taken to be
    apart from all others.
    """
    from planner.errors import PlannerError
    from planner.planfile.tree import load_tree
    from planner.policy.dependencies import placed_in_waves, to_be_worked_on

    flat = load_tree(plan_or_usual(plan)).load_all().flat()
    known = _done(flat, outcomes)
    try:
        found = placed_in_waves(to_be_worked_on(_rooted_alike(flat), flat.children, known.done))
    except ValueError as error:  # one that only a branch can close
        raise PlannerError(f"{error}; remove a dependency of the branch among them") from error
    left_out = [todo.id for todo in flat.loaded.plan.items if todo.id in known.done]
    (_show_json if as_json else _show)(flat, found, left_out, known.remarks)
    return Status.OK


class _Known(NamedTuple):
    """What the outcomes tell: who is done, and why less is known than might be."""

    done: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()


def _done(flat: FlatPlan, given: Path | None) -> _Known:
    from planner.errors import OutcomeFileError
    from planner.model.verdicts import TodoState
    from planner.planfile.latest_outcomes import find_outcomes
    from planner.policy.outcomes import state_of

    try:
        found = find_outcomes(flat.loaded, given, flat.files)
    except OutcomeFileError as error:
        if given is not None:
            raise
        return _Known(remarks=(str(error),))
    if found.document is None or found.plan_change is not None:
        return _Known(remarks=() if found.plan_change is None else (found.plan_change,))
    states = {each.todo_id: state_of(each) for each in found.document.outcomes}
    return _Known(frozenset(each for each, state in states.items() if state is TodoState.DONE))


def _rooted_alike(flat: FlatPlan) -> Sequence[Todo]:
    """The todos, their files as they are written in one folder above the roots of all plan files."""
    from planner.policy.allowed_files import claimed_files
    from planner.text.glob_patterns import seen_from_above

    items = flat.loaded.plan.items
    roots = {str(part.root) for part in flat.parts}
    if len(roots) == 1:
        return items
    top = os.path.commonpath(roots)
    folders = {root: os.path.relpath(root, top).replace(os.sep, "/") for root in roots}
    return [
        todo.model_copy(update={"allowed_files": tuple(seen_from_above(each, folder) for each in files)})
        if (files := claimed_files(todo)) and (folder := folders[str(flat.owner(todo.id).root)]) != "."
        else todo
        for todo in items
    ]


def _show_json(
    flat: FlatPlan, found: Sequence[Sequence[Placed]], left_out: Sequence[str], remarks: Sequence[str]
) -> None:
    from planner.cli.screen import write

    document = {
        "plan": {"todo_list_id": flat.loaded.plan.todo_list_id, "digest": flat.loaded.digest},
        "remarks": list(remarks),
        "done": list(left_out),
        "waves": [[_plain(each) for each in wave] for wave in found],
    }
    write(json.dumps(document, indent=2, sort_keys=True) + "\n")


def _plain(placed: Placed) -> dict[str, Any]:
    return {
        "todo_id": placed.todo.id,
        "title": placed.todo.title,
        "role": placed.todo.agent_role.value,
        "files": list(placed.files),
        "after": list(placed.after),
        "apart_from": [
            {"todo_id": other.todo_id, "files": list(other.files)} for other in placed.apart_from
        ],
    }


def _show(
    flat: FlatPlan, found: Sequence[Sequence[Placed]], left_out: Sequence[str], remarks: Sequence[str]
) -> None:
    from planner.cli.screen import Screen
    from planner.text.display import counted, listed

    screen = Screen()
    for remark in remarks:
        screen.remark(remark)
    count = sum(map(len, found))
    plan = flat.loaded.plan
    name = screen.one_line(plan.workflow_name or plan.todo_list_id)
    screen.paragraph(f"{name}: {counted(count, 'todo')} in {counted(len(found), 'wave')}")
    for number, wave in enumerate(found, 1):
        screen.line()
        screen.line(screen.style(f"Wave {number} ({len(wave)})", "strong"))
        for placed in wave:
            _placed(screen, placed)
    if left_out:
        screen.line()
        screen.paragraph(f"done: {listed(left_out)}")
    screen.show()


def _placed(screen: Screen, placed: Placed) -> None:
    from planner.text.display import listed

    todo = placed.todo
    screen.clipped(f"  {screen.one_line(todo.id)}  {screen.one_line(todo.title)}")
    if placed.after:
        screen.labelled("after", listed(placed.after), indent=4)
    for other in placed.apart_from:
        screen.labelled(
            "apart", f"from {other.todo_id}, for both may write {_files(other.files)}", indent=4
        )


def _files(patterns: Sequence[str]) -> str:
    from planner.text.display import listed

    return patterns[0] if len(patterns) == 1 else f"what these name: {listed(patterns)}"
