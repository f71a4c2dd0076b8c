"""``planner history``: what the store remembers of runs, branches, failures and plans."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, PlanArgument
from planner.cli.ending import Status, UsageMistake, ends
from planner.cli.history_store import Asked, about_plan, about_repository, fingerprint_here
from planner.model.taxonomy import Category, Owner, Role

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from planner.edges.store import CachedPlan, Store
    from planner.edges.store.telling import Branch, Run, Seen

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="A file, or the URL of a database. Default: .planverify/planverify.db below the plan's root.",
    ),
]
RunOption = Annotated[
    str | None, typer.Option("--run", metavar="ID", help="Only this run; the start of its id is enough.")
]
SignatureArgument = Annotated[
    str, typer.Argument(metavar="SIGNATURE", help="Of a failure; the start of it is enough.")
]

EPILOG = (
    "Exit status: 0 shown, 1 nothing is known of it, 2 wrong usage, 4 the store or a file cannot be used."
)


class HistoryGroup(TyperGroup):
    """``planner history PLAN`` is ``planner history show PLAN``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put ``show`` in front of what names no command."""
        if not args or (args[0] not in self.commands and args[0] not in ("--help", "-h")):
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = command_app(cls=HistoryGroup)


@app.callback()
def history() -> None:
    """Tell what the store remembers; `planner history PLAN` shows the runs of a plan.

    The store is filled by `planner step --store`.
    """


@app.command(epilog=EPILOG)
@ends
def show(
    plan: PlanArgument = None, run: RunOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> int:
    """Show the runs of a plan with their branches, how long repairs took, and what is blocked."""
    from planner.edges.store import telling

    asked = about_plan(plan, store)
    with _opened(asked) as opened:
        runs = () if opened is None else _chosen(opened.runs(asked.plan_id), run)
        branches: tuple[Branch, ...] = ()
        approvals: tuple[telling.Approval, ...] = ()
        if opened is not None and runs:
            with opened.asking("reading the branches") as connection:
                ids = [each.run_id for each in runs]
                branches = telling.branches(connection, ids)
                approvals = telling.approvals(connection, ids)
    mean = telling.mean_resolution(branches)
    if as_json:
        document = {
            "plan": asked.plan_id,
            "average_resolution_seconds": mean,
            "blocked_runs": [each.run_id for each in runs if each.is_stuck],
            "runs": [
                {
                    **_plain(each),
                    "average_resolution_seconds": telling.mean_resolution(_of(branches, each)),
                    "branches": [_plain(branch) for branch in _of(branches, each)],
                    "questions": [_plain(one) for one in approvals if one.run_id == each.run_id],
                }
                for each in runs
            ],
        }
        _print_json(document)
    else:
        from planner.cli.history_screen import show_runs

        show_runs(asked, runs, branches, approvals, mean)
    return Status.OK


@app.command(epilog=EPILOG)
@ends
def fixed(signature: SignatureArgument, store: StoreOption = None, as_json: JsonOption = False) -> int:
    """Tell what repaired a failure before, who did, and how often."""
    asked = about_repository(store)
    with _opened(asked) as opened:
        seen, others = (None, ()) if opened is None else _seen(opened, signature)
    if as_json:
        _print_json({"signature": signature, "known": False} if seen is None else _plain_seen(seen))
    else:
        from planner.cli.history_screen import show_seen, show_unseen

        if seen is None:
            show_unseen(signature, others, opened is not None)
        else:
            show_seen(seen)
    return Status.FOUND if seen is None else Status.OK


@app.command(epilog=EPILOG)
@ends
def blocked(store: StoreOption = None, as_json: JsonOption = False) -> int:
    """List the runs in which something is blocked, or waits for a person."""
    from planner.edges.store import telling

    runs: tuple[Run, ...] = ()
    waiting: tuple[telling.Approval, ...] = ()
    with _opened(about_repository(store)) as opened:
        if opened is not None:
            with opened.asking("reading what is blocked") as connection:
                runs = telling.blocked_runs(connection)
                waiting = telling.approvals(connection, [each.run_id for each in runs], open_only=True)
    if as_json:
        document = [
            {**_plain(each), "questions": [_plain(one) for one in waiting if one.run_id == each.run_id]}
            for each in runs
        ]
        _print_json({"blocked_runs": document})
    else:
        from planner.cli.history_screen import show_blocked

        show_blocked(runs, waiting, opened is not None)
    return Status.OK


@app.command(epilog=EPILOG)
@ends
def artifacts(
    plan: PlanArgument = None,
    run: RunOption = None,
    todo: Annotated[
        str | None, typer.Option("--todo", metavar="ID", help="Only what was done for this todo.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show the artifact log of a plan: which turn of which todo touched which files, and when."""
    from planner.edges.store import telling

    asked = about_plan(plan, store)
    found: tuple[telling.Artifacts, ...] = ()
    with _opened(asked) as opened:
        if opened is not None:
            runs = _chosen(opened.runs(asked.plan_id), run)
            with opened.asking("reading the artifact log") as connection:
                found = telling.artifacts(connection, [each.run_id for each in runs])
    if todo is not None:
        _known_todo(todo, [each.todo_id for each in found])
        found = tuple(each for each in found if each.todo_id == todo)
    if as_json:
        _print_json({"plan": asked.plan_id, "artifacts": [_plain(each) for each in found]})
    else:
        from planner.cli.history_screen import show_artifacts

        show_artifacts(asked, found)
    return Status.OK


