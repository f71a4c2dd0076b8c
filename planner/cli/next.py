"""``planner next``: what to do now, for people, agents and programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command_app
from planner.cli.arguments import (
    JsonOption,
    OutcomesOption,
    TodoOption,
    TodosArgument,
    choose_plan,
    nearest,
)
from planner.cli.ending import Status, UsageMistake, complain, ends, program

if TYPE_CHECKING:
    from planner.engine import State
    from planner.model.actions import Action
    from planner.store.plan_run import PlanRun

app = command_app()

EPILOG = """\
\b
Exit status
   0  somebody can go on: there is work for a role, or the plan is completed
   1  all todos are done, but the run was not accepted
   2  wrong usage
   4  the plan or its outcomes cannot be read, or do not fit each other
  10  nothing to do but to repair the environment and to verify again
  11  nothing to do until a person approves, answers or decides
  12  halted: the budget is used up
  13  halted: a violation of the sandbox, of hygiene or of the allowed files

What each verification has found is kept in .planverify/logs below the plan's root, so that attempts and
limits are counted from run to run. Outcomes that are named are looked at by themselves.
"""

_LONG = frozenset(("brief", "bounds", "branch", "edits", "failure", "facts", "plan_digest", "digest"))
"""Fields of actions that ``--json`` leaves out unless ``--full`` asks for them."""

_BLAME_NOBODY = frozenset(("environment-blames-nobody", "harness-blames-nobody"))
"""Rules by which a todo is verified later, when somebody has seen to what was not there."""


@app.command(epilog=EPILOG)
@ends
def next_(
    plan: TodosArgument = None,
    outcomes: OutcomesOption = None,
    as_json: JsonOption = False,
    full: Annotated[
        bool, typer.Option("--full", help="With --json: every field of the actions, instructions too.")
    ] = False,
    brief: Annotated[
        str | None,
        typer.Option(
            "--brief", metavar="TODO", help="Print the instructions for this todo or branch, and no more."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the revised plan to this file."),
    ] = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="Write the revised plan over the old; planner undo brings that back."
        ),
    ] = False,
    todo: TodoOption = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="The log of the run. Default: the newest of the plan."),
    ] = None,
) -> int:
    """Say what to do now: who repairs what, what is ready, what waits for a person, or what to run."""
    from planner.cli.next_screen import show_next

    if output is not None and in_place:
        raise UsageMistake("--output and --in-place exclude each other; name one of them")
    choice = choose_plan(plan)
    plan = choice.path
    run = open_run(plan, outcomes, log)
    named = {known_todo(run.state, each, "::") for each in choice.todo_ids or ()}
    named |= set() if todo is None else {known_todo(run.state, todo, "--todo")}
    if brief is not None:
        return _print_brief(run, brief)
    actions = [each for each in run.outstanding() if not named or _concerns(each, named, run.state)]
    written = _write_revision(run, output, in_place=in_place)
    if as_json:
        _print_json(run, actions, full=full)
        for line in written:
            complain(line)
    else:
        show_next(run, actions, plan, written)
    return _status(run, actions)


def open_run(plan: Path, outcomes: Path | None = None, log: Path | None = None) -> PlanRun:
    """Load the run of a plan and keep what is new of it; a log that cannot be written is told of."""
    from planner.errors import LogError
    from planner.store.plan_run import PlanRun

    run = PlanRun.open(plan, outcomes, log)
    try:
        if run.found.document is not None:
            run.save()
    except LogError as error:
        run.remarks.append(f"{error}; attempts are not counted from run to run")
    return run


def known_todo(state: State, name: str, where: str) -> str:
    """Return the qualified id of a todo of a run; its last part is enough where only one todo has it."""
    if name in state.records:
        return name
    found = [each for each in state.records if each.endswith(f"/{name}")]
    if len(found) == 1:
        return found[0]
    raise UsageMistake(
        f"{where} {name}: there is no such todo; {nearest(name, sorted(state.records), 'the todos are')}"
    )


def _concerns(action: Action, named: set[str], state: State) -> bool:
    """Return whether an action is about one of some todos, or about a branch of one."""
    concerned = set(getattr(action, "todo_ids", ())) | {getattr(action, "todo_id", None)}
    records = (state.records.get(name or "") for name in concerned)
    return not named.isdisjoint(concerned) or any(each and each.parent_id in named for each in records)


def _print_brief(run: PlanRun, name: str) -> int:
    from planner.cli.screen import write
    from planner.engine.requests import brief_of

    todo_id = known_todo(run.state, name, "--brief")
    record = run.state.records[todo_id]
    open_branch = record.branches[-1] if record.branches else None
    if open_branch is not None and not run.state.records[open_branch].life.is_final:
        todo_id = open_branch
    write(brief_of(run.state, todo_id) + "\n")
    return Status.OK


def _write_revision(run: PlanRun, output: Path | None, *, in_place: bool) -> list[str]:
    """Write the plan as the run has revised it; return what is to be told about that."""
    if output is None and not in_place:
        return []
    from planner.engine.plans import current_plan
    from planner.planfile.loader import shown_path
    from planner.planfile.versions import write_beside, write_in_place
    from planner.policy.limits import inherited

    plans = {within: current_plan(run.state, within) for within in run.state.parts}
    for within, sub in run.tree.sub_plans().items():
        if within in plans:
            own, above = sub.loaded.plan.metadata, plans[run.state.records[within].within].metadata
            if inherited(own, above) == plans[within].metadata:  # what it has from above is not its own
                plans[within] = plans[within].model_copy(update={"metadata": own})
    made = write_in_place(run.tree, plans) if output is None else write_beside(run.tree, plans, output)
    if not made:
        return ["nothing was written: the plan is as the run has it"]
    lines = [f"wrote {shown_path(each.path)}" for each in made]
    lines += [
        f"{shown_path(each.path)} lost its layout and comments: they could not be kept"
        for each in made
        if not each.faithful
    ]
    if output is None:
        lines.append(f"{program()} undo {shown_path(run.tree.loaded.path)} brings the version before back")
    return lines


def _print_json(run: PlanRun, actions: list[Action], *, full: bool) -> None:
    from planner.cli.next_screen import advice, in_short
    from planner.cli.screen import write
    from planner.store.lines import action_text

    def plain(action: Action) -> dict[str, Any]:
        held: dict[str, Any] = json.loads(action_text(action))
        if full:
            return held
        short = {key: value for key, value in held.items() if key not in _LONG and value}
        record = run.state.records.get(held.get("todo_id", ""))
        primary = record if record is None or not record.parent_id else run.state.records[record.parent_id]
        failure = None if record is None or primary is None else record.failure or primary.failure
        if failure is None or primary is None:
            return short
        return short | {"failure": in_short(failure, primary)}

    state, document = run.state, run.found.document
    told = {
        "plan": state.plan_id,
        "state": state.plan_state.value,
        "run_id": None if document is None else document.run.run_id or None,
        "do": advice(run).command,
        "remarks": [*advice(run).remarks, *run.remarks],
        "actions": [plain(action) for action in actions],
        "blocked": state.blocked(),
        "stopped": None if state.stopped is None else plain(state.stopped),
    }
    write(
        json.dumps({key: value for key, value in told.items() if value not in (None, [], {})}, indent=2)
        + "\n"
    )


def _status(run: PlanRun, actions: list[Action]) -> Status:
    """Return the exit status: whether somebody can go on, and what stands in the way if not."""
    from planner.cli.next_screen import advice
    from planner.model.actions import AskHuman, Implement, QuestionKind
    from planner.model.life import PlanState
    from planner.model.taxonomy import Family, Role

    state = run.state
    if state.plan_state is PlanState.COMPLETED:
        return Status.FOUND if advice(run).unaccepted else Status.OK
    if state.plan_state is PlanState.HALTED:
        category = getattr(state.stopped, "category", None)
        family = None if category is None else category.facts.family
        halted_by = {Family.SANDBOX: Status.SECURITY_HALT, Family.BUDGET: Status.BUDGET_HALT}
        return Status.HUMAN_NEEDED if family is None else halted_by.get(family, Status.HUMAN_NEEDED)
    if state.plan_state is PlanState.REJECTED:
        return Status.UNREADABLE
    asked = [action for action in actions if isinstance(action, AskHuman)]
    rest = [action for action in actions if not isinstance(action, AskHuman)]
    retried_later = [each for each in rest if each.rule in _BLAME_NOBODY]
    if any(
        each not in retried_later and not (isinstance(each, Implement) and each.role is Role.HUMAN)
        for each in rest
    ):
        return Status.OK
    if retried_later or (asked and all(each.kind is QuestionKind.MEND_ENVIRONMENT for each in asked)):
        return Status.ENVIRONMENT
    return Status.HUMAN_NEEDED if actions else Status.OK
