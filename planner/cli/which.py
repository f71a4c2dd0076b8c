"""``planner which``: the criteria that need a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, OutcomesOption, PlanArgument, plan_or_usual
from planner.cli.ending import Status, ends

if TYPE_CHECKING:
    from planner.planfile.loader import LoadedPlan
    from planner.rules.needing import Need

app = command_app()


@app.command(
    epilog="Exit status: 0 found, 1 no criterion needs it, 2 wrong usage, 4 a file cannot be read."
)
@ends
def which(
    nodeid: Annotated[
        str,
        typer.Argument(metavar="NODEID", help="A test as pytest names it; or a file, folder or class."),
    ],
    plan: PlanArgument = None,
    outcomes: OutcomesOption = None,
    as_json: JsonOption = False,
) -> int:
    """Tell which criteria of a plan need a test.

    Where the plan was verified as it is now, the run knows exactly. Else it is read from what the commands
    select; what -k and -m match only pytest knows, and such a command may need the test.
    """
    from planner.edges.latest_outcomes import find_outcomes
    from planner.errors import OutcomeFileError
    from planner.planfile.tree import load_tree
    from planner.rules.needing import needed_by_commands, needed_in_run

    flat = load_tree(plan_or_usual(plan)).load_all().flat()
    loaded = flat.loaded
    asked = _below_root(nodeid, loaded)
    needs: tuple[Need, ...] = ()
    remark = None
    try:
        needs = needed_in_run(asked, find_outcomes(loaded, outcomes, flat.files).current().outcomes)
    except OutcomeFileError as error:
        if outcomes is not None:
            raise
        remark = str(error)
    seen = {(need.todo_id, need.check_id) for need in needs}
    read = needed_by_commands(asked, loaded.criteria)
    needs = (*needs, *(need for need in read if (need.todo_id, need.check_id) not in seen))
    if as_json:
        _show_json(asked, needs, remark)
    else:
        _show(asked, needs, remark)
    return Status.OK if needs else Status.FOUND


def _below_root(nodeid: str, loaded: LoadedPlan) -> str:
    """The node id relative to the plan's root, for someone who names a file relative to where they are."""
    name, colons, rest = nodeid.partition("::")
    path = Path(name).absolute()
    if (loaded.root / name).exists() or not path.exists():
        return nodeid
    try:
        return f"{path.resolve().relative_to(loaded.root).as_posix()}{colons}{rest}"
    except ValueError:
        return nodeid


def _show_json(nodeid: str, needs: tuple[Need, ...], remark: str | None) -> None:
    from planner.cli.screen import write

    document = {
        "nodeid": nodeid,
        "remark": remark,
        "criteria": [
            {
                "todo_id": need.todo_id,
                "check_id": need.check_id,
                "cmd": need.cmd,
                "certainty": need.certainty.value,
                "because": need.because,
                "nodeids": list(need.nodeids),
            }
            for need in needs
        ],
    }
    write(json.dumps(document, indent=2, sort_keys=True) + "\n")


def _show(nodeid: str, needs: tuple[Need, ...], remark: str | None) -> None:
    from planner.cli.screen import Screen, counted

    screen = Screen()
    if remark:
        screen.remark(remark)
    if not needs:
        screen.paragraph(f"No criterion of the plan needs {nodeid}.")
    else:
        screen.paragraph(f"{nodeid} is needed by {counted(len(needs), 'criterion')}:")
    for need in needs:
        word = "may need it" if need.certainty == "may" else "needs it"
        screen.line(f"  {screen.style(screen.one_line(need.todo_id), 'strong')} {need.check_id}  {word}")
        if need.cmd:
            screen.line(f"    {screen.one_line(need.cmd)}")
        screen.paragraph(need.because, indent=4)
    screen.show()
