"""``planner history``: what is known of earlier runs, failures and plans, out of logs and outcome files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, PlanArgument, nearest, plan_or_usual, usual_plan
from planner.cli.ending import Status, UsageMistake, complain, ends
from planner.model.taxonomy import Category, Owner, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.planfile.loader import LoadedPlan
    from planner.store.index import Index
    from planner.store.questions import Found

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Ask this database, a file of SQLite or a URL. Default: the index of the project.",
    ),
]
RunOption = Annotated[
    str | None, typer.Option("--run", metavar="ID", help="Only this run; the start of its id is enough.")
]
SignatureArgument = Annotated[
    str, typer.Argument(metavar="SIGNATURE", help="Of a failure; the start of it is enough.")
]

EPILOG = (
    "Exit status: 0 shown, 1 nothing is known of it, 2 wrong usage, 4 a file or the database cannot be "
    "used; what the others tell is shown all the same."
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
    """Tell what is known of earlier runs; `planner history PLAN` shows those of a plan.

    It is read from the logs and outcome files below .planverify, by way of an index that can be deleted.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is asked about."""

    root: Path
    store: str | None
    plan_id: str | None = None
    shown: str = ""
    """What the screen calls the plan."""

    def open(self, *, rebuild: bool = False) -> Index:
        """Return the index, which tells on standard error what it could not read."""
        from planner.store.index import open_index

        index = open_index(self.root, self.store, rebuild=rebuild)
        for remark in index.remarks:
            complain(remark)
        return index


@app.command(epilog=EPILOG)
@ends
def show(
    plan: PlanArgument = None,
    run: RunOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the index of the project anew from its files.")
    ] = False,
    imports: Annotated[
        bool, typer.Option("--import", help="Bring the database of --store up to date with this project.")
    ] = False,
) -> int:
    """Show the runs of a plan with their branches, its failures by category, and what is blocked."""
    from planner.store import questions

    if imports != (store is not None) and (imports or rebuild):
        raise UsageMistake("--import fills the database of --store URL, --rebuild the project's own index")
    if rebuild and imports:
        raise UsageMistake("--rebuild is of the project's own index; leave --store and --import out")
    subject = _about_plan(plan, store)
    if imports and store is not None:
        _import(subject.root, store)
    with subject.open(rebuild=rebuild) as index, index.reading() as rows:
        runs = _chosen(questions.runs(rows, subject.plan_id), run, of=None)
        verifications = questions.verifications(rows, subject.plan_id)
        if run is not None:
            verifications = [each for each in verifications if each["run_id"].startswith(run)]
            if not runs and not verifications:
                known = questions.runs(rows, subject.plan_id) + questions.verifications(
                    rows, subject.plan_id
                )
                raise _unknown_run(run, known)
        branches, asked = questions.branches(rows, runs), questions.questions(rows, runs)
        failures = questions.failure_counts(rows, subject.plan_id or "")
    mean = questions.mean_resolution(each for those in branches for each in those)
    if as_json:
        document = {
            "plan": subject.plan_id,
            "average_resolution_seconds": mean,
            "blocked_runs": [each["run_id"] for each in runs if each["blocked_since"]],
            "runs": [
                {
                    **each,
                    "average_resolution_seconds": questions.mean_resolution(those),
                    "branches": those,
                    "questions": waiting,
                }
                for each, those, waiting in zip(runs, branches, asked, strict=True)
            ],
            "verifications": verifications,
            "failures": failures,
        }
        _print_json(document)
    else:
        from planner.cli.history_screen import show_runs

        show_runs(subject.shown, runs, branches, asked, verifications, failures, mean)
    return _status(index)


@app.command(epilog=EPILOG)
@ends
def fixed(signature: SignatureArgument, store: StoreOption = None, as_json: JsonOption = False) -> int:
    """Tell what repaired a failure before, who did, and how often."""
    from planner.store import questions

    with _about_project(store).open() as index, index.reading() as rows:
        known = questions.signatures(rows)
        found = questions.failure(rows, questions.signature_meant(known, signature))
    if as_json:
        _print_json({"signature": signature, "known": False} if found is None else {**found, "known": True})
    else:
        from planner.cli.history_screen import show_failure, show_unknown

        if found is None:
            show_unknown(signature, known)
        else:
            show_failure(found)
    return Status.FOUND if found is None else _status(index)


@app.command(epilog=EPILOG)
@ends
def blocked(store: StoreOption = None, as_json: JsonOption = False) -> int:
    """List the runs in which something is blocked, or waits for a person."""
    from planner.store import questions

    with _about_project(store).open() as index, index.reading() as rows:
        runs = questions.blocked_runs(rows)
        waiting = [
            [each for each in those if each["decision"] is None]
            for those in questions.questions(rows, runs)
        ]
    if as_json:
        pairs = zip(runs, waiting, strict=True)
        _print_json({"blocked_runs": [{**each, "questions": those} for each, those in pairs]})
    else:
        from planner.cli.history_screen import show_blocked

        show_blocked(runs, waiting)
    return _status(index)


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
    from planner.store import questions

    subject = _about_plan(plan, store)
    with subject.open() as index, index.reading() as rows:
        runs = _chosen(questions.runs(rows, subject.plan_id), run)
        found = questions.work(rows, runs)
    if todo is not None:
        names = dict.fromkeys(each["todo_id"] for those in found for each in those)
        if todo not in names:
            listing = nearest(todo, names, "those in the log are")
            raise UsageMistake(f"--todo {todo}: nothing is in the artifact log of such a todo; {listing}")
        found = [[each for each in those if each["todo_id"] == todo] for those in found]
    if as_json:
        pairs = zip(runs, found, strict=True)
        entries = [{"run_id": each["run_id"], **one} for each, those in pairs for one in those]
        _print_json({"plan": subject.plan_id, "artifacts": entries})
    else:
        from planner.cli.history_screen import show_work

        show_work(subject.shown, runs, found)
    return _status(index)


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
    from planner.planfile.fingerprint import repository_fingerprint
    from planner.store import questions

    if as_plan and as_json:
        raise UsageMistake("--plan prints YAML, and --json JSON; choose one")
    with _about_project(store).open() as index, index.reading() as rows:
        plans = questions.plans_for(rows, goal)
    loaded = _usual()
    here = None if loaded is None else repository_fingerprint(loaded.root, loaded.plan)
    plans.sort(key=lambda each: here is not None and each["fingerprint"] != here)
    if as_plan and plans:
        from planner.cli.screen import write
        from planner.planfile.dump import yaml_text

        write(yaml_text(plans[0]["document"]))
    elif as_json:
        known = [{**each, "here": None if here is None else each["fingerprint"] == here} for each in plans]
        _print_json({"goal": goal, "plans": known})
    else:
        from planner.cli.history_screen import show_plans

        show_plans(goal, plans, here)
    return _status(index) if plans else Status.FOUND


@app.command(epilog="Exit status: 0 remembered, 2 wrong usage, 4 it cannot be written.")
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
) -> int:
    """Remember what a failure really was, whose, or whose to repair; later runs learn from it."""
    from planner.model.past import Correction
    from planner.planfile.fingerprint import repository_fingerprint
    from planner.store import questions
    from planner.store.corrections import append_correction

    if role is None and category is None and owner is None:
        raise UsageMistake(
            "a correction has to correct something: tell with --category what kind of failure it was, with "
            "--owner whose it was, or with --role who should have acted"
        )
    subject = _about_project(None)
    with subject.open() as index, index.reading() as rows:
        others = questions.signatures(rows)
        known = questions.failure(rows, questions.signature_meant(others, signature)) or {}
    diagnosed = was or (Category(known["category"]) if known else None)
    if diagnosed is None:
        near = nearest(signature, others, "those that were seen are")
        raise UsageMistake(
            f"no run has seen a failure {signature}; {near}; of one that nothing here has seen, tell with "
            "--was as what it was diagnosed"
        )
    usual = category.facts.default_role if category else known.get("role")
    loaded = _usual()
    here = None if loaded is None else repository_fingerprint(loaded.root, loaded.plan)
    correction = Correction(
        at=datetime.now(UTC),
        fingerprint=known.get("fingerprint") or here or "",
        signature=known.get("signature") or signature,
        category=diagnosed,
        role=role or Role(usual or diagnosed.facts.default_role),
        right_category=category,
        right_owner=owner,
        features=tuple(known.get("features") or ()),
        by=by,
        because=because,
    )
    append_correction(subject.root, correction)
    kind = "" if category is None else f" {category.value}"
    whose = "" if owner is None else f" of the {owner.value}"
    really = f" and was{kind}{whose}" if kind or whose else ""
    typer.echo(
        f"remembered: {correction.signature} ({diagnosed.value}) is for the {correction.role.value}{really}"
    )
    return Status.OK


# -- what is asked about -------------------------------------------------------------------------------


def _about_plan(plan: Path | None, store: str | None) -> Subject:
    """Return what is asked about a plan, which is the path of its file or its id."""
    if plan is not None and not plan.exists() and plan.suffix not in (".yaml", ".yml", ".json"):
        return Subject(root=_about_project(None).root, store=store, plan_id=str(plan), shown=str(plan))
    path = plan_or_usual(plan)
    loaded = _loaded(path)
    plan_id = loaded.plan.todo_list_id
    return Subject(root=loaded.root, store=store, plan_id=plan_id, shown=f"{plan_id} ({path})")


def _about_project(store: str | None) -> Subject:
    """Return what is asked about all plans of the project: below the usual plan's root, else here."""
    loaded = _usual()
    return Subject(root=Path() if loaded is None else loaded.root, store=store)