@app.command(epilog=EPILOG)
@ends
def cached(
    goal: Annotated[
        str, typer.Argument(metavar="GOAL", help="As the plan says it: its x-goal, its name, or its id.")
    ],
    as_plan: Annotated[
        bool, typer.Option("--plan", help="Print the plan that served it best, as YAML.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> int:
    """Tell which plan served a goal before; in this repository first, and those that were completed."""
    if as_plan and as_json:
        raise UsageMistake("--plan prints YAML, and --json JSON; choose one")
    with _opened(about_repository(store)) as opened:
        here = fingerprint_here()
        plans = [] if opened is None else list(opened.cached_plans(goal))
    plans.sort(key=lambda each: here is not None and each.fingerprint != here)
    if as_plan and plans:
        from planner.cli.screen import write

        write(_as_yaml(plans[0]))
    elif as_json:
        _print_json({"goal": goal, "plans": [_plain_plan(each, here) for each in plans]})
    else:
        from planner.cli.history_screen import show_cached

        show_cached(goal, plans, here)
    return Status.OK if plans else Status.FOUND


@app.command(epilog="Exit status: 0 remembered, 2 wrong usage, 4 the store cannot be used.")
@ends
def correct(
    signature: SignatureArgument,
    category: Annotated[
        Category | None,
        typer.Option("--category", case_sensitive=False, help="What kind of failure it really was."),
    ] = None,
    owner: Annotated[
        Owner | None, typer.Option("--owner", case_sensitive=False, help="Whose fault it really was.")
    ] = None,
    role: Annotated[
        Role | None,
        typer.Option(
            "--role",
            case_sensitive=False,
            help="Who should have acted. Default: who usually acts on the category.",
        ),
    ] = None,
    because: Annotated[str | None, typer.Option("--because", metavar="TEXT", help="Why.")] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so.")] = None,
    was: Annotated[
        Category | None,
        typer.Option(
            "--was",
            case_sensitive=False,
            help="As what it was diagnosed; needed only for a failure that nothing here has seen.",
        ),
    ] = None,
    store: StoreOption = None,
) -> int:
    """Remember what a failure really was, whose, or whose to repair; later runs learn from it."""
    from planner.cli.correcting import Said, remember, sentence

    said = Said(role=role, category=category, owner=owner, because=because, by=by, was=was)
    typer.echo(sentence(remember(signature, said, store)))
    return Status.OK


@app.command(epilog=EPILOG)
@ends
def log(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a run; its start is enough.")],
    store: StoreOption = None,
) -> int:
    """Print the log of a run, line by line, as `planner replay` reads it."""
    from planner.cli.screen import write

    asked = about_repository(store)
    with _opened(asked) as opened:
        if opened is None:
            raise UsageMistake(f"there is no store yet ({asked.store}), so there is no run '{run}'")
        (chosen,) = _chosen(opened.runs(), run)
        for line in opened.lines(chosen.run_id):
            write(f"{line}\n")
    return Status.OK


@contextmanager
def _opened(asked: Asked) -> Generator[Store | None]:
    store = asked.open()
    if store is None:
        yield None
        return
    with store:
        yield store


def _chosen(runs: Sequence[Run], run_id: str | None) -> tuple[Run, ...]:
    """All of them, or the one that is named."""
    if run_id is None:
        return tuple(runs)
    found = [each for each in runs if each.run_id == run_id]
    found = found or [each for each in runs if each.run_id.startswith(run_id)]
    if len(found) != 1:
        from planner.cli.arguments import nearest

        problem = "several runs begin so" if found else "there is no such run"
        known = [each.run_id for each in found or runs]
        raise UsageMistake(f"'{run_id}': {problem}; {nearest(run_id, known, 'the runs are')}")
    return tuple(found)


def _seen(store: Store, signature: str) -> tuple[Seen | None, tuple[str, ...]]:
    """What is known of a failure, and the signatures of all others where nothing is."""
    from planner.edges.store import telling

    with store.asking("reading what was seen") as connection:
        seen = telling.seen(connection, signature)
        if seen is not None:
            return seen, ()
        known = telling.signatures(connection)
        begin = [each for each in known if signature and each.startswith(signature)]
        return (telling.seen(connection, begin[0]) if len(begin) == 1 else None), known


def _known_todo(todo: str, known: Sequence[str]) -> None:
    if todo not in known:
        from planner.cli.arguments import nearest

        listing = nearest(todo, dict.fromkeys(known), "those in the log are")
        raise UsageMistake(f"--todo {todo}: nothing is in the artifact log of such a todo; {listing}")


def _of(branches: Sequence[Branch], run: Run) -> list[Branch]:
    return [each for each in branches if each.run_id == run.run_id]


def _plain(value: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(value)


def _plain_seen(seen: Seen) -> dict[str, Any]:
    kept: Mapping[str, Any] = _plain(seen)
    return {**kept, "known": True}


def _plain_plan(plan: CachedPlan, here: str | None) -> dict[str, Any]:
    document = json.loads(plan.document)
    return {
        **_plain(plan),
        "document": document,
        "here": None if here is None else plan.fingerprint == here,
    }


def _as_yaml(plan: CachedPlan) -> str:
    from planner.planfile.dump import yaml_text

    return yaml_text(json.loads(plan.document))


def _print_json(document: object) -> None:
    from planner.cli.screen import write

    write(json.dumps(document, indent=2) + "\n")
