"""Command ``planverify baseline``: record a baseline, show it, and accept changes of protected files."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import DefaultGroup, command_app
from planner.cli.arguments import PlanArgument, plan_or_usual
from planner.cli.exits import Status, UsageMistake, complain, say
from planner.model.plan import TodoStatus
from planner.planfile.tree import load_flat
from planner.text.display import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.baseline import Baseline

_MOST_NAMED = 10
"""Limit of names in one line of output."""


app = command_app(
    cls=DefaultGroup,
    help="Record and show the state before the work began. Without a command, record it:\n"
    "planverify baseline plan.yaml",
    epilog="Exit status: 0 done, 1 nothing to accept or to show, 2 wrong usage, 4 a file cannot be read, "
    "or the plan cannot be verified.",
)

Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="The reason, which is kept in the baseline.")
]


@app.command(
    epilog="Exit status: 0 recorded, even if tests fail; 2 a baseline exists, or wrong usage; 4 the plan "
    "cannot be verified, or a file cannot be written.",
)
def record(plan: PlanArgument = None, reason: Reason = None) -> int:
    """Record what holds now (the default): verify the plan, and keep what every file holds.

    Do it before the work begins. A baseline that is made again later takes what was changed meanwhile for
    what was there before, a cheat as well: so one is replaced only with a --reason.
    """
    from planner.errors import BaselineError
    from pytest_planverify.baseline import load_baseline
    from pytest_planverify.baseline.kept_baseline import keep_baseline, remade
    from pytest_planverify.baseline.record import look, make_baseline

    flat = load_flat(plan_or_usual(plan))
    root, plan_id = flat.loaded.root, flat.loaded.plan.todo_list_id
    reason = reason and reason.strip()
    earlier = None
    try:
        earlier = load_baseline(root, plan_id)
    except BaselineError:
        if not reason:  # with a reason an unreadable baseline may be replaced as well
            raise
    if earlier is not None and not reason:
        raise UsageMistake(
            f"there is a baseline of '{plan_id}' of {earlier.document.made_at}; what was changed since "
            "would count as what was there before: accept a change of what judges with planverify "
            "baseline accept, or replace all of it with --reason TEXT"
        )
    complain(f"recording the current state in {root}")
    # Before the run, so that files which tests leave behind are not recorded as the project's.
    seen = look(root)
    document, _ = make_baseline(flat, seen, directory=Path.cwd())
    if reason:
        document = remade(document, earlier, reason)
    place, unkept = keep_baseline(root, document, seen.contents)
    _show(document)
    if unkept is not None:
        complain(f"git keeps no copy of it, so a change of {place} will not be detected: {unkept}")
    claimed = [todo.id for todo in flat.loaded.plan.items if todo.status is TodoStatus.CLAIMED]
    if claimed:
        complain(
            "the work has started: the changes for what is claimed done are now part of the baseline: "
            f"{_listed(claimed)}"
        )
    return Status.OK


@app.command(epilog="Exit status: 0 shown, 1 there is no baseline, 4 it cannot be read or trusted.")
def show(plan: PlanArgument = None) -> int:
    """Show what is known of the time before the work."""
    from pytest_planverify.baseline import load_baseline, record_command

    flat = load_flat(plan_or_usual(plan))
    kept = load_baseline(flat.loaded.root, flat.loaded.plan.todo_list_id)
    if kept is None:
        complain(f"the plan has no baseline; record one: {record_command(flat)}")
        return Status.FOUND
    _show(kept.document)
    for each in kept.document.accepted:
        files = _listed(each.files)
        say(f"  accepted  {each.todo_id}: {files}: {each.reason} ({each.at})")
    for each in kept.document.remade:
        say(f"  recorded again {each.at}: {each.reason}")
    for doubt in kept.doubts:
        complain(doubt)
    return Status.UNREADABLE if kept.doubts else Status.OK


def _show(document: Baseline) -> None:
    """Print a summary: revision, tests by outcome, todos by state, and files by kind."""
    tests = document.tests.values()
    red = [name for name, test in document.tests.items() if test.outcome.is_red and not test.flaky]
    flaky = [name for name, test in document.tests.items() if test.flaky]
    outcomes = Counter("flaky" if test.flaky else test.outcome.value for test in tests)
    place = "no git revision" if document.revision is None else f"revision {document.revision[:12]}"
    say(f"baseline of {document.plan} at {place}, {document.made_at}")
    counts = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items())) or "none was run"
    say(f"  tests     {counts}")
    for word, names in (("red", red), ("flaky", flaky)):
        if names:
            say(f"  {word:<9} {_listed(names)}")
    states = Counter(todo.state.value for todo in document.todos.values() if todo.state is not None)
    say(f"  todos     {', '.join(f'{count} {name}' for name, count in sorted(states.items())) or 'none'}")
    kinds = Counter(file.kind.value for file in document.files.values())
    product = kinds.pop("product", 0)
    judges = ", ".join(f"{count} {name}" for name, count in kinds.most_common()) or "none"
    say(f"  judges    {sum(kinds.values())} of {len(document.files)} files: {judges}; {product} product")


def _listed(names: Iterable[str]) -> str:
    return listed(names, _MOST_NAMED)


@app.command(
    epilog=(
        "Exit status: 0 accepted, 1 no test or other judging file has changed, 2 wrong usage, 4 "
        "there is no baseline, or it cannot be trusted."
    )
)
def accept(
    todo: Annotated[
        str,
        typer.Argument(metavar="TODO", help="The todo of the change."),
    ],
    plan: PlanArgument = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file", metavar="PATH", help="A file of the product whose code is suspected; may be repeated."
        ),
    ] = None,
    reason: Reason = None,
) -> int:
    """Accept a legitimate change of what judges: tests, conftests, configuration, data, plans.

    Accepted are the files that judge and differ from the baseline, and those of the product that --file
    names, just as they are now; the next change of one of them needs to be accepted again.
    """
    from pytest_planverify.baseline.kept_baseline import accept_changes

    if not (reason and reason.strip()):
        raise UsageMistake("accept: give the reason with --reason TEXT; it is kept in the baseline")
    flat = load_flat(plan_or_usual(plan))
    known = [each.id for each in flat.loaded.plan.items]
    if todo not in known:
        raise UsageMistake(f"accept: the plan has no todo '{todo}'; it has {_listed(known)}")
    # Relative to the plan's root, as runs show them; a shell may complete them relative to its folder.
    root = flat.loaded.root
    named = {each if (root / each).exists() else os.path.relpath(each, root) for each in file or ()}
    accepted, unkept = accept_changes(flat, todo, reason.strip(), named)
    for path in sorted(named - (set() if accepted is None else accepted.files.keys())):
        why = "does not differ from the baseline, or is accepted already"
        complain(f"not accepted: {path} {why if (root / path).exists() else 'does not exist'}")
    if accepted is None:
        remedy = "" if named else "; name a file of the product with --file PATH"
        say(f"no judging file differs from the baseline, or all changes are accepted already{remedy}")
        return Status.FOUND
    for path, digest in accepted.files.items():
        say(f"accepted for {todo}: {path} {'(gone)' if digest is None else digest[:12]}")
    if unkept is not None:
        complain(f"git keeps no copy of the baseline, so a change of it will not be detected: {unkept}")
    return Status.OK
