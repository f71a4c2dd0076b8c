"""``planner brief``: the root cause to fix first, for an agent that asks after every run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from planner.brief import Consequences
from planner.brief.page import CHARACTERS_PER_TOKEN
from planner.cli.app import command
from planner.cli.arguments import OutcomesOption, TodosArgument, choose_plan, complete_todo
from planner.cli.exits import Status, UsageMistake
from planner.cli.runs import known_todo, open_run, readiness
from planner.cli.screen import write
from planner.engine.requests import PAGE_TOKENS, brief_of, short_brief_of
from planner.errors import PlannerError

if TYPE_CHECKING:
    from planner.brief import Consequences
    from planner.store.plan_run import PlanRun

DEFAULT_TOKENS = 105


@command("Exit status: 0 told, or nothing is red; 2 wrong usage, 4 the plan was not verified yet.")
def brief(
    plan: TodosArgument = None,
    todo: Annotated[
        str | None,
        typer.Option(
            "--todo",
            metavar="TODO",
            help="Tell of this todo or branch. Default: the root cause to fix first.",
            autocompletion=complete_todo,
        ),
    ] = None,
    tokens: Annotated[
        int, typer.Option("--tokens", min=40, metavar="N", help="At most so many, of four characters each.")
    ] = DEFAULT_TOKENS,
    outcomes: OutcomesOption = None,
) -> int:
    """Print the root cause to fix first: what changed, where, who acts, what next, what to leave alone.

    Where 800 tokens are left, or for a todo that is not red, it is the page of next --brief, cut to size.
    """
    choice = choose_plan(plan)
    named = [todo] if todo else [*(choice.todo_ids or ())]
    if len(named) > 1:
        raise UsageMistake(f"{plan}: a brief is about one todo; name one of them")
    run = open_run(choice.path, outcomes)
    if run.found.document is None and not run.is_driven:
        raise PlannerError(f"{choice.path}: there are no outcomes; run first: {run.found.verify}")
    causes = _causes(run)
    lines: list[str] = []
    if (told := readiness(run)).command:
        lines.append(f"old: {told.remarks[0]}; run first: {told.command}")
    if not named and not causes:
        write("\n".join([*lines, _without_reds(run)]) + "\n")
        return Status.OK
    records = run.state.records
    todo_id = known_todo(run.state, named[0], "--todo") if named else causes[0].todos[0]
    if not named and len(causes) > 1:
        following = f"--todo {shlex.quote(causes[1].todos[0])}"
        lines.append(f"root cause 1 of {len(causes)}; the next: {following}")
    todo_id = records[todo_id].behind or todo_id
    branches = records[todo_id].branches
    worker = branches[-1] if branches and not records[branches[-1]].life.is_final else todo_id
    primary = records[todo_id].parent_id or todo_id
    reds = next((each for each in causes if primary in each.todos), None)
    room = tokens - sum(len(line) + 1 for line in lines) // CHARACTERS_PER_TOKEN
    if reds is None or room >= PAGE_TOKENS:
        text = brief_of(run.state, worker, max_tokens=room)
    else:
        verify = run.found.verify if len(reds.todos) > 1 else None
        text = short_brief_of(run.state, worker, reds, verify=verify, max_tokens=room)
    write("\n".join([*lines, text.rstrip("\n")]) + "\n")
    return Status.OK


def _causes(run: PlanRun) -> list[Consequences]:
    """Return what each root cause makes red, the first to fix first; a todo that shows it as such leads."""
    primaries = [each for each in run.state.records.values() if not each.parent_id and each.outcome]
    reds = {each.id: each.failure for each in primaries if each.failure}
    found: list[Consequences] = []
    for cause in () if run.found.document is None else run.found.document.causes:
        shown = [each.todo_id for each in cause.todos if each.todo_id in reds]
        shown.sort(key=lambda each: reds[each].signature not in cause.signatures)
        if shown and reds[shown[0]].signature in cause.signatures:
            found.append(Consequences(shown, cause.tests))
    told = {todo_id for each in found for todo_id in each.todos}
    return found + [Consequences([each], len(reds[each].tests)) for each in reds if each not in told]


def _without_reds(run: PlanRun) -> str:
    """Return that nothing is red, and what comes next."""
    action = next(iter(run.outstanding()), None)
    if action is None:
        return f"nothing is red: {run.state.plan_id} is {run.state.plan_state.value}"
    return f"nothing is red; next: {getattr(action, 'question', action.because)}"
