"""``planner next``: what the outcomes of a run call for, shown or written into a new plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, OutcomesOption, TodoOption, TodosArgument, choose_plan
from planner.cli.ending import Status, UsageMistake, ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.decision import Decisions

app = command_app()

EPILOG = """\
\b
Exit status
   0  somebody can go on: there is work for a role, or the plan is completed
   2  wrong usage
   4  the plan or its outcomes cannot be read, or do not fit each other
  10  nothing to do but to mend the environment and to verify again
  11  nothing to do until a person approves, answers or decides
  12  halted: the budget is used up
  13  halted: a violation of the sandbox, of hygiene or of the allowed files

The plan and the outcomes are only read. --output writes a new plan with every edit that needs no approval
or has it; pytest --planverify FILE verifies it at once.
"""


@app.command(epilog=EPILOG)
@ends
def next_(
    plan: TodosArgument = None,
    outcomes: OutcomesOption = None,
    as_json: JsonOption = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the revised plan to this new file."),
    ] = None,
    approve: Annotated[
        list[str] | None,
        typer.Option(
            "--approve",
            metavar="ID",
            help="Agree to a branch or an edit, by the id that is shown with it; 'all' agrees to all of "
            "them. May be given several times.",
        ),
    ] = None,
    todo: TodoOption = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="Tell what is outstanding in the run that planner step keeps in this file.",
        ),
    ] = None,
) -> int:
    """Decide what comes next: who repairs what, what is ready meanwhile, what waits for a person.

    Rests on the outcomes of the last run of pytest --planverify, or with --log on what the engine was told
    in a run of planner step. The same facts give the same decisions.
    """
    if log is not None:
        from planner.cli.next_of_run import show_outstanding

        for option, given in (("--outcomes", outcomes), ("--output", output), ("--approve", approve)):
            if given:
                raise UsageMistake(f"{option} does not go with --log; tell the run by planner step instead")
        return show_outstanding(log, todo, as_json=as_json)
    from planner.cli.question import load_question

    choice = choose_plan(plan)
    plan = choice.path
    todo_ids = (*(choice.todo_ids or ()), *([] if todo is None else [todo]))
    asked = load_question(plan, outcomes)
    approved = tuple(dict.fromkeys(approve or ()))
    decisions = asked.decide(approved, todo_ids)
    refuse_unknown(approved, decisions)
    revision = None
    if output is not None:
        from planner.cli.next_plan import write_revision

        revision = write_revision(asked, decisions, approved, output)
    if as_json:
        from planner.cli.screen import write
        from planner.edges.decision_file import render_decisions

        write(render_decisions(decisions))
        if revision is not None:
            revision.tell_beside()
    else:
        from planner.cli.next_screen import show_decisions

        show_decisions(decisions, plan, revision)
    return status_of(decisions)


def refuse_unknown(approved: Sequence[str], decisions: Decisions) -> None:
    """Refuse an approval of something that nobody asks about."""
    from planner.rules.approving import ALL, edits_with_ids

    known = [repair.branch_id for repair in decisions.repairs if repair.branch_id is not None]
    known += [
        name for repair in decisions.repairs for _, name in edits_with_ids(repair) if name is not None
    ]
    for name in approved:
        if name != ALL and name not in known:
            from planner.cli.arguments import nearest

            listing = nearest(name, dict.fromkeys(known), "what can be approved is")
            raise UsageMistake(f"--approve {name}: nothing of that id is to be approved; {listing}")


def status_of(decisions: Decisions) -> Status:
    """The exit status: whether somebody can go on, and what stands in the way if not."""
    from planner.model.decision import Approval, Move, NeedKind
    from planner.model.taxonomy import Family, Role

    halt = decisions.halt
    if halt is not None:
        halted_by = {Family.SANDBOX: Status.SECURITY_HALT, Family.BUDGET: Status.BUDGET_HALT}
        return halted_by.get(halt.category.facts.family, Status.HUMAN_NEEDED)
    workable = any(
        repair.move in (Move.BRANCH, Move.RETRY, Move.SEPARATE, Move.VERIFY)
        and repair.approval is not Approval.NEEDED
        and repair.role is not Role.HUMAN
        for repair in decisions.repairs
    )
    if workable or any(ready.role is not Role.HUMAN for ready in decisions.ready):
        return Status.OK
    kinds = {need.kind for need in decisions.needs_human}
    if NeedKind.MEND_ENVIRONMENT in kinds:
        return Status.ENVIRONMENT
    return Status.HUMAN_NEEDED if kinds or decisions.ready else Status.OK