def _usual() -> LoadedPlan | None:
    """Return the plan that lies here, if one does and it can be read."""
    from planner.errors import PlannerError

    path = usual_plan()
    try:
        return None if path is None else _loaded(path)
    except (PlannerError, OSError):
        return None


def _loaded(path: Path) -> LoadedPlan:
    from planner.planfile.loader import load_plan

    return load_plan(path)


def _import(root: Path, store: str) -> None:
    from planner.store.index import Index

    with Index.open(store) as index:
        for remark in index.sync(root):
            complain(remark)


def _chosen(runs: Sequence[Found], run_id: str | None, of: str | None = "runs") -> list[Found]:
    """Return all of them, or the one that is named; ``of`` is ``None`` where there need be none."""
    if run_id is None:
        return list(runs)
    found = [each for each in runs if each["run_id"] == run_id]
    found = found or [each for each in runs if each["run_id"].startswith(run_id)]
    if len(found) > 1 or (not found and of is not None):
        raise _unknown_run(run_id, found or runs, several=bool(found))
    return found


def _unknown_run(run_id: str, known: Iterable[Found], *, several: bool = False) -> UsageMistake:
    problem = "several runs begin so" if several else "there is no such run"
    names = [each["run_id"] for each in known]
    return UsageMistake(f"'{run_id}': {problem}; {nearest(run_id, names, 'the runs are')}")


def _status(index: Index) -> Status:
    return Status.UNREADABLE if index.remarks else Status.OK


def _print_json(document: object) -> None:
    from planner.cli.screen import write

    write(json.dumps(document, indent=2) + "\n")
